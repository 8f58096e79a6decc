"""Rules of statistics: spreads, order statistics, reductions that pass over what is not a number."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.bind import bind
from compgraph.graph import to_values
from compgraph.values import Value

from ...rules import Formula, fetched_at, general, reduction, scatter
from .. import reductions
from ..corners import doubted, moving_from
from ..cumulative import without_nan

# ---------------------------------------------------------------------- reductions that pass over nan


def _over_nan(weights: Formula, fill: float = 0) -> Formula:
    """The weights of a reduction in which elements that are not numbers take no part."""

    def present(out: Any, x: Any, where: Any = True, **options: Any) -> Any:
        return weights(out, without_nan(x, fill), where=np.logical_and(where, np.logical_not(np.isnan(x))), **options)

    return present


def _present(x: Any, *_: Any, where: Any = True, **__: Any) -> Any:
    """Which elements take part."""
    return np.logical_and(where, np.logical_not(np.isnan(x)))


nansum_grad = reduction("nansum", _over_nan(reductions._sum), initial=reductions._sum_initial).selecting()
nanprod_grad = reduction("nanprod", _over_nan(reductions._prod, 1), initial=_over_nan(reductions._prod_initial, 1)).selecting(
    _present
)
nanmean_grad = reduction("nanmean", _over_nan(reductions._mean)).selecting()
nanvar_grad = reduction("nanvar", _over_nan(reductions._var), None, _over_nan(reductions._var_mean)).selecting(_present)
nanstd_grad = reduction("nanstd", _over_nan(reductions._std), None, _over_nan(reductions._std_mean)).selecting(_present)
nanmax_grad = reduction("nanmax", _over_nan(reductions._max), initial=_over_nan(reductions._max_initial)).selecting()
nanmin_grad = reduction("nanmin", _over_nan(reductions._min), initial=_over_nan(reductions._min_initial)).selecting()


def _ptp(out: Any, x: Any, axis: Any = None, **_: Any) -> Any:
    ends = (np.max(x, axis=axis, keepdims=True), np.min(x, axis=axis, keepdims=True))
    return reductions._max(ends[0], x, axis) - reductions._min(ends[1], x, axis)


def _at_ends(x: Any, axis: Any = None, **_: Any) -> Any:
    """Where the ends of the range are."""
    return (x == np.max(x, axis=axis, keepdims=True)) | (x == np.min(x, axis=axis, keepdims=True))


ptp_grad = reduction("ptp", _ptp).selecting(_at_ends)

# ------------------------------------------------------------------------------------ order statistics
# Between two neighbours in the sorted row, each weighted by its distance to the other. NumPy itself says where:
# the quantile of the places 0, 1, 2, ... is a place. Elements equal to a neighbour share its weight.


def _rows(x: Any, axis: Any) -> tuple[Any, list[int], tuple[int, ...]]:
    """The axes of a reduction made one, the last; the order of axes and the shape that lead there."""
    axes = [i % x.ndim for i in (range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,))]
    order = [i for i in range(x.ndim) if i not in axes] + axes
    turned = np.transpose(x, order)
    shape = turned.shape
    return np.reshape(turned, (*shape[: x.ndim - len(axes)], math.prod(shape[x.ndim - len(axes) :]))), order, shape


def _places(function: Any, counts: Any, options: dict[str, Any]) -> Any:
    """For rows of so many numbers, the place of each quantile in the sorted row; quantiles come first."""
    sizes, which = np.unique(np.maximum(counts, 1), return_inverse=True)
    found = [np.ravel(function(np.arange(float(size)), **options)) for size in sizes]
    return np.reshape(found, (len(sizes), np.size(options.get("q", 0)))).T[:, which.reshape(counts.shape)]


def _row_weights(out: Any, x: Any, *, function: Any, skips: bool, axis: Any, options: dict[str, Any]) -> Any:
    """For each quantile, the partial derivatives with respect to the elements of each row."""
    options = {k: v for k, v in options.items() if k not in ("keepdims", "overwrite_input")}
    weighted = options.pop("weights", None) is not None
    rows = _rows(x, axis)[0]
    results = np.reshape(out, (np.size(options.get("q", 0)), *rows.shape[:-1]))
    if weighted:
        return np.stack([_shares(rows, result) for result in results])
    counts = np.sum(~np.isnan(rows), axis=-1) if skips else np.full(rows.shape[:-1], rows.shape[-1])
    rank = np.sort(rows, axis=-1)
    weights = []
    for result, place in zip(results, _places(function, counts, options), strict=True):
        low = np.floor(place).astype(int)
        above, upper = place - low, np.minimum(low + 1, np.maximum(counts - 1, 0))
        ends = [np.take_along_axis(rank, end[..., None], axis=-1)[..., 0] for end in (low, upper)]
        of_low, of_upper = (_shares(rows, np.where(np.isnan(result), np.nan, end)) for end in ends)
        weights.append(of_low * (1 - above)[..., None] + of_upper * above[..., None])
    return np.stack(weights) if weights else np.zeros((0, *rows.shape))


ops.enter_piecewise(_row_weights, "row_weights")


def _shares(rows: Any, values: Any) -> Any:
    """Even shares for all elements of a row that equal its value; not a number where none does."""
    equal = rows == values[..., None]
    return equal / np.sum(equal, axis=-1, keepdims=True)


def _tied(rows: Any, value: Any, weight: Any) -> Any:
    """Which elements are in the middle together with others: that changes when they part; a function that finds them."""

    def find() -> Any:
        plain, middle, shares = (np.asarray(to_values(x)) for x in (rows, value, weight))
        tied = (shares != 0) & (plain == middle)
        return tied & (np.sum(tied, axis=-1, keepdims=True) > 1)

    return find


def _order_statistic(opname: str, function: Any, skips: bool = False) -> Any:
    """The rule of a median or of quantiles; `function` finds it where all are numbers."""

    def formula(g: Any, out: Any, x: Any, axis: Any = None, **options: Any) -> Any:
        weights = bind(_row_weights, (out, x), {"function": function, "skips": skips, "axis": axis, "options": options})
        rows, order, shape = _rows(x, axis)
        g = np.reshape(g, (len(weights), *rows.shape[:-1], 1))
        values = np.reshape(out, (len(weights), *rows.shape[:-1], 1))
        total = sum((g[k] * weight for k, weight in enumerate(weights)), start=np.zeros(rows.shape, out.dtype))
        for k, weight in enumerate(weights):
            total = doubted(total, g[k], _tied(rows, values[k], weight), functools.partial(np.subtract, rows, values[k]), opname)
        return np.transpose(np.reshape(total, shape), np.argsort(order).tolist())

    def tangent(t: Any, out: Any, x: Any, axis: Any = None, **options: Any) -> Any:
        weights = bind(_row_weights, (out, x), {"function": function, "skips": skips, "axis": axis, "options": options})
        rows = _rows(t, axis)[0]
        chosen = [np.sum(np.where(weight != 0, rows * weight, 0), axis=-1) for weight in weights]
        if isinstance(x, Value):
            elements = _rows(x, axis)[0]
            values = np.reshape(out, (len(weights), *elements.shape[:-1], 1))
            for k, weight in enumerate(weights):
                tied = _tied(elements, values[k], weight)
                moved = functools.partial(np.where, tied(), elements - values[k], 1)
                chosen[k] = chosen[k] + np.sum(moving_from(rows, moved(), opname), axis=-1)
        return np.reshape(np.stack(chosen), out.shape)

    return general(opname, formula).tangent(tangent).selecting()


median_grad = _order_statistic("median", np.median)
quantile_grad = _order_statistic("quantile", np.quantile)
percentile_grad = _order_statistic("percentile", np.percentile)
nanmedian_grad = _order_statistic("nanmedian", np.median, skips=True)
nanquantile_grad = _order_statistic("nanquantile", np.quantile, skips=True)
nanpercentile_grad = _order_statistic("nanpercentile", np.percentile, skips=True)

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
            x, knots = np.remainder(x, abs(period)), fetched_at(np.remainder(xp, abs(period)), self.from_knots) + laps
        last = knots.shape[0] - 1
        left_of, right_of = (np.searchsorted(knots, x, side=side) for side in ("left", "right"))
        low = np.clip(right_of - 1, 0, max(last - 1, 0))
        high = np.minimum(low + 1, last)
        self.ends = fetched_at(self.from_knots, low), fetched_at(self.from_knots, high)
        length = fetched_at(knots, high) - fetched_at(knots, low)
        self.share = np.clip((x - fetched_at(knots, low)) / np.where(length == 0, 1, length), 0, 1)
        lengths = np.diff(knots)
        slopes = np.diff(fetched_at(fp, self.from_knots)) / np.where(lengths == 0, 1, lengths)
        slopes = np.concatenate([np.zeros(1), slopes, np.zeros(1)])
        slope = (fetched_at(slopes, left_of) + fetched_at(slopes, right_of)) / 2
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
        return fetched_at(t, self.ends[0]) * (1 - self.share) + fetched_at(t, self.ends[1]) * self.share

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
