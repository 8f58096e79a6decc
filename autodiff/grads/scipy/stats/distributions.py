"""Rules of distribution functions that SciPy integrates, and of their inverses, for which it solves an equation."""

from __future__ import annotations

from functools import partial
from typing import Any

from ....rules import elementwise


def _argument(g: Any, out: Any, x: Any, *shapes: Any, law: Any, name: str) -> Any:
    """A distribution function has the density as its derivative, the inverse one over the density there."""
    sign = -1 if name in ("_sf", "_isf") else 1
    if name in ("_cdf", "_sf"):
        return sign * g * law._pdf(x, *shapes)
    return sign * g / law._pdf(out, *shapes)


def _shape(place: int, g: Any, out: Any, x: Any, *shapes: Any, law: Any, name: str) -> Any:
    """Of an inverse function by the theorem on implicit ones."""
    if name in ("_cdf", "_sf"):
        return (-1 if name == "_sf" else 1) * g * law.slope(place, x, *shapes)
    return -g * law.slope(place, out, *shapes) / law._pdf(out, *shapes)


_SHAPES = 4  # as many as a distribution has

scipy_stats_numeric_grad = elementwise("scipy_stats_numeric", _argument, *[partial(_shape, k) for k in range(_SHAPES)])
