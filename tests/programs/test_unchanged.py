"""Programs in plain NumPy differentiate as they stand, alone and beside a term that keeps its graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff as ad
from tests.support.failures import Failures
from tests.support.programs.by_hand import PROGRAMS

POINT = np.array([0.83, 1.37, 0.61, 1.12, 0.44, 1.58])
DIRECTION = np.array([0.3, -0.7, 0.2, 0.9, -0.4, 0.5])


def difference(f: Any, h: float = 1e-4) -> float:
    def at(s: float) -> float:
        return float(f(POINT + s * DIRECTION))

    return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)


def test_unchanged_program_derivatives() -> None:
    with Failures("programs by hand") as failures:
        for name, f in PROGRAMS.items():
            expected = difference(f)
            with failures.case(f"{name}, gradient"):
                value, gradient = ad.value_and_grad(f)(POINT)
                assert value == pytest.approx(float(f(POINT)), rel=1e-12)
                assert gradient @ DIRECTION == pytest.approx(expected, rel=1e-6, abs=1e-8)
                beside = ad.grad(lambda x, f=f: f(x) + np.sum(x**2))(POINT)
                np.testing.assert_allclose(beside, gradient + 2 * POINT, rtol=1e-9, atol=1e-12)
            with failures.case(f"{name}, tangent"):
                tangent = ad.jvp(f, (POINT,), (DIRECTION,))[1]
                assert float(tangent) == pytest.approx(expected, rel=1e-6, abs=1e-8)
            with failures.case(f"{name}, second derivative"):
                slopes = (ad.grad(f)(POINT + 1e-5 * DIRECTION) - ad.grad(f)(POINT - 1e-5 * DIRECTION)) / 2e-5
                np.testing.assert_allclose(ad.hvp(f)(POINT, DIRECTION), slopes, rtol=1e-4, atol=1e-5)
