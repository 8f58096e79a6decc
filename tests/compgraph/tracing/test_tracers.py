"""Tracers: class, attributes and methods of values within operators, and results of operators."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import autodiff as ad
import compgraph as cg
from autodiff import forward
from autodiff.reverse import gradient
from compgraph.interpreters import _new_result
from compgraph.tracing.leak_errors import LOGS
from compgraph.tracing.tracing_contexts import is_tracing
from compgraph.values import is_tracer
from compgraph.values.node import set_history
from tests.support.failures import Failures

DTYPES = ["float64", "float32", "float16", "longdouble", "complex64", "complex128"]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "number": lambda a: np.array(a[0, 0]),
    "one element": lambda a: a[:1, 0].copy(),
    "vector": lambda a: a[0].copy(),
    "matrix": lambda a: a,
    "Fortran": np.asfortranarray,
    "strided": lambda a: a[::2, ::-1],
    "broadcast": lambda a: np.broadcast_to(a[0], (3, 4)),
    "empty": lambda a: a[:0],
}


def numbers(layout: str, dtype: str) -> Any:
    array = np.linspace(0.5, 2.5, 12).reshape(3, 4).astype(dtype)
    return LAYOUTS[layout](array + array * 0.5j if array.dtype.kind == "c" else array)


def trace_array(array: Any) -> Any:
    """A node over an array as it is, layout and all."""
    with cg.strict():
        x = cg.variable(1.0) + np.zeros(array.shape)
        node = _new_result(array, True)
        return set_history(node, x.function, x.args, x.parent_argnums)


in_all_dtypes = pytest.mark.parametrize("dtype", DTYPES)


# ------------------------------------------------------------------------------------------------- code outside


def test_tracer_use_as_array_raises() -> None:
    with Failures("layouts and dtypes") as failures:
        for layout, dtype in itertools.product(LAYOUTS, DTYPES):
            with failures.case(f"{layout}, {dtype}"):
                check_takers(layout, dtype)


def check_takers(layout: str, dtype: str) -> None:
    """Hand a tracer to code of NumPy and SciPy that calls no protocol."""
    node = trace_array(numbers(layout, dtype))
    if not node.size:
        return
    takers: list[Callable[[], Any]] = [
        lambda: np.asarray(node) + 1, lambda: np.asarray(node).sum(), lambda: np.asarray(node, float),
        lambda: np.array(node).astype(complex), lambda: np.isfinite(np.array(node)), lambda: np.zeros(node.shape).dot(node),
        lambda: scipy.linalg.lapack.dgetrf(node), lambda: np.linalg.norm(np.asarray(node)),
        lambda: np.add(np.asarray(node), 1, dtype=float), lambda: np.copyto(np.zeros(node.shape), np.asarray(node)),
        lambda: np.frombuffer(np.asarray(node)[...], float) if node.size > 1 else np.asarray(node) < 1,
    ]  # fmt: skip
    for position, take in enumerate(takers):
        try:
            output = take()
        except (TypeError, ValueError):
            continue
        assert node.is_scalar, f"taker {position}: {output!r}"
        assert is_tracer(output[()] if type(output) is np.ndarray else output), f"taker {position}: {output!r}"


PROGRAM = """
import numpy as np, autodiff as ad, compgraph as cg
cg.interception(False)
strided = np.lib.stride_tricks.as_strided

def f(x):
    shapes = [(5,), (4, 4), (1000,), (1, 200000), (2,) * 10, ()]
    strides = [x.itemsize, 2 * x.itemsize, 8 * x.itemsize, 0, -x.itemsize, 4096, 2**16]
    for shape in shapes:
        for step in strides:
            if step * (max(shape, default=1) - 1) * max(len(shape), 1) >= 2**24:
                continue
            if not x.shape and step % 8:  # memory beyond a single narrow number holds nothing to read
                continue
            try:
                taken = strided(x, shape, (step,) * len(shape))
            except TypeError:
                continue
            uses = [repr, np.sum, np.real, np.max, np.copy, lambda a: a.tolist(), lambda a: a == a, float]
            for use in uses + [np.sort] * (taken.size <= 1024):  # which reads what copy reads, and takes its time over much
                try:
                    use(taken)
                except Exception:
                    pass
    return (x * x).sum()

for shape in ((3,), (2, 3), (), (0,)):
    x = np.ones(shape, sys.argv[1])
    if x.dtype.kind == "c":
        ad.jvp(f, (x,), (x,))
    else:
        print(ad.grad(f)(x).sum())
"""


@pytest.mark.slow
@in_all_dtypes
def test_tracer_strides_of_users_do_not_crash(dtype: str) -> None:
    """In a process of its own: foreign memory that is read as a pointer would end it."""
    root = Path(__file__).parents[4]
    code = "import sys, warnings; warnings.simplefilter('ignore')\n" + PROGRAM
    process = subprocess.run([sys.executable, "-c", code, dtype], capture_output=True, text=True, cwd=root, check=False)
    assert process.returncode == 0, process.stderr
    assert [float(word) for word in process.stdout.split()] == ([] if np.dtype(dtype).kind == "c" else [6.0, 12.0, 2.0, 0.0])


# ------------------------------------------------------------------------------------------------ our door


def test_tracer_methods_show_value() -> None:
    with Failures("layouts and dtypes") as failures:
        for layout, dtype in itertools.product(LAYOUTS, DTYPES):
            with failures.case(f"{layout}, {dtype}"):
                check_methods(layout, dtype)


def check_methods(layout: str, dtype: str) -> None:
    """Compare attributes, texts and copies of an opaque node with those of the array."""
    array = numbers(layout, dtype)
    node = trace_array(array)
    with cg.strict(), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of tolist
        for name in ("dtype", "shape", "strides", "itemsize", "nbytes", "ndim", "size"):
            assert getattr(node, name) == getattr(array, name), name
        for flag in ("c_contiguous", "f_contiguous", "writeable", "aligned"):
            assert getattr(node.flags, flag) == getattr(array.flags, flag), flag
        assert node.tolist() == array.tolist()
        assert node.tobytes() == bytes(node) == array.tobytes()
        assert str(node) == str(array)
        assert np.array2string(array, separator=", ")[:8] in repr(node)
        assert np.array2string(node) == np.array2string(array)
        assert node.value.tobytes() == array.tobytes()
        assert node.value.dtype == array.dtype
        assert np.shares_memory(node.value, array) or not array.size
        assert np.array_equal(np.asarray(node == array), np.ones(array.shape))
        assert np.array_equal(node, array)
        assert np.allclose(node, array)
        for copied in (node.copy(), copy.copy(node), copy.deepcopy(node), node + 0, node[...], np.copy(node)):
            assert is_tracer(copied)
            assert np.array_equal(copied.value, array)
        assert np.shape(node) == array.shape
        assert np.result_type(node) == array.dtype
        assert np.iscomplexobj(node) == np.iscomplexobj(array)
        if array.size == 1 and array.ndim == 0:
            assert complex(node) == complex(array)
            assert format(node, ".3f") == format(array[()], ".3f")
            assert f"{node}" == str(array)
            assert node.item() == array.item()
            if array.dtype.kind == "f":
                assert float(node) == float(array)
                assert int(node) == int(array)
                assert round(node, 2).value == round(array[()], 2)
        else:
            with pytest.raises(TypeError):
                format(node, ".3f")


@in_all_dtypes
def test_tracer_pickle_is_a_graph(dtype: str) -> None:
    with cg.strict():
        x = cg.variable(numbers("matrix", dtype), "x")
        square = np.sum(np.real(x * x))
        loaded = pickle.loads(pickle.dumps(square))
    assert loaded.value == square.value
    assert np.array_equal(gradient(loaded)["x"], gradient(square)["x"])


def test_tracer_integers_booleans_and_constants_have_values() -> None:
    with cg.strict():
        x = cg.variable([0.5, 1.5])
        for node in (x > 1, np.argsort(x), x.astype(int), np.floor(x).astype(int), cg.constant([1.0, 2.0]), np.isfinite(x)):
            assert np.array_equal(np.asarray(node), node.value)
        assert np.array([1, 2, 3])[np.asarray(x > 1).astype(int)].tolist() == [1, 2]


def test_tracer_stop_gradient_and_value_give_arrays() -> None:
    values: list[Any] = []

    def f(x: Any) -> Any:
        stopped = cg.stop_gradient(x)
        values.append(np.asarray(stopped) + 1)
        values.append(np.asarray(x.value) + 1 if isinstance(x, cg.Node) else x + 1)
        return np.sum(x * np.linalg.norm(np.asarray(stopped)))

    point = np.array([3.0, 4.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ad.grad(f)(point).tolist() == [5.0, 5.0]
        assert float(ad.jvp(f, (point,), (np.ones(2),))[1]) == 10.0
        assert float(forward.jacobian(f(forward.variables(point)))[0]) == 5.0
        assert np.allclose(ad.jvp(ad.grad(f), (point,), (np.ones(2),))[1], 0.0)
    assert all(type(value) is np.ndarray and value.tolist() == [4.0, 5.0] for value in values)


# ------------------------------------------------------------------------------------------ what leaves operators


def cube(x: Any) -> Any:
    return np.sum(x**3)


def with_aux(x: Any) -> Any:
    return np.sum(x**3), {"double": 2 * x, "x": x, "part": [x[0], 1.0]}


OPERATORS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda x: ad.grad(cube)(x),
    "grad with aux": lambda x: ad.grad(with_aux, has_aux=True)(x),
    "value_and_grad": lambda x: ad.value_and_grad(cube)(x),
    "value_and_grad with aux": lambda x: ad.value_and_grad(with_aux, has_aux=True)(x),
    "vjp": lambda x: (ad.vjp(np.sin, x)[0], ad.vjp(np.sin, x)[1](x)),
    "vjp with aux": lambda x: (lambda value, pull, aux: (value, pull(x), aux))(*ad.vjp(lambda y: (y * 2, y), x, has_aux=True)),
    "jvp": lambda x: ad.jvp(np.sin, (x,), (x,)),
    "jvp with aux": lambda x: ad.jvp(with_aux, (x,), (x,), has_aux=True),
    "jvp of constants": lambda x: ad.jvp(lambda y: (y, y.shape[0] * 1.0 + 0 * y), (x,), (x,)),
    "jacobian": lambda x: ad.jacobian(np.sin)(x),
    "jacrev": lambda x: ad.jacrev(np.sin)(x),
    "jacfwd": lambda x: ad.jacfwd(np.sin)(x),
    "hessian": lambda x: ad.hessian(cube)(x),
    "hvp": lambda x: ad.hvp(cube)(x, x),
    "linearize": lambda x: (ad.linearize(np.sin, x)[0], ad.linearize(np.sin, x)[1](x)),
    "taylor": lambda x: ad.taylor(np.sin, x, 3),
    "elementwise_grad": lambda x: ad.elementwise_grad(np.sin)(x),
    "laplacian": lambda x: ad.laplacian(cube)(x),
    "grad of grad": lambda x: ad.grad(lambda y: np.sum(ad.grad(cube)(y)))(x),
    "jvp of grad": lambda x: ad.jvp(ad.grad(cube), (x,), (x,)),
    "checkpoint": lambda x: ad.value_and_grad(lambda y: cube(ad.checkpoint(np.sin)(y)))(x),
}


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for part in tree.values() for leaf in leaves(part)]
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, (tuple, list)) else [tree]


def test_operator_results_have_values() -> None:
    with Failures("operators") as failures:
        for label in OPERATORS:
            with failures.case(label):
                point = np.array([0.5, 1.5])
                expected = leaves(OPERATORS[label](point))
                assert all(not isinstance(leaf, cg.Node) for leaf in expected)
                outputs = leaves(OPERATORS[label](cg.variable(point) * 1.0))  # nested in a graph of the top level
                assert any(isinstance(leaf, cg.Node) for leaf in outputs)
                for one, other in zip(outputs, expected, strict=True):
                    assert np.asarray(one).dtype.kind == "f"
                    assert np.array_equal(np.asarray(one), other)
                    assert not is_tracer(one)


def test_operator_results_within_operator_are_opaque() -> None:
    with Failures("operators") as failures:
        for label in OPERATORS:
            with failures.case(label):
                check_opaque_within(label)


def check_opaque_within(label: str) -> None:
    """Differentiate an operator: its result within the other operator has no data."""
    checks: list[Any] = []

    def f(x: Any) -> Any:
        outputs = leaves(OPERATORS[label](x))
        checks.extend(is_tracer(leaf) for leaf in outputs if hasattr(type(leaf), "opname") and type(leaf) is not cg.ConstantNode)
        return sum(np.sum(leaf) for leaf in outputs)

    ad.grad(f)(np.array([0.5, 1.5]))
    assert checks
    assert all(checks)


# ------------------------------------------------------------------------------------------------- contexts


def test_operator_exceptions_restore_state() -> None:
    def wrong(x: Any) -> Any:
        raise KeyError("mine")

    point = np.ones(2)
    calls: list[Callable[[], Any]] = [
        lambda: ad.grad(wrong)(point), lambda: ad.jvp(wrong, (point,), (point,)), lambda: ad.vjp(wrong, point),
        lambda: ad.hessian(wrong)(point), lambda: ad.taylor(wrong, point, 2), lambda: ad.grad(ad.grad(wrong))(point),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(KeyError, match="mine"):
            call()
        assert not is_tracing()
        assert not LOGS
    with pytest.raises(cg.LeakError), cg.debug():
        np.asarray(cg.variable(1.0)) + 1
    assert not is_tracing()
    assert not LOGS
    assert not is_tracer(cg.variable([1.0, 2.0]))


def test_strict_nests_and_ends() -> None:
    with cg.strict():
        with cg.strict():
            assert is_tracer(cg.variable(1.0))
        assert is_tracer(cg.variable(1.0))
        x = cg.variable([1.0, 2.0])
    assert not is_tracer(cg.variable(1.0))
    assert is_tracer(x)  # as it was made
    assert not is_tracer(x * 2)
    assert (np.asarray(x * 2) + 1).tolist() == [3.0, 5.0]
    assert gradient(np.sum(x * x))[x].tolist() == [2.0, 4.0]


def test_debug_is_strict() -> None:
    with pytest.raises(cg.LeakError, match=r"np\.asarray\(x\)"), cg.debug():  # noqa: PT012
        x = cg.variable([1.0, 2.0])
        np.asarray(x).max()
    for context in (cg.debug, cg.strict):
        with pytest.warns(RuntimeWarning, match="may lack a derivative"), context(), contextlib.suppress(TypeError):
            np.asarray(x).max()
    with pytest.warns(RuntimeWarning, match=r"float\(\) at .*has no derivative"), cg.strict():
        float(cg.variable(1.0))


def test_strict_does_not_affect_other_threads_and_tasks() -> None:
    checks: list[bool] = []
    with cg.strict():
        thread = threading.Thread(target=lambda: checks.append(is_tracer(cg.variable(1.0))))
        thread.start()
        thread.join()
    assert checks == [False]

    async def strict() -> bool:
        with cg.strict():
            await asyncio.sleep(0)
            return is_tracer(cg.variable(1.0))

    async def other() -> bool:
        await asyncio.sleep(0)
        return is_tracer(cg.variable(1.0))

    async def both() -> list[bool]:
        return await asyncio.gather(strict(), other(), strict())

    assert asyncio.run(both()) == [True, False, True]


def test_tracer_in_threads_started_by_operator() -> None:
    def f(x: Any) -> Any:
        results: list[Any] = []
        thread = threading.Thread(target=lambda: results.append((x * x[0], x[0], np.sin(x), x + x)))
        thread.start()
        thread.join()
        assert all(map(is_tracer, results[0]))
        return sum(np.sum(part) for part in results[0])

    point = np.array([0.5, 1.5])
    expected = ad.grad(lambda x: np.sum(x * x[0]) + x[0] + np.sum(np.sin(x)) + 2 * np.sum(x))(point)
    assert np.allclose(ad.grad(f)(point), expected)


WEIGHT: Any = cg.variable([1.0, 2.0], "weight")
POINT = np.array([0.5, 1.5])
CAPTURING: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "grad": lambda f: ad.grad(lambda x: np.sum(f(x)))(POINT),
    "grad of a number": lambda f: ad.grad(lambda x: f(x)[0])(2.0),
    "grad at a variable": lambda f: ad.grad(lambda w: np.sum(w**3))(WEIGHT),
    "zero": lambda f: ad.grad(lambda x: np.sum(WEIGHT) + 0 * np.sum(x))(POINT),
    "vjp": lambda f: ad.vjp(f, POINT)[1](POINT)[0],
    "jvp": lambda f: ad.jvp(f, (POINT,), (POINT,))[1],
    "linearize": lambda f: ad.linearize(f, POINT)[1](POINT),
    "jacrev": lambda f: ad.jacrev(f)(POINT),
    "jacfwd": lambda f: ad.jacfwd(f)(POINT),
    "hessian": lambda f: ad.hessian(lambda x: np.sum(f(x)))(POINT),
    "hvp": lambda f: ad.hvp(lambda x: np.sum(f(x)))(POINT, POINT),
    "taylor": lambda f: ad.taylor(lambda x: f(x)[0], 2.0, 2),
}


@pytest.mark.parametrize("name", CAPTURING)
def test_results_of_operators_are_no_tracers_while_another_thread_traces(name: str) -> None:
    is_open, may_close = threading.Event(), threading.Event()

    def trace() -> None:
        with cg.strict():
            is_open.set()
            may_close.wait(60)

    thread = threading.Thread(target=trace)
    thread.start()
    try:
        assert is_open.wait(60)
        results = CAPTURING[name](lambda x: WEIGHT * x**3)
    finally:
        may_close.set()
        thread.join()
    for result in results if isinstance(results, (list, tuple)) else [results]:
        assert isinstance(result, cg.Node)
        assert not is_tracer(result)


def test_derivatives_in_threads_started_by_operator_are_tracers() -> None:
    derivatives: list[Any] = []

    def f(x: Any) -> Any:
        def derive() -> None:
            inner = lambda y: x * y * y  # noqa: E731
            derivatives.append((ad.grad(inner)(2.0), ad.jacfwd(inner)(2.0), ad.grad(lambda y: y**2)(x)))
            derivatives.append((ad.vjp(np.sin, 0.5)[1](x)[0], ad.linearize(np.sin, 0.5)[1](x)))

        thread = threading.Thread(target=derive)
        thread.start()
        thread.join()
        return sum(sum(part) for part in derivatives[-2:])

    assert ad.grad(f)(3.0) == pytest.approx(4 + 4 + 2 + 2 * np.cos(0.5))
    assert all(is_tracer(derivative) for part in derivatives for derivative in part)


def test_tracer_used_after_operator_gives_nodes() -> None:
    nodes: list[Any] = []
    ad.grad(lambda x: nodes.append(x * 2) or np.sum(x))(np.ones(2))  # type: ignore[func-returns-value]
    (node,) = nodes
    assert is_tracer(node)
    assert not is_tracer(node + 1)
    assert node.value.tolist() == [2.0, 2.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(node[0]) == 2.0
    with pytest.raises(cg.LeakError, match="node"):
        np.asarray(node).max()


# -------------------------------------------------------------------------------------------------- messages


def leak_message(function: Callable[[Any], Any]) -> str:
    with pytest.raises(cg.LeakError) as caught:
        ad.grad(function)(np.array([0.5, 1.5]))
    return str(caught.value)


def test_leak_message_names_function_variable_line_and_advice() -> None:
    def loss(weights: Any) -> Any:
        return np.sum(weights) + scipy.special.logsumexp(weights)

    message = leak_message(loss)
    assert message.startswith("scipy.special.logsumexp() takes the numbers of weights (shape (2,), float64)")
    assert f'(File "{__file__}", line {loss.__code__.co_firstlineno + 1}, in loss: return np.sum(weights)' in message
    assert "Use cg.logsumexp. If plain numbers are intended, write x.value or cg.stop_gradient(x)" in message


def test_leak_message_names_both_nodes_of_a_line() -> None:
    def loss(x: Any) -> Any:
        first, second, third = x[:1], x[1:], x * 1
        return np.sum(third) + scipy.special.softmax([first, second])[0]

    message = leak_message(loss)
    assert "first (shape (1,), float64) or second (shape (1,), float64)" in message or "first" in message
    assert "scipy.special.softmax()" in message


@pytest.mark.parametrize(
    "raising",
    [
        lambda x: None.foo * x,  # type: ignore[attr-defined]
        lambda x: np.zeros(3, "foo") * x,
        lambda x: x(),
        lambda x: np.zeros(2).reshape(5) * x,
        lambda x: np.linalg.inv(np.zeros((2, 2))) * x,
        lambda x: [][3] * x,
        lambda x: np.broadcast_to(1.0, (2,)).__setitem__(0, 2.0) or x,
        lambda x: x @ np.ones(5),
    ],
)
def test_errors_of_other_kinds_are_unchanged(raising: Callable[[Any], Any]) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        ad.grad(lambda x: np.sum(raising(x)))(np.ones(2))
    assert not isinstance(caught.value, cg.LeakError)


def test_leak_error_caught_by_user_warns_once() -> None:
    def f(x: Any) -> Any:
        total = np.sum(x)
        for _ in range(3):
            try:
                total = total + np.asarray(x).max()
            except TypeError:
                total = total + 1.0
        return total

    for call in (lambda: ad.grad(f)(np.ones(2)), lambda: ad.jvp(f, (np.ones(2),), (np.ones(2),))):
        with pytest.warns(RuntimeWarning, match=r"may lack a derivative: .*np\.asarray\(x\)\.max\(\)") as records:
            call()
        assert len(records) == 1


def test_buffer_filled_by_foreign_code_raises() -> None:
    x = cg.variable([1.0, 2.0])
    for buffer in (np.zeros_like(x), cg.zeros(2), cg.empty(2), np.empty_like(x), np.zeros(2, like=x)):
        memory = np.ndarray.view(buffer, np.ndarray)
        memory[:] = 3.0  # as code in C does
        for use in (lambda buffer=buffer: buffer + 1, lambda buffer=buffer: np.sum(buffer), lambda buffer=buffer: buffer[0]):
            with pytest.raises(cg.LeakError, match=r"was filled by code outside of the graph"):
                use()
    for buffer in (np.zeros_like(x), cg.zeros(2)):
        buffer.value[:] = 3.0  # which is meant so
        assert (buffer * x).value.tolist() == [3.0, 6.0]
        buffer[0] = x[1]
        assert gradient(np.sum(buffer * x))[x].tolist() == [2.0, 4.0]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python does not ask a class for its buffer")
def test_buffer_protocol_of_tracer_raises() -> None:
    for take in (memoryview, bytearray, np.frombuffer):
        with pytest.raises(cg.LeakError):
            ad.grad(lambda x, take=take: np.sum(x) + len(take(x)))(np.ones(2))
    assert memoryview(cg.variable([1.0, 2.0])).tolist() == [1.0, 2.0]
