"""Random programs that read and write slices of two arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def program_of_slices(seed: int) -> tuple[Callable[[Any], Any], Any, Any]:
    """Return a function of a vector with a number as its result, and two vectors for it."""
    chance = np.random.default_rng(seed)
    n = int(chance.integers(5, 40))
    statements = []
    for _ in range(int(chance.integers(3, 30))):
        length = int(chance.integers(1, n))
        starts = chance.integers(0, n - length + 1, 3)
        statements.append((int(chance.integers(5)), length, *map(int, starts), float(chance.uniform(-1, 1))))

    def f(x: Any) -> Any:
        a, b = x.copy(), np.ones(n)
        total = 0.0
        for kind, length, i, j, k, number in statements:
            p, q = a[i : i + length], b[j : j + length]
            if kind == 0:
                b[k : k + length] = p * number + q
            elif kind == 1:
                a[k : k + length] += np.tanh(q) * number
            elif kind == 2:
                total = total + np.mean(p) * (p @ q)
            elif kind == 3:
                a[k] = np.sum(p[::-1] * q) / length
            else:
                b[j : j + length][::2] -= number * np.maximum(p, number)[::2]
        return total + np.sum(a * b)

    return f, chance.standard_normal(n), chance.standard_normal(n)
