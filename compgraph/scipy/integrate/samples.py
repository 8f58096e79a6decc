"""Integrals of samples, in recorded steps: the rules of Newton and Cotes, and Romberg's.

The formulas are those of P. J. Davis and P. Rabinowitz, *Methods of Numerical Integration*, 2nd ed., Academic Press 1984, and,
for samples at unequal distances, of K. V. Cartwright, "Simpson's rule cumulative integration with MS Excel and irregularly-spaced
data", J. Math. Sci. Math. Educ. 12 (2017).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from ...graph import to_plain
from ..steps import array


def _floating(x: Any) -> Any:
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


def _along(x: Any, y: Any, axis: int) -> Any:
    """Places of samples with their axis last, so that they broadcast against the samples, whose axis is last too."""
    x = array(x)
    if x.ndim == 1:
        return x
    if x.ndim != y.ndim:
        raise ValueError("If given, shape of x must be 1-D or the same as y.")
    return np.moveaxis(x, axis, -1)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """``scipy.integrate.trapezoid``."""
    y = array(y)
    shape = y.shape
    y = np.moveaxis(_floating(y), axis, -1)
    if x is None:
        d = dx
    else:
        x = array(x)
        if x.ndim != 1:
            x = np.moveaxis(np.broadcast_to(x, shape), axis, -1)
        d = x[..., 1:] - x[..., :-1]
    return np.sum(d * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1, dtype=y.dtype if y.dtype.kind == "f" else None)


def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """``scipy.integrate.cumulative_trapezoid``."""
    y = np.moveaxis(array(y), axis, -1)
    if y.shape[-1] == 0:
        raise ValueError("At least one point is required along `axis`.")
    if initial is not None and (not np.isscalar(initial) or initial != 0):
        raise ValueError("`initial` must be `None` or `0`.")
    d = dx if x is None else np.diff(_along(x, y, axis), axis=-1)
    if x is not None and d.shape[-1] != y.shape[-1] - 1:
        raise ValueError("If given, length of x along axis must be the same as y.")
    found = np.cumsum(d * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)
    if initial is not None:
        found = np.concatenate([np.zeros((*found.shape[:-1], 1), found.dtype), found], axis=-1)
    return np.moveaxis(found, -1, axis)


def _ratio(a: Any, b: Any) -> Any:
    """``a / b``; where b is zero, zero, as SciPy has it."""
    there = np.asarray(to_plain(b)) != 0
    return a / b if np.all(there) else np.where(there, a / np.where(there, b, 1.0), 0.0)


def _parabolas(y: Any, x: Any, dx: Any) -> Any:
    """Simpson's rule of an odd number of samples."""
    first, middle, last = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    if x is None:
        return np.sum(first + 4.0 * middle + last, axis=-1) * (dx / 3.0)
    h = np.diff(_floating(x), axis=-1)
    h0, h1 = h[..., ::2], h[..., 1::2]
    total, ratio = h0 + h1, _ratio(h0, h1)
    middle = middle * (total * _ratio(total, h0 * h1))
    return np.sum(total / 6.0 * (first * (2.0 - _ratio(1.0, ratio)) + middle + last * (2.0 - ratio)), axis=-1)


def _last_interval(y: Any, x: Any, dx: Any) -> Any:
    """The integral over the last interval of the parabola through the last three samples (Cartwright, equation 8)."""
    if x is None:
        h0 = h1 = array(dx) * np.float64(1.0)
    else:
        h = np.diff(_floating(x), axis=-1)
        h0, h1 = h[..., -2], h[..., -1]
    alpha = _ratio(2 * h1**2 + 3 * h0 * h1, 6 * (h1 + h0))
    beta = _ratio(h1**2 + 3.0 * h0 * h1, 6 * h0)
    eta = _ratio(h1**3, 6 * h0 * (h0 + h1))
    return alpha * y[..., -1] + beta * y[..., -2] - eta * y[..., -3]


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """``scipy.integrate.simpson``."""
    y = np.moveaxis(array(y), axis, -1)
    count = y.shape[-1]
    if x is not None:
        x = _along(x, y, axis)
        if x.shape[-1] != count:
            raise ValueError("If given, length of x along axis must be the same as y.")
    if count % 2:
        return _parabolas(y, x, dx)
    if count == 2:
        return 0.5 * (dx if x is None else x[..., 1] - x[..., 0]) * (y[..., 1] + y[..., 0])
    if count == 0:
        raise IndexError("scipy.integrate.simpson: there are no samples along the axis")
    return _parabolas(y[..., :-1], None if x is None else x[..., :-1], dx) + _last_interval(y, x, dx)


def _equal(y: Any, d: Any) -> Any:
    """The integral over the first of two equal intervals, of the parabola through three samples."""
    return d[..., :-1] / 3 * (5 * y[..., :-2] / 4 + 2 * y[..., 1:-1] - y[..., 2:] / 4)


def _unequal(y: Any, d: Any) -> Any:
    """The same of two intervals of any length (Cartwright, equation 8)."""
    h, other = d[..., :-1], d[..., 1:]
    a, b = h / (h + other), h / other
    return h / 6 * ((3 - a) * y[..., :-2] + (3 + a * b + a) * y[..., 1:-1] - a * b * y[..., 2:])


def cumulative_simpson(y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """``scipy.integrate.cumulative_simpson``."""
    y = _floating(array(y))
    if not -y.ndim <= axis < y.ndim:
        raise ValueError(f"`axis={axis}` is not valid for `y` with `y.ndim={y.ndim}`.")
    if y.shape[axis] < 3:
        found = np.moveaxis(cumulative_trapezoid(y, x, dx, axis), axis, -1)
    else:
        rule = _equal if x is None else _unequal
        y = np.moveaxis(y, axis, -1)
        d = np.broadcast_to(_widths(y, x, dx, axis), (*y.shape[:-1], y.shape[-1] - 1))
        ahead, back = rule(y, d), np.flip(rule(np.flip(y, -1), np.flip(d, -1)), -1)
        place = np.arange(d.shape[-1])  # an interval is the first of a pair; or the second, if its number is odd or the last
        first = (place % 2 == 0) & (place < d.shape[-1] - 1)
        each = np.where(first, ahead[..., np.minimum(place, ahead.shape[-1] - 1)], back[..., np.maximum(place - 1, 0)])
        found = np.cumsum(each, axis=-1)
    if initial is not None:
        initial = _floating(array(initial))
        initial = np.moveaxis(initial, axis, -1) if initial.ndim else np.broadcast_to(initial, (*found.shape[:-1], 1))
        found = np.concatenate([initial, found + initial], axis=-1)
    return np.moveaxis(found, -1, axis)


def _widths(y: Any, x: Any, dx: Any, axis: int) -> Any:
    """The lengths of the intervals between samples, whose axis is the last."""
    if x is None:
        dx = _floating(array(dx))
        if dx.ndim and (dx.ndim != y.ndim or dx.shape[axis] != 1):
            raise ValueError("If provided, `dx` must either be a scalar or have the same shape as `y` but with only 1 point.")
        return np.moveaxis(dx, axis, -1) if dx.ndim else dx
    x = _floating(array(x))
    x = np.moveaxis(x, axis, -1) if x.ndim == y.ndim else x
    if x.shape not in (y.shape, y.shape[-1:]):
        raise ValueError("If given, shape of `x` must be the same as `y` or 1-D with the same length as `y` along `axis`.")
    widths = np.diff(x, axis=-1)
    if np.any(to_plain(widths) <= 0):
        raise ValueError("Input x must be strictly increasing.")
    return widths


def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: Any = False) -> Any:
    """``scipy.integrate.romb``."""
    if show:
        raise TypeError("scipy.integrate.romb: show= prints a table of numbers; leave it out, or call it with y.value")
    y = np.moveaxis(array(y), axis, -1)
    intervals = y.shape[-1] - 1
    if intervals < 1 or intervals & (intervals - 1):
        raise ValueError("Number of samples must be one plus a non-negative power of 2.")
    h = intervals * (array(dx) * np.float64(1.0))
    row = [(y[..., 0] + y[..., -1]) / 2.0 * h]
    step = intervals
    while step > 1:
        new = [0.5 * (row[0] + h * np.sum(y[..., step // 2 : intervals : step], axis=-1))]
        for j, before in enumerate(row, 1):  # Richardson's extrapolation
            new.append(new[-1] + (new[-1] - before) / (4**j - 1))
        row, h, step = new, h / 2.0, step // 2
    return row[-1]


def fixed_quad(func: Any, a: Any, b: Any, args: Any = (), n: int = 5) -> Any:
    """``scipy.integrate.fixed_quad``: the function is given nodes, so that what it brings by its closure is recorded too."""
    places, weights = scipy.special.roots_legendre(n)
    if np.any(np.isinf(to_plain(a))) or np.any(np.isinf(to_plain(b))):
        raise ValueError("Gaussian quadrature is only available for finite limits.")
    y = (b - a) * (np.real(places) + 1) / 2.0 + a
    return (b - a) / 2.0 * np.sum(weights * array(func(y, *args)), axis=-1), None
