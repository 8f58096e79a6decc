"""Rules of distribution functions that SciPy integrates, and of their inverses, for which it solves an equation."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import scipy.special as sc
from numpy.typing import NDArray

from compgraph.scipy.stats import density

from ....rules import Formula, elementwise


def _skewnorm_slope(x: NDArray[Any], a: NDArray[Any]) -> Any:
    """Of ``ndtr(x) - 2 owens_t(x, a)``."""
    square = 1 + a * a
    return -np.exp(-0.5 * x * x * square) / (math.pi * square)


def _invgauss_slope(x: NDArray[Any], mu: Any) -> Any:
    """Two of the three terms of the derivative cancel."""
    return -2 / mu**2 * np.exp(2 / mu + sc.log_ndtr(-(x / mu + 1) / np.sqrt(x)))


# Derivatives of distribution functions by their shape parameters, by the class of the distribution, where they are known.
_SLOPES: dict[str, tuple[Formula, ...]] = {
    "skewnorm_gen": (_skewnorm_slope,),
    "invgauss_gen": (_invgauss_slope,),
}


def _argument(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], *shapes: object, distribution: object, name: str) -> Any:
    """A distribution function has the density as its derivative, the inverse one over the density there."""
    sign = -1 if name in ("_sf", "_isf") else 1
    if name in ("_cdf", "_sf"):
        return sign * g * density(distribution, x, *shapes)
    return sign * g / density(distribution, out, *shapes)


def _shape(place: int, g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], *shapes: Any, distribution: Any, name: str) -> Any:
    """Differentiate an inverse function by the implicit function theorem."""
    is_inverse = name not in ("_cdf", "_sf")
    slopes = _SLOPES.get(type(distribution).__name__)
    if slopes is None:
        raise TypeError(
            f"scipy.stats.{distribution.name}.{'ppf' if is_inverse else 'cdf'}: no derivative of it by the shape parameters "
            "is known; give plain numbers for these (x.value), or use the density (pdf, logpdf) where that will do"
        )
    if is_inverse:
        return -g * slopes[place](out, *shapes) / density(distribution, out, *shapes)
    return (-1 if name == "_sf" else 1) * g * slopes[place](x, *shapes)


_SHAPES = 4  # as many as a distribution has

scipy_stats_numeric_grad = elementwise("scipy_stats_numeric", _argument, *[partial(_shape, k) for k in range(_SHAPES)])
