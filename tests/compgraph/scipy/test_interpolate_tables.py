"""Derivatives of ``scipy.interpolate``: tables, grids, polynomials, and values at scattered points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.interpolate import (
    BarycentricInterpolator,
    KroghInterpolator,
    RBFInterpolator,
    RegularGridInterpolator,
    barycentric_interpolate,
    griddata,
    interp1d,
    interpn,
    krogh_interpolate,
)

import autodiff as ad
from tests.support.arguments import real
from tests.support.for_each import for_each
from tests.support.scipy_checks import Rows, checked, functions

X = np.array([0, 0.7, 1.5, 2.1, 3.3, 4.0])
Y = np.array([0.3, -0.8, 1.1, 0.2, -0.5, 0.9])
ROWS = np.stack([Y, np.sin(Y), Y[::-1] * 1.3])
Z = np.array([0.2, 1.6, 3.9, 2.5])
SIDE = np.array([0, 1.0, 1.5, 3])
VALUES = real(6, 4)
PLACES = np.array([[0.13, 0.23], [3.23, 2.03], [1.03, 1.07]])
POINTS = np.array([[0, 0], [1.0, 0.1], [0.1, 1.0], [1.1, 1.2], [0.45, 0.4], [0.6, 0.9]])
HEIGHTS = np.array([0.3, -0.8, 1.1, 0.2, -0.5, 0.9])
INSIDE = np.array([[0.3, 0.2], [0.7, 0.5], [0.5, 0.65]])


def set_values_later(x: Any, y: Any, z: Any) -> Any:
    """A polynomial whose values are set after its construction from points."""
    polynomial = BarycentricInterpolator(x)
    polynomial.set_yi(y)
    return polynomial(z)


KINDS = ["linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", "cubic"]
CASES: dict[str, list[tuple[Any, ...]]] = {
    "interp1d": [
        *[(kind, lambda x, y, z, kind=kind: interp1d(x, y, kind=kind)(z), X, Y, Z) for kind in KINDS],
        *[(f"{kind}, an axis", lambda y, z, kind=kind: interp1d(X, y, kind=kind, axis=1)(z), ROWS, Z) for kind in KINDS],
        ("of numbers", lambda z: interp1d(X, ROWS, kind="cubic")(z), Z),
        ("unsorted", lambda y: interp1d(X[::-1], y)(Z), Y),
        ("fill", lambda y, f: interp1d(X, y, bounds_error=False, fill_value=(f, 0.0))([-1.0, 2.0, 5.0]), Y, 0.3),
        ("extrapolated", lambda y, z: interp1d(X, y, fill_value="extrapolate")(z), Y, np.array([-1.0, 2.0, 5.0])),
        ("a matrix of places", lambda y, z: interp1d(X, y)(z), ROWS, Z.reshape(2, 2)),
    ],
    "RegularGridInterpolator": [
        ("all", lambda x, s, g, q: RegularGridInterpolator((x, s), g)(q), X, SIDE, VALUES, PLACES),
        ("of numbers", lambda q: RegularGridInterpolator((X, SIDE), VALUES)(q), PLACES),
        (
            "downwards, extrapolated",
            lambda g, q: RegularGridInterpolator((X[::-1], SIDE), g, bounds_error=False, fill_value=None)(q),
            VALUES,
            PLACES + 2,
        ),
        (
            "filled",
            lambda g: RegularGridInterpolator((X, SIDE), g, bounds_error=False, fill_value=1.5)(PLACES + 2),
            VALUES,
        ),
        ("one axis", lambda g, q: RegularGridInterpolator((X,), g)(q), ROWS.T, Z),
        ("interpn", lambda g, a: interpn((X, SIDE), g, (a, a / 2)), VALUES, np.array([0.3, 1.15])),
        ("nearest", lambda g: interpn((X, SIDE), g, PLACES, method="nearest"), VALUES),
    ],
    "BarycentricInterpolator": [
        ("all", lambda x, y, z: BarycentricInterpolator(x, y)(z), X, Y, Z),
        ("at the points", lambda y, z: BarycentricInterpolator(X, y)(z), Y, X[:3]),
        ("slope", lambda x, y, z: BarycentricInterpolator(x, y).derivative(z), X, Y, Z),
        ("an axis", lambda y, z: BarycentricInterpolator(X, y, axis=1)(z), ROWS, Z),
        ("values given later", set_values_later, X, Y, Z),
        ("called once", lambda y, z: barycentric_interpolate(X, y, z, der=2), Y, Z),
        ("of numbers", lambda z: BarycentricInterpolator(X, Y)(z), Z),
    ],
    "KroghInterpolator": [
        ("all", lambda x, y, z: KroghInterpolator(x, y)(z), X, Y, Z),
        ("derivatives known", lambda y, z: KroghInterpolator([0, 0, 1, 1, 1, 2], y)(z), Y, Z),
        ("slope", lambda y, z: KroghInterpolator(X, y).derivative(z, 2), Y, Z),
        ("several", lambda y, z: krogh_interpolate(X, y, z, der=[0, 2]), Y, Z),
        ("of numbers", lambda z: KroghInterpolator(X, ROWS, axis=1)(z) + KroghInterpolator(X, ROWS, axis=1).derivative(z), Z),
    ],
    "RBFInterpolator": [
        *[
            (kernel, lambda p, d, x, kernel=kernel: RBFInterpolator(p, d, kernel=kernel)(x), POINTS, HEIGHTS, INSIDE)
            for kernel in ("linear", "thin_plate_spline", "cubic", "quintic")
        ],
        *[
            (
                kernel,
                lambda p, d, x, e, kernel=kernel: RBFInterpolator(p, d, kernel=kernel, epsilon=e, smoothing=0.1)(x),
                POINTS,
                HEIGHTS,
                INSIDE,
                2.0,
            )
            for kernel in ("multiquadric", "inverse_multiquadric", "inverse_quadratic", "gaussian")
        ],
        ("of numbers", lambda x: RBFInterpolator(POINTS, np.stack([HEIGHTS, HEIGHTS**2], -1))(x), INSIDE),
        ("neighbors", lambda p, d: RBFInterpolator(p, d, neighbors=4)(INSIDE), POINTS, HEIGHTS),
        ("neighbors of places", lambda d, x: RBFInterpolator(POINTS, d, neighbors=4)(x), HEIGHTS, INSIDE),
        ("degree 2", lambda d: RBFInterpolator(POINTS, d, degree=1)(INSIDE), np.stack([HEIGHTS, HEIGHTS**2], -1)),
    ],
    "griddata": [
        ("linear", lambda p, d, x: griddata(p, d, x), POINTS, HEIGHTS, INSIDE),
        ("rescaled, filled", lambda d: griddata(POINTS, d, INSIDE * 2, fill_value=0.5, rescale=True), HEIGHTS),
        ("nearest", lambda d: griddata(POINTS, d, INSIDE, method="nearest"), HEIGHTS),
        ("in one dimension", lambda p, d, x: griddata(p, d, x, method="cubic"), X, Y, Z),
        ("coordinates", lambda d, a: griddata((POINTS[:, 0], POINTS[:, 1]), d, (a, a * 0.9)), HEIGHTS, INSIDE[:, 0]),
    ],
}


@pytest.mark.parametrize("rows", functions(CASES))
def test_interpolators_first_derivatives(rows: Rows) -> None:
    rows.check(order=1, tolerance=1e-5)


@for_each(
    ("function", "arguments"),
    [
        (lambda x, y, z: BarycentricInterpolator(x, y)(z), (X, Y, Z)),
        (lambda x, y, z: interp1d(x, y, kind="cubic")(z), (X, Y, Z)),
        (lambda g, q: RegularGridInterpolator((X, SIDE), g)(q), (VALUES, PLACES)),
        (lambda d, x: RBFInterpolator(POINTS, d)(x), (HEIGHTS, INSIDE)),
    ],
)
def test_interpolators_second_derivatives(function: Any, arguments: Any) -> None:
    checked(function, arguments, tolerance=1e-5)


def test_rbf_interpolator_jacobians_of_both_modes_agree() -> None:
    def f(p: Any) -> Any:
        return RBFInterpolator(p, HEIGHTS)(INSIDE)

    rows = ad.jacrev(f)(POINTS)
    np.testing.assert_allclose(ad.jacfwd(f)(POINTS), rows, atol=1e-10)


@for_each(
    ("wrong", "match"),
    [
        (lambda v: RegularGridInterpolator((X, SIDE), v, method="cubic")(PLACES), "cubic"),
        (lambda v: interpn((X, SIDE), v, PLACES, method="splinef2d"), "RectBivariateSpline"),
        (lambda v: griddata(POINTS, v[:, 0], INSIDE, method="cubic"), "cubic"),
        (lambda v: BarycentricInterpolator(X, Y).set_yi(v[:, 0]), "cannot hold nodes"),
    ],
)
def test_interpolators_unsupported_calls_raise(wrong: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        ad.grad(lambda v: np.sum(wrong(v)))(VALUES)


@for_each(
    "wrong",
    [
        lambda v: interp1d(X, v[:, 0])(Z + 2),
        lambda v: interp1d(X[:3], v[:, 0])(Z),
        lambda v: RegularGridInterpolator((X, SIDE), v)(PLACES + 2),
        lambda v: RegularGridInterpolator((X, SIDE), v.T)(PLACES),
        lambda v: KroghInterpolator([0, 1, 0, 2, 3, 4], v[:, 0]),
    ],
)
def test_interpolators_errors_equal_scipy(wrong: Any) -> None:
    for function in (wrong, ad.grad(lambda v: np.sum(wrong(v)))):
        with pytest.raises(ValueError, match=r"\S"):
            function(VALUES)
