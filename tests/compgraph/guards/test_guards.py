"""Guards: decisions of Python while recording are re-checked in each replay, or reported as uncheckable."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from compgraph import GuardError
from compgraph.guards import guard_logs
from tests.support.failures import Failures
from tests.support.garbage import freeze_existing_objects

pytestmark = pytest.mark.portable

POINT = np.array([1.0, 2.0, 3.0])
FEEDS = [[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [3.0, 2.0, 1.0], [-1.0, 5.0, 0.1], [1.0, 2.0, -9.0], [0.1, 0.2, 0.05]]
PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Enter a program into the table."""
    PROGRAMS[function.__name__] = function
    return function


def either(decided: Any, x: Any) -> Any:
    return x * 2 if decided else x * 3


@program
def chosen_after_the_last_operation(x: Any) -> Any:
    a, b = x * 2, x * 3
    return a if np.sum(x) > 0 else b


@program
def chosen_by_the_result_itself(x: Any) -> Any:
    y = np.sum(x * 3)
    return y if y > 0 else -y


@program
def far_from_the_leaves(x: Any) -> Any:
    s = x
    for _ in range(9):
        s = np.sin(s) * 1.1 + 0.1
    return either(np.sum(s) > 0.9, x)


@program
def in_a_loop(x: Any) -> Any:
    s, k = np.sum(x), 1
    while s > 1:
        s, k = s / 2, k + 1
    return x * k


@program
def against_a_constant(x: Any) -> Any:
    return either(np.sum(x) > cg.constant(0.5), x)


@program
def with_a_raw_operand(x: Any) -> Any:
    return either(np.sum(np.ones((1000, 3)) * x) > 0, x)


@program
def with_a_raw_operand_too_large_to_keep(x: Any) -> Any:
    return either(np.sum(np.ones((100_000, 3)) * x) > 0, x)


@program
def about_a_buffer_that_is_gone(x: Any) -> Any:
    buffer = cg.zeros(3)
    buffer[0] = x[0] * 2
    buffer[1:] = x[1:]
    return either(np.sum(buffer) > 0, x)


@program
def about_a_written_copy_that_is_gone(x: Any) -> Any:
    buffer = x * 1.0
    view = buffer[1:]
    if np.sum(view) < -100:
        return x
    buffer[1] = buffer[0] * 3
    return either(np.sum(view) > 0, x)


@program
def about_a_buffer_directly(x: Any) -> Any:
    buffer = np.zeros_like(x[0])[...]
    buffer += x[0]
    return x * 2 + buffer if buffer > 0 else x * 3 + buffer


@program
def about_a_buffer_as_it_was(x: Any) -> Any:
    y = x * 1.0
    y[0] = 5.0
    decided = bool(np.all(y[:1] > 0))
    y[0] = x[0]
    return either(decided and int(y[0] > 0), y)


@program
def where_nothing_is_recorded(x: Any) -> Any:
    with cg.no_graph():
        return_twice = bool(np.sum(x) > 0)
    return either(return_twice, x)


@program
def of_a_recorded_node_where_nothing_is_recorded(x: Any) -> Any:
    positive = np.sum(x) > 0
    with cg.no_graph():
        decided = bool(positive)
    return either(decided, x)


@program
def about_parts_of_qr(x: Any) -> Any:
    _, r = np.linalg.qr(np.outer(x, x) + 3 * np.eye(3))
    return either(r[0, 0] > -4, x)


@program
def about_parts_of_eigh(x: Any) -> Any:
    return either(np.linalg.eigh(np.outer(x, x) + np.eye(3)).eigenvalues[-1] < 8, x)


@program
def about_one_of_two_parts(x: Any) -> Any:
    whole, rest = divmod(x, 2.0)
    return either(np.any(whole), x) + rest


def decide_often(x: Any) -> None:
    for _ in range(400):
        if x > 1e9:
            raise AssertionError


@program
def while_other_threads_decide(x: Any) -> Any:
    y = either(np.sum(x * 1.0) > 0, x)
    thread = threading.Thread(target=decide_often, args=(cg.variable(1.0),))
    thread.start()
    thread.join()
    return y


@program
def before_more_than_is_remembered(x: Any) -> Any:
    y = either(np.sum(x * 1.0) > 0, x)
    decide_often(x[0])
    return y


@program
def in_forward_mode(x: Any) -> Any:
    return ad.jvp(lambda t: t * t if np.sum(t) > 0 else t * 3, (x,), (np.ones(3),))[1]


@program
def in_a_gradient(x: Any) -> Any:
    return ad.grad(lambda t: np.sum(t * t) if np.sum(t) > 0 else np.sum(t * 3))(x)


@program
def by_keyword(x: Any) -> Any:
    return either(np.allclose(a=x, b=[1.0, 2.0, 3.0]), x)


@program
def by_numbers_in_a_list(x: Any) -> Any:
    return either(np.array_equal([x[0], x[1]], [1.0, 2.0]), x)


@program
def by_membership(x: Any) -> Any:
    return either(1.0 in x, x)


@program
def by_item(x: Any) -> Any:
    return either((x > 0)[0].item(), x)


@program
def by_list(x: Any) -> Any:
    return either((x > 0).tolist()[0], x)


@program
def by_float(x: Any) -> Any:
    a, b = x * 2, x * 3
    return a if float(x[0]) > 0 else b


@program
def before_an_update(x: Any) -> Any:
    y = either(np.sum(x) > 0, x)
    if isinstance(x, cg.VariableNode):
        x += 0.5
    return y


@program
def by_sorting(x: Any) -> Any:
    return sorted([x[0], x[1], x[2]])[0] * x


@program
def about_a_constant_that_may_be_fed(x: Any) -> Any:
    c = cg.constant(2.0, "c")
    return x * c if c > 0 else x * c * 3


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_logs, "MAX_GUARDS", 300)


def outcomes(function: Callable[[Any], Any], x: Any, way: Callable[[Any], Any] = lambda graph: graph, **options: Any) -> set[str]:
    """Outcomes of a program that is recorded once, its graph copied by `way`, and run with other values."""
    cg.reset()
    out, x = way((function(x), x))
    gc.collect()
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        try:
            executor = cg.Executor(out, **options)
        except GuardError:
            return {"refused"}
    labels = {"warned"} if records else set()
    for point in FEEDS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eager = function(cg.variable(point))
        try:
            result = executor.run({x: np.array(point)})
        except GuardError:
            labels.add("guarded")
        else:
            labels.add("equal" if np.allclose(result, eager.value, rtol=1e-12) else "wrong")
    return labels


OPTIONS: dict[str, dict[str, Any]] = {"plain": {}, "strict": {"strict": True}, "fused": {"fuse": True, "simplify": False}}
WAYS: dict[str, Callable[[Any], Any]] = {"pickle": lambda graph: pickle.loads(pickle.dumps(graph)), "deepcopy": copy.deepcopy}


@pytest.fixture
def _little_garbage() -> None:
    """Limit the garbage collections in `outcomes` to its own objects."""
    freeze_existing_objects()


@pytest.mark.usefixtures("_little_garbage")
@pytest.mark.parametrize("options", OPTIONS)
def test_guard_is_recorded_or_reported_as_lost(options: str) -> None:
    with Failures(options) as failures:
        for name, make in itertools.product(PROGRAMS, (cg.variable, cg.placeholder)):
            with failures.case(f"{name}, {make.__name__}"):
                x = cg.variable(POINT, "x") if make is cg.variable else cg.placeholder((3,), name="x", example=POINT)
                labels = outcomes(PROGRAMS[name], x, **OPTIONS[options])
                assert "wrong" not in labels or "warned" in labels
                assert labels != {"warned", "wrong"}


@pytest.mark.parametrize(
    "name", ["far_from_the_leaves", "with_a_raw_operand", "about_parts_of_qr", "while_other_threads_decide", "in_a_gradient"]
)
def test_guard_is_rechecked(name: str) -> None:
    assert outcomes(PROGRAMS[name], cg.variable(POINT, "x"), strict=True) == {"equal", "guarded"}


@pytest.mark.usefixtures("_little_garbage")
@pytest.mark.parametrize("way", WAYS)
def test_guard_is_kept_by_graph_copy(way: str) -> None:
    with Failures(way) as failures:
        for name, make in itertools.product(PROGRAMS, (cg.variable, cg.placeholder)):
            with failures.case(f"{name}, {make.__name__}"):
                x = cg.variable(POINT, "x") if make is cg.variable else cg.placeholder((3,), name="x", example=POINT)
                labels = outcomes(PROGRAMS[name], x, WAYS[way])
                assert "wrong" not in labels or "warned" in labels
                assert "wrong" not in outcomes(PROGRAMS[name], x, WAYS[way], strict=True)


def test_guard_absence_in_copy_is_silent() -> None:
    w, v = cg.variable(POINT, "w"), cg.variable(POINT, "v")
    if v[0] > 0:  # v is not part of the graph
        v = v * 2
    if np.sum(w) > 0:
        w[...] = 1.0
    graph, again = copy.deepcopy((w * 2, w))
    assert not cg.Executor(graph, strict=True).leaks
    if again[0] > 0:
        graph, again = pickle.loads(pickle.dumps((again * 3, again)))
    with pytest.raises(GuardError, match=r"copy.*again\[0\] > 0"):
        cg.Executor(graph, strict=True)
    assert not cg.Executor(again + 1, strict=True).leaks  # recorded since


def test_guard_of_fed_constant() -> None:
    c, x = cg.constant(2.0, "c"), cg.variable(POINT, "x")
    y = x * c if c * 2 > 0 else x * c * 3
    executor = cg.Executor(y)
    np.testing.assert_array_equal(executor.run({"c": 3.0}), POINT * 3)
    with pytest.raises(GuardError, match="c if c"):
        executor.run({"c": -2.0})


def test_guard_of_earlier_variable_value_is_ignored() -> None:
    w = cg.variable(1.0, "w")
    for _ in range(10):
        loss = (w - 3.0) ** 2
        if loss > 1:
            w += 0.5
    assert not cg.Executor(w * 2, strict=True).leaks
    assert cg.Executor(w * 2).run({"w": 3.0}) == 6


@pytest.mark.parametrize("updates", [True, False])
def test_guard_log_is_bounded(updates: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_logs, "FIRST_EVICTION_BYTES", 2**17)
    monkeypatch.setattr(guard_logs, "MAX_LOG_BYTES", 2**19)
    w = cg.variable(np.ones(3), "w")

    def remembered(steps: int) -> int:
        for _ in range(steps):
            s = w
            for _ in range(100):
                s = s * 1.001
            if s[0] < 0:
                raise AssertionError
            if updates:
                w[...] = 1.0
        gc.collect()
        return sum(type(o).__name__ == "Recipe" for o in gc.get_objects())

    assert remembered(60) < 6000
    assert remembered(400) < 6000


@pytest.mark.parametrize("simplify", [True, False])
def test_executor_constant_is_fed_in_each_run(simplify: bool) -> None:
    c, x = cg.constant(2.0, "c"), cg.variable(POINT, "x")
    run = cg.Executor(x * (c * 2 + 1), simplify=simplify).run
    for value in (3.0, 4.0):
        np.testing.assert_array_equal(run({"c": value}), POINT * (value * 2 + 1))


def test_guard_number_fed_with_broadcast_is_not_constant() -> None:
    x, y = cg.placeholder((20_000,), name="x"), cg.variable(np.ones(20_000))
    run = cg.Executor(np.sin(x + y) * 2, fuse=True).run
    for value in (3.0, 4.0):
        np.testing.assert_array_equal(run({x: np.broadcast_to(value, x.shape)}), np.sin(np.full(20_000, value) + 1) * 2)


def min_of(x: Any) -> Any:
    return x + 1.0


@pytest.mark.parametrize("name", ["\U0001d4b3", "range", "start", "v1", "x0", "t0", "c3", "lambda", "run", "np", "out", "a b"])
def test_executor_names_of_operations_do_not_shadow(name: str) -> None:
    def doubled(x: Any) -> Any:
        return x * 2.0

    doubled.__name__ = doubled.__qualname__ = name
    own = cg.primitive(doubled)
    x = cg.variable(np.linspace(0.0, 3.0, 40_000), "x")
    out = np.exp(-own(x)) * np.min(x, initial=5.0) + np.max(x * 2) + np.abs(np.min(x)) + own(x[:3])[0] + min_of(x)
    for options in ({"fuse": True}, {}):
        run = cg.Executor(out, **options).run
        for factor in (1.0, 2.0):
            v = x.value * factor
            want = np.exp(-(v * 2.0)) * np.min(v, initial=5.0) + np.max(v * 2) + np.abs(np.min(v)) + (v * 2.0)[0] + min_of(v)
            np.testing.assert_allclose(run({x: v}), want, rtol=1e-13)


LENGTHS: dict[str, Callable[[Any], Any]] = {
    "loop over flat": lambda x: sum(v for v in (x * 2).flat),
    "len of flat": lambda x: np.sum(x) / len(x.flat),
    "part of flat": lambda x: np.sum(x.flat[1:] * 2),
    "triu": lambda x: np.sum((o := np.outer(x, x))[np.triu_indices_from(o)]),
    "tril": lambda x: np.sum((o := np.outer(x, x))[np.tril_indices_from(o)]),
    "diag": lambda x: np.sum((o := np.outer(x, x))[np.diag_indices_from(o)]),
    "strides": lambda x: np.sum(x) * x.strides[0] * len(x),
    "trim_zeros": lambda x: np.sum(np.trim_zeros(np.maximum(x, 0)) ** 2),
    "mean of trim_zeros": lambda x: np.sum(t := np.trim_zeros(np.maximum(x, 0))) / (1 + len(t)),
}


def write_branch(array: Any, _: Any) -> Any:
    return array


# Writes into parts that are empty in the shortest of arrays; nothing was remembered of those.
INTO_NOTHING: dict[str, Callable[[Any, Any], Any]] = {
    "assignment": lambda y, x: write_branch(y, y.__setitem__(slice(2, None), 5.0)),
    "an operator": lambda y, x: write_branch(y, y[2:].__imul__(5)),
    "an operator on chosen": lambda y, x: y[x > 2].__imul__(5),
    "a function on a view": lambda y, x: write_branch(y, np.multiply(x[2:], 3, out=y[2:])),
    "fill": lambda y, x: write_branch(y, y[2:].fill(3.0)),
    "put": lambda y, x: write_branch(y, y[2:].put([-1], 3.0) if len(y) > 2 else None),
    "flat": lambda y, x: write_branch(y, y.flat.__setitem__(slice(2, None), 7.0)),
    "copyto": lambda y, x: write_branch(y, np.copyto(y[2:], 3.0)),
    "at": lambda y, x: write_branch(y, np.add.at(y, slice(2, None), 1.0)),
    "sort": lambda y, x: write_branch(y, y[2:].sort()) * np.arange(len(y)),
    "fill of chosen": lambda y, x: write_branch(c := np.compress(x > 2, y), c.fill(3.0)),
    "an operator within a matrix": lambda y, x: write_branch(m := np.outer(y, x), m[2:, 2:].__imul__(3)),
    "an operator on few": lambda y, x: write_branch(c := y[x > 0.5], c.__imul__(x[x > 0.5])),
}
LENGTHS |= {name: lambda x, write=write: np.sum(write(x * 1.0, x)) for name, write in INTO_NOTHING.items()}


def test_guard_of_length_of_another_array() -> None:
    with Failures("programs") as failures:
        for name, program in LENGTHS.items():
            with failures.case(name):
                program = LENGTHS[name]
                for example in ([1.0, 2.0], [0.0, 0.0]):
                    x = cg.placeholder((None,), name="x", example=example)
                    executor = cg.Executor(program(x))
                    for point in ([1.0, 2.0], [3.0, -1.0], [0.0, 2.0, 0.0], [1.0, 2.0, 3.0, 4.0], [-1.0, 0.0, 5.0], [4.0]):
                        try:
                            outputs = executor.run({x: np.array(point)})
                        except GuardError:
                            continue
                        np.testing.assert_allclose(outputs, np.asarray(program(cg.variable(point)).value))


@pytest.mark.parametrize("length", [5, 300_000])  # short indices are stored, long ones are hashed
def test_guard_of_index_values(length: int) -> None:
    x = cg.placeholder((length,), name="x")
    index = cg.placeholder((length,), int, example=np.arange(length), name="index")
    y = 0 * x + 0 * index
    y[index] = x
    executor = cg.Executor(y)
    values = np.arange(float(length))
    assert np.array_equal(executor.run({"x": values, "index": np.arange(length)}), values)
    with pytest.raises(GuardError, match="With these values it differs"):
        executor.run({"x": values, "index": np.arange(length)[::-1]})
    with pytest.raises(GuardError, match="With these values it differs"):
        pickle.loads(pickle.dumps(executor)).run({"x": values, "index": np.arange(length)[::-1]})


BESIDE: dict[str, Callable[[Any, Any], Any]] = {
    "bool": lambda x, y: either(np.sum(x) > 0, y),
    "any": lambda x, y: either(np.any(x < 0), y),
    "int": lambda x, y: y * int(x[0]),
    "length": lambda x, y: y * len(x[x > 1]),
    "chosen later": lambda x, y: [y * 2, y * 3][int(np.sum(x) < 0)],
    "within a gradient": lambda x, y: ad.grad(lambda v: np.sum(v**2) if np.sum(x) > 0 else np.sum(v**3))(y),
}


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", BESIDE)
def test_guard_of_unread_variable(name: str, jit: bool) -> None:
    if jit:
        pytest.importorskip("llvmlite", reason="pip install llvmlite")
    x, y = cg.variable(POINT, "x"), cg.variable(POINT + 1, "y")
    executor = cg.Executor(BESIDE[name](x, y), jit=jit)
    for run in (executor.run, pickle.loads(pickle.dumps(executor)).run):
        np.testing.assert_allclose(run({"x": POINT, "y": POINT}), BESIDE[name](POINT, POINT))
        with pytest.raises(GuardError):
            run({"x": -POINT})
    x.value[...] = -POINT
    with pytest.raises(GuardError):
        executor.run({})


def test_guard_of_unrelated_variable_is_ignored() -> None:
    x = cg.variable(POINT, "x")
    assert np.sum(x) > 0  # before the leaves of the other graph were made
    executor = cg.Executor(cg.variable(POINT, "y") * 2)
    loaded = cg.Executor(pickle.loads(pickle.dumps(executor.nodes[0])))
    assert np.sum(x) > 0
    x -= 10
    for other in (executor, loaded):
        assert other.run({"y": POINT}).tolist() == [2, 4, 6]


COUNTED: dict[str, Callable[[Any], Any]] = {
    "ones_like": lambda x: np.ones_like(x[x > 1]),
    "zeros_like": lambda x: np.sum(x) + np.zeros_like(x[x > 1]),
    "len": lambda x: x * len(x[x > 1]),
    "size": lambda x: x * x[np.where(x > 1)[0]].size,
    "gradient": lambda x: ad.grad(lambda v: v[v > 1].mean())(x),
}


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", COUNTED)
def test_guard_of_value_dependent_length(name: str, jit: bool) -> None:
    if jit:
        pytest.importorskip("llvmlite", reason="pip install llvmlite")
    x = cg.variable(POINT, "x")
    executor = cg.Executor(COUNTED[name](x), jit=jit)
    for values in (POINT, POINT[::-1], POINT + 1, np.full(3, 5.0)):
        try:
            np.testing.assert_allclose(executor.run({"x": values}), COUNTED[name](values))
        except GuardError:
            assert np.sum(values > 1) != 2
    with pytest.raises(GuardError):
        executor.run({"x": POINT + 1})


def branching(x: Any) -> Any:
    y = np.sum(x * 1.5)
    return np.sum(x**2) if y > 0 else np.sum(x**3)


TRACES: dict[str, Callable[[Any], Any]] = {
    "grad": lambda x: ad.grad(branching)(x),
    "jacobian": lambda x: ad.jacobian(branching)(x),
    "hessian": lambda x: ad.hessian(branching)(x),
    "jvp": lambda x: ad.jvp(branching, (x,), (np.ones(3),))[1],
    "taylor": lambda x: ad.taylor(branching, x, 2),
    "grad of grad": lambda x: ad.grad(lambda v: np.sum(ad.grad(branching)(v)))(x),
}


@pytest.mark.usefixtures("_little_garbage")
def test_guard_of_operator_argument_is_dropped() -> None:
    """No other graph depends on them, so they are freed."""
    with Failures("operators") as failures:
        for name, derive in TRACES.items():
            with failures.case(name):
                calls: list[int] = []
                before = guard_logs.GuardLog.__init__

                def counted(self: Any, calls: list[int] = calls, before: Any = before) -> None:
                    calls.append(1)
                    before(self)

                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(guard_logs.GuardLog, "__init__", counted)
                    assert derive(POINT) is not None
                assert not calls


# Decisions within an operator about values from outside of it, or about its arguments where these are nodes.
INSIDE: dict[str, Callable[[Any, Any], Any]] = {
    "argument": lambda x, y: ad.grad(branching)(x),
    "argument of a nested operator": lambda x, y: ad.grad(lambda v: np.sum(ad.grad(branching)(v) ** 2))(x),
    "captured": lambda x, y: ad.grad(lambda v: np.sum(v**2) if np.sum(x) > 0 else np.sum(v**3))(y),
    "captured by a nested operator": lambda x, y: ad.grad(
        lambda v: np.sum(ad.grad(lambda u: np.sum(u**2) if np.sum(x) > 0 else np.sum(u**3))(v))
    )(y),
    "before an error": lambda x, y: y * error_of_wrong_rule(lambda v: 1 if np.sum(x) > 0 else 1 / 0),
    "tangent": lambda x, y: ad.jvp(branching, (x,), (np.ones(3),))[1] * y,
    "written": lambda x, y: ad.grad(write_by_branch)(x),
}


def error_of_wrong_rule(f: Callable[[Any], Any]) -> int:
    """The error of an operator whose function returns a wrong result."""
    try:
        ad.grad(f)(POINT)
    except TypeError:
        return 2
    except ZeroDivisionError:
        return 3
    return 1


def write_by_branch(x: Any) -> Any:
    buffer = np.zeros(3)
    buffer[0] = x[0]
    buffer[1:] = x[1:] * 2
    return np.sum(buffer**2) if np.sum(buffer) > 0 else np.sum(buffer**3)


def test_guard_within_operator() -> None:
    with Failures("programs") as failures:
        for name, program in INSIDE.items():
            with failures.case(name):
                x, y = cg.variable(POINT, "x"), cg.variable(POINT + 1, "y")
                executor = cg.Executor(program(x, y), strict=True)
                values = {node.name: node.value + 0.5 for node in (x, y) if node.name in executor._nodes_by_name}
                np.testing.assert_allclose(executor.run(values), program(POINT + 0.5, POINT + 1.5))
                with pytest.raises(GuardError):
                    executor.run({"x": -POINT})


def test_guard_dropped_within_operator_warns() -> None:
    def f(x: Any) -> Any:
        cg.Executor(np.sum(x * 3), strict=True)
        y = branching(x)
        with pytest.raises(GuardError, match="an argument of an operator"):
            cg.Executor(y, strict=True)
        with pytest.warns(RuntimeWarning, match="an argument of an operator"):
            cg.Executor(y)
        return y

    ad.grad(f)(POINT)


def test_guard_of_buffer_after_later_write() -> None:
    """Nodes that were found to depend on arguments alone may depend on a variable later."""

    def f(v: Any, x: Any) -> Any:
        buffer = np.zeros(3)
        buffer[:2] = v[:2]
        part = buffer[1:]
        if np.sum(part) < -100 or np.sum(buffer) < -100:
            return np.sum(v)
        buffer[2] = x[0]
        return np.sum(v**2) if np.sum(part) > 0 else np.sum(v**3)

    x, y = cg.variable(POINT, "x"), cg.variable(POINT, "y")
    derivative = ad.grad(lambda v: f(v, x) + np.sum(y * v))(POINT)
    with pytest.raises(GuardError, match=r"np\.sum\(part\) > 0"):  # which cannot be checked again, since the buffer is gone
        cg.Executor(derivative, strict=True)


@cg.primitive(opname="selected_by_sign")
def _selected_by_sign(x: Any) -> Any:
    return x[x > 0]


def test_guard_of_primitive_shape() -> None:
    x = cg.variable([1.0, -1.0, 2.0], "x")
    live, others = cg.Executor(_selected_by_sign(x) * 2.0), ([3.0, -4.0, 5.0], [3.0, 4.0, 5.0])
    np.testing.assert_array_equal(live.run({"x": others[0]}), [6.0, 10.0])
    with pytest.raises(GuardError, match="selected_by_sign"):
        live.run({"x": others[1]})
    _selected_by_sign(x)  # whose result is freed
    dead = cg.Executor(x * 2.0)
    for values in others:
        np.testing.assert_array_equal(dead.run({"x": values}), 2.0 * np.array(values))


def test_guard_of_primitive_shape_in_jit() -> None:
    pytest.importorskip("llvmlite", reason="pip install llvmlite")

    def f(x: Any) -> Any:
        return _selected_by_sign(x) * 2.0

    jitted = cg.jit(f).compile(np.array([1.0, -1.0, 2.0]))
    for values in ([3.0, -4.0, 5.0], [3.0, 4.0, 5.0], [-1.0, -2.0, -3.0]):
        x = np.array(values)
        np.testing.assert_array_equal(jitted.compile(x)(x), 2.0 * x[x > 0])
    assert "as NumPy" not in jitted.report()
