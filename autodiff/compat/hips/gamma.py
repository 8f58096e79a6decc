"""The functions of autograd-gamma. Derivatives with respect to parameters are exact here, instead of finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special
from scipy.special import beta, betainc, betaincinv, gamma, gammainc, gammaincc, gammainccinv, gammaincinv, gammaln

from compgraph.array_types import Array

from .primitives import defjvp, defvjp, primitive

__all__ = [
    "beta", "betainc", "betaincinv", "betaincln", "gamma", "gammainc", "gammaincc", "gammainccinv", "gammainccln", "gammaincinv",
    "gammaincln", "gammaln",
]  # fmt: skip

_SMALLEST = 1e-35


def _clip_probability(p: Array) -> Any:
    return np.clip(p, _SMALLEST, 1 - _SMALLEST)


@primitive
def _log(p: Array) -> Any:
    """The logarithm of a probability, at least log(1e-35). Its derivative does not vanish at probabilities below."""
    return np.log(_clip_probability(p))


defvjp(_log, lambda ans, p: lambda g: g / _clip_probability(p))
defjvp(_log, lambda g, ans, p: g / _clip_probability(p))


def gammaincln(a: object, x: object) -> Any:
    """The logarithm of the regularized lower incomplete gamma function.

    Examples
    --------
    >>> gammaincln(1.0, np.log(2.0)).round(6) + 0
    np.float64(-0.693147)
    """
    return _log(special.gammainc(a, x))


def gammainccln(a: object, x: object) -> Any:
    """The logarithm of the regularized upper incomplete gamma function.

    Examples
    --------
    >>> gammainccln(1.0, 2.0).round(6)
    np.float64(-2.0)
    """
    return _log(special.gammaincc(a, x))


def betaincln(a: object, b: object, x: object) -> Any:
    """The logarithm of the regularized incomplete beta function.

    Examples
    --------
    >>> betaincln(1.0, 1.0, 0.5).round(6)
    np.float64(-0.693147)
    """
    return _log(special.betainc(a, b, x))
