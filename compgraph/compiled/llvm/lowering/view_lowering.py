"""Lowering of NumPy views to buffer views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import ops
from ....storage import window
from ....values import Value
from ..buffer_ir import BufferView, c_strides, element_dtype


def basic_index_view(view: BufferView, index: Sequence[Any]) -> BufferView | None:
    """Return the view of an array at a basic index; None for other indices."""
    index = index[0] if len(index) == 1 and isinstance(index[0], tuple) else tuple(index)
    if not all(
        i is None or i is Ellipsis or (isinstance(i, (int, np.integer, slice)) and not isinstance(i, bool)) for i in index
    ):
        return None
    if Ellipsis not in index:
        index = (*index, Ellipsis)
    middle = index.index(Ellipsis)
    free = len(view.shape) - sum(i is not None and i is not Ellipsis for i in index)
    index = (*index[:middle], *[slice(None)] * free, *index[middle + 1 :])
    offset, shape, strides, axis = view.offset, [], [], 0
    for i in index:
        if i is None:
            shape.append(1)
            strides.append(0)
            continue
        length, stride = view.shape[axis], view.strides[axis]
        axis += 1
        if isinstance(i, slice):
            positions = range(*i.indices(length))
            shape.append(len(positions))
            strides.append(stride * positions.step)
            offset += positions.start * stride if positions else 0
        else:
            offset += (int(i) % length) * stride
    return BufferView(view.buffer, offset, tuple(shape), tuple(strides))


def view_of(item: Value, source: BufferView) -> BufferView | None:
    """Return the view of a node that may be a view of `source`; None if it is not a view, or unsupported."""
    if item.function is ops.getitem:
        index = item.args[1:]
        return None if any(isinstance(i, np.ndarray) for i in index) else basic_index_view(source, index)
    return VIEWS[item.function](item, source)


def _transpose(item: Value, source: BufferView) -> BufferView | None:
    if len(item.args) > 1 or not {"axes"}.issuperset(item.options):
        return None
    axes = item.options.get("axes")
    return _permute(source, range(len(source.shape))[::-1] if axes is None else axes)


def _permute(source: BufferView, axes: Sequence[int]) -> BufferView:
    count = len(source.shape)
    order = [int(a) % count for a in axes]
    return BufferView(
        source.buffer, source.offset, tuple(source.shape[a] for a in order), tuple(source.strides[a] for a in order)
    )


def _swapaxes(item: Value, source: BufferView) -> BufferView | None:
    if len(item.args) > 1 or set(item.options) != {"axis1", "axis2"}:
        return None
    axes, count = list(range(len(source.shape))), len(source.shape)
    a, b = item.options["axis1"] % count, item.options["axis2"] % count
    axes[a], axes[b] = axes[b], axes[a]
    return _permute(source, axes)


def _moveaxis(item: Value, source: BufferView) -> BufferView | None:
    if len(item.args) > 1 or set(item.options) != {"source", "destination"}:
        return None
    axes = np.arange(len(source.shape))  # axis numbers as lengths are permuted like the axes
    permuted_axes = np.moveaxis(np.empty(axes, bool), **item.options).shape
    return _permute(source, permuted_axes)


def _broadcast_to(item: Value, source: BufferView) -> BufferView | None:
    return source.broadcast(np.shape(item.raw_value))


def _reshape(item: Value, source: BufferView) -> BufferView | None:
    shape = np.shape(item.raw_value)
    is_c_order = item.options.get("order", "C") in ("C", None) and set(item.options) <= {"shape", "order", "axis", "copy"}
    if not is_c_order or item.options.get("copy"):
        return None
    if not source.is_dense:  # NumPy returns a view if only axes of length 1 change, and usually a copy otherwise
        return _squeeze(item, source)
    return BufferView(source.buffer, source.offset, shape, c_strides(shape))


def _squeeze(item: Value, source: BufferView) -> BufferView | None:
    """Return the view whose shape differs from that of `source` only in axes of length 1; None if other axes differ."""
    shape = np.shape(item.raw_value)
    lengths = [(n, s) for n, s in zip(source.shape, source.strides, strict=True) if n != 1]
    if [n for n, _ in lengths] != [n for n in shape if n != 1]:
        return None
    strides = iter([s for _, s in lengths])
    return BufferView(source.buffer, source.offset, shape, tuple(0 if n == 1 else next(strides) for n in shape))


def _window(item: Value, source: BufferView) -> BufferView | None:
    """Return a window of memory. Of complex numbers, `source` is the real part; a window may show that or both parts."""
    options, size, memory = item.options, source.buffer.dtype.itemsize, item.args[0].raw_value
    _, count = element_dtype(memory.dtype)
    has_same_layout = memory.flags.c_contiguous and source.strides == tuple(count * s for s in c_strides(source.shape))
    if not has_same_layout or element_dtype(options["dtype"])[0] != source.buffer.dtype or options["offset"] % size:
        return None
    strides = tuple(s // size for s in options["strides"])
    return BufferView(source.buffer, source.offset + options["offset"] // size, tuple(options["shape"]), strides)


VIEWS = {
    np.transpose: _transpose,
    np.swapaxes: _swapaxes,
    np.moveaxis: _moveaxis,
    np.broadcast_to: _broadcast_to,
    np.reshape: _reshape,
    np.ravel: _reshape,
    np.expand_dims: _squeeze,
    np.squeeze: _squeeze,
    window: _window,
}
