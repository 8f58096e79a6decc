"""Rules of operations that select, repeat, sort or pad elements; of medians, quantiles and peak-to-peak ranges."""

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
from compgraph.guards import guarded_value
from compgraph.ops import ensure_array

from ..rules import gather, general, linear, moved_positions, reduction, scatter
from . import reductions
from .corners import choice_tangent, mark_unknown


def flat_positions(x: NDArray[Any]) -> Any:
    """Return the positions of all elements in the flattened array, in the shape of `x`."""
    return np.arange(math.prod(x.shape)).reshape(x.shape)


def gather_or_zero(t: NDArray[Any], positions: Any) -> Any:
    """Return the elements at flat positions, 0 where a position is negative."""
    if not math.prod(np.shape(t)):
        return np.zeros(positions.shape, t.dtype)
    return np.where(positions >= 0, np.ravel(t)[np.maximum(positions, 0)], 0)


def scatter_back(g: NDArray[Any], x: NDArray[Any], positions: Any) -> Any:
    """Add `g` at flat positions to zeros like `x`: the transpose of `gather_or_zero`."""
    is_element = positions >= 0
    g = np.real(g) if g.dtype.kind == "c" and np.result_type(x).kind != "c" else g
    return np.reshape(bind(scatter, (np.ravel(x), g[is_element], positions[is_element]), {"index_counts": (1,)}), np.shape(x))


# ------------------------------------------------------------------------------------------- positions

take_grad = gather("take", moved_positions(np.take))
take_along_axis_grad = gather("take_along_axis", moved_positions(np.take_along_axis))
repeat_grad = gather("repeat", moved_positions(np.repeat))
delete_grad = gather("delete", moved_positions(np.delete))

# --------------------------------------------------------------------------------------------- sorting


def _sort_positions(x: NDArray[Any], axis: int, ranks: NDArray[Any] | None = None, descending: bool = False) -> Any:
    """Return the position in `x` of each element of sorted rows, or of the elements of given ranks; the sort is stable."""
    options: Any = {"descending": True} if descending else {}  # an option of newer NumPy
    order = np.argsort(x, axis=axis, stable=True, **options)
    order = order if ranks is None else np.take_along_axis(order, ranks, axis)
    return np.take_along_axis(flat_positions(x), order, axis)


def _sort(out: object, x: NDArray[Any], *, axis: int | None = -1, descending: bool = False, **_: object) -> Any:
    x, axis = (np.ravel(x), 0) if axis is None else (x, axis)
    return _sort_positions(x, axis, descending=descending)


def _partition(out: NDArray[Any], x: NDArray[Any], *, axis: int | None = -1, **_: object) -> Any:
    x, axis = (np.ravel(x), 0) if axis is None else (x, axis)
    ranks = np.argsort(np.argsort(out, axis=axis, kind="stable"), axis=axis, kind="stable")
    return _sort_positions(x, axis, ranks)


sort_grad = gather("sort", _sort)
partition_grad = gather("partition", _partition)

# ------------------------------------------------------------------------------------------- diagonals

diagonal_grad = gather("diagonal", moved_positions(np.diagonal))
diag_grad = gather("diag", lambda out, x, k=0: np.diag(flat_positions(x) + 1, k) - 1)
diagflat_grad = gather("diagflat", lambda out, x, k=0: np.diagflat(flat_positions(x) + 1, k) - 1)


def _trace(
    g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], *, offset: int = 0, axis1: int = 0, axis2: int = 1, **_: object
) -> Any:
    """Repeat the cotangent along the diagonal."""
    positions = np.diagonal(flat_positions(x), offset, axis1, axis2)
    return scatter_back(np.broadcast_to(np.expand_dims(g, -1), positions.shape), x, positions)


trace_grad = linear("trace", _trace).moves_elements()

# ------------------------------------------------------------------------------------------- inserting


def _insert_positions(x: NDArray[Any], obj: Any, values: Any, axis: Any) -> Any:
    """Return the source of each element of the result: position k of `x` is k, position k of `values` is -1 - k."""
    return np.insert(flat_positions(x), obj, -1 - flat_positions(ensure_array(values)), axis)


insert_grad = (
    general(
        "insert",
        lambda g, out, x, obj, values, axis=None: scatter_back(g, x, _insert_positions(x, obj, values, axis)),
        None,
        lambda g, out, x, obj, values, axis=None: scatter_back(g, values, -1 - _insert_positions(x, obj, values, axis)),
    )
    .tangent(
        lambda t, out, x, obj, values, axis=None: gather_or_zero(t, _insert_positions(x, obj, values, axis)),
        None,
        lambda t, out, x, obj, values, axis=None: gather_or_zero(t, -1 - _insert_positions(x, obj, values, axis)),
    )
    .moves_elements()
)

# --------------------------------------------------------------------------------------------- filling


full_like_grad = (
    general("full_like", None, lambda g, out, a, value, **_: g)
    .tangent(None, lambda t, out, a, value, **_: np.broadcast_to(t, out.shape))
    .moves_elements()
)


roll_grad = linear("roll", lambda g, out, x, *, shift, axis=None: np.roll(g, np.negative(shift), axis)).moves_elements()
tile_grad = gather("tile", moved_positions(np.tile))
sliding_window_view_grad = gather(
    "sliding_window_view",
    lambda out, x, *, window_shape, axis=None, **_: np.lib.stride_tricks.sliding_window_view(
        flat_positions(x), window_shape, axis
    ),
)


# --------------------------------------------------------------------------------------------- padding


def _pad_positions(x: NDArray[Any], pad_width: Any, mode: object, reflect_type: str = "even", **_: object) -> Any:
    """Return the position in `x` of each element of a padded array; None if the mode computes elements from several."""
    if mode in ("edge", "wrap") or (mode in ("reflect", "symmetric") and reflect_type == "even"):
        return np.pad(flat_positions(x), pad_width, mode)
    return None


_WIDTHS = "the widths of np.pad"


def _pairs_per_axis(value: tuple[Any, ...] | int | None, ndim: int) -> Any:
    """Return the values for the two ends of each axis."""
    if isinstance(value, dict):
        pairs = {axis % ndim: np.broadcast_to(guarded_value(pair, _WIDTHS), 2).tolist() for axis, pair in value.items()}
        return [pairs.get(axis, [0, 0]) for axis in range(ndim)]
    return np.broadcast_to(guarded_value(value, _WIDTHS), (ndim, 2)).tolist()


def _inner_slices(x: NDArray[Any], pad_width: tuple[Any, ...] | int) -> tuple[slice, ...]:
    """Return the slices of `x` in the padded array."""
    return tuple([slice(left, left + n) for (left, _), n in zip(_pairs_per_axis(pad_width, x.ndim), x.shape, strict=True)])


def _statistic_weights(x: NDArray[Any], mode: str) -> Any:
    """Return the partial derivatives of a statistic along the last axis."""
    if mode == "mean":
        return np.full((1, x.shape[-1]), 1 / x.shape[-1])
    if mode == "median":
        ranks = np.argsort(np.argsort(x, kind="stable"), kind="stable")
        middle = x.shape[-1] - 1
        return ((ranks == middle // 2) * 0.5 + (ranks == (middle + 1) // 2) * 0.5)[..., None, :]
    extremum = (np.max if mode == "maximum" else np.min)(x, axis=-1, keepdims=True)
    ties = np.where(x == extremum, 1.0, 0.0)
    return (ties / np.sum(ties, axis=-1, keepdims=True))[..., None, :]


def _end_weights(x: NDArray[Any], widths: list[int], mode: Any, lengths: list[Any], reflect_type: str) -> list[tuple[Any, slice]]:
    """Return for both ends of the last axis the weights of each new element and the slice of `x` they apply to."""
    count = x.shape[-1]
    # A padding wider than the axis is reflected at both ends in turn, so each of its elements may depend on any element.
    if mode in ("reflect", "symmetric"):
        num_sources = [count, count] if max(widths) >= count else [min(count, width + 1) for width in widths]
        width_pairs = [widths, widths] if max(widths) >= count else [[widths[0], 0], [0, widths[1]]]
        left, right = (
            np.pad(np.eye(num), (pair, (0, 0)), mode, reflect_type=reflect_type)
            for num, pair in zip(num_sources, width_pairs, strict=True)
        )
        right = right[len(right) - widths[1] :]
        return [(left[: widths[0]], slice(0, num_sources[0])), (right, slice(count - num_sources[1], count))]
    if mode == "linear_ramp":
        left, right = (np.arange(width)[:, None] / max(width, 1) for width in widths)
        return [(left, slice(0, 1)), (right[::-1], slice(count - 1, count))]
    num_sources = [count if length is None else min(count, length) for length in lengths]
    sources = [slice(0, num_sources[0]), slice(count - num_sources[1], count)]
    return [(_statistic_weights(x[..., source], mode), source) for source in sources]


def _padded_axes(
    out: NDArray[Any],
    x: NDArray[Any],
    pad_width: tuple[Any, ...] | int,
    mode: str,
    stat_length: tuple[int, ...] | None = None,
    reflect_type: str = "even",
    **_: object,
) -> Any:
    """Yield for each padded axis its number, its widths, and the weights of its ends."""
    widths, lengths = _pairs_per_axis(pad_width, x.ndim), _pairs_per_axis(stat_length, x.ndim)
    inner = _inner_slices(x, pad_width)
    for axis in range(x.ndim):
        if any(widths[axis]):  # axes are padded in order: previous axes include their padding
            unpadded = np.moveaxis(out[(*(slice(None),) * axis, *inner[axis:])], axis, -1)
            yield axis, widths[axis], _end_weights(unpadded, widths[axis], mode, lengths[axis], reflect_type)


def _pad(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], *, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    if mode in ("constant", "empty"):
        return g[_inner_slices(x, pad_width)]
    positions = _pad_positions(x, pad_width, mode, **options)
    if positions is not None:
        return scatter_back(g, x, positions)
    for axis, widths, ends in reversed([*_padded_axes(out, x, pad_width, mode, **options)]):
        g = np.moveaxis(g, axis, -1)
        left, count = widths[0], x.shape[axis]
        total = g[..., left : left + count]
        for end, (weights, source) in zip((g[..., :left], g[..., left + count :]), ends, strict=True):
            part = np.sum(weights * end[..., None], axis=-2)
            total = total + np.pad(part, [*[(0, 0)] * (g.ndim - 1), (source.start, count - source.stop)])
        g = np.moveaxis(total, -1, axis)
    return g


def _pad_tangent(t: NDArray[Any], out: Any, x: Any, *, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    if mode in ("constant", "empty"):
        return np.pad(t, pad_width)
    positions = _pad_positions(x, pad_width, mode, **options)
    if positions is not None:
        return gather_or_zero(t, positions)
    for axis, widths, ends in _padded_axes(out, x, pad_width, mode, **options):
        t = np.moveaxis(t, axis, -1)
        left, right = (
            np.broadcast_to(np.sum(weights * t[..., None, source], axis=-1), (*t.shape[:-1], width))
            for width, (weights, source) in zip(widths, ends, strict=True)
        )
        t = np.moveaxis(np.concatenate([left, t, right], axis=-1), -1, axis)
    return t


def _only_copies(*, mode: str = "constant", **_: object) -> bool:
    """Whether each element of a padded array is a copy of one element, or a constant."""
    return mode in ("constant", "empty", "edge", "wrap")


pad_grad = general("pad", _pad).tangent(_pad_tangent).moves_elements(_only_copies)


def _ptp(out: object, x: Array, axis: Axis = None, **_: object) -> Any:
    largest, smallest = np.max(x, axis=axis, keepdims=True), np.min(x, axis=axis, keepdims=True)
    return reductions._max(largest, x, axis) - reductions._min(smallest, x, axis)


def _is_extreme(x: Array, axis: Axis = None, **_: object) -> Any:
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
    sizes, size_indices = np.unique(np.maximum(counts, 1), return_inverse=True)
    positions_by_size = [np.ravel(function(np.arange(float(size)), **options)) for size in sizes]
    return np.reshape(positions_by_size, (len(sizes), np.size(options.get("q", 0)))).T[:, size_indices.reshape(counts.shape)]


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
    sorted_rows = np.sort(rows, axis=-1)
    weights = []
    for result, position in zip(results, _quantile_positions(function, counts, options), strict=True):
        low = np.floor(position).astype(int)
        fraction, upper = position - low, np.minimum(low + 1, np.maximum(counts - 1, 0))
        neighbors = [np.take_along_axis(sorted_rows, end[..., None], axis=-1)[..., 0] for end in (low, upper)]
        low_share, upper_share = (_tie_shares(rows, np.where(np.isnan(result), np.nan, neighbor)) for neighbor in neighbors)
        weights.append(low_share * (1 - fraction)[..., None] + upper_share * fraction[..., None])
    return np.stack(weights) if weights else np.zeros((0, *rows.shape))


ops.register_piecewise(_row_weights, "row_weights", kind="sequential")


def _tie_shares(rows: NDArray[Any], values: NDArray[Any]) -> Any:
    """Return even shares for all elements of a row that equal its value; nan without such an element."""
    equal = rows == values[..., None]
    return equal / np.sum(equal, axis=-1, keepdims=True)


def _is_tied(rows: Any, value: Any, weight: Any) -> Any:
    """Return where elements are tied with others at the quantile."""
    is_equal = (weight != 0) & (rows == value)
    return is_equal & (np.sum(is_equal, axis=-1, keepdims=True) > 1)


def _deviation_at_ties(rows: Any, value: Any, weight: Any) -> Any:
    """Return the deviation of tied elements from the quantile, and 1 for the others."""
    return np.where(_is_tied(rows, value, weight), rows - value, 1)


def _sum_rows(rows: Any) -> Any:
    return np.sum(rows, axis=-1)


def _order_statistic(opname: str, function: Callable[..., Any], skips: bool = False) -> Any:
    """Declare the rule of a median or of quantiles; `function` computes it for numbers without nan."""

    def formula(g: Array, out: Array, x: object, axis: Axis = None, **options: object) -> Any:
        weights = bind(_row_weights, (out, x), {"function": function, "skips": skips, "axis": axis, "options": options})
        rows, order, shape = _to_rows(x, axis)
        g = np.reshape(g, (len(weights), *rows.shape[:-1], 1))
        values = np.reshape(out, (len(weights), *rows.shape[:-1], 1))
        total = sum((g[k] * weight for k, weight in enumerate(weights)), start=np.zeros(rows.shape, out.dtype))
        for k, weight in enumerate(weights):
            total = mark_unknown(
                total, g[k], rows, _is_tied, (rows, values[k], weight), functools.partial(np.subtract, rows, values[k]), opname
            )
        return np.transpose(np.reshape(total, shape), np.argsort(order).tolist())

    def tangent(t: object, out: Array, x: object, axis: Axis = None, **options: object) -> Any:
        weights = bind(_row_weights, (out, x), {"function": function, "skips": skips, "axis": axis, "options": options})
        rows = _to_rows(t, axis)[0]
        tangents = [np.sum(np.where(weight != 0, rows * weight, 0), axis=-1) for weight in weights]
        elements = _to_rows(x, axis)[0]
        values = np.reshape(out, (len(weights), *elements.shape[:-1], 1))
        for k, weight in enumerate(weights):
            operands = elements, values[k], weight
            deviation = functools.partial(_deviation_at_ties, *operands)
            tangents[k] = choice_tangent(tangents[k], rows, values[k][..., 0], _is_tied, operands, deviation, opname, _sum_rows)
        return np.reshape(np.stack(tangents), out.shape)

    return general(opname, formula).tangent(tangent).selects_elements()


median_grad = _order_statistic("median", np.median)
quantile_grad = _order_statistic("quantile", np.quantile)
percentile_grad = _order_statistic("percentile", np.percentile)
nanmedian_grad = _order_statistic("nanmedian", np.median, skips=True)
nanquantile_grad = _order_statistic("nanquantile", np.quantile, skips=True)
nanpercentile_grad = _order_statistic("nanpercentile", np.percentile, skips=True)
