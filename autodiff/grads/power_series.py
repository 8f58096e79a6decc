"""Power series, for what divides 0 by 0 at a point where the function is smooth."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rules import Formula


def series(x: Any, coefficients: list[float]) -> Any:
    """The sum of ``coefficients[k] * x**k``, by Horner's scheme."""
    total = 0 * x + coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


def near(x: Any, radius: float, coefficients: list[float], far: Formula) -> Any:
    """A power series in `x` near 0, where the closed form `far` of a smooth function divides 0 by 0."""
    close = np.abs(x) < radius
    return np.where(close, series(np.where(close, x, 0), coefficients), far(np.where(close, 0.5, x)))
