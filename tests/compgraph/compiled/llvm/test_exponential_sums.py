"""SciPy's logsumexp, softmax and log_softmax: compiled, with SciPy's results for infinite, missing and weighted terms."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import autodiff as ad
from autodiff.numeric import gradient as numeric_gradient
from tests.support.for_each import for_each
from tests.support.jitting import compiled, is_compiled

pytest.importorskip("llvmlite")
from compgraph.compiled.llvm import backend

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)
X = 3 * RNG.standard_normal((4, 5, 6))
WEIGHTS = RNG.uniform(0.5, 2, (5, 6))
SIGNED = np.where(RNG.random((5, 6)) < 0.3, -1e-5, WEIGHTS)
SIGNED[1, :3] = 0
TRIPLES = np.array(list(itertools.product([-np.inf, np.inf, np.nan, 0.0, -40.0, 800.0, -1000.0, 1.0], repeat=3)))
TRIPLES_OF_WEIGHTS = np.array(list(itertools.product([0.0, 1.0, -1.0, 2.0, 0.5], repeat=3)))

FORMS: dict[str, Callable[[Any], Any]] = {
    "all": lambda x: scipy.special.logsumexp(x),
    "axis": lambda x: scipy.special.logsumexp(x, axis=1),
    "negative-axis": lambda x: scipy.special.logsumexp(x, -1, keepdims=True),
    "axes": lambda x: scipy.special.logsumexp(x, axis=(0, 2)),
    "axes-kept": lambda x: scipy.special.logsumexp(x, axis=(2, 0), keepdims=True),
    "unit-axis": lambda x: scipy.special.logsumexp(x[:, :1], axis=1),
    "unit-axis-kept": lambda x: scipy.special.logsumexp(x[:, :1], axis=1, keepdims=True),
    "unit-among-axes": lambda x: scipy.special.logsumexp(x[:, :1], axis=(0, 1)),
    "transposed": lambda x: scipy.special.logsumexp(x.T, axis=0),
    "weights": lambda x: scipy.special.logsumexp(x, axis=1, b=WEIGHTS),
    "weights-positional": lambda x: scipy.special.logsumexp(x, 2, SIGNED, True),
    "weights-column": lambda x: scipy.special.logsumexp(x, b=WEIGHTS[:, :1], axis=(1, 2)),
    "weights-wider": lambda x: scipy.special.logsumexp(x[0], b=WEIGHTS + np.ones((2, 1, 1)), axis=0),
    "weights-traced": lambda x: scipy.special.logsumexp(x, b=np.exp(x[::-1]), axis=1),
    "weights-unit-axis": lambda x: scipy.special.logsumexp(x[:, :1], b=WEIGHTS[:1], axis=1),
    "integer-weights": lambda x: scipy.special.logsumexp(x, b=np.array([1, 0, 2, 3, 1, 2]), axis=2),
    "softmax": lambda x: scipy.special.softmax(x),
    "softmax-axis": lambda x: scipy.special.softmax(x, axis=1),
    "softmax-axes": lambda x: scipy.special.softmax(x, axis=(0, -1)),
    "softmax-unit-axis": lambda x: scipy.special.softmax(x[:, :1], axis=1) * x,
    "log_softmax": lambda x: scipy.special.log_softmax(x),
    "log_softmax-axis": lambda x: scipy.special.log_softmax(x, axis=1),
    "log_softmax-axes": lambda x: scipy.special.log_softmax(x, axis=(0, -1)),
    "log_softmax-unit-axis": lambda x: scipy.special.log_softmax(x[:, :1], axis=1) * x,
}


def as_machine_code(f: Any, *args: Any) -> Any:
    """The compiled function, which does not call SciPy; forward mode may call NumPy for memory layouts."""
    jitted = compiled(f, *args)
    assert is_compiled(jitted), jitted.report()
    assert "scipy_special" not in jitted.report(), jitted.report()
    return jitted


def weighted(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A sum of the results, each with another factor."""

    def total(x: Any) -> Any:
        y = f(x)
        return np.sum(y * np.cos(np.arange(np.size(y), dtype=y.dtype)).reshape(np.shape(y)))

    return total


@for_each("name", FORMS)
def test_exponential_sums_match_scipy_in_value_and_derivatives(name: str) -> None:
    f = FORMS[name]
    for dtype, rtol in ((np.float64, 1e-13), (np.float32, 1e-5)):
        x = X.astype(dtype)
        y, expected = as_machine_code(f, x)(x), f(x)
        assert y.dtype == expected.dtype
        assert type(y) is type(expected)
        assert np.shape(y) == np.shape(expected)
        np.testing.assert_allclose(y, expected, rtol=rtol, atol=rtol)
    total = weighted(f)
    gradient = as_machine_code(ad.grad(total), X)(X)
    np.testing.assert_allclose(gradient, numeric_gradient(total, [X])[0], rtol=1e-6, atol=1e-8)
    tangent = as_machine_code(lambda x, t: ad.jvp(total, (x,), (t,))[1], X, np.cos(X))(X, np.cos(X))
    np.testing.assert_allclose(tangent, np.sum(gradient * np.cos(X)), rtol=1e-11, atol=1e-12)

    def second(x: Any) -> Any:
        return ad.grad(lambda x: np.sum(ad.grad(total)(x) * np.cos(X)))(x)

    slope = numeric_gradient(lambda x: np.sum(ad.grad(total)(x) * np.cos(X)), [X])[0]
    np.testing.assert_allclose(as_machine_code(second, X)(X), slope, rtol=1e-6, atol=1e-7)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@for_each("name", ["logsumexp", "softmax", "log_softmax"])
@for_each("dtype", [np.float64, np.float32])
def test_exponential_sums_match_scipy_at_infinite_terms(name: str, dtype: Any) -> None:
    x, function = TRIPLES.astype(dtype), getattr(scipy.special, name)
    with np.errstate(all="ignore"):  # the results of machine code, whatever flags it sets
        actual = as_machine_code(lambda x: function(x, axis=1), np.ones_like(x))(x)
        expected = function(x, axis=1)
    np.testing.assert_allclose(actual, expected, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_logsumexp_matches_scipy_at_infinite_weighted_terms() -> None:
    x = np.repeat(TRIPLES, len(TRIPLES_OF_WEIGHTS), 0)
    b = np.tile(TRIPLES_OF_WEIGHTS, (len(TRIPLES), 1))
    with np.errstate(all="ignore"):
        actual = as_machine_code(lambda x, b: scipy.special.logsumexp(x, axis=1, b=b), np.ones_like(x), b)(x, b)
        np.testing.assert_allclose(actual, scipy.special.logsumexp(x, axis=1, b=b), rtol=1e-15)


def test_logsumexp_of_no_terms_is_not_repeated_as_numpy(monkeypatch: Any) -> None:
    flags: list[int] = []

    def note(each: int) -> bool:
        flags.append(each & backend.FLAGS)
        return False

    monkeypatch.setattr(backend, "_is_reported_by_numpy", note)
    x, b = TRIPLES[~np.isnan(TRIPLES).any(axis=1)], np.array([0.0, 1.0, 2.0])
    finite = x[(x < np.inf).all(axis=1)]
    as_machine_code(lambda x: scipy.special.logsumexp(x, axis=1), x)(x)
    as_machine_code(lambda x: scipy.special.logsumexp(x, axis=1, b=b), finite)(finite)
    assert not any(flags)


def test_logsumexp_gradient_of_excluded_terms_is_zero() -> None:
    x = np.array([[-np.inf, 0.0, 1.0], [-np.inf, -np.inf, -np.inf]])
    gradient = as_machine_code(ad.grad(lambda x: np.sum(np.exp(scipy.special.logsumexp(x, axis=1)))), x)(x)
    np.testing.assert_allclose(gradient, np.exp(x), rtol=1e-15)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: scipy.special.logsumexp(x, axis=1, return_sign=True)[0],
        lambda x: scipy.special.logsumexp(x[:0], axis=0),
        lambda x: scipy.special.softmax(x[0, 0, 0]),
        lambda x: scipy.special.logsumexp(x * 1j).real,
    ],
)
def test_exponential_sums_of_other_forms_match_scipy(f: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(compiled(f, X)(X), f(X), rtol=1e-12)
