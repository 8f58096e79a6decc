"""Views as places: which elements of an array a view of it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import ops
from ....storage import window
from ..steps import Place, c_strides


def part_of(place: Place, index: Sequence[Any]) -> Place | None:
    """The part of an array at a basic index; None for any other."""
    index = index[0] if len(index) == 1 and isinstance(index[0], tuple) else tuple(index)
    if not all(
        i is None or i is Ellipsis or (isinstance(i, (int, np.integer, slice)) and not isinstance(i, bool)) for i in index
    ):
        return None
    if Ellipsis not in index:
        index = (*index, Ellipsis)
    middle = index.index(Ellipsis)
    free = len(place.shape) - sum(i is not None and i is not Ellipsis for i in index)
    index = (*index[:middle], *[slice(None)] * free, *index[middle + 1 :])
    offset, shape, strides, axis = place.offset, [], [], 0
    for i in index:
        if i is None:
            shape.append(1)
            strides.append(0)
            continue
        length, stride = place.shape[axis], place.strides[axis]
        axis += 1
        if isinstance(i, slice):
            chosen = range(*i.indices(length))
            shape.append(len(chosen))
            strides.append(stride * chosen.step)
            offset += chosen.start * stride if chosen else 0
        else:
            offset += (int(i) % length) * stride
    return Place(place.buffer, offset, tuple(shape), tuple(strides))


def view_of(item: Any, source: Place) -> Place | None:
    """Where a node that is a view, or might be one, of an array in `source` lies; None if that is not known."""
    if item.function is ops.getitem:
        index = item.args[1:]
        return None if any(isinstance(i, np.ndarray) for i in index) else part_of(source, index)
    return VIEWS[item.function](item, source)


def _transposed(item: Any, source: Place) -> Place | None:
    if len(item.args) > 1 or not {"axes"}.issuperset(item.options):
        return None
    axes = item.options.get("axes")
    return _permuted(source, range(len(source.shape))[::-1] if axes is None else axes)


def _permuted(source: Place, axes: Sequence[int]) -> Place:
    count = len(source.shape)
    order = [int(a) % count for a in axes]
    return Place(source.buffer, source.offset, tuple(source.shape[a] for a in order), tuple(source.strides[a] for a in order))


def _swapped(item: Any, source: Place) -> Place | None:
    if len(item.args) > 1 or set(item.options) != {"axis1", "axis2"}:
        return None
    axes, count = list(range(len(source.shape))), len(source.shape)
    a, b = item.options["axis1"] % count, item.options["axis2"] % count
    axes[a], axes[b] = axes[b], axes[a]
    return _permuted(source, axes)


def _moved(item: Any, source: Place) -> Place | None:
    if len(item.args) > 1 or set(item.options) != {"source", "destination"}:
        return None
    axes = np.arange(len(source.shape))  # as lengths, they tell where each has gone
    moved = np.moveaxis(np.empty(axes, bool), **item.options).shape
    return _permuted(source, moved)


def _spread(item: Any, source: Place) -> Place | None:
    return source.broadcast(np.shape(item.raw_value))


def _reshaped(item: Any, source: Place) -> Place | None:
    shape = np.shape(item.raw_value)
    is_plain = item.options.get("order", "C") in ("C", None) and set(item.options) <= {"shape", "order", "axis", "copy"}
    if not source.is_dense or not is_plain or item.options.get("copy"):
        return None
    return Place(source.buffer, source.offset, shape, c_strides(shape))


def _squeezed(item: Any, source: Place) -> Place | None:
    """With other axes of length 1."""
    shape = np.shape(item.raw_value)
    lengths = [(n, s) for n, s in zip(source.shape, source.strides, strict=True) if n != 1]
    if [n for n, _ in lengths] != [n for n in shape if n != 1]:
        return None
    strides = iter([s for _, s in lengths])
    return Place(source.buffer, source.offset, shape, tuple(0 if n == 1 else next(strides) for n in shape))


def _window(item: Any, source: Place) -> Place | None:
    options, size = item.options, source.buffer.dtype.itemsize
    is_as_laid = item.args[0].raw_value.flags.c_contiguous and source.is_dense  # offset and strides hold for that
    if not is_as_laid or options["dtype"] != source.buffer.dtype or options["offset"] % size:
        return None
    strides = tuple(s // size for s in options["strides"])
    return Place(source.buffer, source.offset + options["offset"] // size, tuple(options["shape"]), strides)


VIEWS = {
    np.transpose: _transposed,
    np.swapaxes: _swapped,
    np.moveaxis: _moved,
    np.broadcast_to: _spread,
    np.reshape: _reshaped,
    np.ravel: _reshaped,
    np.expand_dims: _squeezed,
    np.squeeze: _squeezed,
    window: _window,
}
