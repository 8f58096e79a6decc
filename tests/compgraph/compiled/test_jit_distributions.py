"""Densities and distribution functions of `scipy.stats` in compiled functions: their branches on values are guards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats
from scipy.stats import norm, poisson

import autodiff as ad
from autodiff.numeric import gradient as numeric_gradient
from tests.support.for_each import for_each
from tests.support.jitting import assert_not_compiled, compiled, is_compiled, same

pytest.importorskip("llvmlite")

X = np.random.default_rng(3).uniform(0.05, 0.95, 30)
COUNTS = np.arange(30) % 7.0
SHAPES: dict[str, tuple[float, ...]] = {
    "beta": (2.0, 3.0), "cauchy": (), "chi2": (3.0,), "expon": (), "f": (4.0, 7.0), "gamma": (2.5,), "gumbel_l": (),
    "gumbel_r": (), "halfcauchy": (), "halfnorm": (), "invgamma": (2.5,), "laplace": (), "logistic": (), "lognorm": (0.7,),
    "norm": (), "pareto": (2.0,), "rayleigh": (), "t": (4.0,), "uniform": (), "weibull_min": (1.5,),
}  # fmt: skip
DISCRETE: dict[str, tuple[float, ...]] = {
    "bernoulli": (0.3,), "binom": (10.0, 0.3), "geom": (0.3,), "nbinom": (5.0, 0.4), "poisson": (3.0,),
}  # fmt: skip
CONTINUOUS = [(name, method) for name in SHAPES for method in ("logpdf", "cdf", "pdf", "logcdf", "sf", "logsf")]
CONTINUOUS_SAMPLE = [("norm", "logpdf"), ("gamma", "logpdf"), ("uniform", "pdf"), ("expon", "cdf")]
OF_COUNTS = [(name, method) for name in DISCRETE for method in ("logpmf", "cdf", "pmf", "sf", "logsf")]
COUNTS_SAMPLE = [("poisson", "logpmf"), ("geom", "cdf")]
LOG_DENSITY = norm.logpdf


def expression(text: str) -> Callable[..., Any]:
    """A function of the text, which reads `scipy.stats` by its name."""
    function: Callable[..., Any] = eval(f"lambda x, p: {text}", {"scipy": scipy, "np": np})
    return function


def replaced(x: Any, index: Any, value: float) -> Any:
    """A copy of an array, with other elements."""
    x = np.array(x)
    x[index] = value
    return x


def check_calls(f: Callable[..., Any], *calls: tuple[Any, ...]) -> None:
    """Compiled for the first arguments, a function agrees with NumPy for all; others may take other branches."""
    jitted = compiled(f, *calls[0])
    assert is_compiled(jitted), jitted.report()
    with np.errstate(all="ignore"):
        for args in calls:
            assert same(jitted(*args), f(*args)), args
            assert same(jitted.compile(*args)(*args), f(*args)), args


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@for_each(("name", "method"), CONTINUOUS_SAMPLE, rest=[case for case in CONTINUOUS if case not in CONTINUOUS_SAMPLE])
def test_jit_continuous_distribution_matches_scipy(name: str, method: str) -> None:
    count = len(SHAPES[name])
    shapes = "".join(f"p[{k}], " for k in range(count))
    f = expression(f"np.sum(scipy.stats.{name}.{method}(x, {shapes}loc=p[-2], scale=p[-1]))")
    p = np.array([*SHAPES[name], 0.01, 1.1])
    values = [X, 3 * X, -X, replaced(X, 3, np.nan), replaced(X, 3, 0.01), replaced(X, 3, 1.11), replaced(X, 5, np.inf)]
    check_calls(f, *[(x, p) for x in values], (X, replaced(p, -1, -1.0)), (X, -p))
    if method == "logpdf":
        x = X + 1.2 if name == "pareto" else X
        gradient = ad.grad(f, argnums=(0, 1))
        check_calls(gradient, (x, p), (-x, p), (replaced(x, 3, np.nan), p))
        for part, numeric in zip(compiled(gradient, x, p)(x, p), numeric_gradient(f, [x, p]), strict=True):
            np.testing.assert_allclose(part, numeric, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@for_each(("name", "method"), COUNTS_SAMPLE, rest=[case for case in OF_COUNTS if case not in COUNTS_SAMPLE])
def test_jit_discrete_distribution_matches_scipy(name: str, method: str) -> None:
    *fixed, p = DISCRETE[name]
    f = expression(f"np.sum(scipy.stats.{name}.{method}(x, {''.join(f'{n}, ' for n in fixed)}p))")
    arrays = [COUNTS + 1, COUNTS, COUNTS + 0.5, -COUNTS, replaced(COUNTS, 3, np.nan)]
    check_calls(f, *[(x, np.float64(p)) for x in arrays], (COUNTS, np.float64(-0.5)))
    if method == "logpmf":
        counts = COUNTS % 2 if name == "bernoulli" else COUNTS + 1
        check_calls(ad.grad(f, argnums=1), (counts, np.float64(p)), (counts, np.float64(1.1 * p)), (-counts, np.float64(p)))


def test_jit_density_runs_without_numpy_calls() -> None:
    def loss(mean: Any, x: Any) -> Any:
        return -np.sum(norm.logpdf(x, mean, 2.0)) - np.sum(poisson.logpmf(np.arange(30), np.exp(x)))

    for f in (loss, ad.grad(loss)):
        jitted = compiled(f, np.float64(0.3), X)
        assert is_compiled(jitted), jitted.report()
        assert "NumPy call" not in jitted.report(), jitted.report()
        assert same(jitted(np.float64(0.3), X), f(np.float64(0.3), X))


def test_jit_density_is_compiled_as_a_bound_method() -> None:
    density = norm.logpdf
    check_calls(lambda x: density(x) + LOG_DENSITY(x, 0.5), (X,), (3 * X,))


@pytest.mark.parametrize("owner", [type(norm), norm])
def test_jit_notices_a_replaced_density(owner: Any, monkeypatch: Any) -> None:
    jitted = compiled(lambda x: norm.logpdf(x), X)
    assert is_compiled(jitted), jitted.report()
    monkeypatch.setattr(owner, "logpdf", (lambda self, x: x + 1) if isinstance(owner, type) else lambda x: x + 1)
    np.testing.assert_array_equal(jitted(X), X + 1)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: norm.rvs(size=30, random_state=0) + x,
        lambda x: norm(0, 1).logpdf(x),
        lambda x: norm.ppf(x),
        lambda x: scipy.stats.zscore(x),
        lambda x: scipy.stats.skewnorm.cdf(x, 2.0),
        lambda x: getattr(norm, "rv" + "s")(size=30, random_state=0) + x,
    ],
)
def test_jit_other_statistics_run_as_numpy(f: Callable[[Any], Any]) -> None:
    jitted = assert_not_compiled(f, X)
    np.testing.assert_array_equal(jitted(X), f(X))


def test_jit_density_has_the_derivative_of_scipy() -> None:
    jitted = compiled(lambda x: np.sum(norm.logpdf(x, 0.2, 1.3)), X)
    np.testing.assert_allclose(ad.grad(jitted)(X), -(X - 0.2) / 1.3**2, rtol=1e-12)
    np.testing.assert_allclose(ad.hessian(jitted)(X), -np.eye(30) / 1.3**2, rtol=1e-12)
