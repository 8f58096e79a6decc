"""Derivatives of SciPy's discrete distributions by their real parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import autodiff as ad
from tests.support.for_each import for_each
from tests.support.scipy_checks import checked

# The parameters, and which of them are real numbers with a derivative
LAWS: dict[str, tuple[tuple[float, ...], tuple[int, ...]]] = {
    "bernoulli": ((0.3,), (0,)),
    "betabinom": ((7, 2.0, 1.3), (1, 2)),
    "betanbinom": ((3, 2.5, 3.5), (1, 2)),
    "binom": ((7, 0.4), (1,)),
    "boltzmann": ((1.4, 19), (0,)),
    "dlaplace": ((0.8,), (0,)),
    "geom": ((0.3,), (0,)),
    "logser": ((0.6,), (0,)),
    "nbinom": ((2.5, 0.4), (0, 1)),
    "planck": ((0.5,), (0,)),
    "poisson": ((2.3,), (0,)),
    "skellam": ((2.0, 3.0), (0, 1)),
    "yulesimon": ((3.4,), (0,)),
    "zipf": ((6.5,), (0,)),
}
COUNTS = {"hypergeom": (20, 7, 12), "nhypergeom": (20, 7, 12), "randint": (1, 9)}
WITHOUT = {"zipfian": (1.3, 10), "nchypergeom_fisher": (14, 8, 6, 0.5), "nchypergeom_wallenius": (14, 8, 6, 0.5)}
INSIDE = {"bernoulli": [0], "logser": [1, 3], "geom": [1, 3], "zipf": [1, 3], "yulesimon": [1, 3]}


def test_discrete_distributions_are_all_tested() -> None:
    there = {name for name in st.__all__ if isinstance(getattr(st, name), st.rv_discrete)}
    assert there == {*LAWS, *COUNTS, *WITHOUT, "poisson_binom"}


def of_real(name: str, method: str, *first: Any) -> tuple[Any, Any]:
    parameters, real = LAWS[name]

    def function(*arguments: Any) -> Any:
        whole: list[Any] = list(parameters)
        for place, value in zip(real, arguments, strict=True):
            whole[place] = value
        return getattr(getattr(st, name), method)(*first, *whole)

    return function, tuple([parameters[k] for k in real])


@for_each("method", ["pmf", "logpmf", "cdf", "sf", "logcdf", "logsf"])
@for_each("name", LAWS)
def test_discrete_distributions_derivatives(name: str, method: str) -> None:
    k = np.array(INSIDE.get(name, [0, 2]) + ([] if method.startswith("log") else [-3, 40]))
    checked(*of_real(name, method, k))


@for_each("method", ["mean", "var"])
@for_each("name", sorted(LAWS.keys() - {"dlaplace"}))
def test_discrete_distributions_moments(name: str, method: str) -> None:
    checked(*of_real(name, method))


@for_each("name", ["bernoulli", "binom", "betabinom", "geom", "planck"])
def test_discrete_distributions_entropy(name: str) -> None:
    checked(*of_real(name, "entropy"))


@for_each("name", [*COUNTS, *WITHOUT])
def test_discrete_distributions_unsupported_methods_raise(name: str) -> None:
    parameters = (COUNTS | WITHOUT)[name]
    with pytest.raises(TypeError, match="no derivative"):
        ad.grad(lambda last: getattr(st, name).pmf(2, *parameters[:-1], last))(float(parameters[-1]))


def test_discrete_distributions_integer_parameters_raise() -> None:
    with pytest.raises(TypeError, match="argument n"):
        ad.grad(lambda n: st.binom.pmf(2, n, 0.3))(7.0)


def test_discrete_distributions_integer_argument_has_zero_slope() -> None:
    k = np.array([0.0, 1.0, 2.0])
    assert np.array_equal(ad.grad(lambda k: np.sum(st.poisson.cdf(k, 2.3) + k))(k), np.ones(3))
    assert np.array_equal(ad.grad(lambda q: np.sum(st.poisson.ppf(q, 2.3) + q))(k / 3), np.ones(3))
    assert ad.grad(lambda m: st.poisson.isf(0.3, m) + m**2)(2.3) == pytest.approx(4.6)


def test_discrete_distributions_argument_forms() -> None:
    k = np.array([0, 2, 3])
    checked(lambda m: st.poisson(m).logpmf(k[:, None]), (np.array([1.5, 2.5]),))
    checked(lambda m: st.poisson.pmf([1, 2, 3], m, loc=1), (1.5,))
    checked(lambda m: st.poisson.logpmf(2, m), (1.5,))
    checked(lambda m: st.poisson.pmf(k[:0], m) * m, (1.5,))
    checked(lambda p: st.binom.pmf([1, 1.5, 9], 7, p), (0.4,))
    checked(lambda m: st.rv_discrete(values=([1, 2, 5], [0.2, 0.3, 0.5])).pmf([1, 2]) * m, (1.5,))


def test_discrete_rvs_raise() -> None:
    with pytest.raises(TypeError, match="score function"):
        ad.grad(lambda m: np.sum(st.poisson.rvs(m, size=3)))(2.3)


def test_poisson_regression_beside_penalty() -> None:
    """Poisson's regression, with a penalty."""
    x, counts = np.array([[0.2, 1.0], [0.5, -0.3], [1.2, 0.4]]), np.array([1, 0, 4])
    checked(lambda w: -np.sum(st.poisson.logpmf(counts, np.exp(x @ w))) + np.sum(w**2), (np.array([0.3, 0.2]),))
