"""Matrices in the diagonal forms of ``scipy.linalg``."""

from __future__ import annotations

from typing import Any

import numpy as np

BANDS = np.array([[0.0, 0.4, -0.3, 0.5, 0.2], [3.0, -2.6, 2.8, 3.2, 2.5], [0.5, 0.3, -0.7, 0.2, 0.0], [0.3, -0.2, 0.4, 0.0, 0.0]])
UPPER = np.array([[0.0, 0.0, 0.3, -0.2, 0.4], [0.0, 0.5, -0.3, 0.2, 0.4], [2.0, 2.5, 3.0, 1.8, 2.2]])
LOWER = UPPER[::-1].copy()
LOWER[1] = [0.5, -0.3, 0.2, 0.4, 0.0]
LOWER[2] = [0.3, -0.2, 0.4, 0.0, 0.0]


def as_complex(x: Any) -> Any:
    """Convert a real array to a complex one with the same zeros, real at large elements."""
    return x + 0.3j * np.where(np.abs(x) < 1, x, 0)
