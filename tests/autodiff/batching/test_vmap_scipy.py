"""SciPy's functions under `vmap`, with batching rules or called per element, against a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, special, stats

import autodiff as ad
from tests.support.for_each import for_each

RNG = np.random.default_rng(0)
XS = RNG.uniform(0.5, 1.5, size=(3, 6))

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "special": lambda x: special.gammaln(x) + special.erf(x) * special.logsumexp(x),
    "solve": lambda x: linalg.solve(np.diag(x) + 0.1, np.ones(6)),
    "expm": lambda x: linalg.expm(np.outer(x, x) * 0.1),
    "dct": lambda x: fft.dct(x, norm="ortho"),
    "normal": lambda x: stats.norm.logpdf(x, loc=x[0], scale=x[1]),
    "gamma": lambda x: stats.gamma(x[0]).logpdf(x),
    "frozen": lambda x: stats.norm(x[0], 2.0).cdf(x),
    "multivariate": lambda x: stats.multivariate_normal.logpdf(x, mean=np.zeros(6), cov=np.eye(6)),
    "filter": lambda x: signal.lfilter([1.0, x[0]], [1.0, 0.3], x),
    "gaussian": lambda x: ndimage.gaussian_filter1d(x, 1.0),
    "median": lambda x: ndimage.median_filter(x, 3),
    "trapezoid": lambda x: integrate.trapezoid(x, dx=0.5) + integrate.simpson(x, dx=0.5),
    "iqr": lambda x: stats.iqr(np.outer(x, x**2)),
    "deviation": lambda x: stats.median_abs_deviation(np.outer(x, x**2), axis=None),
    "variances": lambda x: stats.f_oneway(np.outer(x, x**2), np.outer(x, np.sin(x)), axis=None).statistic,
    "keepdims": lambda x: stats.skew(np.outer(x, x**2), axis=1, keepdims=True),
    "t test": lambda x: stats.ttest_ind(x[:3], x[3:]).statistic * stats.ttest_ind(x[:3], x[3:]).df,
    "regression": lambda x: stats.linregress(np.arange(6.0), x).intercept_stderr,
    "bspline": lambda x: interpolate.griddata(np.arange(6.0), x, np.array([0.5, 2.5])),
    "zero": lambda x: optimize.brentq(lambda t, a: t**3 - a, 0.0, 3.0, args=(x[0],)) * x,
}


@for_each("name", FUNCTIONS)
def test_vmap_scipy_functions_match_loop(name: str) -> None:
    f = FUNCTIONS[name]
    expected = np.stack([f(x) for x in XS])
    np.testing.assert_allclose(ad.vmap(f)(XS), expected, rtol=1e-9, atol=1e-11)
    g = ad.grad(lambda x: np.sum(f(x) ** 2))
    slopes = np.stack([g(x) for x in XS])
    np.testing.assert_allclose(ad.vmap(g)(XS), slopes, rtol=1e-8, atol=1e-9)
    outer = ad.grad(lambda xs: np.sum(ad.vmap(f)(xs) ** 2))
    np.testing.assert_allclose(outer(XS), slopes, rtol=1e-8, atol=1e-9)


def test_vmap_interpolator_of_batched_values_raises() -> None:
    with pytest.raises(TypeError, match="vmap"):
        ad.vmap(lambda x: interpolate.CubicSpline(np.arange(6.0), x)(0.5))(XS)


def test_vmap_callback_using_batched_closure_raises() -> None:
    with pytest.raises(TypeError, match="vmap"):
        ad.vmap(lambda x: optimize.brentq(lambda t: t**3 - x[0], 0.0, 3.0))(XS)
