"""Rules of linear interpolation and of evenly spaced grids."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from compgraph.array_types import Array
from compgraph.bind import bind

from ..rules import general, linear, record_getitem, scatter


def _weighted_sum_along(g: NDArray[Any], weights: NDArray[Any], axis: int) -> Any:
    """Return the weighted sum of the cotangent along an axis."""
    return np.sum(g * np.reshape(weights, (-1, *[1] * (g.ndim - 1 - axis % g.ndim))), axis=axis)


def _grid_fractions(num: int, endpoint: bool) -> tuple[Any, int]:
    """Return the position of each grid point from 0 to 1, and the number of steps."""
    steps = int(num) - 1 if endpoint else int(num)
    return np.arange(num) / max(steps, 1), steps


def _linspace(sign: int, g: NDArray[Any], out: NDArray[Any], num: Any, endpoint: Any, retstep: object, axis: int) -> Any:
    """Return the cotangent of start (-1) or stop (1) from those of the grid and of the step."""
    shares, steps = _grid_fractions(num, endpoint)
    points, step = g if retstep else (g, None)
    grid = out[0] if retstep else out
    total = np.zeros(())
    if points is not None and grid.dtype.kind in "fc":
        total = total + _weighted_sum_along(points, shares if sign > 0 else 1 - shares, axis)
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


def _geomspace(position: int) -> tuple[Any, Any]:
    """Return formula and tangent for start (0) or stop (1): each point is ``start**(1 - share) * stop**share``."""

    def formula(
        g: NDArray[Any],
        out: Array,
        *knots: Any,
        num: int = 50,
        endpoint: bool = True,
        dtype: DTypeLike | None = None,
        axis: int = 0,
    ) -> Any:
        shares, _ = _grid_fractions(num, endpoint)
        return _weighted_sum_along(g * out, shares if position else 1 - shares, axis) / knots[position]

    def tangent(
        t: Array, out: Array, *knots: Any, num: int = 50, endpoint: bool = True, dtype: DTypeLike | None = None, axis: int = 0
    ) -> Any:
        shares, _ = _grid_fractions(num, endpoint)
        axis_position = axis % out.ndim
        relative_tangent = np.broadcast_to(t / knots[position], out.shape[:axis_position] + out.shape[axis_position + 1 :])
        weights = np.reshape(shares if position else 1 - shares, (-1, *[1] * (out.ndim - 1 - axis_position)))
        return np.expand_dims(relative_tangent, axis) * weights * out

    return formula, tangent


_start, _stop = _geomspace(0), _geomspace(1)
geomspace_grad = general("geomspace", _start[0], _stop[0]).tangent(_start[1], _stop[1])


# --------------------------------------------------------------------------------------- interpolation


class _PiecewiseLine:
    """The piecewise linear function of ``interp``, and the position of the points on it.

    Attributes
    ----------
    order : array
        The position in `xp` of each knot; periodic data has one more knot at either end.
    knots : tuple of array
        The positions in `xp` of the knots to the left and right of each point.
    share : array or Node
        The position of the point between left and right knot, from 0 to 1.
    slope : array or Node
        The slope at the point; at a knot, the mean of both sides.
    below, above : array
        Whether the point has the value of `left` or `right`.
    """

    def __init__(self, x: NDArray[Any], xp: Any, fp: object, left: Any = None, right: Any = None, period: Any = None) -> None:
        xp, fp = (a if hasattr(a, "dtype") else np.asarray(a) for a in (xp, fp))
        self.order = np.arange(xp.shape[0])
        knots = xp
        if period is not None:
            order = np.argsort(xp % abs(period))
            self.order = np.concatenate([order[-1:], order, order[:1]])
            offsets = np.concatenate([[-1], np.zeros(len(order)), [1]]) * abs(period)
            x, knots = np.remainder(x, abs(period)), record_getitem(np.remainder(xp, abs(period)), self.order) + offsets
        last = knots.shape[0] - 1
        left_index, right_index = (np.searchsorted(knots, x, side=side) for side in ("left", "right"))
        low = np.clip(right_index - 1, 0, max(last - 1, 0))
        high = np.minimum(low + 1, last)
        self.knots = record_getitem(self.order, low), record_getitem(self.order, high)
        length = record_getitem(knots, high) - record_getitem(knots, low)
        self.share = np.clip((x - record_getitem(knots, low)) / np.where(length == 0, 1, length), 0, 1)
        lengths = np.diff(knots)
        slopes = np.diff(record_getitem(fp, self.order)) / np.where(lengths == 0, 1, lengths)
        slopes = np.concatenate([np.zeros(1), slopes, np.zeros(1)])
        slope = (record_getitem(slopes, left_index) + record_getitem(slopes, right_index)) / 2
        self.slope = np.where(np.isnan(x), np.nan, slope)
        self.below = (x < knots[0]) & (left is not None and period is None)
        self.above = (x > knots[-1]) & (right is not None and period is None)

    def scatter_to_knots(self, g: NDArray[Any], like: Any) -> Any:
        """Add the cotangents of the points, weighted, at their knots to zeros like `like`."""
        g = np.real(g) if np.iscomplexobj(g) and not np.iscomplexobj(like) else g
        updates = (g * (1 - self.share), self.knots[0], g * self.share, self.knots[1])
        return bind(scatter, (like, *updates), {"index_counts": (1, 1)})

    def interpolate(self, t: NDArray[Any]) -> Any:
        """Interpolate values at the knots."""
        return record_getitem(t, self.knots[0]) * (1 - self.share) + record_getitem(t, self.knots[1]) * self.share

    def mask_outside(self, g: NDArray[Any]) -> Any:
        """Return zero where a point has the value of `left` or `right`."""
        return np.where(self.below | self.above, 0, g)


def _interp_x(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], *others: object, **options: object) -> Any:
    return g * _PiecewiseLine(x, *others, **options).slope


def _interp_xp(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], xp: Any, *others: object, **options: object) -> Any:
    line = _PiecewiseLine(x, xp, *others, **options)
    return line.scatter_to_knots(-g * line.slope, xp)


def _interp_xp_tangent(t: NDArray[Any], out: NDArray[Any], x: NDArray[Any], xp: Any, *others: object, **options: object) -> Any:
    line = _PiecewiseLine(x, xp, *others, **options)
    return -line.slope * line.interpolate(t)


def _interp_fp(
    g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], xp: Array, fp: Any, *others: object, **options: object
) -> Any:
    line = _PiecewiseLine(x, xp, fp, *others, **options)
    return line.scatter_to_knots(line.mask_outside(g), fp)


def _interp_fp_tangent(t: NDArray[Any], out: NDArray[Any], *operands: Any, **options: Any) -> Any:
    line = _PiecewiseLine(*operands, **options)
    return line.mask_outside(line.interpolate(t))


def _interp_left(g: NDArray[Any], out: NDArray[Any], *operands: Any, **options: Any) -> Any:
    return np.where(_PiecewiseLine(*operands, **options).below, g, 0)


def _interp_right(g: NDArray[Any], out: NDArray[Any], *operands: Any, **options: Any) -> Any:
    return np.where(_PiecewiseLine(*operands, **options).above, g, 0)


interp_grad = general("interp", _interp_x, _interp_xp, _interp_fp, _interp_left, _interp_right).tangent(
    _interp_x, _interp_xp_tangent, _interp_fp_tangent, _interp_left, _interp_right
)
