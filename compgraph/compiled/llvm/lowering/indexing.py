"""Elements that are chosen by arrays of integers: gathers, and scatters in order (items of these kinds become steps)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .... import ops
from ....values import Value
from ..steps import Gather, Place, Scatter, c_strides, dense
from .placing import Placing, fits
from .views import part_of

CHOSEN = "elements are chosen by arrays"


class Chosen(NamedTuple):
    """A part of an array at an index with arrays.

    Attributes
    ----------
    place : Place
        The part as it lies if the arrays hold zeros.
    indices : tuple of Place
        The arrays, each with the shape of the part.
    lengths, strides : tuple of int
        See `Gather`.
    """

    place: Place
    indices: tuple[Place, ...]
    lengths: tuple[int, ...]
    strides: tuple[int, ...]


def chosen(lowered: Placing, place: Place, index: Sequence[Any]) -> Chosen | None:
    """The part of an array at an index with arrays of integers; None if it is not known, or has no elements."""
    parts = _parts(lowered, place, index)
    if parts is None or sum(p is not None and p is not Ellipsis for p in parts) > len(place.shape):
        return None
    numbered = [k for k, p in enumerate(parts) if isinstance(p, (Place, np.ndarray, int))]
    arrays = [p for p in parts if isinstance(p, (Place, np.ndarray))]
    common = np.broadcast_shapes(*(p.shape for p in arrays))
    is_together = numbered[-1] - numbered[0] + 1 == len(numbered)  # if not, NumPy puts their axes first
    found, at = _free_axes(place, parts, numbered[0] if is_together else -1)
    if found is None:
        return None
    offset, free, chosen_axes = found
    shape = (*(n for n, _ in free[:at]), *common, *(n for n, _ in free[at:]))
    strides = (*(s for _, s in free[:at]), *(0,) * len(common), *(s for _, s in free[at:]))
    if 0 in shape or any(n == 0 for n, _ in chosen_axes):
        return None
    lengths = [n for n, _ in chosen_axes]
    spread = []
    for k, p in enumerate(arrays):
        if isinstance(p, np.ndarray):
            if not ((p >= -lengths[k]) & (p < lengths[k])).all():
                return None
            p, lengths[k] = lowered.constant(np.array(p % lengths[k], order="C")), 0
        seen = p.broadcast(common)
        spread.append(Place(seen.buffer, seen.offset, shape, (0,) * at + seen.strides + (0,) * (len(free) - at)))
    whole = Place(place.buffer, offset, shape, strides)
    return Chosen(whole, tuple(spread), tuple(lengths), tuple(s for _, s in chosen_axes))


def _parts(lowered: Placing, place: Place, index: Sequence[Any]) -> list[Any] | None:
    """The parts of an index: slices, numbers, None, arrays or their places, and one Ellipsis, behind which is what it is for."""
    index = index[0] if len(index) == 1 and isinstance(index[0], tuple) else tuple(index)
    parts: list[Any] = []
    for i in index:
        found = _part(lowered, i)
        if found is None:
            return None
        parts += found
    if not any(isinstance(p, (Place, np.ndarray)) for p in parts):
        return None
    count = sum(p is not None and p is not Ellipsis for p in parts)
    where = next((k for k, p in enumerate(parts) if p is Ellipsis), len(parts))
    return [*parts[:where], Ellipsis, *[slice(None)] * (len(place.shape) - count), *parts[where + 1 :]]


def _part(lowered: Placing, i: Any) -> list[Any] | None:
    """One part of an index, or those that a mask stands for; None if it is not known."""
    if i is None or i is Ellipsis or isinstance(i, slice):
        return [i]
    if isinstance(i, (int, np.integer)) and not isinstance(i, bool):
        return [int(i)]
    if isinstance(i, list):
        i = np.asarray(i)
    if isinstance(i, np.ndarray) and not isinstance(i, Value):
        if i.dtype == bool and i.ndim:
            return list(np.nonzero(i))
        return [np.asarray(i, np.intp)] if i.dtype.kind in "iu" and i.dtype != np.uint64 else None
    found = lowered.place(i) if isinstance(i, Value) else None
    if found is None or found.buffer.dtype.kind not in "iu" or found.buffer.dtype == np.uint64:
        return None
    return [found]


def _free_axes(place: Place, parts: list[Any], first: int) -> tuple[tuple[int, list[Any], list[Any]] | None, int]:
    """The first element; lengths and strides of the axes that are not chosen along, and of those that are by arrays.

    Beside them stands how many of the former come before part number `first`.
    """
    offset, axis, at = place.offset, 0, 0
    free: list[tuple[int, int]] = []
    along: list[tuple[int, int]] = []
    for k, part in enumerate(parts):
        if k == first:
            at = len(free)
        if part is Ellipsis:
            continue
        if part is None:
            free.append((1, 0))
            continue
        length, stride = place.shape[axis], place.strides[axis]
        axis += 1
        if isinstance(part, (Place, np.ndarray)):
            along.append((length, stride))
        elif isinstance(part, slice):
            taken = range(*part.indices(length))
            free.append((len(taken), stride * taken.step))
            offset += taken.start * stride if taken else 0
        elif -length <= part < length:
            offset += part % length * stride
        else:
            return None, 0
    return (offset, free, along), at


# --------------------------------------------------------------------------------------------- gathers


def gather(lowered: Placing, item: Any, place: Place, index: Sequence[Any]) -> str:
    """``place[index]``, in a buffer of its own."""
    found = chosen(lowered, place, index)
    if found is None or found.place.shape != np.shape(item.raw_value):
        return "it is a view, or an index, that only NumPy makes"
    if lowered.is_mutable(place) and lowered.is_shared(item):
        return "it is a view whose place hangs on values"
    return _gathered(lowered, item, found)


def _gathered(lowered: Placing, item: Any, found: Chosen) -> str:
    own = lowered.places[item] = dense(found.place.buffer.dtype, np.shape(item.raw_value), item)
    out = Place(own.buffer, 0, found.place.shape, c_strides(found.place.shape))
    lowered.steps.append(Gather((found.place, *found.indices), out, found.lengths, found.strides))
    return ""


def getitem(lowered: Placing, item: Any) -> str:
    """``x[index]``."""
    source = lowered.place(item.args[0])
    return (
        "what it is taken from is not known to the compiler" if source is None else gather(lowered, item, source, item.args[1:])
    )


def _take(lowered: Placing, item: Any) -> str:
    source, options = lowered.place(item.args[0]), dict(item.options)
    if len(item.args) != 2 or source is None or options.pop("mode", "raise") != "raise" or not {"axis"}.issuperset(options):
        return "an operand or an option is not known to the compiler"
    axis, index = options.get("axis"), item.args[1]
    if axis is None:
        source, axis = lowered.raveled(source), 0
    if not isinstance(index, (Value, np.ndarray)):
        index = np.asarray(index)
    return gather(lowered, item, source, (*(slice(None),) * (int(axis) % max(len(source.shape), 1)), index))


def _take_along_axis(lowered: Placing, item: Any) -> str:
    places = [lowered.place(a) for a in item.args]
    if len(places) != 2 or None in places or not {"axis"}.issuperset(item.options):
        return "an operand or an option is not known to the compiler"
    source, index = places
    assert source is not None
    assert index is not None
    axis, shape = item.options.get("axis", -1), np.shape(item.raw_value)
    if axis is None:
        source, axis = lowered.raveled(source), 0
    axis = int(axis) % len(source.shape)
    if index.buffer.dtype.kind not in "iu" or index.buffer.dtype == np.uint64 or 0 in (*shape, source.shape[axis]):
        return CHOSEN
    length, stride = source.shape[axis], source.strides[axis]
    lengths, strides = list(source.shape), list(source.strides)
    lengths[axis], strides[axis] = 1, 0
    whole = Place(source.buffer, source.offset, tuple(lengths), tuple(strides)).broadcast(shape)
    return _gathered(lowered, item, Chosen(whole, (index.broadcast(shape),), (length,), (stride,)))


def _of_class(lowered: Placing, item: Any) -> str:
    """From each row the element whose number stands beside it; numbers below 0 are out of range."""
    rows, labels = map(lowered.place, item.args)
    if rows is None or labels is None or labels.buffer.dtype.kind not in "iu" or labels.buffer.dtype == np.uint64:
        return "an operand or an option is not known to the compiler"
    count, classes = rows.shape
    if 0 in rows.shape:
        return CHOSEN
    labels = lowered.raveled(labels)
    is_below, safe = dense(bool, (count,)), dense(np.int64, (count,))
    lowered.map("less", (labels, 0), is_below, labels.buffer.dtype)
    lowered.map("where", (is_below, classes, labels), safe)
    whole = Place(rows.buffer, rows.offset, (count,), rows.strides[:1])
    return _gathered(lowered, item, Chosen(whole, (safe,), (classes,), rows.strides[1:]))


# --------------------------------------------------------------------------------------------- scatters


def _scatter(lowered: Placing, item: Any) -> str:
    """Zeros with pieces added at indices."""
    pieces: list[tuple[Place | Chosen, Any]] = []
    start, args = 1, item.args
    own = dense(item.raw_value.dtype, item.raw_value.shape, item)
    for count in item.options["layout"]:
        index, value = args[start + 1 : start + 1 + count], lowered.operand(args[start])
        target: Place | Chosen | None = part_of(own, index)
        if target is None:
            target = chosen(lowered, own, index)
        if target is None or value is None or not fits(value, own.buffer.dtype):
            return CHOSEN
        pieces.append((target, value))
        start += 1 + count
    lowered.places[item] = own
    lowered.map("copy", (0.0,), own, is_write=True)
    for target, value in pieces:
        if isinstance(target, Chosen):
            _put(lowered, "add", target, value)
        else:
            lowered.map("add", (target, value), target, is_write=True)
    return ""


def _put(lowered: Placing, operation: str, target: Chosen, value: Any) -> None:
    value = value.broadcast(target.place.shape) if isinstance(value, Place) else value
    lowered.steps.append(Scatter(operation, (value, *target.indices), target.place, target.lengths, target.strides))


def written(lowered: Placing, whole: Place, index: Any, value: Any) -> bool:
    """Append ``whole[index] = value`` at an index with arrays, which is known; False if NumPy has to do it."""
    target = chosen(lowered, whole, index if isinstance(index, tuple) else (index,))
    if target is None or value is None or not fits(value, whole.buffer.dtype) or not _has_an_order(whole, index):
        return False
    if isinstance(value, Place):
        extra = max(len(value.shape) - len(target.place.shape), 0)
        value = Place(value.buffer, value.offset, value.shape[extra:], value.strides[extra:])
        if value.buffer is whole.buffer:
            value = lowered.copied(value, whole.buffer.dtype)
    _put(lowered, "copy", target, value)
    return True


def _has_an_order(whole: Place, index: Any) -> bool:
    """Whether NumPy's order of writing does not matter, or is that of the index: no element is named twice, or along one axis."""
    arrays = [np.asarray(i) for i in (index if isinstance(index, tuple) else (index,)) if isinstance(i, (np.ndarray, list))]
    if all(a.ndim <= 1 or a.dtype == bool for a in arrays):
        return True
    lengths = np.broadcast_shapes(*(a.shape for a in arrays))
    if len(arrays) > 1 or isinstance(index, tuple):
        return False
    places = np.broadcast_to(arrays[0], lengths).ravel() % whole.shape[0]
    return len(np.unique(places)) == len(places)


def _added_at(lowered: Placing, item: Any) -> str:
    """What `ops.added_at` gives: values added to a region, in which some elements are one."""
    region, value = lowered.place(item.args[0]), lowered.place(item.args[1])
    places = lowered.place(np.ascontiguousarray(item.options["places"], np.intp))
    if region is None or value is None or places is None or value.shape != places.shape or not fits(value, region.buffer.dtype):
        return CHOSEN
    if 0 in places.shape or 0 in region.shape:
        return CHOSEN
    total = lowered.raveled(lowered.copied(region, region.buffer.dtype))
    target = chosen(lowered, total, (item.options["places"],))
    if target is None:
        return CHOSEN
    _put(lowered, "add", target, value)
    return gather(lowered, item, total, (item.options["places"],))


KINDS = {
    np.take: _take,
    np.take_along_axis: _take_along_axis,
    ops.function_named("of_class"): _of_class,
    ops.function_named("added_at"): _added_at,
}
NAMED = {"scatter": _scatter}
