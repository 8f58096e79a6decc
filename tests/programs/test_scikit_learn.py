"""Transformers and predictors of scikit-learn that are written in NumPy differentiate with respect to their input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
from autodiff import numeric
from tests.support.failures import Failures


def _square(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: np.sum(f(x) ** 2)


def test_model_derivatives() -> None:
    from tests.support.programs.scikit_learn import AT, MODELS  # which imports scikit-learn

    with Failures("models of scikit-learn") as failures:
        for name, model in MODELS.items():
            with failures.case(name):
                f = _square(model())
                expected = numeric.gradient(f, [AT])[0]
                np.testing.assert_allclose(ad.grad(f)(AT), expected, rtol=1e-4, atol=1e-6)
                beside = ad.grad(lambda x, f=f: f(x) + np.sum(x))(AT)
                np.testing.assert_allclose(beside, expected + 1, rtol=1e-4, atol=1e-6)


def test_metric_that_returns_a_float_keeps_derivative() -> None:
    from sklearn.metrics import mean_squared_error

    gradient = ad.grad(lambda x: mean_squared_error(x, np.zeros((2, 3))) + np.sum(x))(np.ones((2, 3)))
    np.testing.assert_allclose(gradient, np.full((2, 3), 4 / 3))


def test_prediction_in_c_code_raises() -> None:
    from tests.support.programs.scikit_learn import AT, in_c

    with pytest.raises((TypeError, ValueError)):
        ad.grad(lambda x: _square(in_c())(x) + np.sum(x))(AT)
