"""Indexing, sorting and searching in terms of the array API standard."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import NDArray

from ....storage import window
from .positions import (
    UnsupportedError,
    add_at,
    embed,
    expand_index,
    find_box,
    flat,
    flat_positions,
    gather,
    is_basic,
    is_complex,
    is_static,
    move_elements,
    number,
    size_of,
    wrap_negative,
)
from .reductions import any_

Namespace = Any
Array = Any


def getitem(xp: Namespace, x: Array, *index: object) -> Array:
    """See `ops.getitem`."""
    parts = tuple(index[0]) if len(index) == 1 and isinstance(index[0], tuple) else index
    if is_basic(parts):
        return _basic_item(xp, x, expand_index(parts, x.ndim))
    if is_static(parts):
        return move_elements(xp, lambda positions: positions[parts], x)
    positions = flat_positions(xp, x.shape, parts, x)
    return xp.reshape(xp.take(flat(xp, x), flat(xp, positions), axis=0), positions.shape)


def _basic_item(xp: Namespace, x: Array, parts: Sequence[Any]) -> Array:
    """Return ``x[parts]``, by slices within bounds and with positive steps, which all libraries support."""
    index: list[Any] = []
    reversed_axes: list[int] = []
    lengths = iter(x.shape)
    for part in parts:
        length = 0 if part is None else next(lengths)
        if isinstance(part, slice):
            positions = range(length)[part]
            if len(positions) and positions.step < 0:
                reversed_axes.append(sum(not isinstance(p, int) for p in index))
                positions = positions[::-1]
            part = slice(positions[0], positions[-1] + 1, positions.step) if len(positions) else slice(0, 0)
        index.append(int(part) if isinstance(part, np.integer) else part)
    selection = x[tuple(index)]
    return xp.flip(selection, axis=tuple(reversed_axes)) if reversed_axes else selection


def _values_at(xp: Namespace, shape: tuple[int, ...], index: Sequence[Any], values: Array) -> tuple[Array, list[range]]:
    """Return the values of a basic index, reshaped to one axis per axis of the array, and their positions along each."""
    ranges: list[range] = []
    reversed_axes: list[int] = []
    lengths = iter(shape)
    broadcast_values = xp.broadcast_to(values, np.broadcast_to(0, shape)[tuple(index)].shape)
    for part in expand_index(index, len(shape)):
        if part is None:
            continue
        length = next(lengths)
        positions = range(length)[part] if isinstance(part, slice) else range(length)[int(part) :][:1]
        if len(positions) > 1 and positions.step < 0:
            reversed_axes.append(len(ranges))
        ranges.append(positions[::-1] if positions.step < 0 else positions)
    box = xp.reshape(broadcast_values, tuple(map(len, ranges)))
    return xp.flip(box, axis=tuple(reversed_axes)) if reversed_axes else box, ranges


def take(xp: Namespace, a: Array, indices: Any, axis: int | None = None, mode: str = "raise") -> Array:
    if axis is None:
        a, axis = flat(xp, a), 0
    axis, is_static_index = normalize_axis_index(int(axis), a.ndim), is_static((indices,))
    length, indices = a.shape[axis], np.asarray(indices) if is_static_index else indices
    if mode == "clip":
        indices = np.clip(indices, 0, length - 1) if is_static_index else xp.clip(indices, 0, length - 1)
    elif mode == "wrap":
        indices = indices % length
    return getitem(xp, a, *(slice(None),) * axis, indices)


def take_along_axis(xp: Namespace, arr: Array, indices: Any, axis: int = -1) -> Array:
    if axis is None:
        arr, axis = flat(xp, arr), 0
    if isinstance(indices, np.ndarray):
        return move_elements(xp, np.take_along_axis, arr, indices, axis)
    indices = wrap_negative(xp, indices, arr.shape[axis])
    shape = np.broadcast_shapes(*[tuple(1 if k == axis % arr.ndim else n for k, n in enumerate(x.shape)) for x in (arr, indices)])
    full_shapes = [tuple(x.shape[axis] if k == axis % arr.ndim else n for k, n in enumerate(shape)) for x in (arr, indices)]
    return xp.take_along_axis(xp.broadcast_to(arr, full_shapes[0]), xp.broadcast_to(indices, full_shapes[1]), axis=int(axis))


def insert(xp: Namespace, arr: Array, obj: Any, values: Array, axis: Any = None) -> Array:
    if not is_static((obj,)):
        raise UnsupportedError("insert at computed positions is not supported")
    elements = xp.concat([flat(xp, arr), flat(xp, values)])
    positions = [np.arange(size_of(arr)).reshape(arr.shape), size_of(arr) + np.arange(size_of(values)).reshape(values.shape)]
    return gather(xp, elements, np.insert(positions[0], obj, positions[1], axis=axis))


def sort(xp: Namespace, a: Array, axis: int = -1, stable: object = None, descending: bool = False) -> Array:
    if axis is None:
        a, axis = flat(xp, a), 0
    if is_complex(xp, a):
        raise UnsupportedError("sort of complex numbers is not supported")
    return xp.sort(a, axis=int(axis), descending=bool(descending)) if a.ndim else a


def argsort(xp: Namespace, a: Array, axis: int = -1, stable: object = None, descending: bool = False) -> Array:
    if axis is None:
        a, axis = flat(xp, a), 0
    return xp.argsort(a, axis=int(axis), descending=bool(descending))


def searchsorted(xp: Namespace, a: Array, v: Array, side: str = "left", sorter: object = None) -> Array:
    if sorter is not None:
        a = getitem(xp, a, sorter)
    return xp.reshape(xp.searchsorted(a, flat(xp, v), side=side), v.shape)


def digitize(xp: Namespace, x: Array, bins: Array, right: bool = False) -> Array:
    return searchsorted(xp, bins, x, "left" if right else "right")


def isin(xp: Namespace, element: Array, test_elements: Array, invert: bool = False, assume_unique: bool = False) -> Array:
    is_member = any_(xp, element[..., None] == flat(xp, test_elements), axis=-1)
    return ~is_member if invert else is_member


def unravel_index(xp: Namespace, indices: Array, shape: tuple[int, ...], order: str = "C") -> tuple[Array, ...]:
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    coordinates = []
    for length in shape[::-1] if order == "C" else shape:
        coordinates.append(xp.remainder(indices, number(xp, length, indices)))
        indices = xp.floor_divide(indices, number(xp, length, indices))
    return tuple(coordinates[::-1] if order == "C" else coordinates)


def read_window(xp: Namespace, buffer: Array, layout: tuple[Any, Any, int]) -> Array:
    """Return a strided window of a buffer; its lengths, strides and offset are in elements."""
    if (box := find_box(tuple(buffer.shape), *layout)) is not None:
        return xp.reshape(xp.reshape(buffer, box.dims)[box.slices], layout[0])
    return gather(xp, buffer, window_positions(size_of(buffer), *layout))


def are_in_range(xp: Namespace, index: Array, length: int) -> Array:
    """Return whether all indices along an axis of some length are in range."""
    return xp.all((index >= -length) & (index < length))


def window_positions(count: int, shape: Any, strides: Any, offset: int) -> Any:
    """Return the positions of the elements of a strided window in a buffer of `count` elements."""
    return window(np.arange(count), shape, np.dtype(np.int64), 8 * offset, tuple(8 * s for s in strides))


def scatter_to_buffer(xp: Namespace, values: Array, count: int, dtype: Any, offset: int, strides: Any) -> Array:
    """See `storage.scatter_to_buffer`."""
    shape, start = tuple(values.shape), offset // dtype.itemsize
    steps = tuple(s // dtype.itemsize for s in strides)
    if (box := find_box((count,), shape, steps, start)) is not None:
        return flat(xp, embed(xp, xp.reshape(values, box.lengths), box.dims, box.ranges))
    sources = np.full(count, -1)
    sources[window_positions(count, shape, steps, start)] = np.arange(size_of(values)).reshape(shape)
    return gather(xp, values, sources)


def scatter(xp: Namespace, like: Any, *updates: Any, index_counts: tuple[int, ...], add: Any = None) -> Array:
    """See `autodiff.rules.lazy_cotangents.scatter`; `add` is the library's own function for adding at an index."""
    total, start = None, 0
    for count in index_counts:
        index = updates[start + 1 : start + 1 + count]
        index = tuple(index[0]) if count == 1 and isinstance(index[0], tuple) else index
        if is_basic(index):
            values, ranges = _values_at(xp, tuple(like.shape), index, updates[start])
            part = embed(xp, values, like.shape, ranges)
            total = part if total is None else total + part
        else:
            total = xp.zeros_like(like) if total is None else total
            total = (add or functools.partial(add_item, xp))(total, index, updates[start])
        start += 1 + count
    return xp.zeros_like(like) if total is None else total


def add_item(xp: Namespace, total: Array, index: tuple[Any, ...], values: Array) -> Array:
    """Return a copy of an array with values added at an index, repeatedly for repeated elements."""
    if is_static(index):
        return add_at(xp, total, np.arange(size_of(total)).reshape(total.shape)[index], values)
    return add_at(xp, total, flat_positions(xp, total.shape, index, total), values)


def scatter_add(xp: Namespace, region: Array, values: Array, *, positions: object) -> Array:
    total = flat(xp, region)
    positions = np.asarray(positions)
    return gather(xp, add_at(xp, total, positions.ravel(), flat(xp, values)), positions)


def bincount(xp: Namespace, x: NDArray[Any], weights: Array, minlength: int = 0) -> Array:
    if not isinstance(x, np.ndarray):
        raise UnsupportedError("bincount of computed integers: the length depends on values; use np.add.at on np.zeros(n)")
    return add_at(xp, xp.zeros((max(int(x.max(initial=-1)) + 1, minlength),), dtype=weights.dtype), x, weights)
