"""Masked arrays in functions that are differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg

X = np.array([0.7, 1.3, 2.1])
MASKED = np.ma.array([1.0, 2.0, 4.0], mask=[False, False, False])


def filtered(x: Any) -> Any:
    """A step of a Kalman filter, which skips masked observations."""
    observations = np.ma.atleast_2d(np.ma.asarray(x)).T
    state = np.zeros(1)
    for observation in observations:
        if np.any(np.ma.getmask(observation)):
            continue
        state = state + 0.3 * (observation - 1.5 * state)
    return np.sum(state**2)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "constructor": lambda x: np.sum(np.ma.array(x * 2.0, mask=False) ** 2),
    "constructor, mask": lambda x: np.sum(np.ma.array(x * 2.0, mask=np.isnan(x)) ** 2),
    "plain on the left": lambda x: np.sum((MASKED - x) ** 2),
    "plain on the right": lambda x: np.sum((x / MASKED) ** 2),
    "ufuncs": lambda x: np.sum(np.ma.exp(x) + np.ma.multiply(MASKED, x) + np.ma.divide(x, MASKED)),
    "dot": lambda x: np.dot(x, MASKED) * np.ma.dot(x, MASKED),
    "data": lambda x: np.sum(np.ma.getdata(x) ** 2),
    "filter": filtered,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_unmasked_array_has_right_gradient(name: str) -> None:
    program = PROGRAMS[name]
    value, gradient = ad.value_and_grad(program)(X)
    np.testing.assert_allclose(value, program(X), rtol=1e-12)
    np.testing.assert_allclose(gradient, ad.numeric.gradient(program, [X])[0], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: np.sum(np.ma.array([1.0, 2.0, 4.0], mask=[True, False, False]) * x),
        lambda x: np.sum(x * np.ma.array([1.0, 2.0, 4.0], mask=[True, False, False])),
        lambda x: np.sum(np.ma.array(x, mask=[True, False, False])),
        lambda x: np.sum(np.ma.array(x, mask=x > 1.0)),
    ],
)
def test_masked_elements_raise(program: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="mask of a MaskedArray with masked elements is not recorded"):
        ad.grad(program)(X)


@pytest.mark.parametrize(
    ("method", "advice"),
    [("filled", r"np\.where\(mask"), ("compressed", r"np\.ravel\(x\)"), ("mask", "getmaskarray"), ("count", r"x\.size")],
)
def test_attributes_of_masked_arrays_raise_with_advice(method: str, advice: str) -> None:
    with pytest.raises(AttributeError, match=advice):
        ad.grad(lambda x: np.sum(getattr(np.ma.array(x * 2.0), method)()))(X)
    assert not hasattr(cg.variable(X), method)


@pytest.mark.parametrize("function", [np.ma.masked_invalid, lambda x: np.ma.masked_where(x > 1.0, x)])
def test_masking_functions_raise_with_advice(function: Callable[[Any], Any]) -> None:
    with pytest.raises(cg.LeakError, match=r"np\.where"):
        ad.grad(lambda x: np.sum(function(x)))(X)


def test_domain_errors_that_numpy_masks_raise() -> None:
    with pytest.raises(ad.DetachedGradientError, match=r"a subclass of np\.ndarray"), np.errstate(all="ignore"):
        ad.grad(lambda x: np.ma.sum(np.ma.log(np.ma.array(x - 1.0))))(X)


def test_masked_arrays_of_plain_numbers_are_unchanged() -> None:
    def program(x: Any) -> Any:
        masked = np.ma.array([1.0, np.nan, 3.0], mask=[False, True, False])
        return np.sum(x) * float(np.ma.mean(masked * 2.0)) + np.sum(x * masked.filled(0.0))

    np.testing.assert_allclose(ad.grad(program)(X), [5.0, 4.0, 7.0])
