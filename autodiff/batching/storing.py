"""Writes into values that are others for each example."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from compgraph.inplace import numpy_forms, put_plain, require_writeable
from compgraph.inplace import store as store_node
from compgraph.values import BatchedValueError, Value, describe

from .examples import OneByOneError, Where, front, located
from .values import is_batch, plain_base


def require_within(level: int, target: Any, index: Any) -> None:
    """Raise unless what is written into differs between the examples of the innermost vmap of all that is involved."""
    parts = index if isinstance(index, tuple) else (index,)
    if not is_batch(target) or target.level != level or any(is_batch(i) and i.level > level for i in parts):
        raise TypeError(
            f"vmap: a value that differs between the examples cannot be written into the {describe(target)}, which is one "
            "for all of them; make the array inside the function that is given to vmap (np.zeros_like(x), cg.zeros(shape)), "
            "or there of one that differs (w + np.zeros_like(x))"
        )


def store(target: Any, index: Any, value: Any, casting: Any) -> None:
    """``target[index] = value`` for each example."""
    _require_own_places(target)
    level = target.level
    differs = is_batch(value) and value.level == level
    values = value.values if differs else value
    parts, held = _parts_of(target, index, (values,))
    if any(is_batch(i) and i.dtype.kind == "b" for i in parts):
        _store_masked(target, parts, value, casting)
        return
    into = target.values
    if not any(held) and not differs and _is_basic(parts):
        _put(into, (slice(None), *parts), _along_examples(values, into, parts), casting)
        return
    where = _located(target, parts, held)
    pieces = values if differs else np.broadcast_to(values, (target.count, *np.shape(values)))
    pieces = _fitting(pieces, where.shape, target.count)
    _put(into, where.index, where.back(pieces), casting)


def change(ufunc: np.ufunc, target: Any, index: Any, others: tuple[Any, ...]) -> None:
    """``ufunc.at(target, index, *others)`` for each example, of which no two have a place in common: as one such call."""
    _require_own_places(target)
    level = target.level
    each = [other.values if is_batch(other) and other.level == level else other for other in others]
    parts, held = _parts_of(target, numpy_forms.own_index(index), each)
    if any(is_batch(i) and i.dtype.kind == "b" for i in parts):
        name = ufunc.__name__
        raise BatchedValueError(
            f"vmap: np.{name}.at at a mask that differs between the examples, which chooses other places for each; use "
            f"x[...] = np.where(mask, np.{name}(x, ...), x)"
        )
    where = _located(target, parts, held)
    pieces = [where.back(_spread(new, new is not old, where.shape, target.count)) for new, old in zip(each, others, strict=True)]
    ufunc.at(target.values, where.index, *pieces)


def _spread(values: Any, differs: bool, there: tuple[int, ...], count: int) -> Any:
    """An operand of ``ufunc.at`` for each example, of the shape of the place."""
    if np.ndim(values) - differs > len(there):
        raise ValueError("array is not broadcastable to correct shape")
    return np.broadcast_to(front(values, len(there)) if differs else values, (count, *there))


def _require_own_places(target: Any) -> None:
    """Raise unless a target may be written into, and its elements are places of their own."""
    require_writeable(target)
    root = target if target.root is None else target.root
    is_locked = not root.borrows_values and not plain_base(target.values).flags.writeable
    overlaps = target.count and any(step == 0 and length > 1 for step, length in zip(target.strides, target.shape, strict=True))
    if is_locked or overlaps:  # NumPy's strides of nothing are zero
        raise ValueError("assignment destination is read-only")


def _parts_of(target: Any, index: Any, values: Iterable[Any]) -> tuple[list[Any], list[bool]]:
    """The parts of an index, and which of them differ between the examples; the target becomes one that takes them and values."""
    for each in values:
        target.own(each)
    parts = list(index) if isinstance(index, tuple) else [index]
    held = [is_batch(i) and i.level == target.level for i in parts]
    for part, h in zip(parts, held, strict=True):
        if is_batch(part):  # what is held has the vmaps further out in its values
            target.own(part.values if h else part)
    return parts, held


def _located(target: Any, parts: list[Any], held: list[bool]) -> Where:
    try:
        return located(target.shape, [i.values if h else i for i, h in zip(parts, held, strict=True)], held, target.count)
    except OneByOneError:
        raise TypeError("vmap: a write at this index, with a truth value in it, is not supported; use np.where") from None


def _is_basic(parts: list[Any]) -> bool:
    return all(i is None or i is Ellipsis or (isinstance(i, (int, np.integer, slice)) and not isinstance(i, bool)) for i in parts)


def _along_examples(values: Any, into: Any, parts: list[Any]) -> Any:
    """A value that is the same for all, checked against one example: more axes than that has must have length one."""
    there = np.empty(into.shape[1:], bool)[tuple(parts)].shape
    shape = np.shape(values)
    np.broadcast_to(np.empty((), bool), there)
    while len(shape) > len(there):
        if shape[0] != 1:
            raise ValueError(f"could not broadcast input array from shape {np.shape(values)} into shape {there}")
        shape = shape[1:]
    return values if shape == np.shape(values) else np.reshape(values, shape)


def _fitting(pieces: Any, there: tuple[int, ...], count: int) -> Any:
    """What is written for each example, of the shape of the place."""
    if pieces.shape[1:] == there:  # as it is: it may lie there already
        return pieces
    shape = pieces.shape[1:]
    while len(shape) > len(there):
        if shape[0] != 1:
            raise ValueError(f"could not broadcast input array from shape {pieces.shape[1:]} into shape {there}")
        shape = shape[1:]
    if shape != pieces.shape[1:]:
        pieces = np.reshape(pieces, (count, *shape))
    return np.broadcast_to(front(pieces, len(there)), (count, *there))


def _store_masked(target: Any, parts: list[Any], value: Any, casting: Any) -> None:
    """Where a mask of each example holds: what is chosen by it, everywhere."""
    mask = parts[0]
    rest = target.ndim - mask.ndim
    if len(parts) > 1 or mask.shape != target.shape[: mask.ndim] or (np.ndim(value) > rest and np.size(value) != 1):
        raise TypeError(
            "vmap: x[mask] = values, with a mask that differs between the examples, takes a single value for all places; use "
            "x[...] = np.where(mask, values, x)"
        )
    chosen = np.reshape(mask, (*mask.shape, *(1,) * rest))
    flat = np.reshape(value, ()) if np.size(value) == 1 and np.ndim(value) > rest else value
    filled: Any = np.where(chosen, flat, target)
    if casting is not None and casting != "unsafe":
        np.result_type(target, flat)
    target.own(filled.values)
    _put(target.values, ..., filled.values, "unsafe")


def _put(into: Any, index: Any, pieces: Any, casting: Any) -> None:
    if isinstance(into, Value):
        store_node(into, index if casting is None else ..., pieces, casting)
    elif isinstance(pieces, Value):
        raise TypeError("vmap: a node is written into an array that holds numbers alone; make it by np.zeros_like(x)")
    else:
        put_plain(into, index, pieces, casting)
