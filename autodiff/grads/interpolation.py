"""Rules of grids between two ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.bind import bind

from ..rules import general, linear, record_getitem, scatter


def _along(g: Any, weights: Any, axis: int) -> Any:
    """The sum of the adjoint along an axis, with weights."""
    return np.sum(g * np.reshape(weights, (-1, *[1] * (g.ndim - 1 - axis % g.ndim))), axis=axis)


def _shares(num: Any, endpoint: Any) -> tuple[Any, int]:
    """How far along each point is, from 0 to 1, and the number of steps."""
    steps = int(num) - 1 if endpoint else int(num)
    return np.arange(num) / max(steps, 1), steps


def _linspace(sign: int, g: Any, out: Any, num: Any, endpoint: Any, retstep: Any, axis: Any) -> Any:
    """What start (-1) or stop (1) adds to the grid, and to the step."""
    shares, steps = _shares(num, endpoint)
    points, step = g if retstep else (g, None)
    grid = out[0] if retstep else out
    total = np.zeros(())
    if points is not None and grid.dtype.kind in "fc":
        total = total + _along(points, shares if sign > 0 else 1 - shares, axis)
    return total if step is None else total + step * (sign / steps)


linspace_grad = linear(
    "linspace",
    lambda g, out, start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0: _linspace(
        -1, g, out, num, endpoint, retstep, axis
    ),
    lambda g, out, start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0: _linspace(
        1, g, out, num, endpoint, retstep, axis
    ),
)


def _geomspace(which: int) -> tuple[Any, Any]:
    """Formula and tangent for start (0) or stop (1): each point is ``start**(1 - share) * stop**share``."""

    def formula(g: Any, out: Any, *ends: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, axis: Any = 0) -> Any:
        shares, _ = _shares(num, endpoint)
        return _along(g * out, shares if which else 1 - shares, axis) / ends[which]

    def tangent(t: Any, out: Any, *ends: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, axis: Any = 0) -> Any:
        shares, _ = _shares(num, endpoint)
        place = axis % out.ndim
        relative = np.broadcast_to(t / ends[which], out.shape[:place] + out.shape[place + 1 :])
        weights = np.reshape(shares if which else 1 - shares, (-1, *[1] * (out.ndim - 1 - place)))
        return np.expand_dims(relative, axis) * weights * out

    return formula, tangent


_start, _stop = _geomspace(0), _geomspace(1)
geomspace_grad = general("geomspace", _start[0], _stop[0]).tangent(_start[1], _stop[1])


# --------------------------------------------------------------------------------------- interpolation


class _Line:
    """The line that ``interp`` draws, and where the points lie on it.

    Attributes
    ----------
    from_knots : array
        The place in `xp` of each knot; a period has one more at either end.
    ends : tuple of array
        The places in `xp` of the knots to the left and right of each point.
    share : array or Node
        How far the point lies on the way from left to right, from 0 to 1.
    slope : array or Node
        Of the line at the point; at a knot, the mean of both sides.
    below, above : array
        Whether the point is given the value of `left` or `right`.
    """

    def __init__(self, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> None:
        xp, fp = (a if hasattr(a, "dtype") else np.asarray(a) for a in (xp, fp))
        self.from_knots = np.arange(xp.shape[0])
        knots = xp
        if period is not None:
            order = np.argsort(xp % abs(period))
            self.from_knots = np.concatenate([order[-1:], order, order[:1]])
            laps = np.concatenate([[-1], np.zeros(len(order)), [1]]) * abs(period)
            x, knots = np.remainder(x, abs(period)), record_getitem(np.remainder(xp, abs(period)), self.from_knots) + laps
        last = knots.shape[0] - 1
        left_of, right_of = (np.searchsorted(knots, x, side=side) for side in ("left", "right"))
        low = np.clip(right_of - 1, 0, max(last - 1, 0))
        high = np.minimum(low + 1, last)
        self.ends = record_getitem(self.from_knots, low), record_getitem(self.from_knots, high)
        length = record_getitem(knots, high) - record_getitem(knots, low)
        self.share = np.clip((x - record_getitem(knots, low)) / np.where(length == 0, 1, length), 0, 1)
        lengths = np.diff(knots)
        slopes = np.diff(record_getitem(fp, self.from_knots)) / np.where(lengths == 0, 1, lengths)
        slopes = np.concatenate([np.zeros(1), slopes, np.zeros(1)])
        slope = (record_getitem(slopes, left_of) + record_getitem(slopes, right_of)) / 2
        self.slope = np.where(np.isnan(x), np.nan, slope)
        self.below = (x < knots[0]) & (left is not None and period is None)
        self.above = (x > knots[-1]) & (right is not None and period is None)

    def back(self, g: Any, like: Any) -> Any:
        """Give each knot its share of what arrives at the points."""
        g = np.real(g) if np.iscomplexobj(g) and not np.iscomplexobj(like) else g
        pieces = (g * (1 - self.share), self.ends[0], g * self.share, self.ends[1])
        return bind(scatter, (like, *pieces), {"layout": (1, 1)})

    def at(self, t: Any) -> Any:
        """What the points have of numbers at the knots."""
        return record_getitem(t, self.ends[0]) * (1 - self.share) + record_getitem(t, self.ends[1]) * self.share

    def drawn(self, g: Any) -> Any:
        """Zero where a point is given another value than the line has."""
        return np.where(self.below | self.above, 0, g)


def _interp_x(g: Any, out: Any, x: Any, *others: Any, **options: Any) -> Any:
    return g * _Line(x, *others, **options).slope


def _interp_xp(g: Any, out: Any, x: Any, xp: Any, *others: Any, **options: Any) -> Any:
    line = _Line(x, xp, *others, **options)
    return line.back(-g * line.slope, xp)


def _interp_xp_tangent(t: Any, out: Any, x: Any, xp: Any, *others: Any, **options: Any) -> Any:
    line = _Line(x, xp, *others, **options)
    return -line.slope * line.at(t)


def _interp_fp(g: Any, out: Any, x: Any, xp: Any, fp: Any, *others: Any, **options: Any) -> Any:
    line = _Line(x, xp, fp, *others, **options)
    return line.back(line.drawn(g), fp)


def _interp_fp_tangent(t: Any, out: Any, *operands: Any, **options: Any) -> Any:
    line = _Line(*operands, **options)
    return line.drawn(line.at(t))


def _interp_left(g: Any, out: Any, *operands: Any, **options: Any) -> Any:
    return np.where(_Line(*operands, **options).below, g, 0)


def _interp_right(g: Any, out: Any, *operands: Any, **options: Any) -> Any:
    return np.where(_Line(*operands, **options).above, g, 0)


interp_grad = general("interp", _interp_x, _interp_xp, _interp_fp, _interp_left, _interp_right).tangent(
    _interp_x, _interp_xp_tangent, _interp_fp_tangent, _interp_left, _interp_right
)
