"""Designs of filters, in steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from .filters import arrays


def bilinear(b: Any, a: Any, fs: Any = 1.0) -> tuple[Any, Any]:
    """As ``scipy.signal.bilinear``: ``s = 2 fs (z - 1) / (z + 1)``, and both multiplied by ``(z + 1)**n``."""
    b, a, fs = arrays(b, a, fs)
    b, a = (np.trim_zeros(np.atleast_1d(x), "f") for x in (b, a))
    if b.ndim != 1 or a.ndim != 1 or fs.ndim:
        raise ValueError("scipy.signal.bilinear takes coefficients along one axis, and a number fs")
    n = max(len(b), len(a)) - 1
    factor = np.sqrt(2 * fs)
    powers = np.stack([_power(q, n - q) for q in range(n + 1)])
    parts = []
    for coefficients in (b, a):
        q = np.arange(len(coefficients))
        weighted = coefficients[::-1] * factor ** (2.0 * q - n)
        parts.append(np.trim_zeros(np.matmul(weighted, powers[: len(coefficients)])[::-1], "f"))
    numerator, denominator = scipy.signal.normalize(*parts)
    return numerator, denominator


def _power(q: int, p: int) -> Any:
    """The coefficients of ``(z - 1)**q (z + 1)**p``, that of the lowest power first."""
    coefficients = np.ones(1)
    for factor in [(-1.0, 1.0)] * q + [(1.0, 1.0)] * p:
        coefficients = np.convolve(coefficients, factor)
    return coefficients
