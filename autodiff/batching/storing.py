"""Writes into values that are others for each example."""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.graph import Node
from compgraph.inplace import put_plain, require_writeable
from compgraph.inplace import store as store_node

from .examples import OneByOneError, front, located
from .values import is_batch, plain_base


def store(target: Any, index: Any, value: Any, casting: Any) -> None:
    """``target[index] = value`` for each example."""
    require_writeable(target)
    root = target if target.root is None else target.root
    is_locked = not root.is_lent and not plain_base(target.values).flags.writeable
    overlaps = target.count and any(step == 0 and length > 1 for step, length in zip(target.strides, target.shape, strict=True))
    if is_locked or overlaps:  # NumPy's strides of nothing are zero
        raise ValueError("assignment destination is read-only")
    level = target.level
    differs = is_batch(value) and value.level == level
    values = value.values if differs else value
    target.own(values)
    parts = list(index) if isinstance(index, tuple) else [index]
    held = [is_batch(i) and i.level == level for i in parts]
    for part, h in zip(parts, held, strict=True):
        if is_batch(part):  # what is held has the vmaps further out in its values
            target.own(part.values if h else part)
    if any(is_batch(i) and i.dtype.kind == "b" for i in parts):
        _store_masked(target, parts, value, casting)
        return
    into = target.values
    if not any(held) and not differs and _is_basic(parts):
        _put(into, (slice(None), *parts), _along_examples(values, into, parts), casting)
        return
    try:
        where = located(target.shape, [i.values if h else i for i, h in zip(parts, held, strict=True)], held, target.count)
    except OneByOneError:
        raise TypeError("vmap: a write at this index, with a truth value in it, is not supported; use np.where") from None
    pieces = values if differs else np.broadcast_to(values, (target.count, *np.shape(values)))
    pieces = _fitting(pieces, where.shape, target.count)
    _put(into, where.index, where.back(pieces), casting)


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
    if isinstance(into, Node):
        store_node(into, index if casting is None else ..., pieces, casting)
    elif isinstance(pieces, Node):
        raise TypeError("vmap: a node is written into an array that holds numbers alone; make it by np.zeros_like(x)")
    else:
        put_plain(into, index, pieces, casting)
