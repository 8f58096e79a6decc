"""The fit of a polynomial, in recorded steps: NumPy's own writes into the table of powers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .tools import ensure_array


def _check_arguments(x: Any, y: Any, deg: Any, w: Any) -> None:
    """Raise for arguments that do not fit, as ``numpy.polyfit`` does."""
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if x.size == 0:
        raise TypeError("expected non-empty vector for x")
    if y.ndim < 1 or y.ndim > 2:
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    if w is not None and w.ndim != 1:
        raise TypeError("expected a 1-d array for weights")
    if w is not None and w.shape[0] != y.shape[0]:
        raise TypeError("expected w and y to have the same length")


def _cast_like(array: Any, result: Any) -> Any:
    """A result in the dtype of `array`, into which NumPy would write it."""
    return result if result.dtype == array.dtype else result.astype(array.dtype, casting="same_kind")


def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: bool = False) -> Any:
    """``numpy.polyfit``."""
    x, y = ensure_array(x) + 0.0, ensure_array(y) + 0.0
    w = None if w is None else ensure_array(w) + 0.0
    _check_arguments(x, y, deg, w)
    order = int(deg) + 1
    rcond = x.shape[0] * np.finfo(x.dtype).eps if rcond is None else rcond
    powers = np.vander(x, order)
    if w is not None:
        powers, y = _cast_like(powers, powers * w[:, None]), _cast_like(y, y * (w[:, None] if y.ndim == 2 else w))
    scale = np.sqrt(np.sum(powers * powers, axis=0))
    powers = _cast_like(powers, powers / scale)
    c, residuals, rank, s = np.linalg.lstsq(powers, y, rcond)
    c = (c.T / scale).T
    if rank != order and not full:
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=5)
    if full:
        return c, residuals, rank, s, rcond
    return (c, _covariance(powers, scale, residuals, y, cov)) if cov else c


def _covariance(powers: Any, scale: Any, residuals: object, y: Any, cov: bool | str) -> Any:
    """The covariance of the coefficients."""
    base = np.linalg.inv(np.dot(powers.T, powers))
    base = _cast_like(base, base / np.outer(scale, scale))
    count, order = powers.shape
    factor: Any = 1
    if cov != "unscaled":
        if count <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = residuals / (count - order)
    return base * factor if y.ndim == 1 else base[:, :, None] * factor
