"""Rules of ``scipy.stats``: distribution functions that SciPy integrates, and inverses for which it solves an equation."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import scipy.special as sc
from numpy.typing import NDArray

from compgraph.scipy.stats import density

from ...rules import Formula, elementwise


def _skewnorm_slope(x: NDArray[Any], a: NDArray[Any]) -> Any:
    """Return the derivative of ``ndtr(x) - 2 owens_t(x, a)`` with respect to `a`."""
    square = 1 + a * a
    return -np.exp(-0.5 * x * x * square) / (math.pi * square)


def _invgauss_slope(x: NDArray[Any], mu: Any) -> Any:
    """Return the derivative of the inverse Gaussian distribution function with respect to `mu`; two of three terms cancel."""
    return -2 / mu**2 * np.exp(2 / mu + sc.log_ndtr(-(x / mu + 1) / np.sqrt(x)))


# By class of distribution: the known derivatives of the distribution function with respect to the shape parameters.
_SLOPES: dict[str, tuple[Formula, ...]] = {
    "skewnorm_gen": (_skewnorm_slope,),
    "invgauss_gen": (_invgauss_slope,),
}


def _pull_argument(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], *shapes: object, distribution: object, name: str) -> Any:
    """Multiply by the density for a distribution function; divide by the density at the result for an inverse."""
    sign = -1 if name in ("_sf", "_isf") else 1
    if name in ("_cdf", "_sf"):
        return sign * g * density(distribution, x, *shapes)
    return sign * g / density(distribution, out, *shapes)


def _pull_shape(
    position: int, g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], *shapes: object, distribution: Any, name: str
) -> Any:
    """Return the cotangent of a shape parameter; for an inverse by the implicit function theorem."""
    is_inverse = name not in ("_cdf", "_sf")
    slopes = _SLOPES.get(type(distribution).__name__)
    if slopes is None:
        raise TypeError(
            f"scipy.stats.{distribution.name}.{'ppf' if is_inverse else 'cdf'}: no derivative with respect to the shape "
            "parameters is known. Pass plain numbers (x.value), or use the density (pdf, logpdf)"
        )
    if is_inverse:
        return -g * slopes[position](out, *shapes) / density(distribution, out, *shapes)
    return (-1 if name == "_sf" else 1) * g * slopes[position](x, *shapes)


_MAX_SHAPES = 4  # the largest number of shape parameters of a distribution

scipy_stats_numeric_grad = elementwise(
    "scipy_stats_numeric", _pull_argument, *[partial(_pull_shape, k) for k in range(_MAX_SHAPES)]
)
