"""Lowering of indexing by integer arrays: gathers, and ordered scatters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .... import ops
from ....values import Value
from ..buffer_ir import BufferView, Gather, Reduce, Scan, Scatter, c_strides, dense_view
from .lowering_state import UNSUPPORTED, LoweringState, basic_index_view, casts_like_numpy

UNSUPPORTED_INDEX = "the array index is not supported"


class FancyIndex(NamedTuple):
    """A part of an array at an index with integer arrays.

    Attributes
    ----------
    view : BufferView
        The part as if the arrays contained zeros.
    indices : tuple of BufferView
        The arrays, each with the shape of the part.
    lengths, strides : tuple of int
        See `Gather`.
    """

    view: BufferView
    indices: tuple[BufferView, ...]
    lengths: tuple[int, ...]
    strides: tuple[int, ...]


def fancy_index(state: LoweringState, view: BufferView, index: Sequence[Any]) -> FancyIndex | None:
    """Return the part of an array at an index with integer arrays; None if it is unsupported or empty."""
    parts = _expand_index(state, view, index)
    if parts is None or sum(p is not None and p is not Ellipsis for p in parts) > len(view.shape):
        return None
    index_positions = [k for k, p in enumerate(parts) if isinstance(p, (BufferView, np.ndarray, int))]
    arrays = [p for p in parts if isinstance(p, (BufferView, np.ndarray))]
    index_shape = np.broadcast_shapes(*(p.shape for p in arrays))
    are_adjacent = index_positions[-1] - index_positions[0] + 1 == len(index_positions)  # otherwise NumPy puts their axes first
    axis_split = _split_axes(view, parts, index_positions[0] if are_adjacent else -1)
    if axis_split is None:
        return None
    offset, free, indexed_axes, leading_count = axis_split
    shape = (*(n for n, _ in free[:leading_count]), *index_shape, *(n for n, _ in free[leading_count:]))
    strides = (*(s for _, s in free[:leading_count]), *(0,) * len(index_shape), *(s for _, s in free[leading_count:]))
    if 0 in shape or any(n == 0 for n, _ in indexed_axes):
        return None
    lengths = [n for n, _ in indexed_axes]
    index_views = []
    for k, p in enumerate(arrays):
        if isinstance(p, np.ndarray):
            if not ((p >= -lengths[k]) & (p < lengths[k])).all():
                return None
            p, lengths[k] = state.constant(np.array(p % lengths[k], order="C")), 0
        index_view = p.broadcast(index_shape)
        index_strides = (0,) * leading_count + index_view.strides + (0,) * (len(free) - leading_count)
        index_views.append(BufferView(index_view.buffer, index_view.offset, shape, index_strides))
    source = BufferView(view.buffer, offset, shape, strides)
    return FancyIndex(source, tuple(index_views), tuple(lengths), tuple(s for _, s in indexed_axes))


def _expand_index(state: LoweringState, view: BufferView, index: Sequence[Any]) -> list[Any] | None:
    """Return the parts of an index: slices, integers, None, arrays or views, and one Ellipsis followed by its slices."""
    index = index[0] if len(index) == 1 and isinstance(index[0], tuple) else tuple(index)
    parts: list[Any] = []
    for part in index:
        index_parts = _index_parts(state, part)
        if index_parts is None:
            return None
        parts += index_parts
    if not any(isinstance(p, (BufferView, np.ndarray)) for p in parts):
        return None
    count = sum(p is not None and p is not Ellipsis for p in parts)
    ellipsis_position = next((k for k, p in enumerate(parts) if p is Ellipsis), len(parts))
    return [*parts[:ellipsis_position], Ellipsis, *[slice(None)] * (len(view.shape) - count), *parts[ellipsis_position + 1 :]]


def _index_parts(state: LoweringState, part: object) -> list[Any] | None:
    """Return one part of an index, or the arrays of a mask; None if unsupported."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return [part]
    if isinstance(part, (int, np.integer)) and not isinstance(part, bool):
        return [int(part)]
    if isinstance(part, list):
        part = np.asarray(part)
    if isinstance(part, np.ndarray) and not isinstance(part, Value):
        if part.dtype == bool and part.ndim:
            return list(np.nonzero(part))
        return [np.asarray(part, np.intp)] if part.dtype.kind in "iu" and part.dtype != np.uint64 else None
    view = state.view(part) if isinstance(part, Value) else None
    if view is not None and view.buffer.dtype.kind == "b":
        return _mask_positions(state, part, view)
    if view is None or view.buffer.dtype.kind not in "iu" or view.buffer.dtype == np.uint64:
        return None
    return [view]


def _mask_positions(state: LoweringState, mask: Any, view: BufferView) -> list[BufferView] | None:
    """Return the positions of the true elements of a mask along each axis; None if the mask has no elements.

    Their number is the recorded one, which a check requires. Element ``i`` of the mask stores its position at the number of
    true elements before it, or after all others if it is false.
    """
    shape, count = view.shape, int(np.count_nonzero(mask.raw_value))
    if mask in state.mask_positions:
        return state.mask_positions[mask]
    if not shape or 0 in shape:
        return None
    flat = state.ravel(view)
    total = dense_view(np.int64, flat.shape)
    state.steps.append(Scan("add", (state.copy_of(flat, np.dtype(np.int64)),), 0, total))
    last, holds = BufferView(total.buffer, flat.shape[0] - 1, (), ()), dense_view(bool, ())
    state.append_map("equal", (last, count), holds, np.dtype(np.int64))
    state.append_map("require", (holds,), dense_view(bool, ()))
    slot = state.map_like("where", flat, state.map_like("subtract", total, 1, like=total), count, like=total)
    positions = []
    for coordinates in np.indices(shape):
        out = dense_view(np.int64, (count + 1,))
        state.append_map("copy", (0,), out, is_write=True)
        target = FancyIndex(BufferView(out.buffer, 0, flat.shape, (0,)), (slot,), (count + 1,), (1,))
        _append_scatter(state, "copy", target, state.constant(np.ravel(coordinates)))
        positions.append(BufferView(out.buffer, 0, (count,), (1,)))
    if not state.is_mutable(view):
        state.mask_positions[mask] = positions
    return positions


class _AxisSplit(NamedTuple):
    """The axes of an array at an index.

    Attributes
    ----------
    offset : int
        The position of the first element, as if all array indices were 0.
    free_axes, indexed_axes : list of (int, int)
        The lengths and strides of the axes without and with array indices.
    leading_count : int
        The number of free axes before the axes of the array indices.
    """

    offset: int
    free_axes: list[tuple[int, int]]
    indexed_axes: list[tuple[int, int]]
    leading_count: int


def _split_axes(view: BufferView, parts: list[Any], first: int) -> _AxisSplit | None:
    """Split the axes of an array at an index, whose part number `first` is the first array; None if it is out of range."""
    offset, axis, leading_count = view.offset, 0, 0
    free_axes: list[tuple[int, int]] = []
    indexed_axes: list[tuple[int, int]] = []
    for k, part in enumerate(parts):
        if k == first:
            leading_count = len(free_axes)
        if part is Ellipsis:
            continue
        if part is None:
            free_axes.append((1, 0))
            continue
        length, stride = view.shape[axis], view.strides[axis]
        axis += 1
        if isinstance(part, (BufferView, np.ndarray)):
            indexed_axes.append((length, stride))
        elif isinstance(part, slice):
            positions = range(*part.indices(length))
            free_axes.append((len(positions), stride * positions.step))
            offset += positions.start * stride if positions else 0
        elif -length <= part < length:
            offset += part % length * stride
        else:
            return None
    return _AxisSplit(offset, free_axes, indexed_axes, leading_count)


# --------------------------------------------------------------------------------------------- gathers


def lower_gather(state: LoweringState, item: Value, view: BufferView, index: Sequence[Any]) -> str:
    """Lower ``view[index]`` as a gather, or as an allocation if the index selects no elements."""
    if 0 in np.shape(item.raw_value) and _is_always_empty(state, item.args[1:]):
        state.allocate_result(item)
        return ""
    gather_index = fancy_index(state, view, index)
    if gather_index is None or gather_index.view.shape != np.shape(item.raw_value):
        return "the index is not supported"
    if state.is_mutable(view) and state.is_shared(item):
        return "the result is a view whose position depends on values"
    return _append_gather(state, item, gather_index)


def _is_always_empty(state: LoweringState, index: Sequence[Any]) -> bool:
    """Return whether an empty selection is empty in every run: the index is constant, or a mask whose count is checked."""
    parts = [part for part in index if isinstance(part, Value)]
    return all(part.dtype == np.bool_ and _index_parts(state, part) is not None for part in parts)


def _append_gather(state: LoweringState, item: Value, gather_index: FancyIndex) -> str:
    result = state.views[item] = dense_view(gather_index.view.buffer.dtype, np.shape(item.raw_value), item)
    out = BufferView(result.buffer, 0, gather_index.view.shape, c_strides(gather_index.view.shape))
    state.steps.append(Gather((gather_index.view, *gather_index.indices), out, gather_index.lengths, gather_index.strides))
    return ""


def lower_getitem(state: LoweringState, item: Value) -> str:
    """Lower ``x[index]``."""
    source = state.view(item.args[0])
    return UNSUPPORTED if source is None else lower_gather(state, item, source, item.args[1:])


def _take(state: LoweringState, item: Value) -> str:
    source, options = state.view(item.args[0]), dict(item.options)
    if len(item.args) != 2 or source is None or options.pop("mode", "raise") != "raise" or not {"axis"}.issuperset(options):
        return UNSUPPORTED
    axis, index = options.get("axis"), item.args[1]
    if axis is None:
        source, axis = state.ravel(source), 0
    if not isinstance(index, (Value, np.ndarray)):
        index = np.asarray(index)
    return lower_gather(state, item, source, (*(slice(None),) * (int(axis) % max(len(source.shape), 1)), index))


def _take_along_axis(state: LoweringState, item: Value) -> str:
    views = [state.view(a) for a in item.args]
    if len(views) != 2 or None in views or not {"axis"}.issuperset(item.options):
        return UNSUPPORTED
    source, index = views
    assert source is not None
    assert index is not None
    axis, shape = item.options.get("axis", -1), np.shape(item.raw_value)
    if axis is None:
        source, axis = state.ravel(source), 0
    axis = int(axis) % len(source.shape)
    if 0 in shape:
        state.allocate_result(item)
        return ""
    if index.buffer.dtype.kind not in "iu" or index.buffer.dtype == np.uint64 or source.shape[axis] == 0:
        return UNSUPPORTED_INDEX
    length, stride = source.shape[axis], source.strides[axis]
    lengths, strides = list(source.shape), list(source.strides)
    lengths[axis], strides[axis] = 1, 0
    indexed_view = BufferView(source.buffer, source.offset, tuple(lengths), tuple(strides)).broadcast(shape)
    return _append_gather(state, item, FancyIndex(indexed_view, (index.broadcast(shape),), (length,), (stride,)))


def _select_class(state: LoweringState, item: Value) -> str:
    """Lower the selection of one element per row by class labels; negative labels are out of range."""
    rows, labels = map(state.view, item.args)
    if rows is None or labels is None or labels.buffer.dtype.kind not in "iu" or labels.buffer.dtype == np.uint64:
        return UNSUPPORTED
    count, classes = rows.shape
    if 0 in rows.shape:
        return UNSUPPORTED_INDEX
    labels = state.ravel(labels)
    is_below, safe = dense_view(bool, (count,)), dense_view(np.int64, (count,))
    state.append_map("less", (labels, 0), is_below, labels.buffer.dtype)
    state.append_map("where", (is_below, classes, labels), safe)
    indexed_view = BufferView(rows.buffer, rows.offset, (count,), rows.strides[:1])
    return _append_gather(state, item, FancyIndex(indexed_view, (safe,), (classes,), rows.strides[1:]))


# --------------------------------------------------------------------------------------------- scatters


def _scatter(state: LoweringState, item: Value) -> str:
    """Lower zeros with values added at indices."""
    writes: list[tuple[BufferView | FancyIndex, Any]] = []
    start, args = 1, item.args
    out = dense_view(item.raw_value.dtype, item.raw_value.shape, item)
    for count in item.options["index_counts"]:
        index, value = args[start + 1 : start + 1 + count], state.operand(args[start])
        start += 1 + count
        if isinstance(value, BufferView) and 0 in value.shape and _is_always_empty(state, index):
            continue
        target: BufferView | FancyIndex | None = basic_index_view(out, index)
        if target is None:
            target = fancy_index(state, out, index)
        if target is None or value is None or not casts_like_numpy(value, out.buffer.dtype):
            return UNSUPPORTED_INDEX
        writes.append((target, value))
    state.views[item] = out
    uncovered = _views_around(out, writes[0][0]) if writes and isinstance(writes[0][0], BufferView) else None
    for view in [out] if uncovered is None else uncovered:
        state.append_map("copy", (0.0,), view, is_write=True)
    for number, (target, value) in enumerate(writes):
        if isinstance(target, FancyIndex):
            _append_scatter(state, "add", target, value)
        else:
            is_first = uncovered is not None and not number
            state.append_map("add", (0.0 if is_first else target, value), target, is_write=True)
    return ""


def _views_around(out: BufferView, part: BufferView) -> list[BufferView] | None:
    """Return the views of the elements around a part that is a contiguous range along one axis, or everything; else None."""
    if part.strides != out.strides or 0 in part.shape:
        return None
    axes = [axis for axis, (n, m) in enumerate(zip(part.shape, out.shape, strict=True)) if n != m]
    if not axes:
        return []
    axis = axes[0]
    start = (part.offset - out.offset) // max(out.strides[axis], 1)
    stop = start + part.shape[axis]
    if len(axes) > 1 or 2 * part.shape[axis] < out.shape[axis]:  # many kernels that write little are slower than one
        return None
    ranges = [(first, last) for first, last in ((0, start), (stop, out.shape[axis])) if first < last]
    return [out.axis_slice(axis, first, last) for first, last in ranges]


def _append_scatter(state: LoweringState, operation: str, target: FancyIndex, value: np.generic | float | BufferView) -> None:
    value = value.broadcast(target.view.shape) if isinstance(value, BufferView) else value
    state.steps.append(Scatter(operation, (value, *target.indices), target.view, target.lengths, target.strides))


def lower_fancy_write(state: LoweringState, target_view: BufferView, index: NDArray[Any] | tuple[Any, ...], value: Any) -> bool:
    """Append ``target_view[index] = value`` at an index with constant arrays; return False if NumPy must do it."""
    target = fancy_index(state, target_view, index if isinstance(index, tuple) else (index,))
    if (
        target is None
        or value is None
        or not casts_like_numpy(value, target_view.buffer.dtype)
        or not _is_order_defined(target_view, index)
    ):
        return False
    if isinstance(value, BufferView):
        extra = max(len(value.shape) - len(target.view.shape), 0)
        value = BufferView(value.buffer, value.offset, value.shape[extra:], value.strides[extra:])
        if value.buffer is target_view.buffer:
            value = state.copy_of(value, target_view.buffer.dtype)
    _append_scatter(state, "copy", target, value)
    return True


def _is_order_defined(target_view: BufferView, index: NDArray[Any] | tuple[Any, ...]) -> bool:
    """Return whether the order of writes does not matter, or is the order of the index."""
    arrays = [np.asarray(i) for i in (index if isinstance(index, tuple) else (index,)) if isinstance(i, (np.ndarray, list))]
    if all(a.ndim <= 1 or a.dtype == bool for a in arrays):
        return True
    lengths = np.broadcast_shapes(*(a.shape for a in arrays))
    if len(arrays) > 1 or isinstance(index, tuple):
        return False
    positions = np.broadcast_to(arrays[0], lengths).ravel() % target_view.shape[0]
    return len(np.unique(positions)) == len(positions)


def _add_at(state: LoweringState, item: Value) -> str:
    """Lower `ops.scatter_add`: values added to a region with repeated elements."""
    region, value, positions = state.view(item.args[0]), state.view(item.args[1]), item.options["positions"]
    if region is None or value is None or value.shape != np.atleast_1d(positions).shape or 0 in (*value.shape, *region.shape):
        return UNSUPPORTED_INDEX
    if not casts_like_numpy(value, region.buffer.dtype):
        return UNSUPPORTED_INDEX
    total = state.ravel(state.copy_of(region, region.buffer.dtype))
    target = fancy_index(state, total, (positions,))
    if target is None:
        return UNSUPPORTED_INDEX
    _append_scatter(state, "add", target, value)
    return lower_gather(state, item, total, (positions,))


def _bincount(state: LoweringState, item: Value) -> str:
    """Lower the numbers of elements in bins, or the sums of their weights. A check requires as many bins as were recorded."""
    bins, weights = (*item.args, None)[:2]
    if len(item.args) > 2 or not {"minlength"}.issuperset(item.options):
        return UNSUPPORTED
    value: Any = 1 if weights is None else state.view(weights if isinstance(weights, Value) else np.asarray(weights))
    index = state.view(bins) if isinstance(bins, Value) else np.asarray(bins, np.intp)
    if value is None or index is None:
        return UNSUPPORTED
    dtype, count = index.buffer.dtype if isinstance(index, BufferView) else index.dtype, np.shape(item.raw_value)[0]
    if dtype.kind not in "iub" or dtype == np.uint64:
        return UNSUPPORTED_INDEX
    out = state.allocate_result(item)
    state.append_map("copy", (0,), out, is_write=True)
    if 0 in index.shape or not count:
        return ""
    if isinstance(index, BufferView):
        index = _positive_bins(state, index, count, count > item.options.get("minlength", 0))
    else:
        index = state.constant(index)
    target = FancyIndex(BufferView(out.buffer, 0, index.shape, (0,)), (index,), (count,), (1,))
    _append_scatter(state, "add", target, value)
    return ""


def _positive_bins(state: LoweringState, bins: BufferView, count: int, has_greatest: bool) -> BufferView:
    """Return bins as indices, with `count`, which is out of range, in place of negative ones.

    If `has_greatest`, append a check that an element is in the last bin.
    """
    integers = bins if bins.buffer.dtype == np.int64 else state.copy_of(bins, np.dtype(np.int64))
    if has_greatest:
        is_last = state.map_like("equal", integers, count - 1, like=integers, dtype=np.dtype(bool))
        is_any = dense_view(bool, ())
        state.steps.append(Reduce("logical_or", is_last, frozenset({0}), is_any._replace(shape=bins.shape, strides=(0,))))
        state.append_map("require", (is_any,), dense_view(bool, ()))
    is_negative = state.map_like("less", integers, 0, like=integers, dtype=np.dtype(bool))
    return state.map_like("where", is_negative, count, integers, like=integers)


LOWERINGS = {
    ops.NUMPY.bincount: _bincount,
    np.take: _take,
    np.take_along_axis: _take_along_axis,
    ops.function_by_opname("of_class"): _select_class,
    ops.function_by_opname("scatter_add"): _add_at,
}
NAMED_LOWERINGS = {"scatter": _scatter}
