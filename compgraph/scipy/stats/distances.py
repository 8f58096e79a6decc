"""Distances of samples, and transformations towards a normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc

from .pieces import pieces
from .samples import Along, checked_nan, floating

# -------------------------------------------------------------------------------------------- distances


def _valid(values: Any, weights: Any) -> tuple[Any, Any]:
    values = floating(values)
    if values.ndim != 1 or not len(values):
        raise ValueError("Distribution can't be empty, and has one dimension here.")
    if weights is None:
        return values, None
    weights = floating(weights)
    if len(weights) != len(values):
        raise ValueError("Value and weight array-likes for the same empirical distribution must be of the same size.")
    if np.any(weights < 0) or not 0 < np.sum(weights) < np.inf:
        raise ValueError("All weights must be non-negative, and their sum positive and finite.")
    return values, weights


def _share_below(values: Any, weights: Any, at: Any) -> Any:
    """The distribution function of a sample."""
    order = np.argsort(values)
    count = np.searchsorted(values[order], at, side="right")
    if weights is None:
        return count / values.size
    total = np.concatenate([np.zeros(1), np.cumsum(weights[order])])
    return total[count] / total[-1]


def _distance(power: int, u: Any, v: Any, u_weights: Any, v_weights: Any) -> Any:
    """The integral of a power of the difference of two distribution functions."""
    (u, u_weights), (v, v_weights) = _valid(u, u_weights), _valid(v, v_weights)
    every = np.sort(np.concatenate([u, v]))
    difference = _share_below(u, u_weights, every[:-1]) - _share_below(v, v_weights, every[:-1])
    return np.sum((np.abs(difference) if power == 1 else difference**2) * np.diff(every))


def wasserstein_distance(u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None) -> Any:
    """What has to be carried how far."""
    return _distance(1, u_values, v_values, u_weights, v_weights)


def energy_distance(u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None) -> Any:
    """Cramer's, by the square."""
    return math.sqrt(2) * np.sqrt(_distance(2, u_values, v_values, u_weights, v_weights))


# -------------------------------------------------------------------------------------------- transformations


def _given(lmbda: Any, name: str) -> Any:
    if lmbda is None:
        raise TypeError(
            f"scipy.stats.{name}: without lmbda it is estimated by a search, which is not recorded; estimate it of plain numbers "
            "(x.value) and give it"
        )
    return floating(lmbda)


def boxcox(x: Any, lmbda: Any = None, alpha: Any = None, optimizer: Any = None, *, nan_policy: str = "propagate") -> Any:
    """Powers made continuous with the logarithm."""
    checked_nan("boxcox", nan_policy, floating(x))
    return sc.boxcox(floating(x), _given(lmbda, "boxcox"))


def _yeojohnson(x: Any, power: Any) -> Any:
    """Those of ``1 + x`` above 0, and below of ``1 - x`` the other way round."""
    cases = [x >= 0, x < 0]
    return pieces(cases, [sc.boxcox1p, lambda x, power: -sc.boxcox1p(-x, 2 - power)], (x, power))


def yeojohnson(x: Any, lmbda: Any = None, *, nan_policy: str = "propagate") -> Any:
    """The transformation of Yeo and Johnson (Biometrika 87, 2000)."""
    checked_nan("yeojohnson", nan_policy, floating(x))
    return _yeojohnson(floating(x), _given(lmbda, "yeojohnson"))


def _likelihood(name: str, lmb: Any, data: Any, axis: Any, nan_policy: str, keepdims: bool, parts: Any) -> Any:
    """The likelihood of a normal distribution of the transformed numbers, but for what does not depend on the power."""
    data, along = floating(data), Along(axis, keepdims)
    checked_nan(name, nan_policy, data)
    x = along.last(data)
    transformed, slope = parts(x, floating(lmb))
    n = x.shape[-1]
    return along.finished(slope - n / 2 * np.log(np.var(transformed, axis=-1)), data.ndim)


def boxcox_llf(lmb: Any, data: Any, *, axis: Any = 0, keepdims: bool = False, nan_policy: str = "propagate") -> Any:
    """The likelihood of a power."""
    parts = lambda x, power: (sc.boxcox(x, power), (power - 1) * np.sum(np.log(x), axis=-1))  # noqa: E731
    return _likelihood("boxcox_llf", lmb, data, axis, nan_policy, keepdims, parts)


def yeojohnson_llf(lmb: Any, data: Any, *, axis: Any = 0, nan_policy: str = "propagate", keepdims: bool = False) -> Any:
    """The likelihood of a power."""
    slope = lambda x: np.sum(np.sign(x) * np.log1p(np.abs(x)), axis=-1)  # noqa: E731
    parts = lambda x, power: (_yeojohnson(x, power), (power - 1) * slope(x))  # noqa: E731
    return _likelihood("yeojohnson_llf", lmb, data, axis, nan_policy, keepdims, parts)
