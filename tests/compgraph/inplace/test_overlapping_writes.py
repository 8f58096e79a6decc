"""Writes whose source overlaps their target leave NumPy's result or raise; derivatives match the result."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import grad, jvp
from tests.support.failures import Failures

Array = np.ndarray[Any, Any]
setitem = operator.setitem
LENGTH = 12

# Each gives two views of a vector of twelve, which overlap.
PAIRS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "shifted": lambda y: (y[1:7], y[:6]),
    "shifted back": lambda y: (y[:6], y[1:7]),
    "reversed": lambda y: (y[3:9], y[8:2:-1]),
    "of steps": lambda y: (y[::2], y[6:]),
    "of steps before": lambda y: (y[::2], y[:6]),
    "of a row": lambda y: (y[1::2], y.reshape(2, 6)[:1]),
    "of slow steps": lambda y: (y[:6], y[::2]),
    "reversed, of steps": lambda y: (y[10::-2], y[8:2:-1]),
    "itself": lambda y: (y[2:8], y[2:8]),
    "apart": lambda y: (y[:6], y[6:]),
    "rows": lambda y: (y.reshape(4, 3)[1:3], y.reshape(4, 3)[:2]),
    "columns": lambda y: (y.reshape(3, 4)[:, :3], y.reshape(3, 4)[:, 1:]),
    "transposed": lambda y: (y[:9].reshape(3, 3), y[:9].reshape(3, 3).T),
}
MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "assignment": lambda t, s: setitem(t, ..., s),
    "copyto": lambda t, s: np.copyto(t, s),
    "copyto where": lambda t, s: np.copyto(t, s, where=np.arange(t.size).reshape(t.shape) % 2 == 0),
    "at a mask": lambda t, s: setitem(t, np.arange(t.size).reshape(t.shape) % 2 == 0, np.ravel(s)[: (t.size + 1) // 2]),
    "at a mask of rows": lambda t, s: setitem(t, np.arange(len(t)) < len(s), s),
    "at places": lambda t, s: setitem(t, np.arange(len(s))[::-1], s),
    "flat": lambda t, s: setitem(t.flat, slice(None), s),
    "flat of few": lambda t, s: setitem(t.flat, slice(1, None, 2), s),
    "flat of many": lambda t, s: setitem(t.flat, [0, 2, 2, 1, 0], s),
    "put": lambda t, s: np.put(t, [4, 0, 1, 3], s),
    "put again": lambda t, s: np.put(t, [1, 1, -1], s),
    "place": lambda t, s: np.place(t, np.arange(t.size).reshape(t.shape) % 3 < 2, s),
    "putmask": lambda t, s: np.putmask(t, np.arange(t.size).reshape(t.shape) % 3 > 0, s),
    "concatenate": lambda t, s: np.concatenate([s[1:], s[:1]], out=t),
    "concatenate with others": lambda t, s: np.concatenate([s[1:], np.zeros_like(s[:1])], out=t),
    "stack": lambda t, s: np.stack([s[0], s[1], s[0]], out=t[:3]),
    "take": lambda t, s: np.take(s, [1, 0] * (len(t) // 2) + [1] * (len(t) % 2), axis=0, out=t, mode="clip"),
    "compress": lambda t, s: np.compress([True] * len(t), s, axis=0, out=t),
    "put_along_axis": lambda t, s: np.put_along_axis(t, np.argsort(-np.arange(t.size).reshape(t.shape), 0), s, 0),
    "fill_diagonal": lambda t, s: np.fill_diagonal(t, s),
}
COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda t, s: np.add(s, t, out=t),
    "multiply where": lambda t, s: np.multiply(s, 2.0, out=t, where=np.arange(t.size).reshape(t.shape) % 2 == 0),
    "+=": lambda t, s: operator.iadd(t, s),
    "cumsum": lambda t, s: np.cumsum(s, axis=0, out=t),
    "cumprod": lambda t, s: np.cumprod(s, axis=0, out=t),
    "accumulate": lambda t, s: np.hypot.accumulate(s, axis=0, out=t),
    "reduce": lambda t, s: np.add.reduce(np.stack([s, s]), axis=0, out=t),
    "sum": lambda t, s: np.sum(s[None], axis=0, out=t),
    "mean": lambda t, s: np.mean(s[None], axis=0, out=t),
    "clip": lambda t, s: np.clip(s, -0.5, 0.5, out=t),
    "round": lambda t, s: np.round(s, 1, out=t),
    "matmul": lambda t, s: np.matmul(s, s, out=t),
    "dot": lambda t, s: np.dot(s, s, out=t),
    "vecdot": lambda t, s: np.vecdot(s[:, None], s[:, None] * 2, out=t),
    "vecdot of both": lambda t, s: np.vecdot(s[:, None], s[::-1, None], out=t),
    "vecdot in place": lambda t, s: np.vecdot(np.lib.stride_tricks.sliding_window_view(s, 2)[..., :], s[:2], out=t[: len(s) - 1]),
    "vecdot of rows": lambda t, s: np.vecdot(s, s, out=t[:, 0]),
    "matvec": lambda t, s: np.matvec(s, s[0], out=t[:, 0]),
    "einsum": lambda t, s: np.einsum("ij,jk->ik", s, s, out=t),
    "einsum of rows": lambda t, s: np.einsum("ij,j->i", s, s[0], out=t[:, 0]),
    "einsum of one": lambda t, s: np.einsum("i,i->i", s, s[::-1], out=t),
    "add.at": lambda t, s: np.add.at(t, ...,  s),
    "sort": lambda t, s: t.sort(axis=0),
    "nan_to_num": lambda t, s: np.nan_to_num(t, copy=False),
}  # fmt: skip
X = np.cos(np.arange(LENGTH) * 1.7) + np.linspace(-0.3, 0.3, LENGTH)


def run(pair: str, write: Callable[[Any, Any], Any], y: Any) -> Any:
    """A vector after a write."""
    target, source = PAIRS[pair](y)
    write(target, source)
    return y


def expected_result(pair: str, write: Callable[[Any, Any], Any], dtype: Any) -> Any:
    """NumPy's result, or None if NumPy raises."""
    try:
        return run(pair, write, X.astype(dtype).copy())
    except (ValueError, TypeError, IndexError):
        return None


def slope(f: Callable[[Any], Any], x: Array, direction: Array) -> Any:
    return (f(x + 1e-6 * direction) - f(x - 1e-6 * direction)) / 2e-6


WEIGHTS = np.linspace(1, 3, LENGTH)
DIRECTION = np.sin(np.arange(LENGTH))


def check_write(write: str) -> None:
    """Check a write between all pairs of views, in four dtypes, and its derivatives in float64."""
    do = (MOVES | COMPUTED)[write]
    written = 0
    for pair in PAIRS:
        for dtype in (np.float64, np.float32, np.float16, np.complex128):
            expected = expected_result(pair, do, dtype)
            if expected is None or (pair == "of a row" and write in COMPUTED):  # which has an axis more
                continue
            try:
                result = run(pair, do, cg.variable(X.astype(dtype)) * np.ones(LENGTH, dtype))
            except ValueError as error:
                if write in MOVES or "memory with an operand" not in str(error):
                    raise
                continue
            assert result.value.tobytes() == expected.tobytes(), (pair, dtype)
            written += 1
            if dtype is np.float64:
                check_derivatives(pair, do)
    assert written or write == "vecdot in place"


def test_overlapping_writes_match_numpy_or_raise() -> None:
    with Failures("overlapping writes") as failures:
        for write in (*MOVES, *COMPUTED):
            with failures.case(write):
                check_write(write)


def check_derivatives(pair: str, do: Callable[[Any, Any], Any]) -> None:
    """Reverse and forward mode, and one derivative within another, against plain NumPy."""

    def f(x: Any) -> Any:
        return np.sum(np.sin(run(pair, do, x * 1.5)) * WEIGHTS)

    value, tangent = jvp(f, [X], [DIRECTION])
    assert float(value) == float(f(X))
    expected = slope(f, X, DIRECTION)
    assert np.isclose(tangent, expected, rtol=1e-6, atol=1e-6), pair
    assert np.isclose(grad(f)(X) @ DIRECTION, expected, rtol=1e-6, atol=1e-6), pair

    def along(x: Any) -> Any:
        return np.sum(grad(f)(x) * DIRECTION)

    assert np.isclose(jvp(along, [X], [DIRECTION])[1], slope(along, X, DIRECTION), rtol=1e-5, atol=1e-5), pair


def test_flat_of_scalar_is_a_copy() -> None:
    for index in (slice(None), [0], [0, 0], ...):
        x = np.array(3.0)
        w = x.flat[index]
        w *= 2
        node = cg.variable(3.0) * np.ones(())
        v = node.flat[index]
        v *= 2
        assert x == 3
        assert node.value == 3, index
        assert np.array_equal(v.value, w)


@pytest.mark.parametrize("function", [np.matmul, np.matvec, np.vecmat])
def test_gufunc_output_with_broadcast_core_axes_raises(function: Any) -> None:
    """Shapes that NumPy rejects raise: a result with one column is not written into three."""
    args = {np.matmul: ((2, 2), (2, 1)), np.matvec: ((1, 2), (2,)), np.vecmat: ((2,), (2, 1))}[function]
    for make in (np.ones, lambda shape: cg.variable(np.ones(shape)) * 1):
        with pytest.raises(ValueError, match=r"(?i)out"):
            function(*map(make, args), out=make((2, 3) if function is np.matmul else (3,)))
