"""Operations that are compiled as equivalent steps: values against NumPy, derivatives against eager evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each

rng = np.random.default_rng(5)
TABLE = np.array([-1.5, -0.5, -0.5, 0.0, 0.25, 1.0, 1.0, 2.0])
KNOTS = np.array([-1.0, -0.25, 0.5, 1.25])
HEIGHTS = np.array([0.5, -2.0, 3.0, 1.0])
POINTS = np.array([-np.inf, -7.0, -1.5, -1.0, -0.5, -0.25, -0.0, 0.0, 0.1, 0.25, 0.9, 1.0, 1.25, 1.9, 2.0, 2.1, np.inf, np.nan])
FINITE = POINTS[np.isfinite(POINTS)]
VECTORS, OTHERS = rng.standard_normal((2, 4, 3))
MATRIX = rng.standard_normal((3, 4))
BINS = np.array([3, 0, 1, 1, 3, 3, 0, 5])

# By case: the function, and its arguments. The values have NumPy's bits.
EXACT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "searchsorted": (lambda v: np.searchsorted(TABLE, v), (POINTS,)),
    "searchsorted right": (lambda v: np.searchsorted(TABLE, v, side="right"), (POINTS,)),
    "searchsorted of a matrix": (lambda v: np.searchsorted(TABLE, v), (MATRIX,)),
    "searchsorted of a number": (lambda v: np.searchsorted(TABLE, v, "right"), (np.array(0.25),)),
    "searchsorted of one": (lambda v: np.searchsorted(TABLE[:1], v), (POINTS,)),
    "searchsorted in integers": (lambda v: np.searchsorted(np.array([-1, 0, 0, 2, 5]), v), (POINTS,)),
    "searchsorted of integers": (lambda v: np.searchsorted(np.array([-1, 0, 0, 2, 5]), v, side="right"), (np.arange(-3, 8),)),
    "searchsorted of float32": (lambda v: np.searchsorted(TABLE, v), (POINTS.astype(np.float32),)),
    "searchsorted in infinities": (lambda v: np.searchsorted(np.array([-np.inf, 0.0, np.inf]), v), (POINTS,)),
    "digitize in decreasing bins": (lambda v: np.digitize(v, TABLE[::-1]), (FINITE,)),
    "digitize": (lambda v: np.digitize(v, TABLE), (FINITE,)),
    "interp": (lambda x: np.interp(x, KNOTS, HEIGHTS), (POINTS,)),
    "interp with ends": (lambda x: np.interp(x, KNOTS, HEIGHTS, left=-9.0, right=9), (POINTS,)),
    "interp of heights": (lambda y: np.interp(POINTS, KNOTS, y), (HEIGHTS,)),
    "interp of both": (lambda x, y: np.interp(x, KNOTS, y), (POINTS.reshape(3, 6), HEIGHTS)),
    "interp of infinite heights": (lambda y: np.interp(POINTS, KNOTS, y), (np.array([0.0, np.inf, np.inf, 1.0]),)),
    "interp between infinite knots": (
        lambda x: np.interp(x, np.array([-np.inf, -1.0, 1.0, np.inf]), np.array([1.0, 1.0, 2.0, 2.0])), (POINTS,),
    ),
    "interp of float32": (lambda x: np.interp(x, KNOTS, HEIGHTS), (POINTS.astype(np.float32),)),
    "interp of integers": (lambda x: np.interp(x, KNOTS, HEIGHTS), (np.arange(-3, 4),)),
    "interp with period": (lambda x: np.interp(x, np.array([0.5, 3.0, 1.25, 2.5]), HEIGHTS, period=2.0), (FINITE,)),
    "cross": (np.cross, (VECTORS, OTHERS)),
    "cross broadcasts": (np.cross, (VECTORS[:, None], OTHERS[None])),
    "cross with axes": (lambda a, b: np.cross(a, b, axisa=0, axisc=0), (VECTORS.T.copy(), OTHERS)),
    "cross with axis": (lambda a, b: np.cross(a, b, axis=0), (VECTORS.T.copy(), OTHERS.T.copy())),
    "cross of integers": (np.cross, (np.arange(6).reshape(2, 3), np.array([3, -1, 2]))),
    "kron": (np.kron, (MATRIX, VECTORS)),
    "kron of unequal dimensions": (np.kron, (MATRIX[0], VECTORS)),
    "kron with number": (lambda v: np.kron(v, 1.5), (VECTORS,)),
    "kron of number": (lambda v: np.kron(2.5, v), (VECTORS[0].astype(np.float32),)),
    "kron of integers": (np.kron, (np.arange(3), np.arange(4).reshape(2, 2))),
    "delete": (lambda x: np.delete(x, 2), (MATRIX,)),
    "delete several": (lambda x: np.delete(x, [0, -1], axis=1), (MATRIX,)),
    "delete a slice": (lambda x: np.delete(x, slice(1, None, 2), axis=0), (MATRIX,)),
    "bincount": (lambda w: np.bincount(BINS, w), (rng.standard_normal(8),)),
    "bincount with minlength": (lambda w: np.bincount(BINS, w, minlength=9), (rng.standard_normal(8),)),
    "divmod": (lambda x, y: np.stack(divmod(x, y)), (FINITE, np.array(0.3))),
    "divmod of float32": (lambda x, y: np.stack(np.divmod(x, y)), (FINITE.astype(np.float32), np.float32(-0.3))),
    "divmod of integers": (lambda x: np.stack(np.divmod(x, 3)), (np.arange(-7, 8),)),
    "quotient of divmod": (lambda x: divmod(x, 0.7)[0], (FINITE,)),
}  # fmt: skip
CLOSE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sinc": (np.sinc, (np.append(FINITE, 1e-170),)),
    "sinc of float32": (np.sinc, (FINITE.astype(np.float32),)),
    "convolve": (np.convolve, (VECTORS.ravel(), OTHERS[0])),
    "convolve same": (lambda a, v: np.convolve(a, v, "same"), (VECTORS.ravel(), OTHERS.ravel()[:4])),
    "convolve valid": (lambda a, v: np.convolve(a, v, "valid"), (OTHERS[0], VECTORS.ravel())),
    "convolve of one": (np.convolve, (VECTORS.ravel()[:1], OTHERS[0])),
}
DIFFERENTIABLE = {
    "interp", "interp with ends", "interp with period", "interp of heights", "interp of both", "cross", "cross broadcasts",
    "cross with axes", "kron", "kron of unequal dimensions", "delete", "delete several", "bincount", "divmod", "sinc", "convolve",
    "convolve same", "convolve valid",
}  # fmt: skip


def compiled_value(function: Callable[..., Any], args: tuple[Any, ...], **options: Any) -> Any:
    """The value of a function as compiled without calls of NumPy."""
    jitted = cg.jit(function, cache=False, **options)
    jitted.compile(*args)
    assert "NumPy" not in str(jitted.report()).splitlines()[0], str(jitted.report())
    return jitted(*args)


@for_each("case", EXACT)
@for_each("exact", [False, True])
def test_expansion_has_bits_of_numpy(case: str, exact: bool) -> None:
    function, args = EXACT[case]
    expected, value = np.asarray(function(*args)), np.asarray(compiled_value(function, args, exact=exact))
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
    assert np.array_equal(value, expected, equal_nan=expected.dtype.kind == "f")
    if expected.dtype.kind == "f":
        assert np.array_equal(np.signbit(value[~np.isnan(value)]), np.signbit(expected[~np.isnan(expected)]))


@for_each("case", CLOSE)
def test_expansion_is_close_to_numpy(case: str) -> None:
    function, args = CLOSE[case]
    expected, value = function(*args), compiled_value(function, args)
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
    tolerance = 8 * np.finfo(expected.dtype).eps
    np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)
    jitted = cg.jit(function, cache=False, exact=True)
    jitted.compile(*args)
    np.testing.assert_array_equal(jitted(*args), expected)


@for_each("case", sorted(DIFFERENTIABLE))
def test_derivative_of_expansion_matches_eager_derivative(case: str) -> None:
    function, args = (EXACT | CLOSE)[case]
    args = tuple(np.where(np.isfinite(a), a, 0.3) for a in args)
    weights = rng.standard_normal(np.shape(function(*args)))

    def loss(*args: Any) -> Any:
        return np.sum(np.sin(function(*args)) * weights)

    for derivative in (ad.grad(loss, tuple(range(len(args)))), ad.hessian(loss)):
        jitted = cg.jit(derivative, cache=False)
        jitted.compile(*args)
        for value, expected in zip(optree.tree_leaves(jitted(*args)), optree.tree_leaves(derivative(*args)), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)


def test_expansion_of_array_with_writes() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        y[1] = 0.3
        first = np.cross(y[:3], y[1:4])
        y[0] = x[3]
        z = np.cross(y[:3], y[1:4])
        z[0] += x[1]
        return first.sum() + (z * y[:3]).sum() + np.interp(y, KNOTS, HEIGHTS).sum()

    x = np.array([0.1, 0.4, -0.2, 0.7])
    jitted = cg.jit(ad.value_and_grad(f), cache=False)
    jitted.compile(x)
    for scale in (1.0, -2.0, 0.3):
        value, gradient = jitted(scale * x)
        expected_value, expected_gradient = ad.value_and_grad(f)(scale * x)
        np.testing.assert_allclose(value, expected_value, rtol=1e-14)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-13)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda v: np.searchsorted(np.array([1.0, 0.0, 2.0]), v), (POINTS,)),
        (lambda v: np.searchsorted(np.array([0.0, 1.0, np.nan]), v), (POINTS,)),
        (lambda v: np.searchsorted(TABLE[::-1].copy(), v, sorter=np.arange(8)[::-1]), (POINTS,)),
        (lambda x: np.interp(x, KNOTS[:1], HEIGHTS[:1]), (POINTS,)),
        (lambda x: np.interp(x, KNOTS, HEIGHTS + 1j), (POINTS,)),
        (lambda x: np.sinc(x), (np.arange(4),)),
    ],
    ids=lambda value: "" if callable(value) else None,
)
def test_other_arguments_are_called(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """What has no steps is a call of NumPy."""
    jitted = cg.jit(function, cache=False)
    jitted.compile(*args)
    np.testing.assert_array_equal(jitted(*args), function(*args))
