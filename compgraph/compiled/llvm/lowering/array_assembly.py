"""Lowering of operations that assemble arrays by copies: concatenate, stack, pad, tile, roll, diagonals ..."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .... import ops
from ....storage import scatter_to_buffer
from ....values import Value
from .. import elementwise_ops
from ..buffer_ir import BufferView, c_strides, dense_view
from . import gather_scatter
from .lowering_state import EXACT_BITS, UNSUPPORTED, LoweringState, casts_like_numpy
from .reductions import append_reduction, with_item_shape


def _copy_into(state: LoweringState, value: object, target: BufferView) -> None:
    source_dtype = value.buffer.dtype if isinstance(value, BufferView) else target.buffer.dtype
    state.append_map("copy", (value,), target, source_dtype, is_write=True)


def _sequence_views(state: LoweringState, item: Value) -> list[BufferView] | None:
    """Return the views of the operands of `concatenate` or `stack`; None if unsupported."""
    if not {"axis", "dtype", "casting", "out"}.issuperset(item.options) or item.options.get("out") is not None:
        return None
    dtype = np.asarray(item.raw_value).dtype
    return state.operand_views([_with_compilable_dtype(operand, dtype) for operand in item.args])


def _with_compilable_dtype(operand: object, dtype: np.dtype[Any]) -> Any:
    """Convert a constant without a compilable dtype, as the float16 zeros of missing tangents, to the dtype of the result."""
    array = operand if isinstance(operand, Value) else np.asarray(operand)
    if isinstance(array, Value) or elementwise_ops.is_compilable(array.dtype) or not np.can_cast(array.dtype, dtype):
        return operand
    return array.astype(dtype)


def _concatenate(state: LoweringState, item: Value) -> str:
    parts, axis = _sequence_views(state, item), item.options.get("axis", 0)
    if parts is None:
        return UNSUPPORTED
    if axis is None:
        parts, axis = [state.ravel(p) for p in parts], 0
    out, start = state.allocate_result(item), 0
    axis = int(axis) % len(out.shape)
    for part in parts:
        stop = start + part.shape[axis]
        _copy_into(state, part, out.axis_slice(axis, start, stop))
        start = stop
    return ""


def _stack(state: LoweringState, item: Value) -> str:
    parts = _sequence_views(state, item)
    if parts is None:
        return UNSUPPORTED
    out = state.allocate_result(item)
    axis = int(item.options.get("axis", 0)) % len(out.shape)
    for k, part in enumerate(parts):
        slot = out.axis_slice(axis, k, k + 1)
        remaining_axes = (slot.shape[:axis] + slot.shape[axis + 1 :], slot.strides[:axis] + slot.strides[axis + 1 :])
        _copy_into(state, part, BufferView(slot.buffer, slot.offset, *remaining_axes))
    return ""


def _pad(state: LoweringState, item: Value) -> str:
    source, options = state.view(item.args[0]), item.options
    fill_value = np.asarray(options.get("constant_values", 0))
    widths = options.get("pad_width")
    if source is None or len(item.args) > 1 or not {"pad_width", "mode", "constant_values"}.issuperset(options):
        return UNSUPPORTED
    if (
        options.get("mode", "constant") != "constant"
        or isinstance(widths, dict)
        or fill_value.ndim
        or fill_value.dtype.kind not in "biuf"
    ):
        return UNSUPPORTED
    if not casts_like_numpy(fill_value, source.buffer.dtype):
        return UNSUPPORTED
    out = state.allocate_result(item)
    inner = out
    for axis, (before, after) in enumerate(np.broadcast_to(np.asarray(widths), (len(source.shape), 2)).tolist()):
        length = inner.shape[axis]
        for start, stop in ((0, before), (length - after, length)):
            if stop > start:
                _copy_into(state, fill_value[()], inner.axis_slice(axis, start, stop))
        inner = inner.axis_slice(axis, before, length - after)
    _copy_into(state, source, inner)
    return ""


def _tile(state: LoweringState, item: Value) -> str:
    source, times = state.view(item.args[0]), item.options.get("reps", item.args[1] if len(item.args) == 2 else None)
    if source is None or times is None or isinstance(times, Value) or not {"reps"}.issuperset(item.options):
        return UNSUPPORTED
    out, count = state.allocate_result(item), len(np.shape(item.raw_value))
    reps = [int(n) for n in np.ravel(times)]
    reps = [1] * (count - len(reps)) + reps
    lead = count - len(source.shape)
    shape = tuple(n for pair in zip(reps, (*(1,) * lead, *source.shape), strict=True) for n in pair)
    strides = tuple(s for stride in (*(0,) * lead, *source.strides) for s in (0, stride))
    _copy_into(
        state, BufferView(source.buffer, source.offset, shape, strides), BufferView(out.buffer, 0, shape, c_strides(shape))
    )
    return ""


def _repeat(state: LoweringState, item: Value) -> str:
    source, times = state.view(item.args[0]), item.options.get("repeats", item.args[1] if len(item.args) == 2 else None)
    if source is None or times is None or isinstance(times, Value) or not {"axis", "repeats"}.issuperset(item.options):
        return UNSUPPORTED
    axis = item.options.get("axis")
    if axis is None:
        source, axis = state.ravel(source), 0
    axis = int(axis) % max(len(source.shape), 1)
    if np.size(times) != 1:
        if np.size(times) != source.shape[axis]:
            return UNSUPPORTED
        index = np.repeat(np.arange(source.shape[axis]), np.ravel(times))
        return gather_scatter.lower_gather(state, item, source, (*(slice(None),) * axis, index))
    count, out = int(np.ravel(times)[0]), state.allocate_result(item)
    shape = (*source.shape[: axis + 1], count, *source.shape[axis + 1 :])
    strides = (*source.strides[: axis + 1], 0, *source.strides[axis + 1 :])
    _copy_into(
        state, BufferView(source.buffer, source.offset, shape, strides), BufferView(out.buffer, 0, shape, c_strides(shape))
    )
    return ""


def _scatter_to_buffer(state: LoweringState, item: Value) -> str:
    """Lower a flat buffer of zeros with values in a window, whose elements do not overlap."""
    source, options, out_dtype = state.view(item.args[0]), item.options, np.asarray(item.raw_value).dtype
    size = out_dtype.itemsize
    is_aligned = not any(step % size for step in (options["offset"], *options["strides"]))
    if source is None or source.buffer.dtype != out_dtype or not is_aligned:
        return UNSUPPORTED
    offset, strides = options["offset"] // size, tuple(s // size for s in options["strides"])
    is_full = prod(source.shape) == options["count"]
    is_copy = is_full and not offset and strides == c_strides(source.shape)
    if is_copy and source.is_dense and not item.memory and not state.is_mutable(source):
        state.views[item] = state.ravel(source)
        return ""
    out = state.allocate_result(item)
    if not is_full:
        state.append_map("copy", (0,), out, is_write=True)
    _copy_into(state, source, BufferView(out.buffer, offset, source.shape, strides))
    return ""


def _roll(state: LoweringState, item: Value) -> str:
    source, shift = state.view(item.args[0]), item.options.get("shift", item.args[1] if len(item.args) == 2 else None)
    if source is None or shift is None or isinstance(shift, Value) or not {"shift", "axis"}.issuperset(item.options):
        return UNSUPPORTED
    axis, out = item.options.get("axis"), state.allocate_result(item)
    target = out
    if axis is None:
        source, target, axis = state.ravel(source), BufferView(out.buffer, 0, (prod(out.shape),), (1,)), 0
    shifts = [0] * len(source.shape)
    for axis_shift, shifted_axis in zip(*(a.ravel().tolist() for a in np.broadcast_arrays(shift, axis)), strict=True):
        shifts[shifted_axis] += axis_shift
    if 0 not in out.shape:
        _roll_into(state, source, target, shifts)
    return ""


def _roll_into(state: LoweringState, source: BufferView, target: BufferView, shifts: Sequence[int], axis: int = 0) -> None:
    """Copy an array rolled along its axes from `axis` on: along each, two blocks swap."""
    if axis == len(shifts):
        _copy_into(state, source, target)
        return
    length = source.shape[axis]
    cut = shifts[axis] % length
    for start, stop, to in ((0, length - cut, cut), (length - cut, length, 0)):
        if stop > start:
            block = target.axis_slice(axis, to, to + stop - start)
            _roll_into(state, source.axis_slice(axis, start, stop), block, shifts, axis + 1)


def _diagonal_view(view: BufferView, offset: int, axis1: int, axis2: int) -> BufferView:
    """Return the diagonal of two axes, as the last axis."""
    (m, s), (n, t) = ((view.shape[a], view.strides[a]) for a in (axis1, axis2))
    start = offset * t if offset >= 0 else -offset * s
    length = max(min(m, n - offset) if offset >= 0 else min(m + offset, n), 0)
    other_axes = [a for a in range(len(view.shape)) if a not in (axis1, axis2)]
    shape, strides = (*(view.shape[a] for a in other_axes), length), (*(view.strides[a] for a in other_axes), s + t)
    return BufferView(view.buffer, view.offset + (start if length else 0), shape, strides)


def _diagonal_of_item(item: Value, source: BufferView) -> BufferView | None:
    if len(item.args) > 1 or not {"offset", "axis1", "axis2", "dtype"}.issuperset(item.options):
        return None
    count, options = len(source.shape), item.options
    axes = (int(options.get("axis1", 0)) % count, int(options.get("axis2", 1)) % count)
    return _diagonal_view(source, int(options.get("offset", 0)), *axes)


def _diagonal(state: LoweringState, item: Value) -> str:
    source = state.view(item.args[0])
    diagonal = None if source is None else _diagonal_of_item(item, source)
    if source is None or diagonal is None or diagonal.shape != np.shape(item.raw_value):
        return UNSUPPORTED
    state.assign_view(item, source, diagonal)
    return ""


def _trace(state: LoweringState, item: Value) -> str:
    source, dtype = state.view(item.args[0]), np.asarray(item.raw_value).dtype
    diagonal = None if source is None else _diagonal_of_item(item, source)
    if diagonal is None or 0 in diagonal.shape:
        return UNSUPPORTED
    if state.is_exact and dtype.kind == "f":
        return EXACT_BITS
    diagonal = diagonal if diagonal.buffer.dtype == dtype else state.copy_of(diagonal, dtype)
    total = append_reduction(state, "add", diagonal, frozenset({len(diagonal.shape) - 1}), item)
    state.views[item] = with_item_shape(total, item)
    return ""


def _diag(state: LoweringState, item: Value) -> str:
    """Lower ``diag``: the diagonal of a matrix, or a matrix with a diagonal."""
    source, k = state.view(item.args[0]), int(item.options.get("k", 0))
    if source is None or len(item.args) > 1 or not {"k"}.issuperset(item.options):
        return UNSUPPORTED
    if len(source.shape) == 2:
        diagonal = _diagonal_view(source, k, 0, 1)
        state.assign_view(item, source, diagonal)
        return ""
    out = state.allocate_result(item)
    state.append_map("copy", (0,), out, is_write=True)
    _copy_into(state, source, _diagonal_view(out, k, 0, 1))
    return ""


def _outer(state: LoweringState, item: Value) -> str:
    """Lower the products of all pairs of elements of two arrays."""
    views = state.operand_views(item.args)
    if views is None or len(views) != 2 or item.options:
        return UNSUPPORTED
    a, b = [state.ravel(p) for p in views] if item.function is np.outer else views
    dtype = np.asarray(item.raw_value).dtype
    if not elementwise_ops.can_compute("multiply", dtype):
        return f"products of {dtype} are not compiled"
    b_axes = (1,) * len(b.shape)
    column = BufferView(a.buffer, a.offset, a.shape + b_axes, a.strides + (0,) * len(b_axes))
    out = state.allocate_result(item)
    state.append_map("multiply", (column, b), out)
    return ""


def _full_like(state: LoweringState, item: Value) -> str:
    value, dtype = state.operand(item.args[-1]), np.asarray(item.raw_value).dtype
    if len(item.args) != 2 or value is None or not {"dtype", "order", "subok", "shape"}.issuperset(item.options):
        return UNSUPPORTED
    if not casts_like_numpy(value, dtype):
        return "floats are converted to integers"
    _copy_into(state, value, state.allocate_result(item))
    return ""


def _identity(state: LoweringState, item: Value) -> str:
    """Lower a function that is the identity on real numbers."""
    source = state.view(item.args[0])
    if source is None or item.options or state.is_mutable(source) or source.shape != np.shape(item.raw_value):
        return UNSUPPORTED
    state.views[item] = source
    return ""


def _safe_divide(state: LoweringState, item: Value) -> str:
    """Lower ``x / length``, 0 where the length is 0."""
    dtype = np.asarray(item.raw_value).dtype
    x, length = (state.operand(a) for a in item.args)
    if not isinstance(length, BufferView) or x is None or dtype.kind != "f" or length.buffer.dtype != dtype:
        return UNSUPPORTED
    if (x.buffer.dtype if isinstance(x, BufferView) else np.asarray(x).dtype).kind not in "biuf":
        return UNSUPPORTED
    is_zero, safe = dense_view(bool, length.shape), dense_view(dtype, length.shape)
    state.append_map("equal", (length, 0), is_zero, dtype)
    state.append_map("where", (is_zero, 1, length), safe)
    state.append_map("divide", (x, safe), state.allocate_result(item))
    return ""


def lower_reshape_copy(state: LoweringState, item: Value) -> str:
    """Lower a reshape that is not a view: a copy."""
    source, options = state.view(item.args[0]), item.options
    if item.function not in (np.reshape, np.ravel) or source is None or len(item.args) > 1:
        return "the view is not supported"
    if not {"shape", "order", "axis"}.issuperset(options) or options.get("order", "C") not in ("C", None):
        return "the view is not supported"
    if state.is_mutable(source) and state.is_shared(item):
        return "the view is not supported"
    out = state.copy_of(source, source.buffer.dtype)
    out.buffer.node = item
    state.views[item] = with_item_shape(out, item)
    return ""


numpy = ops.NUMPY
PACKED_LOWERINGS = {numpy.concatenate: _concatenate, numpy.stack: _stack}
LOWERINGS: dict[Any, Any] = {
    numpy.pad: _pad, numpy.tile: _tile, numpy.repeat: _repeat, numpy.roll: _roll, numpy.diagonal: _diagonal,
    numpy.trace: _trace, numpy.diag: _diag, numpy.outer: _outer, numpy.full_like: _full_like, numpy.real: _identity,
    ops.function_by_opname("pad"): _pad, ops.stop_gradient: _identity,
    ops.ufunc_method(np.multiply, "outer"): _outer, scatter_to_buffer: _scatter_to_buffer,
}  # fmt: skip
NAMED_LOWERINGS = {"over": _safe_divide}
