"""Arrays that are put together from others, or from parts of one, by copies (items of these kinds become steps)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .... import ops
from ....values import Value
from .. import elementwise
from ..steps import Place, c_strides, dense
from . import indexing
from .folding import reduced
from .placing import Placing, fits

_OPTION = "an operand or an option is not known to the compiler"


def _part(place: Place, axis: int, start: int, stop: int) -> Place:
    """Some indices of an axis."""
    lengths = (*place.shape[:axis], stop - start, *place.shape[axis + 1 :])
    return Place(place.buffer, place.offset + start * place.strides[axis], lengths, place.strides)


def _copy_into(lowered: Placing, value: Any, target: Place) -> None:
    given = value.buffer.dtype if isinstance(value, Place) else target.buffer.dtype
    lowered.map("copy", (value,), target, given, is_write=True)


def _own(lowered: Placing, item: Any) -> Place:
    found = lowered.places[item] = dense(np.asarray(item.raw_value).dtype, np.shape(item.raw_value), item)
    return found


def _parts(lowered: Placing, item: Any) -> list[Place] | None:
    """The operands of an item that are joined; None if one of them is not known."""
    found = [lowered.place(a if isinstance(a, (Value, np.ndarray)) else np.asarray(a)) for a in item.args]
    if not {"axis", "dtype", "casting", "out"}.issuperset(item.options) or item.options.get("out") is not None:
        return None
    known = [p for p in found if p is not None]
    return known if len(known) == len(found) else None


def _concatenated(lowered: Placing, item: Any) -> str:
    parts, axis = _parts(lowered, item), item.options.get("axis", 0)
    if parts is None:
        return _OPTION
    if axis is None:
        parts, axis = [lowered.raveled(p) for p in parts], 0
    own, start = _own(lowered, item), 0
    axis = int(axis) % len(own.shape)
    for part in parts:
        stop = start + part.shape[axis]
        _copy_into(lowered, part, _part(own, axis, start, stop))
        start = stop
    return ""


def _stacked(lowered: Placing, item: Any) -> str:
    parts = _parts(lowered, item)
    if parts is None:
        return _OPTION
    own = _own(lowered, item)
    axis = int(item.options.get("axis", 0)) % len(own.shape)
    for k, part in enumerate(parts):
        slot = _part(own, axis, k, k + 1)
        without = (slot.shape[:axis] + slot.shape[axis + 1 :], slot.strides[:axis] + slot.strides[axis + 1 :])
        _copy_into(lowered, part, Place(slot.buffer, slot.offset, *without))
    return ""


def _padded(lowered: Placing, item: Any) -> str:
    source, options = lowered.place(item.args[0]), item.options
    filled = np.asarray(options.get("constant_values", 0))
    widths = options.get("pad_width")
    if source is None or len(item.args) > 1 or not {"pad_width", "mode", "constant_values"}.issuperset(options):
        return _OPTION
    if (
        options.get("mode", "constant") != "constant"
        or isinstance(widths, dict)
        or filled.ndim
        or filled.dtype.kind not in "biuf"
    ):
        return _OPTION
    if not fits(filled, source.buffer.dtype):
        return _OPTION
    own = _own(lowered, item)
    inner = own
    for axis, (before, after) in enumerate(np.broadcast_to(np.asarray(widths), (len(source.shape), 2)).tolist()):
        length = inner.shape[axis]
        for start, stop in ((0, before), (length - after, length)):
            if stop > start:
                _copy_into(lowered, filled[()], _part(inner, axis, start, stop))
        inner = _part(inner, axis, before, length - after)
    _copy_into(lowered, source, inner)
    return ""


def _tiled(lowered: Placing, item: Any) -> str:
    source, times = lowered.place(item.args[0]), item.options.get("reps", item.args[1] if len(item.args) == 2 else None)
    if source is None or times is None or isinstance(times, Value) or not {"reps"}.issuperset(item.options):
        return _OPTION
    own, count = _own(lowered, item), len(np.shape(item.raw_value))
    reps = [int(n) for n in np.ravel(times)]
    reps = [1] * (count - len(reps)) + reps
    lead = count - len(source.shape)
    shape = tuple(n for pair in zip(reps, (*(1,) * lead, *source.shape), strict=True) for n in pair)
    strides = tuple(s for stride in (*(0,) * lead, *source.strides) for s in (0, stride))
    _copy_into(lowered, Place(source.buffer, source.offset, shape, strides), Place(own.buffer, 0, shape, c_strides(shape)))
    return ""


def _repeated(lowered: Placing, item: Any) -> str:
    source, times = lowered.place(item.args[0]), item.options.get("repeats", item.args[1] if len(item.args) == 2 else None)
    if source is None or times is None or isinstance(times, Value) or not {"axis", "repeats"}.issuperset(item.options):
        return _OPTION
    axis = item.options.get("axis")
    if axis is None:
        source, axis = lowered.raveled(source), 0
    axis = int(axis) % max(len(source.shape), 1)
    if np.size(times) != 1:
        if np.size(times) != source.shape[axis]:
            return _OPTION
        index = np.repeat(np.arange(source.shape[axis]), np.ravel(times))
        return indexing.gather(lowered, item, source, (*(slice(None),) * axis, index))
    count, own = int(np.ravel(times)[0]), _own(lowered, item)
    shape = (*source.shape[: axis + 1], count, *source.shape[axis + 1 :])
    strides = (*source.strides[: axis + 1], 0, *source.strides[axis + 1 :])
    _copy_into(lowered, Place(source.buffer, source.offset, shape, strides), Place(own.buffer, 0, shape, c_strides(shape)))
    return ""


def _rolled(lowered: Placing, item: Any) -> str:
    source, shift = lowered.place(item.args[0]), item.options.get("shift", item.args[1] if len(item.args) == 2 else None)
    if source is None or shift is None or isinstance(shift, Value) or not {"shift", "axis"}.issuperset(item.options):
        return _OPTION
    axis, own = item.options.get("axis"), _own(lowered, item)
    target = own
    if axis is None:
        source, target, axis = lowered.raveled(source), Place(own.buffer, 0, (prod(own.shape),), (1,)), 0
    by = [0] * len(source.shape)
    for step, along in zip(*(a.ravel().tolist() for a in np.broadcast_arrays(shift, axis)), strict=True):
        by[along] += step
    if 0 not in own.shape:
        _roll_into(lowered, source, target, by)
    return ""


def _roll_into(lowered: Placing, source: Place, target: Place, by: Sequence[int], axis: int = 0) -> None:
    """Copy an array, rolled along its axes from one on: along each, two blocks change places."""
    if axis == len(by):
        _copy_into(lowered, source, target)
        return
    length = source.shape[axis]
    cut = by[axis] % length
    for start, stop, to in ((0, length - cut, cut), (length - cut, length, 0)):
        if stop > start:
            moved = _part(target, axis, to, to + stop - start)
            _roll_into(lowered, _part(source, axis, start, stop), moved, by, axis + 1)


def _diagonal_of(place: Place, offset: int, axis1: int, axis2: int) -> Place:
    """The diagonal of two axes, as the last axis."""
    (m, s), (n, t) = ((place.shape[a], place.strides[a]) for a in (axis1, axis2))
    start = offset * t if offset >= 0 else -offset * s
    length = max(min(m, n - offset) if offset >= 0 else min(m + offset, n), 0)
    rest = [a for a in range(len(place.shape)) if a not in (axis1, axis2)]
    shape, strides = (*(place.shape[a] for a in rest), length), (*(place.strides[a] for a in rest), s + t)
    return Place(place.buffer, place.offset + (start if length else 0), shape, strides)


def _diagonal_named(item: Any, source: Place) -> Place | None:
    if len(item.args) > 1 or not {"offset", "axis1", "axis2", "dtype"}.issuperset(item.options):
        return None
    count, options = len(source.shape), item.options
    axes = (int(options.get("axis1", 0)) % count, int(options.get("axis2", 1)) % count)
    return _diagonal_of(source, int(options.get("offset", 0)), *axes)


def _diagonal(lowered: Placing, item: Any) -> str:
    source = lowered.place(item.args[0])
    shown = None if source is None else _diagonal_named(item, source)
    if source is None or shown is None or shown.shape != np.shape(item.raw_value):
        return _OPTION
    if lowered.is_mutable(source):  # as every view of what is written into, which is told apart elsewhere
        return "it is a view that only NumPy makes"
    lowered.places[item] = shown
    return ""


def _trace(lowered: Placing, item: Any) -> str:
    source, dtype = lowered.place(item.args[0]), np.asarray(item.raw_value).dtype
    shown = None if source is None else _diagonal_named(item, source)
    if shown is None or 0 in shown.shape:
        return _OPTION
    if lowered.is_exact and dtype.kind == "f":
        return "exact=True asks for NumPy's bits"
    shown = shown if shown.buffer.dtype == dtype else lowered.copied(shown, dtype)
    total = reduced(lowered, "add", shown, frozenset({len(shown.shape) - 1}), item)
    lowered.places[item] = Place(total.buffer, 0, np.shape(item.raw_value), c_strides(np.shape(item.raw_value)))
    return ""


def _diagonal_array(lowered: Placing, item: Any) -> str:
    """``diag``: of a matrix its diagonal, of a vector a matrix."""
    source, k = lowered.place(item.args[0]), int(item.options.get("k", 0))
    if source is None or len(item.args) > 1 or not {"k"}.issuperset(item.options):
        return _OPTION
    if len(source.shape) == 2:
        shown = _diagonal_of(source, k, 0, 1)
        if lowered.is_mutable(source):
            return "it is a view that only NumPy makes"
        lowered.places[item] = shown
        return ""
    own = _own(lowered, item)
    lowered.map("copy", (0,), own, is_write=True)
    _copy_into(lowered, source, _diagonal_of(own, k, 0, 1))
    return ""


def _outer(lowered: Placing, item: Any) -> str:
    found = [lowered.place(a if isinstance(a, (Value, np.ndarray)) else np.asarray(a)) for a in item.args]
    places = [p for p in found if p is not None]
    if len(places) != 2 or item.options:
        return _OPTION
    if item.function is np.outer:
        places = [lowered.raveled(p) for p in places]
    return _multiplied(lowered, item, *places)


def _multiplied(lowered: Placing, item: Any, a: Place, b: Place) -> str:
    """Every element of one array by every one of another."""
    dtype = np.asarray(item.raw_value).dtype
    if not elementwise.can_compute("multiply", dtype):
        return f"products of {dtype} are not compiled"
    behind = (1,) * len(b.shape)
    spread = Place(a.buffer, a.offset, a.shape + behind, a.strides + (0,) * len(behind))
    own = _own(lowered, item)
    lowered.map("multiply", (spread, b), own)
    return ""


def _filled_like(lowered: Placing, item: Any) -> str:
    value, dtype = lowered.operand(item.args[-1]), np.asarray(item.raw_value).dtype
    if len(item.args) != 2 or value is None or not {"dtype", "order", "subok", "shape"}.issuperset(item.options):
        return _OPTION
    if not fits(value, dtype):
        return "floating numbers become integers"
    _copy_into(lowered, value, _own(lowered, item))
    return ""


def _same(lowered: Placing, item: Any) -> str:
    """A copy, of real numbers."""
    source = lowered.place(item.args[0])
    if source is None or item.options or lowered.is_mutable(source) or source.shape != np.shape(item.raw_value):
        return _OPTION
    lowered.places[item] = source
    return ""


def _over(lowered: Placing, item: Any) -> str:
    """``x / length``, and 0 where the length is 0."""
    dtype = np.asarray(item.raw_value).dtype
    x, length = (lowered.operand(a) for a in item.args)
    if not isinstance(length, Place) or x is None or dtype.kind != "f" or length.buffer.dtype != dtype:
        return _OPTION
    if (x.buffer.dtype if isinstance(x, Place) else np.asarray(x).dtype).kind not in "biuf":
        return _OPTION
    is_zero, safe = dense(bool, length.shape), dense(dtype, length.shape)
    lowered.map("equal", (length, 0), is_zero, dtype)
    lowered.map("where", (is_zero, 1, length), safe)
    lowered.map("divide", (x, safe), _own(lowered, item))
    return ""


def reshaped(lowered: Placing, item: Any) -> str:
    """An array in another shape, where it does not lie so that a view would do: a copy."""
    source, options = lowered.place(item.args[0]), item.options
    if item.function not in (np.reshape, np.ravel) or source is None or len(item.args) > 1:
        return "it is a view that only NumPy makes"
    if not {"shape", "order", "axis"}.issuperset(options) or options.get("order", "C") not in ("C", None):
        return "it is a view that only NumPy makes"
    if lowered.is_mutable(source) and lowered.is_shared(item):
        return "it is a view that only NumPy makes"
    own = lowered.copied(source, source.buffer.dtype)
    own.buffer.node = item
    lowered.places[item] = Place(own.buffer, 0, np.shape(item.raw_value), c_strides(np.shape(item.raw_value)))
    return ""


numpy = ops.NUMPY
PACKED = {numpy.concatenate: _concatenated, numpy.stack: _stacked}
KINDS: dict[Any, Any] = {
    numpy.pad: _padded, numpy.tile: _tiled, numpy.repeat: _repeated, numpy.roll: _rolled, numpy.diagonal: _diagonal,
    numpy.trace: _trace, numpy.diag: _diagonal_array, numpy.outer: _outer, numpy.full_like: _filled_like, numpy.real: _same,
    ops.function_named("pad"): _padded, ops.stop_gradient: _same,
    ops.ufunc_method(np.multiply, "outer"): _outer,
}  # fmt: skip
NAMED = {"over": _over}
