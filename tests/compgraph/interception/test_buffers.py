"""Arrays made within a differentiated function are NumPy arrays until a node is written into them."""

from __future__ import annotations

import contextlib
import copy
import gc
import itertools
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg.blas

import autodiff as ad
import compgraph as cg
from compgraph.values import Buffer
from tests.support.failures import Failures

X = np.array([0.8, 1.3, 0.4])
CAPTURED = np.array([[2.0, 0.5, 0.1], [0.3, 1.5, 0.2], [0.1, 0.4, 3.0]])


def difference(f: Callable[[Any], Any], h: float = 1e-6) -> Any:
    return np.array([(f(X + step) - f(X - step)) / (2 * h) for step in h * np.eye(3)])


def by_index(x: Any) -> Any:
    a = np.zeros(3)
    a[0], a[2] = x[0] * x[1], x[2]
    return a


def by_view(x: Any) -> Any:
    a = np.ones((3, 3))
    row, transposed = a[1], a.T
    transposed[0] = x
    row *= x[1]
    return a


def by_view_of_view(x: Any) -> Any:
    a = np.zeros(8)
    b = a.reshape(2, 4)[:, 1:][::-1]
    b[0] = x
    return a * np.arange(8.0)


def by_function(x: Any) -> Any:
    a, b, c, d = np.empty(3), np.zeros(3), np.full(3, 2.0), np.eye(3)
    np.copyto(a, x)
    np.put(b, [0, 2], x[:2])
    np.add.at(c, [0, 0, 1], x)
    np.fill_diagonal(d, x)
    return np.concatenate([a, b, c, d.ravel()])


def by_output(x: Any) -> Any:
    a, b = np.empty(3), np.empty(())
    np.multiply(x, 3, out=a)
    np.sum(x**2, out=b)
    return a * b


def by_methods(x: Any) -> Any:
    a, b, c = np.zeros(3), np.zeros((3, 1)), np.arange(3.0)
    a.fill(x[1])
    b.flat = x
    b.flat[1] = x[0] ** 2
    c.put([1], x[2])
    return np.sum(a * b) * c + a.dot(x) + np.linspace(0, 1, 3).clip(x[2], 0.9)


def by_parts_of_complex(x: Any) -> Any:
    z = np.zeros(3, complex)
    z.real = x
    z.imag[1] = x[0]
    z[2] += 1j * x[1]
    return np.abs(z * (1 + 2j)) ** 2


def of_results(x: Any) -> Any:
    array = np.linspace(0, 1, 3) * 2 + 1  # computed here; below copied, gathered and stacked
    a, b, c = array.copy(), array[[2, 0, 1]], np.vstack([array, array])
    a[0], b[1] = x[0], x[1]
    c[1] = x
    return a * b + c.sum(axis=0)


def from_captured(x: Any) -> Any:
    a, b, c = CAPTURED.copy(), CAPTURED * 2, CAPTURED[0] + 1
    a[0, 1] = x[0]
    b[2] = x
    c[1] -= x[1]
    return a @ b @ c


def changed_afterwards(x: Any) -> Any:
    w = np.array([1.0, 2.0, 3.0])
    y = x * w
    w[0] = 10.0
    z = x * w
    w += 1
    return y * z + w * x


def in_single_precision(x: Any) -> Any:
    a = np.zeros(3, np.float32)
    a[1:] = x[1:]
    return a.astype(float) ** 2 + x


def through_c_code(x: Any) -> Any:
    a = np.eye(3) * 2
    inverse = scipy.linalg.blas.dgemm(1.0, a, a)  # this call is not intercepted, and has no node among its operands
    a[0] = x
    return inverse @ a


PROGRAMS = [
    by_index, by_view, by_view_of_view, by_function, by_output, by_methods, by_parts_of_complex, of_results, from_captured,
    changed_afterwards, through_c_code,
]  # fmt: skip


@pytest.mark.parametrize("make", PROGRAMS)
def test_buffer_fill_has_derivatives(make: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(make(x)))

    expected = difference(f)
    np.testing.assert_allclose(ad.grad(f)(X), expected, atol=1e-8)
    np.testing.assert_allclose(ad.grad(lambda x: f(x) + np.sum(x**2))(X), expected + 2 * X, atol=1e-8)
    np.testing.assert_allclose(ad.jvp(f, (X,), (np.ones(3),))[1], expected.sum(), atol=1e-8)
    np.testing.assert_allclose(ad.hessian(f)(X), ad.jacfwd(ad.grad(f))(X), atol=1e-10)
    np.testing.assert_allclose(ad.jacobian(lambda x: np.ravel(make(x)))(X), ad.jacfwd(lambda x: np.ravel(make(x)))(X), atol=1e-10)
    second = (ad.grad(f)(X + 1e-5 * X) - ad.grad(f)(X - 1e-5 * X)) / 2e-5
    np.testing.assert_allclose(ad.hvp(f)(X, X), second, atol=1e-5)


@pytest.mark.parametrize(
    "call",
    [
        lambda a, out: a.dot(np.ones(3), out),
        lambda a, out: a.sum(0, None, out),
        lambda a, out: a[0].take([0, 1, 2], None, out),
        lambda a, out: a[0].round(1, out),
        lambda a, out: a.max(0, out),
        lambda a, out: a.max(0, out=out),
    ],
    ids=["dot", "sum", "take", "round", "max", "max by keyword"],
)
def test_buffer_method_returns_its_output_argument(call: Callable[[Any, Any], Any]) -> None:
    def f(x: Any) -> Any:
        out = np.zeros(3)
        returned = call(np.ones((3, 3)), out)
        returned[0] = x[0] ** 2
        return np.sum(out)

    np.testing.assert_allclose(ad.grad(f)(X), [2 * X[0], 0, 0])


def test_buffer_in_single_precision() -> None:
    gradient = ad.grad(lambda x: np.sum(in_single_precision(x)))(X)
    np.testing.assert_allclose(gradient, [1.0, 2 * X[1] + 1, 2 * X[2] + 1], rtol=1e-6)


def within(look: Callable[[Any], Any]) -> Any:
    """The result of a function that is called with x during differentiation."""
    results = []

    def f(x: Any) -> Any:
        results.append(look(x))
        return np.sum(x)

    ad.grad(f)(X)
    return results[0]


def test_buffer_behaves_as_ndarray() -> None:
    def look(x: Any) -> Any:
        a = np.linspace(0.0, 1.0, 5)
        assert isinstance(a, np.ndarray)
        assert not isinstance(a, cg.Node)
        assert a.flags.writeable
        assert (pickle.loads(pickle.dumps(a)) == a).all()
        assert type(pickle.loads(pickle.dumps(a))) is np.ndarray
        assert (copy.deepcopy(a) == a).all()
        assert float(a[1]) == 0.25
        assert type(a.sum()) is np.float64
        assert scipy.linalg.blas.dasum(a) == 2.5
        assert np.asarray(a) is a
        return a.tolist()

    assert within(look) == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_buffer_in_result_is_plain() -> None:
    def f(x: Any) -> Any:
        return np.sum(x**2), {"table": np.zeros(3), "x": x}

    value, aux = ad.grad(f, has_aux=True)(X)
    assert type(aux["table"]) is np.ndarray
    assert type(value) is np.ndarray
    _, _, aux = ad.jvp(f, (X,), (X,), has_aux=True)
    assert type(aux["table"]) is np.ndarray


def test_buffer_does_not_change_arrays_of_caller() -> None:
    inner, before = np.zeros(3), CAPTURED.copy()

    def into_global(x: Any) -> Any:
        CAPTURED[0] = x
        return np.sum(CAPTURED)

    def into_closure(x: Any) -> Any:
        inner[:2] += x[:2]
        return np.sum(inner)

    def into_argument(x: Any, array: Any) -> Any:
        array.T[0] = x[0]
        return np.sum(array)

    for f, others in ((into_global, ()), (into_closure, ()), (into_argument, (inner,))):
        with pytest.raises(TypeError, match="Copy the array inside the function"):
            ad.grad(f)(X, *others)  # type: ignore[operator]
        with pytest.raises(TypeError, match="Copy the array inside the function"):
            ad.jvp(lambda x, f=f, others=others: f(x, *others), (X,), (X,))
    assert type(CAPTURED) is np.ndarray
    assert (before == CAPTURED).all()
    assert type(inner) is np.ndarray
    assert not inner.any()


def test_buffer_keeps_earlier_contents() -> None:
    def f(x: Any) -> Any:
        total = np.zeros(3)
        total += 1.0
        first = total * x
        total[0] = x[0]
        with cg.no_graph():
            total[1] = x[1]  # numbers alone
        return np.sum(first + total)

    assert ad.grad(f)(X).tolist() == [2.0, 1.0, 1.0]


def test_buffer_of_integers_raises_on_node_write() -> None:
    with pytest.raises(cg.LeakError, match="assigned into a plain array"):
        ad.grad(lambda x: np.sum(_into(np.zeros(3, int), x)))(X)


def _into(array: Any, x: Any) -> Any:
    array[0] = x[0]
    return array


CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "asarray": np.asarray,
    "asarray, keyword": lambda a: np.asarray(a=a),
    "asarray, dtype": lambda a: np.asarray(a, float),
    "array": lambda a: np.array(a, copy=None),
    "array, subok": lambda a: np.array(a, copy=None, subok=True),
    "asanyarray": np.asanyarray,
    "ascontiguousarray": lambda a: np.ascontiguousarray(a),
    "asfortranarray": lambda a: np.asfortranarray(a),
    "asarray_chkfinite": lambda a: np.asarray_chkfinite(a),
    "require": lambda a: np.require(a, float, "W"),
    "map": lambda a: next(map(np.asarray, [a])),
    "getattr": lambda a, name="asarray": getattr(np, name)(a),
    "reshape": lambda a: np.asarray(a).reshape(3),
    "as_strided": lambda a: np.lib.stride_tricks.as_strided(a, (3,)),
    "memoryview": lambda a: np.asarray(memoryview(a)),
    "data": lambda a: np.asarray(a.data),
}


def test_buffer_conversion_shares_memory_or_raises() -> None:
    """The conversion is the buffer or a view of it, so writes into either are visible in the other."""
    with Failures("conversions") as failures:
        contexts = (contextlib.nullcontext, cg.patched_numpy)
        for name, is_on, step, context in itertools.product(CONVERSIONS, (True, False), (1, 2), contexts):
            with failures.case(f"{name}, interception {is_on}, step {step}, {context.__name__}"):
                check_conversion(CONVERSIONS[name], is_on, step, context)


def check_conversion(convert: Callable[[Any], Any], is_on: bool, step: int, context: Any) -> None:
    """Write alternately into a buffer and its conversion, and compare with plain arrays."""

    def f(x: Any) -> Any:
        a = np.zeros(3 * step)[::step]
        b = convert(a)
        b[0] = x[0] ** 2
        a[1] = x[1] ** 3
        return np.sum(a * [1.0, 2.0, 3.0]) + np.sum(b * [4.0, 5.0, 6.0])

    try:
        expected = difference(f)
    except (TypeError, ValueError):  # of a strided array
        return
    cg.interception(is_on)
    try:
        for slope in (ad.grad, ad.jacfwd):
            with context(), contextlib.suppress(TypeError):
                np.testing.assert_allclose(slope(f)(X), expected, atol=1e-6)
    finally:
        cg.interception(True)


def test_buffer_asarray_is_itself() -> None:
    def f(x: Any) -> Any:
        a = np.zeros(3)
        np.asarray(a)[0] = x[0] ** 2
        np.asarray(a[1:])[1] = x[1] ** 3
        return np.sum(a * [1.0, 2.0, 3.0])

    for context in (contextlib.nullcontext, cg.patched_numpy):
        with context():
            np.testing.assert_allclose(ad.grad(f)(X), difference(f), atol=1e-8)
            np.testing.assert_allclose(ad.jacfwd(f)(X), difference(f), atol=1e-8)


def test_buffer_is_freed_without_garbage_collection() -> None:
    def look(x: Any) -> Any:
        a = np.zeros(1000)
        b = a[[1, 2, 3]]
        a[:3] = x
        b[0] = x[0]
        return weakref.ref(a), weakref.ref(b)

    gc.disable()
    try:
        assert [reference() for reference in within(look)] == [None, None]
    finally:
        gc.enable()


def test_buffer_survives_its_operator() -> None:
    buffers: list[Any] = []

    def f(x: Any) -> Any:
        buffers.append(np.arange(3.0))
        return np.sum(x * buffers[0])

    assert ad.grad(f)(X).tolist() == [0.0, 1.0, 2.0]
    assert type(buffers[0]) is Buffer  # real memory, also afterwards
    assert np.asarray(buffers[0]).tolist() == [0.0, 1.0, 2.0]
    x = cg.variable(X)
    buffers[0][1] = x[0]
    assert ad.reverse.gradient(np.sum(buffers[0] * 2))[x].tolist() == [2.0, 0.0, 0.0]


class Grid:
    """An object that NumPy converts by ``__array__``."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.linspace(0.0, 1.0, 3)


def test_array_conversion_of_objects_returns_arrays() -> None:
    gradient = ad.grad(lambda x: np.sum(np.sin(Grid()) * x) + np.diff(Grid())[0] * x[0])(np.ones(3))
    np.testing.assert_allclose(gradient, np.sin([0.0, 0.5, 1.0]) + np.array([0.5, 0.0, 0.0]))


def test_setflags_of_tracer_accepts_write_false() -> None:
    def frozen(x: Any) -> Any:
        y = x * x
        y.setflags(write=False)
        return np.sum(y)

    np.testing.assert_allclose(ad.grad(frozen)(np.arange(3.0)), [0.0, 2.0, 4.0])
    with pytest.raises(TypeError, match="setflags is not supported on nodes"):
        ad.grad(lambda x: (x * x).setflags(write=True))(np.arange(3.0))
