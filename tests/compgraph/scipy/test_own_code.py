"""SciPy's own Python code, run on nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient
from tests.support.for_each import for_each

POINTS = np.arange(9.0)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "savgol_filter": lambda x: scipy.signal.savgol_filter(x, 5, 2),
    "gaussian_filter": lambda x: scipy.ndimage.gaussian_filter(x, 1.0),
    "rotate": lambda x: scipy.ndimage.rotate(np.reshape(x, (3, 3)), 10.0),
    "toeplitz": scipy.linalg.toeplitz,
    "trapezoid": lambda x: scipy.integrate.trapezoid(x, POINTS),
    "CubicSpline": lambda x: scipy.interpolate.CubicSpline(POINTS, x)(x * 8, 1),
    "BSpline": lambda x: scipy.interpolate.make_interp_spline(POINTS, x).antiderivative()(x * 8),
    "interp1d": lambda x: scipy.interpolate.interp1d(POINTS, x, kind="quadratic")(x * 8),
    "KroghInterpolator": lambda x: scipy.interpolate.KroghInterpolator(POINTS, x).derivative(x * 8),
    "BarycentricInterpolator": lambda x: scipy.interpolate.BarycentricInterpolator(POINTS, x)(x),
    "RegularGridInterpolator": lambda x: scipy.interpolate.RegularGridInterpolator((POINTS,), x)(x[:, None]),
    "RBFInterpolator": lambda x: 1.0 + scipy.interpolate.RBFInterpolator(POINTS[:, None], x)(x[:, None]),
    "UnivariateSpline": lambda x: scipy.interpolate.UnivariateSpline(POINTS, x, s=0).derivative()(x + 0.1),
    "a plain spline": lambda x: scipy.interpolate.CubicSpline(POINTS, np.cos(POINTS))(x),
    "a plain grid": lambda x: scipy.interpolate.RegularGridInterpolator((POINTS,), np.cos(POINTS))(x[:, None]),
}


@for_each("name", FUNCTIONS)
def test_scipy_own_code_at_top_level_gives_arrays(name: str) -> None:
    """Also where the result is an array that SciPy fills."""
    function, point = FUNCTIONS[name], np.linspace(0.0, 1.0, 9) ** 2
    x = cg.variable(point)
    result = function(x)
    assert isinstance(result, cg.Node)
    assert issubclass(type(result), np.ndarray)
    np.testing.assert_allclose(np.asarray(result), function(point))
    np.testing.assert_allclose(gradient(np.sum(result**2))[x], ad.grad(lambda p: np.sum(function(p) ** 2))(point), atol=1e-12)


UNSUPPORTED: dict[str, Callable[[Any], Any]] = {
    "roots": lambda x: scipy.interpolate.CubicSpline(POINTS, x).roots(),
    "roots of FITPACK": lambda x: scipy.interpolate.UnivariateSpline(POINTS, x, s=0).roots(),
    "the residual": lambda x: scipy.interpolate.UnivariateSpline(POINTS, x, s=0).get_residual(),
    "a knot": lambda x: scipy.interpolate.make_interp_spline(POINTS, x).insert_knot(2.5),
    "values in place": lambda x: scipy.interpolate.BarycentricInterpolator(POINTS, POINTS).set_yi(x),
    "splines on a grid": lambda x: scipy.interpolate.RegularGridInterpolator((POINTS,), x, method="cubic")([[1.5]]),
}


@for_each("name", UNSUPPORTED)
def test_scipy_method_without_derivative_raises_at_top_level(name: str) -> None:
    with pytest.raises(TypeError):
        UNSUPPORTED[name](cg.variable(np.linspace(0.0, 1.0, 9) ** 2))
