"""Derivatives of SciPy's distributions of vectors, matrices and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import autodiff as ad
from tests.support.arguments import real
from tests.support.for_each import for_each
from tests.support.scipy_checks import Rows, checked, functions


def softmax(t: Any) -> Any:
    raised = np.exp(t - np.max(t))
    return raised / np.sum(raised)


def number(x: Any) -> Any:
    return x[()] if isinstance(x, np.ndarray) else x


def of_freedom(method: Any) -> Any:
    """SciPy takes a number for the degrees of freedom, and no array of one."""
    return lambda x, df, scale: method(x, number(df), scale)


def spread(size: int, seed: int = 2) -> Any:
    a = real(size, size, seed=seed)
    return a @ a.T + size * np.eye(size)


point, points, mean, cov = real(3), real(4, 3, seed=1), real(3, seed=3), spread(3)
shares = np.array([0.2, 0.3])
alpha = np.array([1.5, 2.5, 0.7])
frozen = st.multivariate_normal(mean, cov)

CASES: dict[str, list[tuple[Any, ...]]] = {
    "multivariate_normal": [
        ("logpdf", st.multivariate_normal.logpdf, point, mean, cov),
        ("pdf", st.multivariate_normal.pdf, points, mean, cov),
        ("in two axes", st.multivariate_normal.logpdf, real(2, 4, 3), mean, cov),
        ("variances", st.multivariate_normal.logpdf, points, mean, np.array([1.0, 2.0, 0.5])),
        ("one variance", lambda x, v: st.multivariate_normal.logpdf(x, mean, v), points, 1.7),
        ("of one number", lambda x, m, v: st.multivariate_normal.logpdf(x, m, v), point, 0.4, 1.7),
        ("standard", lambda x: st.multivariate_normal.logpdf(x, cov=np.eye(3)), points),
        (
            "a covariance",
            lambda x: st.multivariate_normal.logpdf(x, mean, st.Covariance.from_cholesky(np.linalg.cholesky(cov))),
            points,
        ),
        ("entropy", lambda c: st.multivariate_normal.entropy(mean, c), cov),
        ("frozen", lambda x, m, c: st.multivariate_normal(m, c).logpdf(x), points, mean, cov),
        ("frozen, named", lambda m, c: st.multivariate_normal(mean=m, cov=c).pdf(points), mean, cov),
        ("frozen entropy", lambda c: st.multivariate_normal(mean, c).entropy(), cov),
        ("of a plain one", lambda x: frozen.logpdf(x) + frozen.pdf(x), points),
        ("equal variances", lambda x, c: st.multivariate_normal.logpdf(x, mean, c), points, np.eye(3)),
    ],
    "multivariate_t": [
        ("logpdf", st.multivariate_t.logpdf, point, mean, cov, 3.5),
        ("pdf", lambda x, m, c: st.multivariate_t.pdf(x, m, c, df=4), points, mean, cov),
        ("frozen", lambda x, d: st.multivariate_t(mean, cov, d).logpdf(x), points, 2.5),
        ("of a plain one", lambda x: st.multivariate_t(mean, cov, 2.5).logpdf(x), points),
    ],
    "dirichlet": [
        ("logpdf", st.dirichlet.logpdf, shares, alpha),
        ("pdf", st.dirichlet.pdf, np.array([[0.2, 0.1], [0.3, 0.6]]), alpha),
        ("mean", st.dirichlet.mean, alpha),
        ("var", st.dirichlet.var, alpha),
        ("cov", st.dirichlet.cov, alpha),
        ("entropy", st.dirichlet.entropy, alpha),
        ("frozen", lambda x, a: st.dirichlet(a).logpdf(x) + st.dirichlet(a).entropy(), shares, alpha),
        ("of a plain one", lambda x: st.dirichlet(alpha).pdf(x), shares),
    ],
    "wishart": [
        ("logpdf", of_freedom(st.wishart.logpdf), spread(3, 5), 4.5, cov),
        ("pdf", of_freedom(st.wishart.pdf), np.stack([spread(2, 5), spread(2, 6)], axis=-1), 4.5, spread(2)),
        ("of one", of_freedom(st.wishart.logpdf), np.array([1.5, 2.5]), 4.5, 0.7),
        ("frozen", lambda x, d: st.wishart(number(d), cov).logpdf(x), spread(3, 5), 4.5),
        ("of a plain one", lambda x: st.wishart(4.5, cov).logpdf(x), spread(3, 5)),
    ],
    "invwishart": [
        ("logpdf", of_freedom(st.invwishart.logpdf), spread(3, 5), 4.5, cov),
        ("pdf", of_freedom(st.invwishart.pdf), np.stack([spread(2, 5), spread(2, 6)], axis=-1), 4.5, spread(2)),
        ("frozen", lambda x, d: st.invwishart(number(d), cov).logpdf(x), spread(3, 5), 4.5),
    ],
    "multinomial": [
        ("logpmf", lambda t: st.multinomial.logpmf([2, 1, 3], 6, softmax(t)), point),
        ("pmf", lambda t: st.multinomial.pmf([[2, 1, 3], [1, 1, 4]], 6, softmax(t)), point),
        ("frozen", lambda t: st.multinomial(6, softmax(t)).logpmf([2, 1, 3]), point),
    ],
}


@pytest.mark.parametrize("rows", functions(CASES))
def test_multivariate_distributions_derivatives(rows: Rows) -> None:
    rows.check(jacobians=True)


UNSUPPORTED = {
    "an integral": (lambda m: st.multivariate_normal.cdf(point, m, cov), "integrates"),
    "of a frozen one": (lambda m: st.multivariate_normal(m, cov).cdf(point), "integrates"),
    "draws": (lambda m: st.multivariate_normal.rvs(m, cov), "cholesky"),
    "a matrix of vectors": (lambda m: st.matrix_normal.logpdf(np.eye(3), m * np.eye(3)), "definition"),
}


@for_each("name", UNSUPPORTED)
def test_multivariate_distributions_unsupported_calls_raise(name: str) -> None:
    function, message = UNSUPPORTED[name]
    with pytest.raises(TypeError, match=message):
        ad.grad(lambda m: np.sum(function(m)) + np.sum(m))(mean)


def test_multinomial_outside_support_has_zero_derivative() -> None:
    """Beyond the support the mass is 0, whatever the shares are."""
    value, slope = ad.value_and_grad(lambda m: st.multinomial.pmf([1, 1, 1], 2, softmax(m)))(mean)
    assert value == 0
    assert np.array_equal(slope, np.zeros(3))


def test_multivariate_normal_singular_matrix_raises() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        ad.grad(lambda c: st.multivariate_normal.logpdf(point, mean, c))(np.ones((3, 3)))


def test_frozen_distribution_of_nodes_has_only_its_methods() -> None:
    def f(m: Any) -> Any:
        assert not hasattr(st.multivariate_normal(m, cov), "nothing")
        return np.sum(m)

    ad.grad(f)(mean)


def test_gaussian_process_likelihood() -> None:
    """A Gaussian process: the likelihood of data by the length and the height of its kernel."""
    x, y = real(5), real(5, seed=8)

    def loss(length: Any, height: Any, noise: Any) -> Any:
        kernel = height * np.exp(-0.5 * ((x[:, None] - x) / length) ** 2) + noise * np.eye(5)
        return -st.multivariate_normal.logpdf(y, np.zeros(5), kernel) - st.gamma.logpdf(length, 2.0)

    checked(loss, (0.8, 1.4, 0.3))
