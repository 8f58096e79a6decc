"""Rules of medians, quantiles and peak-to-peak ranges."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.array_types import Array, Axis
from compgraph.bind import bind
from compgraph.graph import to_values
from compgraph.values import Value

from ..rules import general, reduction
from . import reductions
from .corners import mark_corner, mark_unknown


def _ptp(out: object, x: Any, axis: Axis = None, **_: object) -> Any:
    largest, smallest = np.max(x, axis=axis, keepdims=True), np.min(x, axis=axis, keepdims=True)
    return reductions._max(largest, x, axis) - reductions._min(smallest, x, axis)


def _is_extreme(x: Any, axis: Axis = None, **_: object) -> Any:
    """Return where the least and the greatest elements are."""
    return (x == np.max(x, axis=axis, keepdims=True)) | (x == np.min(x, axis=axis, keepdims=True))


ptp_grad = reduction("ptp", _ptp).selects_elements(_is_extreme)

# ------------------------------------------------------------------------------------ order statistics
# A quantile interpolates between two neighbors in the sorted row. NumPy computes its position, as the quantile of the positions
# 0, 1, 2, ... Elements equal to a neighbor share its weight.


def _to_rows(x: Any, axis: Axis) -> tuple[Any, list[int], tuple[int, ...]]:
    """Merge the axes of a reduction into a last one; return also the order of axes and the shape before merging."""
    axes = [i % x.ndim for i in (range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,))]
    order = [i for i in range(x.ndim) if i not in axes] + axes
    transposed = np.transpose(x, order)
    shape = transposed.shape
    return np.reshape(transposed, (*shape[: x.ndim - len(axes)], math.prod(shape[x.ndim - len(axes) :]))), order, shape


def _quantile_positions(function: Callable[..., Any], counts: Array, options: dict[str, Any]) -> Any:
    """Return the position of each quantile in sorted rows of `counts` numbers; the axis of quantiles is first."""
    sizes, which = np.unique(np.maximum(counts, 1), return_inverse=True)
    positions_by_size = [np.ravel(function(np.arange(float(size)), **options)) for size in sizes]
    return np.reshape(positions_by_size, (len(sizes), np.size(options.get("q", 0)))).T[:, which.reshape(counts.shape)]


def _row_weights(
    out: Array, x: NDArray[Any], *, function: Callable[..., Any], skips: bool, axis: Axis, options: dict[str, Any]
) -> Any:
    """Return for each quantile the partial derivatives with respect to the elements of each row."""
    options = {k: v for k, v in options.items() if k not in ("keepdims", "overwrite_input")}
    has_weights = options.pop("weights", None) is not None
    rows = _to_rows(x, axis)[0]
    results = np.reshape(out, (np.size(options.get("q", 0)), *rows.shape[:-1]))
    if has_weights:
        return np.stack([_tie_shares(rows, result) for result in results])
    counts = np.sum(~np.isnan(rows), axis=-1) if skips else np.full(rows.shape[:-1], rows.shape[-1])
    rank = np.sort(rows, axis=-1)
    weights = []
    for result, position in zip(results, _quantile_positions(function, counts, options), strict=True):
        low = np.floor(position).astype(int)
        fraction, upper = position - low, np.minimum(low + 1, np.maximum(counts - 1, 0))
        ends = [np.take_along_axis(rank, end[..., None], axis=-1)[..., 0] for end in (low, upper)]
        low_share, upper_share = (_tie_shares(rows, np.where(np.isnan(result), np.nan, end)) for end in ends)
        weights.append(low_share * (1 - fraction)[..., None] + upper_share * fraction[..., None])
    return np.stack(weights) if weights else np.zeros((0, *rows.shape))


ops.register_piecewise(_row_weights, "row_weights", kind="sequential")


def _tie_shares(rows: NDArray[Any], values: NDArray[Any]) -> Any:
    """Return even shares for all elements of a row that equal its value; nan without such an element."""
    equal = rows == values[..., None]
    return equal / np.sum(equal, axis=-1, keepdims=True)


def _find_ties(rows: object, value: object, weight: object) -> Any:
    """Return a function that finds the elements which are tied with others at the quantile."""

    def find() -> Any:
        elements, quantile, shares = (np.asarray(to_values(x)) for x in (rows, value, weight))
        is_equal = (shares != 0) & (elements == quantile)
        return is_equal & (np.sum(is_equal, axis=-1, keepdims=True) > 1)

    return find


def _order_statistic(opname: str, function: Callable[..., Any], skips: bool = False) -> Any:
    """Declare the rule of a median or of quantiles; `function` computes it for numbers without nan."""

    def formula(g: Any, out: Any, x: object, axis: Axis = None, **options: object) -> Any:
        weights = bind(_row_weights, (out, x), {"function": function, "skips": skips, "axis": axis, "options": options})
        rows, order, shape = _to_rows(x, axis)
        g = np.reshape(g, (len(weights), *rows.shape[:-1], 1))
        values = np.reshape(out, (len(weights), *rows.shape[:-1], 1))
        total = sum((g[k] * weight for k, weight in enumerate(weights)), start=np.zeros(rows.shape, out.dtype))
        for k, weight in enumerate(weights):
            total = mark_unknown(
                total, g[k], _find_ties(rows, values[k], weight), functools.partial(np.subtract, rows, values[k]), opname
            )
        return np.transpose(np.reshape(total, shape), np.argsort(order).tolist())

    def tangent(t: object, out: Any, x: object, axis: Axis = None, **options: object) -> Any:
        weights = bind(_row_weights, (out, x), {"function": function, "skips": skips, "axis": axis, "options": options})
        rows = _to_rows(t, axis)[0]
        tangents = [np.sum(np.where(weight != 0, rows * weight, 0), axis=-1) for weight in weights]
        if isinstance(x, Value):
            elements = _to_rows(x, axis)[0]
            values = np.reshape(out, (len(weights), *elements.shape[:-1], 1))
            for k, weight in enumerate(weights):
                deviation = np.where(_find_ties(elements, values[k], weight)(), elements - values[k], 1)
                tangents[k] = tangents[k] + np.sum(mark_corner(rows, deviation, opname), axis=-1)
        return np.reshape(np.stack(tangents), out.shape)

    return general(opname, formula).tangent(tangent).selects_elements()


median_grad = _order_statistic("median", np.median)
quantile_grad = _order_statistic("quantile", np.quantile)
percentile_grad = _order_statistic("percentile", np.percentile)
nanmedian_grad = _order_statistic("nanmedian", np.median, skips=True)
nanquantile_grad = _order_statistic("nanquantile", np.quantile, skips=True)
nanpercentile_grad = _order_statistic("nanpercentile", np.percentile, skips=True)
