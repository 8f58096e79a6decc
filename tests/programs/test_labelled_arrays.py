"""Labelled arrays of pandas and xarray with nodes: right, or an error."""

from __future__ import annotations

import numpy as np
import pytest

import autodiff as ad
from autodiff import numeric
from tests.support.failures import Failures

X = np.array([1.0, 2.0, 3.0])


def test_labelled_array_derivatives() -> None:
    from tests.support.programs.labelled_arrays import LABELLED  # which imports pandas and xarray

    with Failures("programs with labelled arrays") as failures:
        for name, f in LABELLED.items():
            with failures.case(name):
                expected = numeric.gradient(lambda x, f=f: float(f(x)), [X])[0]
                np.testing.assert_allclose(ad.grad(f)(X), expected, rtol=1e-7)
                np.testing.assert_allclose(ad.jvp(f, (X,), (np.ones(3),))[1], expected.sum(), rtol=1e-7)
                beside = ad.grad(lambda x, f=f: f(x) + np.sum(np.sin(x)))(X)
                np.testing.assert_allclose(beside, expected + np.cos(X), rtol=1e-7)


def test_rolling_window_raises() -> None:
    import pandas as pd

    with pytest.raises(TypeError, match="Rolling"):
        ad.grad(lambda x: pd.Series(x).rolling(2).mean().sum() + np.sum(x))(X)
