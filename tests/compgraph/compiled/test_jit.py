"""`jit`: compiled functions return the functions' results for all structures, types, shapes and layouts of arguments."""

from __future__ import annotations

import collections
import copy
import enum
import functools
import gc
import os
import pickle
import threading
import tracemalloc
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.linalg

import autodiff as ad
import compgraph as cg
from compgraph.compiled import Jitted, compiler_thread
from tests.support.for_each import for_each
from tests.support.jitting import assert_agrees, assert_not_compiled, compiled, is_compiled, same

pytest.importorskip("llvmlite", reason="without a compiler these functions run as NumPy")

pytestmark = pytest.mark.portable

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Layer:
    w: Any
    b: Any


@cg.jit
def at_top(x: Any) -> Any:
    """Doubles."""
    return x * 2


def loop(x: Any) -> Any:
    total = np.zeros_like(x[0])
    for row in x:
        total = total + np.sin(row) * len(x)
    return total


def fill_buffer(x: Any) -> Any:
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = x[i].sum() + (y[i - 1] if i else 0.0)
    return y


FUNCTIONS = {
    "sum": lambda x: np.sum(x * x),
    "product": lambda x: x @ x.T,
    "loop": loop,
    "filled": fill_buffer,
    "several": lambda x: (x + 1, {"s": x.sum(), "l": [x.T, x[0]]}),
    "the argument": lambda x: x,
    "twice the same": lambda x: (x[:2], x[:2], x),
    "views": lambda x: (x[1:], x.T, x[::-1], x.reshape(-1)),
    "a constant too": lambda x: (x * 2, 3, 2.5, True, np.float32(2), np.arange(3), None),
    "only constants": lambda x: (1, np.ones(2)),
    "0-d array": lambda x: np.array(np.sum(x)),
    "scalar": lambda x: x[0, 0] * 2,
    "0-d from 0-d": lambda x: np.asarray(x[0, 0]),
    "comparisons": lambda x: (x > 0, np.argmax(x), np.where(x > 0, x, -x)),
    "casts": lambda x: (x.astype(np.float32), x.astype(int)),
    "reductions": lambda x: (x.mean(0), x.max(1, keepdims=True), np.linalg.norm(x)),
    "writes into its own": lambda x: _increment(x.copy()),
    "sorting": lambda x: np.sort(x, 0)[np.argsort(x[:, 0])],
    "nothing": lambda x: (),
}


def _increment(x: Any) -> Any:
    x[1:] += x[:-1] ** 2
    x *= 2
    return x


@for_each("name", FUNCTIONS)
def test_jit_values_match_function(name: str) -> None:
    assert_agrees(FUNCTIONS[name], (A,), (B,), (A * 3,), programs=None)


@for_each("dtype", [np.float64, np.float32, np.float16, np.complex128, np.complex64, np.int64, np.int8, np.uint8, bool])
def test_jit_values_of_all_dtypes_match_function(dtype: Any) -> None:
    x, y = (A * 3).astype(dtype), (B * 5).astype(dtype)
    assert_agrees(lambda a, b: (a + b, a * b, a + 1, a * 2.5, a.sum(), a == b), (x, y), (y, x))


LAYOUTS = {
    "Fortran": np.asfortranarray(A),
    "strided": RNG.normal(size=(8, 6))[::2, ::2],
    "backwards": A[::-1, ::-1],
    "transposed": RNG.normal(size=(3, 4)).T,
    "broadcast": np.broadcast_to(A[0], (4, 3)),
    "a column": RNG.normal(size=(4, 9))[:, 2:3],
    "of no rows": np.zeros((0, 3)),
    "read-only": (lambda a: (a.setflags(write=False), a)[1])(A.copy()),
}


@for_each("name", LAYOUTS)
def test_jit_values_of_all_layouts_match_function(name: str) -> None:
    x = LAYOUTS[name]
    jitted = assert_agrees(lambda x: (x * 2, x.reshape(-1), x.sum(), x.T @ x), (x,))
    assert same(jitted(x + 1), jitted.__wrapped__(x + 1))


def test_jit_keeps_fortran_order_of_results() -> None:
    x = np.asfortranarray(A)
    assert assert_agrees(lambda x: x * 2, (x,))(x).flags.f_contiguous


def test_jit_scalar_arguments() -> None:
    f = lambda x, y: (x * y, x + 1, -y)  # noqa: E731
    assert_agrees(f, (np.float64(2), np.float64(3)), (np.float64(5), np.float64(-1)))
    assert_agrees(f, (np.float32(2), np.ones(3, np.float32)), (np.float32(5), np.ones(3, np.float32)))
    assert_agrees(f, (np.array(2.0), np.array(3.0)), (np.array(4.0), np.array(3.5)))
    assert_agrees(f, (np.complex128(2j), 1.5), (np.complex128(3), 1.5))


def test_jit_scalar_names_are_rebound() -> None:
    def f(s: Any, x: Any) -> Any:
        t = s
        s += 1
        return s * t * x

    assert_agrees(f, (np.float64(2), A), (np.float64(3), B))


def test_jit_python_numbers_are_weakly_typed() -> None:
    f = lambda x, s: x * s  # noqa: E731
    jitted = assert_agrees(f, (np.ones(3, np.float32), 2.0), (np.ones(3, np.float32), 3.0), programs=2)
    assert jitted(np.ones(3, np.float32), 4.0).dtype == np.float32
    assert same(compiled(f, np.ones(3, np.int8), 2)(np.ones(3, np.int8), 3), np.full(3, 3, np.int8))


def test_jit_distinguishes_kinds_of_python_numbers() -> None:
    jitted = assert_agrees(lambda x, s: (x / s, np.copysign(x, s), s), (A, 0.5), (A, -0.5), programs=2)
    with np.errstate(all="ignore"):
        for s in (0.0, -0.0, float("nan"), 1, True, 1.0, 1 + 0j):
            assert same(cg.jit(lambda x, s: x * s).compile(A, s)(A, s), A * s)
    assert same(jitted(A, 2), (A / 2, np.copysign(A, 2), 2))


def test_jit_too_many_number_values_run_as_numpy() -> None:
    f = lambda x, n: x * n  # noqa: E731
    jitted = compiled(f, A, 0)
    for n in range(40):
        assert same(jitted(A, n), f(A, n))
    assert "np.float64(t)" in jitted.report()
    assert len(jitted._caches_by_signature) < 20


def test_jit_nested_arguments() -> None:
    def f(p: Any, xs: Any, *, scale: Any = 1.0) -> Any:
        return Pair([p["w"] @ x * scale + p["b"] for x in xs], {"n": len(xs)})

    p = {"w": A, "b": np.ones(4)}
    q = {"b": np.zeros(4), "w": B}
    assert_agrees(f, (p, [A[0], B[1]]), (q, [B[0], B[2]]), programs=2)  # a function may iterate over a dictionary
    jitted = compiled(f, p, [A[0]], scale=2.0)
    assert same(jitted(q, [B[0]], scale=2.0), f(q, [B[0]], scale=2.0))
    assert same(jitted(q, (B[0],), scale=3.0), f(q, (B[0],), scale=3.0))
    assert_agrees(
        lambda pair, layer: pair.left * layer.w + layer.b - pair.right, (Pair(A, B), Layer(A, 1.0)), (Pair(B, A), Layer(B, 1.0))
    )
    jitted_layer = assert_agrees(lambda layer: Layer(layer.w * 2, [layer.b]), (Layer(A, B),), (Layer(B, A),))
    assert isinstance(jitted_layer(Layer(A, B)), Layer)


def test_jit_keyword_order_and_defaults() -> None:
    f = lambda x, y=2.0, *, z=None: x * y + (0 if z is None else z)  # noqa: E731
    jitted = compiled(f, y=A, x=B)
    assert same(jitted(x=A, y=B), A * B)
    assert same(jitted(A), A * 2)
    assert same(jitted(A, z=B, y=A), A * A + B)
    assert same(jitted(A, y=A, z=B), A * A + B)


def test_jit_static_arguments() -> None:
    def f(x: Any, how: Any, axis: Any = 0) -> Any:
        return (np.sum if how == "sum" else np.prod)(x, axis=axis)

    jitted = cg.jit(f, static_argnames="axis").compile(A, "sum")
    for how in ("sum", "prod"):
        for axis in (0, 1, None, (0, 1)):
            assert same(jitted(A, how, axis), f(A, how, axis))
            assert same(jitted(B, how, axis=axis), f(B, how, axis=axis))
    assert same(jitted(A, "sum", [0, 1][0]), f(A, "sum"))
    assert "hashable" in cg.jit(f, static_argnames=("how",)).compile(A, {}).report()
    assert_agrees(lambda x, f: f(x), (A, np.sin), (A, np.cos), programs=2)
    assert_agrees(lambda x, f: x * f(), (A, "ab".__len__), (A, "abc".__len__), (A, "ab".__len__), programs=2)  # by owner


def test_jit_bad_options_raise() -> None:
    for wrong, error in (({"threads": 0}, ValueError), ({"threads": 1.5}, TypeError), ({"exact": 1}, TypeError)):
        with pytest.raises(error, match="jit"):
            cg.jit(loop, **wrong)
    with pytest.raises(TypeError, match="static_argnames"):
        cg.jit(loop, static_argnames=3)
    with pytest.raises(ValueError, match="has 'y'"):
        cg.jit(loop, static_argnames="y")
    with pytest.raises(TypeError, match="expected a function"):
        cg.jit(A)
    assert cg.jit(loop, threads=2, exact=True, cache=False).options["threads"] == 2


def test_jit_as_decorator() -> None:
    assert isinstance(at_top, Jitted)
    assert at_top.__name__ == "at_top"
    assert at_top.__doc__ == "Doubles."

    @cg.jit(exact=True)
    def f(x: Any) -> Any:
        return x + 1

    assert f.options["exact"]
    assert same(f.compile(A)(A), A + 1)
    assert "at_top" in repr(at_top)
    assert cg.jit(at_top).__wrapped__ is at_top.__wrapped__


def test_jit_of_partials_and_lambdas() -> None:
    assert_agrees(functools.partial(lambda w, x, k=1: w * x * k, A, k=3), (A,), (B,))
    assert_agrees(np.sin, (A,), (B,))


class Model:
    def __init__(self) -> None:
        self.w, self.scale = A.copy(), 2.0

    @cg.jit
    def jitted(self, x: Any) -> Any:
        return self.w * x * self.scale

    def plain(self, x: Any) -> Any:
        return self.w * x * self.scale

    @cg.jit
    @staticmethod
    def static(x: Any) -> Any:
        return x * 2


def test_jit_of_methods() -> None:
    one, two = Model(), Model()
    two.w = B.copy()
    one.jitted.compile(A)
    for model in (one, two, one):
        assert same(model.jitted(B), model.plain(B))
    assert_agrees(one.plain, (A,), (B,))
    assert same(Model.jitted(two, A), two.plain(A))
    assert "program" in one.jitted.report()
    assert same(one.static(A), A * 2)


def test_jit_nested_within_jit() -> None:
    inner = cg.jit(lambda x: np.sin(x) * 2)
    outer = cg.jit(lambda x: inner(x) + inner(x * 2))
    assert_agrees(outer.__wrapped__, (A,), (B,))
    assert same(outer.compile(A)(B), np.sin(B) * 2 + np.sin(2 * B) * 2)

    @cg.jit
    def power(x: Any, n: int) -> Any:
        return x if n == 0 else x * power(x, n - 1)

    assert same(power.compile(A, 4)(B, 4), B * (B * (B * (B * B))))


def test_jit_of_nodes_is_recorded() -> None:
    f = cg.jit(lambda x: np.sum(x * x)).compile(A)
    x = cg.variable(A)
    out = f(x)
    assert isinstance(out, cg.Node)
    assert out.operands
    with cg.no_graph():
        assert not isinstance(f(x), cg.Node)
        assert same(f(A), np.sum(A * A))
    with pytest.raises(TypeError, match="plain arrays"):
        f.compile(x)


def test_jit_results_share_no_memory() -> None:
    k = np.ones(3)
    f = compiled(lambda x: (x, x[0], x.T, k, x), A)
    first, second = f(A), f(A)
    for array in first:
        for other in (A, k, *second, *[o for o in first if o is not array]):
            assert not np.shares_memory(array, other)
            assert array.flags.writeable


def test_jit_raises_errors_of_function() -> None:
    def f(x: Any) -> Any:
        if x.sum() < 0:
            raise KeyError("negative")
        return np.linalg.inv(x)

    jitted = compiled(f, np.eye(2))
    with pytest.raises(KeyError, match="negative"):
        jitted(-np.eye(2))
    with pytest.raises(np.linalg.LinAlgError):
        jitted(np.ones((2, 2)))
    with pytest.raises(np.linalg.LinAlgError):
        cg.jit(f).compile(np.ones((2, 2)))
    with pytest.raises(TypeError):
        jitted(np.eye(2), 3)
    assert same(jitted(np.eye(2) * 2), f(np.eye(2) * 2))


def test_jit_emits_floating_point_warnings() -> None:
    f = compiled(lambda x: np.log(x), np.ones(3))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        f(np.zeros(3))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        f(np.zeros(3))


def test_jit_compiles_in_background() -> None:
    f = cg.jit(loop)
    for _ in range(3):
        assert same(f(A), loop(A))
    assert f.wait(30)
    assert is_compiled(f), f.report()
    assert same(f(B), loop(B))
    assert "1 run" in f.report()


def test_jit_compiles_branch_in_background() -> None:
    f = cg.jit(lambda x: x * 2 if x.sum() > 0 else -x)
    for _ in range(4):
        f(np.ones(3))
    assert f.wait(30)
    for _ in range(2):
        assert same(f(-np.ones(3)), np.ones(3))
        assert f.wait(30)
    assert "program 2" in f.report()


def test_jit_follows_errstate_of_caller() -> None:
    f = cg.jit(lambda x: 1 / x)
    with np.errstate(divide="ignore"):
        for _ in range(3):
            f(np.zeros(3))
        assert f.wait(30)
        assert is_compiled(f)
        assert np.all(np.isinf(f(np.zeros(3))))


def test_jit_called_by_several_threads() -> None:
    f = cg.jit(lambda x: np.sum(np.tanh(x) ** 2) if x[0] > 0 else np.sum(x))
    wrong: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(100):
            x = rng.normal(size=rng.integers(1, 4))
            if not np.isclose(f(x), f.__wrapped__(x)):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert f.wait(30)


def test_jit_copies_and_pickles() -> None:
    at_top.compile(A)
    assert pickle.loads(pickle.dumps(at_top)) is at_top
    other = cg.jit(loop, threads=2)
    for clone in (copy.copy(other.compile(A)), copy.deepcopy(other), pickle.loads(pickle.dumps(cg.jit(_increment)))):
        assert isinstance(clone, Jitted)
        assert "not called" in clone.report()
    assert copy.deepcopy(other).options["threads"] == 2
    model = pickle.loads(pickle.dumps(Model()))
    assert same(model.jitted(A), model.plain(A))


def test_jit_report_source_and_llvm() -> None:
    f = cg.jit(loop)
    assert "not called" in f.report()
    assert f.source() == ""
    f(A)
    assert "1 call so far" in f.report()
    f.compile(A)
    f(A)
    assert "def run(" in f.source() or f.backend == "llvm"
    assert f.llvm() == "" or f.backend == "llvm"
    assert "float64[4, 3]" in f.report()
    assert "1 run" in f.report()


def test_jit_of_many_shapes_runs_as_numpy() -> None:
    f = cg.jit(lambda x: x.sum())
    for n in range(300):
        assert f(np.ones(n)) == n
    assert "more than 256" in f.report()


def test_jit_without_arguments() -> None:
    f = cg.jit(lambda: np.arange(3) * 2)
    for _ in range(5):
        assert same(f(), np.arange(3) * 2)
        assert f.wait(30)


def test_jit_unsupported_arguments_run_as_numpy() -> None:
    assert_not_compiled(lambda x: x.sum(), np.array([1, None, 2][::2], object), words="dtype object")
    assert_not_compiled(lambda x: len(x), {1, 2}, words="hashable")
    assert_not_compiled(lambda x: x.sum(), np.ma.masked_array([1.0, 2.0], [True, False]), words="MaskedArray")
    assert_not_compiled(lambda x: x * x, np.ones((2, 2)).view(np.matrix), words="matrix")
    assert_not_compiled(lambda x: x + 1, np.ones(3, ">f8"), words="byte order")
    assert_not_compiled(lambda x: x["a"], np.zeros(2, [("a", float)]), words="not numeric")


def test_jit_compiles_sum_that_cancels() -> None:
    def f(x: Any) -> Any:  # rounding alone, another in code than in NumPy
        return np.sum(x[:, None] - x), x * 2.0

    x = np.linspace(-1.0, 1.0, 41) ** 3
    jitted = compiled(f, x)
    assert is_compiled(jitted), jitted.report()
    np.testing.assert_allclose(jitted(x)[0], 0.0, atol=1e-12)


def test_jit_program_keeps_no_trace() -> None:
    def deep(w: Any, x: Any) -> Any:
        for _ in range(30):
            x = np.tanh(x @ w)
        return np.sum(x * x)

    w, x = np.eye(128) * 0.9, np.ones((128, 128))
    layer = x.nbytes
    jitted = cg.jit(ad.value_and_grad(deep), cache=False)
    tracemalloc.start()
    try:
        jitted.compile(w[:2, :2], x[:, :2])  # imports and one-time allocations
        before, _ = tracemalloc.get_traced_memory()
        jitted.compile(w, x)
        gc.collect()
        layers = (tracemalloc.get_traced_memory()[0] - before) / layer
    finally:
        tracemalloc.stop()
    assert layers < 80, layers  # thirty layers that the reverse sweep reads, and the workspace; the trace has two hundred
    for scale in (1.0, np.nan):  # by the program, and by NumPy, which has the last word where there are warnings
        assert same(jitted(w, x * scale), ad.value_and_grad(deep)(w, x * scale))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes of this system are not forked")
def test_jit_child_forked_during_trace_collects_garbage() -> None:
    with compiler_thread.pause_garbage_collection(), compiler_thread.pause_garbage_collection():
        assert not gc.isenabled()
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert gc.isenabled()


def orders(x: Any, p: Any) -> Any:
    for w in p.values():
        x = np.tanh(x * w + 1)
    return x


def keyword_orders(x: Any, **p: Any) -> Any:
    return orders(x, p)


def nested_orders(x: Any, p: Any) -> Any:
    return orders(x, p["layers"][0])


@pytest.mark.parametrize("make", [dict, collections.OrderedDict])
@pytest.mark.parametrize("weights", [(0.5, 3.0), (np.float64(0.5), np.float64(3)), (A[0], B[0])])
def test_jit_dictionary_orders_have_separate_programs(make: Any, weights: Any) -> None:
    p = make([("a", weights[0]), ("b", weights[1])])
    q = make(reversed(p.items()))
    x = A[0]
    jitted = [cg.jit(f).compile(x, p) for f in (orders, lambda x, p: nested_orders(x, {"layers": [p]}))]
    nested, keywords = cg.jit(nested_orders).compile(x, {"layers": [p]}), cg.jit(keyword_orders).compile(x, **p)
    gradient = ad.grad(cg.jit(lambda x, p: np.sum(orders(x, p))))
    for _ in range(4):
        for weight_dict in (q, p):
            for f in jitted:
                assert same(f(x, weight_dict), orders(x, weight_dict))
            assert same(nested(x, {"layers": [weight_dict]}), orders(x, weight_dict))
            assert same(keywords(x, **weight_dict), orders(x, weight_dict))
            expected = ad.grad(lambda x, weight_dict=weight_dict: np.sum(orders(x, weight_dict)))(x)
            np.testing.assert_allclose(gradient(x, weight_dict), expected)


@dataclass(frozen=True)
class Setting:
    value: Any


class ByValue:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByValue) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


class One(enum.IntEnum):
    ONE = 1


def text_of(value: Any) -> str:
    """A text that differs wherever values do that are equal."""
    if isinstance(value, (Setting, ByValue)):
        return text_of(value.value)
    if isinstance(value, (tuple, frozenset)):
        return "".join(map(text_of, value))
    return f"{type(value).__name__} {value!r}"


EQUAL: list[list[Any]] = [
    [0.0, -0.0, 0, False, complex(0, -0.0)],
    [1, 1.0, True, 1 + 0j, np.int64(1), np.int8(1), np.bool_(True), Fraction(1), Decimal("1.0"), Decimal("1.00"), One.ONE],
    [(2,), (2.0,), (True, 2), (1, 2), (1.0, 2)],
    [(0.0, (1,)), (-0.0, (1,)), (0.0, (1.0,))],
    [Setting(0.0), Setting(-0.0), Setting(0), Setting((0.0,)), Setting((-0.0,))],
    [ByValue(1), ByValue(1.0), ByValue(True)],
    [range(0), range(2, 2), range(0, 4, 3), range(0, 5, 3)],
    [frozenset([0, 8]), frozenset([8, 0]), frozenset([0.0, 8])],
    ["1", b"1", ()],
]


@for_each("values", EQUAL)
@for_each("declared", [True, False])
def test_jit_distinct_static_arguments_have_separate_programs(values: list[Any], declared: bool) -> None:
    def f(x: Any, value: Any) -> Any:
        return x * sum(map(ord, text_of(value)))

    jitted = cg.jit(f, static_argnames=("value",) if declared else ())
    for value in values:
        jitted.compile(A, value)
    for value in values:
        assert same(jitted(A, value), f(A, value)), value


def test_jit_equal_static_arguments_share_program() -> None:
    jitted = cg.jit(lambda x, how: x * how.value, static_argnames="how")
    for make in (Setting, ByValue):
        for _ in range(20):
            assert same(jitted.compile(A, make(2.0))(A, make(2.0)), A * 2)
    assert jitted.report().count("program ") == 2


def test_jit_report_begins_with_verdict() -> None:
    x = np.linspace(0.1, 0.9, 30)

    def partitions(x: Any) -> Any:
        for _ in range(3):
            x = np.partition(x, 4) * 2
        return x

    def writes(x: Any) -> Any:
        x.sort()
        return x

    assert cg.jit(np.tanh).report() == "tanh: not called so far"
    assert cg.jit(lambda x: np.tanh(x) * 2).compile(x).report().splitlines()[0].endswith(": compiled by llvm")
    first, *rest = cg.jit(partitions).compile(x).report().splitlines()
    assert first.endswith("compiled by llvm, with 3 NumPy calls in each run")
    assert any("partition" in line and "(3 times in each run)" in line and "use elementwise" in line for line in rest)
    assert "runs as NumPy: it writes into an argument" in cg.jit(writes).compile(x).report().splitlines()[0]


def test_jit_compiles_around_matrix_exponential() -> None:
    a = np.random.default_rng(0).random((4, 4))
    derivative = ad.value_and_grad(lambda a: np.sum(np.sin(scipy.linalg.expm(a))))
    jitted = cg.jit(derivative, cache=False)
    jitted.compile(a)
    assert "compiled by llvm, with 2 NumPy calls" in jitted.report()
    for scale in (1.0, 3.0, 0.0):
        for value, expected in zip(jitted(scale * a), derivative(scale * a), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-15)


def test_jit_compiling_holds_few_copies_of_large_arrays() -> None:
    matrix, x = np.full((900, 900), 0.5), np.ones(900)
    derivative = ad.value_and_grad(lambda a, x: np.sum((a @ x) ** 2), argnums=(0, 1))
    cg.jit(derivative, cache=False).compile(matrix[:3, :3], x[:3])  # loads everything that is needed once
    jitted = cg.jit(derivative, cache=False)
    tracemalloc.start()
    try:
        jitted.compile(matrix, x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert is_compiled(jitted)
    assert peak < 8 * matrix.nbytes  # of the argument and its gradient: copies, two traces, and the expected results
