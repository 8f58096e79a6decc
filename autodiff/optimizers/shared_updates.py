"""Terms that several update rules share."""

from __future__ import annotations

import numpy as np

from .base import Optimizer
from .parameters import Array


def add_weight_decay(g: Array, p: Array, decay: float, out: Array) -> Array:
    """Return ``g + decay * p`` in `out`, the gradient of the loss plus ``decay / 2 * sum(p**2)``; without decay, `g`."""
    if not decay:
        return g
    np.multiply(p, decay, out=out)
    np.add(out, g, out=out)
    return out


def update_average_square(square: Array, g: Array, decay: float, a: Array) -> None:
    """Compute ``square = decay * square + (1 - decay) * g**2`` in place; `a` is scratch."""
    np.multiply(g, g, out=a)
    a *= 1 - decay
    np.multiply(square, decay, out=square)
    np.add(square, a, out=square)


def require_nonzero_epsilon(optimizer: Optimizer, epsilon: float) -> None:
    """Raise a ValueError if a positive epsilon rounds to zero in a parameter's dtype, where a zero gradient would give 0 / 0."""
    for parameter in optimizer._parameters:
        if epsilon and not parameter.array.dtype.type(epsilon):
            raise ValueError(
                f"epsilon={epsilon:g} is zero in {parameter.array.dtype}, the dtype of parameter {parameter.name}; give 1e-4"
            )
