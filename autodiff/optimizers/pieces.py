"""What several update rules are made of."""

from __future__ import annotations

import numpy as np

from .base import Optimizer
from .parameters import Array


def decayed(g: Array, p: Array, decay: float, out: Array) -> Array:
    """The gradient of the loss plus ``decay / 2`` times the sum of squares."""
    if not decay:
        return g
    np.multiply(p, decay, out=out)
    np.add(out, g, out=out)
    return out


def average_square(square: Array, g: Array, decay: float, a: Array) -> None:
    """Let the squares of a gradient into their average."""
    np.multiply(g, g, out=a)
    a *= 1 - decay
    np.multiply(square, decay, out=square)
    np.add(square, a, out=square)


def require_seen(optimizer: Optimizer, epsilon: float) -> None:
    """Raise if epsilon vanishes in a parameter's dtype, where a gradient of zero would then make NaN."""
    for parameter in optimizer._parameters:
        if epsilon and not parameter.array.dtype.type(epsilon):
            raise ValueError(
                f"epsilon={epsilon:g} is zero in {parameter.array.dtype}, as parameter {parameter.name} is; give 1e-4"
            )
