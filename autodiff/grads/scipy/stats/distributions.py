"""Rules of distribution functions that SciPy integrates, and of their inverses, for which it solves an equation."""

from __future__ import annotations

from typing import Any

from ....rules import elementwise


def _numeric(g: Any, out: Any, x: Any, law: Any, name: str, shapes: tuple[Any, ...]) -> Any:
    """A distribution function has the density as its derivative, the inverse one over the density there."""
    sign = -1 if name in ("_sf", "_isf") else 1
    if name in ("_cdf", "_sf"):
        return sign * g * law._pdf(x, *shapes)
    return sign * g / law._pdf(out, *shapes)


scipy_stats_numeric_grad = elementwise("scipy_stats_numeric", _numeric)
