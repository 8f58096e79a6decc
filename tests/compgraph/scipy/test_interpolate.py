"""Derivatives of ``scipy.interpolate``: splines, by their data, knots and evaluation points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate
from scipy.interpolate import (
    Akima1DInterpolator,
    BPoly,
    BSpline,
    CubicHermiteSpline,
    CubicSpline,
    InterpolatedUnivariateSpline,
    LSQUnivariateSpline,
    PchipInterpolator,
    PPoly,
    UnivariateSpline,
    make_interp_spline,
    make_lsq_spline,
    make_smoothing_spline,
    pchip_interpolate,
    splantider,
    splder,
    splev,
    splint,
    splrep,
)

import autodiff as ad
from compgraph.interception import unpatched
from tests.support.arguments import real
from tests.support.for_each import for_each
from tests.support.scipy_checks import Rows, checked, functions

# Newer versions of SciPy advise against some of the names that older ones have.
pytestmark = pytest.mark.filterwarnings("ignore:.* is deprecated:DeprecationWarning")

X = np.array([0, 0.7, 1.5, 2.1, 3.3, 4.0])
Y = np.array([0.3, -0.8, 1.1, 0.2, -0.5, 0.9])
ROWS = np.stack([Y, np.sin(Y), Y[::-1] * 1.3])
Z = np.array([0.2, 1.6, 3.9, 2.5])
CLOSED = np.array([0.3, -0.8, 1.1])  # three values of a curve that closes
KNOTS = np.array([0, 0, 0, 0, 1.0, 2, 4, 4, 4, 4])
APART = np.array([-1.0, -0.6, -0.2, 0, 1.0, 2, 4, 4.3, 4.8, 5.5])
C = np.array([0.4, -1.1, 0.8, 0.3, -0.6, 1.2])
MANY = np.linspace(0, 4, 12)
SPREAD = np.array([0.1, 0.4, 0.5, 0.8, 1.2, 1.5, 1.7, 2.3, 2.6, 2.8, 3.4, 3.8])


def closed(q: Any) -> list[Any]:
    return [q[0], q[1], q[2], q[1], q[2] * 2, q[0]]


def through(kind: Any, **options: Any) -> Any:
    return lambda x, y, z: kind(x, y, **options)(z)


def with_ends(kind: Any, bc_type: Any) -> Any:
    return lambda x, y: kind(x, y, bc_type=bc_type)(Z)


SECOND: dict[str, list[tuple[Any, ...]]] = {
    "lagrange": [
        ("all", lambda x, y, z: scipy.interpolate.lagrange(x, y)(z), X[:4], Y[:4], Z),
        ("a parabola, of degree two", lambda y, z: scipy.interpolate.lagrange(X[:4], y)(z), X[:4] ** 2, Z),
    ],
    "CubicSpline": [
        ("all", through(CubicSpline), X, Y, Z),
        ("derivatives", lambda x, y, z: CubicSpline(x, y).derivative()(z) + CubicSpline(x, y)(z, 2), X, Y, Z),
        ("integral", lambda x, y, a, b: CubicSpline(x, y).integrate(a, b), X, Y, -0.3, 2.2),
        ("of numbers, at nodes", lambda z: CubicSpline(X, Y)(z, 1), Z),
        ("of numbers, between nodes", lambda a, b: CubicSpline(X, Y).integrate(a, b), 0.3, 2.2),
    ],
    "PchipInterpolator": [("all", through(PchipInterpolator), X, Y, Z)],
    "Akima1DInterpolator": [("all", through(Akima1DInterpolator), X, Y, Z)],
    "make_interp_spline": [("all", through(make_interp_spline), X, Y, Z)],
    "PPoly": [("all", lambda c, x, z: PPoly(c, x)(z), real(3, 5), X, Z)],
    "BSpline": [("coefficients and places", lambda c, z: BSpline(KNOTS, c, 3)(z), C, Z)],
}

FIRST: dict[str, list[tuple[Any, ...]]] = {
    "CubicSpline": [
        ("an axis", lambda y, z: CubicSpline(X, y, axis=1)(z), ROWS, Z),
        ("natural", with_ends(CubicSpline, "natural"), X, Y),
        ("clamped", with_ends(CubicSpline, "clamped"), X, Y),
        ("numbers", with_ends(CubicSpline, ((1, 0.3), (2, 0.4))), X, Y),
        ("mixed", with_ends(CubicSpline, ("not-a-knot", "clamped")), X, Y),
        ("a node at an end", lambda y, b: CubicSpline(X, y, bc_type=((1, b), "natural"))(Z), Y, 0.3),
        ("periodic", lambda x, q: CubicSpline(x, closed(q), bc_type="periodic")([-0.5, 1.0, 4.4]), X, CLOSED),
        ("four, periodic", lambda x, q: CubicSpline(x, [q[0], q[1], q[2], q[0]], bc_type="periodic")([1.0]), X[:4], CLOSED),
        ("three, periodic", lambda x, q: CubicSpline(x, [q[0], q[1], q[0]], bc_type="periodic")([1.0]), X[:3], CLOSED),
        (
            "periods",
            lambda x, q, a, b: CubicSpline(x, closed(q), bc_type="periodic").integrate(a, b),
            X,
            CLOSED,
            -0.3,
            9.2,
        ),
        ("two points", lambda x, y: CubicSpline(x, y)(Z), X[:2], Y[:2]),
        ("three points", lambda x, y: CubicSpline(x, y)(Z), X[:3], Y[:3]),
        ("antiderivative", lambda x, y, z: CubicSpline(x, y).antiderivative(2)(z), X, Y, Z),
        ("complex", lambda y: CubicSpline(X, y)(Z), Y + 1j * Y[::-1]),
        ("a list", lambda y: CubicSpline([0, 1, 2.5], [y, y * y, 1.0])(0.5), 0.7),
    ],
    "CubicHermiteSpline": [("all", lambda x, y, d: CubicHermiteSpline(x, y, d)(Z), X, Y, real(6))],
    "PchipInterpolator": [
        ("an axis", lambda y, z: PchipInterpolator(X, y, axis=1)(z), ROWS, Z),
        ("rising", lambda x, y: PchipInterpolator(x, y)(Z), X, np.cumsum(np.abs(Y) + 0.1)),
        ("two points", lambda x, y: PchipInterpolator(x, y)(Z), X[:2], Y[:2]),
        ("called once", lambda x, y, z: pchip_interpolate(x, y, z, der=1), X, Y, Z),
        ("several", lambda y: np.stack(pchip_interpolate(X, y, Z, der=[0, 1])), Y),
    ],
    "Akima1DInterpolator": [
        ("an axis", lambda y, z: Akima1DInterpolator(X, y, axis=1)(z), ROWS, Z),
        ("modified", lambda x, y: Akima1DInterpolator(x, y, method="makima")(Z), X, Y),
    ],
    "BPoly": [
        ("places and slope", lambda c, x, z: BPoly(c, x)(z, 1), real(3, 5), X, Z),
        ("integrals", lambda c, a: BPoly(c, X).integrate(0.3, a) + BPoly(c, X).antiderivative()(a), real(3, 5), 1.9),
    ],
    "PPoly": [
        ("a zero slope", lambda c: PPoly(c, X).derivative(3)(Z) + PPoly(c, X)(Z), real(3, 5)),
        ("an axis", lambda c: PPoly(c, X, axis=1)(Z), real(3, 2, 5)),
        ("downwards", lambda c, x: PPoly(c, x)(Z), real(3, 5), X[::-1]),
    ],
    "BSpline": [
        ("knots", lambda t, c, z: BSpline(t, c, 3)(z, 1), APART, C, Z),
        ("integral", lambda c, a, b: BSpline(KNOTS, c, 3).integrate(a, b), C, 0.3, 5.0),
        ("integral within", lambda c, a, b: BSpline(KNOTS, c, 3).integrate(a, b, extrapolate=False), C, 0.3, 5.0),
        ("derivative", lambda c, z: BSpline(KNOTS, c, 3).derivative()(z) + BSpline(KNOTS, c, 3).antiderivative()(z), C, Z),
        ("matrices", lambda c: BSpline(KNOTS, c, 3, axis=1)(Z), real(2, 6)),
        ("of numbers", lambda z: BSpline(KNOTS, C, 3)(z) + BSpline(KNOTS, C, 3).integrate(0, z[0]), Z),
        ("periodic", lambda c, z: BSpline(APART, c, 3, extrapolate="periodic")(z), C, np.array([-0.3, 4.7, 1.1])),
    ],
    "make_interp_spline": [
        ("an axis", lambda y, z: make_interp_spline(X, y, axis=1)(z), ROWS, Z),
        ("natural", with_ends(make_interp_spline, "natural"), X, Y),
        ("clamped", with_ends(make_interp_spline, "clamped"), X, Y),
        ("numbers", with_ends(make_interp_spline, ([(1, 0.3)], [(2, 0.4)])), X, Y),
        ("steps", lambda y: make_interp_spline(X, y, k=0)(Z), Y),
        ("lines", lambda x, y: make_interp_spline(x, y, k=1)(Z), X, Y),
        ("parabolas", lambda x, y: make_interp_spline(x, y, k=2)(Z), X, Y),
        ("degree 5", lambda x, y: make_interp_spline(x, y, k=5)(Z), X, Y),
        ("periodic", lambda q: make_interp_spline(X, closed(q), bc_type="periodic")(Z), CLOSED),
        ("knots", lambda x, y: make_interp_spline(x, y, t=KNOTS)(Z), 0.1 + 0.95 * X, Y),
    ],
    "make_lsq_spline": [
        ("values and weights", lambda y, w: make_lsq_spline(SPREAD, y, KNOTS, w=w)(Z), np.sin(SPREAD), 1 + SPREAD),
        ("points", lambda x: make_lsq_spline(x, np.sin(SPREAD), KNOTS)(Z), SPREAD),
    ],
    "make_smoothing_spline": [
        ("all", lambda x, y, w, lam: make_smoothing_spline(x, y, w, lam)(Z), X, Y, 1 + np.abs(Y), 0.3),
        ("an axis", lambda y: make_smoothing_spline(X, y, lam=0.3, axis=1)(Z), ROWS),
    ],
    "splrep": [
        ("points and values", lambda x, y, z: splev(z, splrep(x, y)), X, Y, Z),
        ("knots", lambda y: splev(Z, splrep(MANY, y, t=[1.0, 2.0])), np.sin(MANY)),
        ("integral", lambda a, b, y: splint(a, b, splrep(X, y)), -0.3, 2.0, Y),
        ("slopes and sums", lambda y, z: splev(z, splder(splrep(X, y))) + splev(z, splantider(splrep(X, y))), Y, Z),
        ("of numbers", lambda z: splev(z, unpatched(splrep)(X, Y), der=1), Z),
        ("zero beyond", lambda z: splev(z, unpatched(splrep)(X, Y), ext=1), np.array([-0.5, 1.0, 4.4])),
        ("the ends beyond", lambda z: splev(z, unpatched(splrep)(X, Y), ext=3), np.array([-0.5, 1.0, 4.4])),
        ("a curve", lambda c: np.stack(splev(Z, (KNOTS, [c, c * c], 3))), C),
        ("a BSpline", lambda c, z: splev(z, BSpline(KNOTS, c, 3)) + splint(0, z[0], BSpline(KNOTS, c, 3)), C, Z),
    ],
    "UnivariateSpline": [
        ("interpolated", through(InterpolatedUnivariateSpline), X, Y, Z),
        ("s=0", lambda y, z: UnivariateSpline(X, y, s=0).derivative()(z) * UnivariateSpline(X, y, s=0).integral(0, 2.0), Y, Z),
        ("of numbers", lambda z: UnivariateSpline(X, Y, s=0.1)(z) + UnivariateSpline(X, Y, s=0.1).integral(0, z[0]), Z),
        ("knots", lambda y, z: LSQUnivariateSpline(MANY, y, [1.0, 2.0])(z), np.sin(MANY), Z),
        ("all derivatives", lambda y: InterpolatedUnivariateSpline(X, y).derivatives(1.7), Y),
    ],
}


@pytest.mark.parametrize("rows", functions(SECOND))
def test_splines_second_derivatives(rows: Rows) -> None:
    rows.check()


@pytest.mark.parametrize("rows", functions(FIRST))
def test_splines_first_derivatives(rows: Rows) -> None:
    rows.check(order=1, tolerance=1e-5)


def test_splines_keep_classes_and_attributes() -> None:
    """With the attributes that those have, which are nodes."""

    def f(y: Any) -> Any:
        curve = CubicSpline(X, y)
        assert isinstance(curve, CubicSpline)
        assert isinstance(curve, PPoly)
        assert curve.c.shape == (4, 5)
        assert curve.axis == 0
        assert curve.extrapolate
        spline = make_interp_spline(X, y)
        assert isinstance(spline, BSpline)
        assert spline.tck[2] == 3
        return np.sum(curve.c[3]) + np.sum(spline.c)

    checked(f, (Y,), order=1)


def test_splines_beyond_the_ends() -> None:
    """Values that are not extrapolated are nan and do not contribute to the derivative."""

    def f(y: Any, z: Any) -> Any:
        return np.nansum(CubicSpline(X, y, extrapolate=False)(z)) + np.nansum(BSpline(KNOTS, C * y, 3, extrapolate=False)(z))

    places = np.array([-0.5, 1.0, 4.5])
    by_values, by_places = ad.grad(f, (0, 1))(Y, places)
    assert np.all(np.isfinite(by_values))
    np.testing.assert_array_equal(by_places[[0, 2]], 0)
    assert by_places[1] != 0


def test_splines_jacobians_of_both_modes_agree() -> None:
    rows = ad.jacrev(lambda y: CubicSpline(X, y)(Z))(Y)
    np.testing.assert_allclose(ad.jacfwd(lambda y: CubicSpline(X, y)(Z))(Y), rows, atol=1e-14)
    np.testing.assert_allclose(ad.jacobian(lambda y: CubicSpline(X, y)(Z))(Y), rows, atol=1e-14)
    np.testing.assert_allclose(rows @ Y, CubicSpline(X, Y)(Z))  # it is linear
    twice = ad.hessian(lambda x: np.sum(CubicSpline(x, Y)(Z)))(X)
    np.testing.assert_allclose(ad.jacfwd(ad.grad(lambda x: np.sum(CubicSpline(x, Y)(Z))))(X), twice, atol=1e-10)


def test_splines_curve_fit_beside_penalty() -> None:
    """Heights at knots are fitted to measurements between them: at the solution the gradient vanishes."""
    matrix = np.stack([CubicSpline(X, row)(SPREAD) for row in np.eye(6)], axis=1)
    expected = np.linalg.solve(matrix.T @ matrix + 0.1 * np.eye(6), matrix.T @ np.cos(SPREAD))

    def loss(y: Any) -> Any:
        return np.sum((CubicSpline(X, y)(SPREAD) - np.cos(SPREAD)) ** 2) + 0.1 * np.sum(y**2)

    np.testing.assert_allclose(ad.grad(loss)(expected), 0, atol=1e-12)


@for_each(
    ("wrong", "match"),
    [
        (lambda y: splev(Z, splrep(X, y, s=0.1)), "s > 0"),
        (lambda y: splev(Z, splrep(X, y, per=1)), "per="),
        (lambda y: UnivariateSpline(X, y)(Z), "s > 0"),
        (lambda y: InterpolatedUnivariateSpline(X, y, bbox=[-1, 5])(Z), "bbox"),
        (lambda y: make_smoothing_spline(X, y)(Z), "lam"),
        (lambda y: CubicSpline(X, y).solve(0.1), "roots"),
        (lambda y: make_interp_spline(X + 0.01 * y, [0.0, 1, 2, 1, 3, 0], bc_type="periodic")(Z), "periodic"),
    ],
)
def test_splines_unsupported_calls_raise(wrong: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        ad.grad(lambda y: np.sum(wrong(y)))(Y)


@for_each(
    "spline",
    [
        lambda y: splev(Z, splrep(X, y)),
        lambda y: UnivariateSpline(X, y, s=0)(Z),
        lambda y: make_smoothing_spline(X, y, lam=0.3)(Z),
    ],
)
def test_real_splines_discard_imaginary_parts(spline: Any) -> None:
    with pytest.warns(np.exceptions.ComplexWarning):
        expected = spline(Y * (1 + 2j))
    with pytest.warns(np.exceptions.ComplexWarning):
        value, pull = ad.vjp(lambda y: spline(y * (1 + 2j)), Y)
    assert value.dtype == expected.dtype
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(pull(np.ones_like(Z))[0] @ Y, np.sum(expected), rtol=1e-12)


@for_each(
    "wrong",
    [
        lambda y: CubicSpline(X[::-1], y),
        lambda y: CubicSpline(X[:3], y),
        lambda y: CubicSpline(X, y, bc_type="periodic"),
        lambda y: CubicSpline(X, y, bc_type="none"),
        lambda y: PchipInterpolator(X, y * 1j),
        lambda y: BSpline(KNOTS[::-1], y, 3),
        lambda y: PPoly(y, X),
        lambda y: splev(Z + 9, splrep(X, y), ext=2),
    ],
)
def test_splines_errors_equal_scipy(wrong: Any) -> None:
    for function in (wrong, ad.grad(lambda y: np.sum(wrong(y)))):
        with pytest.raises(ValueError, match=r"\S"):
            function(Y)
