"""Cubic interpolation: the slopes at the points, and the cubics of Hermite through points and slopes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from ..steps import array, column, floating, plain
from .pieces import set_pieces


def _prepared(x: Any, y: Any, axis: int, real: str = "") -> tuple[Any, Any, int]:
    """Points and values, whose axis comes first."""
    x, y = floating(x), floating(y)
    if real and y.dtype.kind == "c":
        raise ValueError(f"`{real}` only works with real values for `y`; interpolate np.real and np.imag")
    axis = axis % y.ndim
    if x.ndim != 1 or x.shape[0] < 2 or x.shape[0] != y.shape[axis]:
        raise ValueError("`x` must be 1-dimensional, with 2 elements or more, as many as `y` has along `axis`.")
    if not (np.all(np.isfinite(plain(x))) and np.all(np.isfinite(plain(y)))):
        raise ValueError("`x` and `y` must contain only finite values.")
    if np.any(np.diff(plain(x)) <= 0):
        raise ValueError("`x` must be strictly increasing sequence.")
    return x, np.moveaxis(y, axis, 0), axis


def _enter(self: Any, x: Any, y: Any, slopes: Any, extrapolate: Any, axis: int) -> None:
    """The cubics between points, by values and slopes at both ends."""
    h = column(np.diff(x), y.ndim)
    mean = np.diff(y, axis=0) / h
    bent = (slopes[:-1] + slopes[1:] - 2 * mean) / h
    set_pieces(self, np.stack([bent / h, (mean - slopes[:-1]) / h - bent, slopes[:-1], y[:-1]]), x, extrapolate, axis)


def hermite(self: Any, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
    """The making of a ``CubicHermiteSpline``."""
    slopes = floating(dydx)
    if slopes.shape != array(y).shape:
        raise ValueError("The shapes of `y` and `dydx` must be identical.")
    x, y, axis = _prepared(x, y, axis)
    _enter(self, x, y, np.moveaxis(slopes, axis, 0), True if extrapolate is None else extrapolate, axis)


# ------------------------------------------------------------------------------------------ monotonic


def pchip(self: Any, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
    """The making of a ``PchipInterpolator``."""
    x, y, axis = _prepared(x, y, axis, "PchipInterpolator")
    h = column(np.diff(x), y.ndim)
    mean = np.diff(y, axis=0) / h
    slopes = np.concatenate([mean, mean]) if len(x) == 2 else _monotonic(h, mean)
    _enter(self, x, y, slopes, True if extrapolate is None else extrapolate, axis)


def _monotonic(h: Any, mean: Any) -> Any:
    """Slopes that keep data monotonic: weighted harmonic means, 0 where means differ in sign.

    F. N. Fritsch and J. Butland, "A method for constructing local monotone piecewise cubic interpolants", SIAM J. Sci. Stat.
    Comput. 5 (1984).
    """
    sign = np.sign(plain(mean))
    flat = (sign[1:] != sign[:-1]) | (sign[1:] == 0) | (sign[:-1] == 0)
    before, after = np.where(flat, 1.0, mean[:-1]), np.where(flat, 1.0, mean[1:])
    one, two = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    inner = np.where(flat, 0.0, (one + two) / (one / before + two / after))
    return np.concatenate([_end_slope(h[:2], mean[:2]), inner, _end_slope(h[:-3:-1], mean[:-3:-1])])


def _end_slope(h: Any, mean: Any) -> Any:
    """The slope at an end, of the parabola through three points, bounded so that it keeps their shape."""
    found = ((2 * h[:1] + h[1:2]) * mean[:1] - h[:1] * mean[1:2]) / (h[:1] + h[1:2])
    numbers, first, second = plain(found), plain(mean[:1]), plain(mean[1:2])
    against = np.sign(numbers) != np.sign(first)
    steep = ~against & (np.sign(first) != np.sign(second)) & (np.abs(numbers) > 3.0 * np.abs(first))
    return np.where(against, 0.0, np.where(steep, 3.0 * mean[:1], found))


def akima(self: Any, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None) -> None:
    """The making of an ``Akima1DInterpolator``."""
    if method not in {"akima", "makima"}:
        raise NotImplementedError(f"`method`={method} is unsupported.")
    x, y, axis = _prepared(x, y, axis, "Akima1DInterpolator")
    mean = np.diff(y, axis=0) / column(np.diff(x), y.ndim)
    slopes = np.concatenate([mean, mean]) if len(x) == 2 else _akima(mean, method == "makima")
    _enter(self, x, y, slopes, bool(extrapolate), axis)


def _akima(mean: Any, modified: bool) -> Any:
    """Slopes by the means around a point, weighted by how little they bend on the other side.

    H. Akima, "A new method of interpolation and smooth curve fitting based on local procedures", J. ACM 17 (1970).
    """
    first, last = mean[:1], mean[-1:]
    before = 2.0 * first - mean[1:2]
    after = 2.0 * last - mean[-2:-1]
    m = np.concatenate([2.0 * before - first, before, mean, after, 2.0 * after - last])
    bends = np.abs(np.diff(m, axis=0))
    if modified:
        bends = bends + 0.5 * np.abs(m[1:] + m[:-1])
    left, right = bends[2:], bends[:-2]
    total = left + right
    there = plain(total) > 1e-9 * np.max(plain(total), initial=-np.inf)
    weighted = m[1:-2] + right / np.where(there, total, 1.0) * (m[2:-1] - m[1:-2])
    return np.where(there, weighted, 0.5 * (m[3:] + m[:-3]))


# ------------------------------------------------------------------------------------------ twice differentiable


def cubic_spline(self: Any, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> None:
    """The making of a ``CubicSpline``."""
    x, y, axis = _prepared(x, y, axis)
    ends = _conditions(bc_type, y)
    if extrapolate is None:
        extrapolate = "periodic" if ends[0] == "periodic" else True
    slopes = _spline_slopes(x, y, ends) if y.size else np.zeros_like(y)
    _enter(self, x, y, slopes, extrapolate, axis)


def _conditions(bc_type: Any, y: Any) -> list[Any]:
    """What holds at both ends: a name, or the order of a derivative and its value."""
    if isinstance(bc_type, str):
        if bc_type == "periodic" and not np.allclose(plain(y)[0], plain(y)[-1], rtol=1e-15, atol=1e-15):
            raise ValueError("The first and last `y` point must be identical (within machine precision) when bc_type='periodic'.")
        bc_type = (bc_type, bc_type)
    elif len(bc_type) != 2 or any(isinstance(end, str) and end == "periodic" for end in bc_type):
        raise ValueError("`bc_type` must contain 2 elements to specify start and end conditions, of which none is 'periodic'.")
    known = {"clamped": (1, np.zeros(y.shape[1:])), "natural": (2, np.zeros(y.shape[1:]))}
    found = []
    for end in bc_type:
        if isinstance(end, str):
            if end not in {*known, "not-a-knot", "periodic"}:
                raise ValueError(f"bc_type={end} is not allowed.")
            found.append(known.get(end, end))
            continue
        order, value = end
        value = array(value)
        if order not in (1, 2) or value.shape != y.shape[1:]:
            raise ValueError("The specified derivative must be of order 1 or 2, of the shape of `y` without `axis`.")
        found.append((order, value))
    return found


def _spline_slopes(x: Any, y: Any, ends: list[Any]) -> Any:
    """The slopes at the points of the cubic spline: C. de Boor, *A Practical Guide to Splines*, ch. IV."""
    n, d = len(x), np.diff(x)
    h = column(d, y.ndim)
    mean = np.diff(y, axis=0) / h
    if n == 2:
        ends = [(1, mean[0]) if isinstance(end, str) else end for end in ends]
    if n == 3 and ends == ["not-a-knot", "not-a-knot"]:
        middle = (h[0] * mean[1] + h[1] * mean[0]) / (h[0] + h[1])
        return np.stack([2 * mean[0] - middle, middle, 2 * mean[1] - middle])
    if n == 3 and isinstance(ends[0], str) and ends[0] == "periodic":
        slope = np.sum(mean / h, axis=0) / np.sum(1.0 / h, axis=0)
        return np.broadcast_to(slope, y.shape)
    inner = 3 * (h[1:] * mean[:-1] + h[:-1] * mean[1:])
    if isinstance(ends[0], str) and ends[0] == "periodic":
        return _periodic_slopes(d, h, mean, inner)
    first = _end_row(ends[0], d, h, mean, 1)
    last = _end_row(ends[1], d[::-1], h[::-1], mean[::-1], -1)
    above = _joined(0.0, first[1], d[:-1])
    diagonal = _joined(first[0], 2 * (d[:-1] + d[1:]), last[0])
    below = _joined(d[1:], last[1], 0.0)
    bands = np.stack([above, diagonal, below])
    right = np.concatenate([first[2][None], inner, last[2][None]])
    return _solved(bands, right)


def _joined(*parts: Any) -> Any:
    return np.concatenate([np.reshape(part, (-1,)) for part in parts])


def _solved(bands: Any, right: Any) -> Any:
    flat = scipy.linalg.solve_banded((1, 1), bands, np.reshape(right, (right.shape[0], -1)), check_finite=False)
    return np.reshape(flat, right.shape)


def _end_row(end: Any, d: Any, h: Any, mean: Any, sign: int) -> tuple[Any, Any, Any]:
    """The equation at an end: what its slope and the next one are multiplied by, and the right-hand side."""
    if isinstance(end, str):  # not-a-knot
        reach = d[0] + d[1]
        right = ((h[0] + 2 * reach) * h[1] * mean[0] + h[0] ** 2 * mean[1]) / reach
        return d[1], reach, right
    order, value = end
    if order == 1:
        return 1.0, 0.0, value + 0 * mean[0]
    return 2 * d[0], d[0], -sign * 0.5 * value * d[0] ** 2 + 3 * mean[0] * h[0]


def _periodic_slopes(d: Any, h: Any, mean: Any, inner: Any) -> Any:
    """Slopes of a curve that closes: all but the last by those of an open one, and the last by the equation that closes it."""
    right = np.concatenate([3 * (h[:1] * mean[-1:] + h[-1:] * mean[:1]), inner])
    diagonal = _joined(2 * (d[-1] + d[0]), 2 * (d[:-2] + d[1:-1]))
    bands = np.stack([_joined(0.0, d[-1], d[:-3]), diagonal, _joined(d[1:-1], 0.0)])
    corner = column(_joined(-d[0], np.zeros(len(d) - 3), -d[-3]), mean.ndim)
    one, two = _solved(bands, right[:-1]), _solved(bands, corner)
    last = (right[-1] - d[-2] * one[0] - d[-1] * one[-1]) / (2 * (d[-1] + d[-2]) + d[-2] * two[0] + d[-1] * two[-1])
    slopes = one + last * two
    return np.concatenate([slopes, last[None], slopes[:1]])


def pchip_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """``scipy.interpolate.pchip_interpolate``."""
    curve = scipy.interpolate.PchipInterpolator(xi, yi, axis=axis)
    if np.ndim(der) == 0:
        return curve(x) if der == 0 else curve.derivative(der)(x)
    return [curve.derivative(nu)(x) if nu else curve(x) for nu in der]
