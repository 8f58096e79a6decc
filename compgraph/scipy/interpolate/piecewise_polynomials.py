"""Piecewise polynomials: replacements of the compiled ``scipy.interpolate._ppoly``, and of polynomial interpolation.

``S(x) = sum of c[m, i] (x - breaks[i])^(k - m)`` between ``breaks[i]`` and ``breaks[i + 1]``; in Bernstein's basis
``sum of c[a, i] b_a(s)`` with ``s = (x - breaks[i]) / (breaks[i + 1] - breaks[i])`` (C. de Boor, *A Practical Guide to Splines*,
revised ed., Springer 2001, ch. VII; R. T. Farouki, "The Bernstein polynomial basis", Comput. Aided Geom. Des. 29 (2012)). The
piece that contains a point is a choice without a derivative. Coefficients have the shape ``(k + 1, pieces, columns)``.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tools import to_array, to_column, to_numpy


def _piece_of(breaks: NDArray[Any], x: NDArray[Any]) -> NDArray[np.intp]:
    """The piece that contains each point: a piece contains its first end, and the last piece both."""
    breaks, x = to_numpy(breaks), to_numpy(x)
    if breaks[0] <= breaks[-1]:
        piece = np.searchsorted(breaks, x, side="right") - 1
    else:
        piece = np.searchsorted(-breaks, -x, side="right") - 1
    return np.clip(piece, 0, len(breaks) - 2)


def _nan_outside(values: Any, breaks: NDArray[Any], x: NDArray[Any], extrapolate: bool) -> Any:
    """Replace values at points outside the breaks by nan, unless these are extrapolated."""
    ends, points = to_numpy(breaks)[[0, -1]], to_numpy(x)
    is_outside = ~((points >= np.min(ends)) & (points <= np.max(ends)))
    return values if extrapolate or not np.any(is_outside) else np.where(to_column(is_outside, 2), np.nan, values)


def _values(c: NDArray[Any], breaks: NDArray[Any], x: NDArray[Any], nu: int, extrapolate: bool) -> Any:
    """The values of a piecewise polynomial, or of its derivative of order `nu`, of shape ``(points, columns)``."""
    piece = _piece_of(breaks, x)
    h = to_column(x - breaks[piece], 2)
    total, power = 0.0 * c[0][piece], 1.0
    for k in range(nu, c.shape[0]):  # in ascending order, as SciPy adds
        total = total + c[c.shape[0] - 1 - k][piece] * power * float(math.perm(k, nu))
        power = power * h
    return _nan_outside(total, breaks, x, extrapolate)


def evaluate(c: NDArray[Any], breaks: NDArray[Any], x: NDArray[Any], nu: int, extrapolate: bool, out: NDArray[Any]) -> None:
    """Write the values of a piecewise polynomial, or of its derivative of order `nu`, into `out`."""
    out[...] = _values(c, breaks, x, nu, extrapolate)


def evaluate_bernstein(
    c: NDArray[Any], breaks: NDArray[Any], x: NDArray[Any], nu: int, extrapolate: bool, out: NDArray[Any]
) -> None:
    """As `evaluate`, for coefficients in Bernstein's basis, by de Casteljau's scheme."""
    for _ in range(nu):
        c = (c.shape[0] - 1) * np.diff(c, axis=0) / to_column(np.diff(breaks), 2) if c.shape[0] > 1 else np.zeros_like(c)
    piece = _piece_of(breaks, x)
    s = to_column((x - breaks[piece]) / (breaks[piece + 1] - breaks[piece]), 2)
    level = [row[piece] for row in c]
    while len(level) > 1:
        level = [(1 - s) * a + s * b for a, b in itertools.pairwise(level)]
    out[...] = _nan_outside(level[0], breaks, x, extrapolate)


def fix_continuity(c: NDArray[Any], breaks: NDArray[Any], order: int) -> None:
    """Set the coefficients of the powers up to `order` such that the derivatives up to this order are continuous."""
    h = to_column(np.diff(breaks)[:-1], 2)
    last = c.shape[0] - 1
    for k in range(order, -1, -1):
        jump: Any = 0.0
        for j in range(last, k, -1):
            jump = (jump + math.comb(j, k) * c[last - j][:-1]) * h
        c[last - k, 1:] = c[last - k, 0] + np.cumsum(jump, axis=0)


def integrate(c: NDArray[Any], breaks: NDArray[Any], a: Any, b: Any, extrapolate: bool, out: NDArray[Any]) -> None:
    """Write the integrals from `a` to `b` into `out`."""
    antiderivative = c / to_column(np.arange(c.shape[0], 0, -1.0), 3)
    area: Any = 0.0
    for coefficient in antiderivative:
        area = (area + coefficient) * to_column(np.diff(breaks), 2)
    start = np.concatenate([np.zeros_like(area[:1]), np.cumsum(area, axis=0)[:-1]])
    first, last = _values(np.concatenate([antiderivative, start[None]]), breaks, np.stack([a, b]), 0, extrapolate)
    out[...] = last - first


def lagrange(x: NDArray[Any], w: NDArray[Any]) -> Any:
    """``scipy.interpolate.lagrange``; SciPy's intermediate ``np.poly1d`` objects drop leading zeros and their derivatives."""
    x, w = to_array(x), to_array(w)
    total = 0.0
    for j in range(len(x)):
        basis = np.ones(1)
        for k in range(len(x)):
            if k != j:
                basis = np.convolve(basis, np.stack([np.ones_like(x[k]), -x[k]])) / (x[j] - x[k])
        total = total + w[j] * basis
    return np.poly1d(total)


def _lagrange_derivatives(points: NDArray[Any], values: object, x: NDArray[Any], count: int) -> list[Any]:
    """The interpolating polynomial and its derivatives at `x`, `count` arrays.

    Derivatives are computed at the points by a differentiation matrix, and interpolated.
    """
    n = len(points)
    is_same = np.eye(n, dtype=bool)
    gaps = np.where(is_same, 1.0, points[:, None] - points)
    scale = 4.0 / np.ptp(to_numpy(points)) if n > 1 else 1.0
    weights = 1 / np.prod(gaps * np.where(is_same, 1.0, scale), axis=1)
    others = np.where(is_same, 1.0, (x[:, None, None] - points) * scale)  # for each x, its distances to all points but one
    matrix = np.prod(others, axis=2) * weights
    derivatives = [matrix @ values]
    if count > 1:  # J.-P. Berrut and L. N. Trefethen, "Barycentric Lagrange interpolation", SIAM Rev. 46 (2004), (9.4), (9.5)
        slopes = np.where(is_same, 0.0, weights / (gaps * weights[:, None]))
        slopes = slopes - np.where(is_same, np.sum(slopes, axis=1)[:, None], 0.0)
        for _ in range(count - 1):
            values = slopes @ values
            derivatives.append(matrix @ values)
    return derivatives


def barycentric_evaluate(self: Any, x: NDArray[Any]) -> Any:
    """``BarycentricInterpolator._evaluate``; SciPy's copies the values at the points, and so loses the derivative there."""
    return _lagrange_derivatives(self.xi, self.yi, x, 1)[0]


def barycentric_derivatives(self: Any, x: NDArray[Any], der: int | None = None, all_lower: bool = True) -> Any:
    """``BarycentricInterpolator._evaluate_derivatives``, replaced for the same reason."""
    derivatives = _lagrange_derivatives(self.xi, self.yi, x, len(self.xi) if der is None else der)
    return np.stack(derivatives) if all_lower else derivatives[-1]
