"""Writes whose source and target share memory, so that NumPy reads elements that it has already overwritten.

Ufuncs prevent this, and item assignment mostly does. Other forms do not (``v[::2] = v[:3]``, ``v[mask] = v[:3]``, ``v.flat[1:] =
v[:-1]``, ``np.concatenate(..., out=v)``): the result depends on the order of NumPy's loops, and is reproduced here. If elements
are only moved, NumPy makes the same moves on numbered elements, and the numbers show where each came from. Functions that compute
raise if the overlap changes their result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import ops
from ..graph import flatten_sequences
from ..storage import BufferCopy, owner_of
from ..values import Value, require_unbatched, unwrap_buffer
from .stores import put_plain, require_writeable, store

ndarray = np.ndarray
# Functions with ``out=`` that only move elements: each element of the result is one of an operand's.
MOVING: frozenset[Any] = frozenset({np.concatenate, np.stack, np.take, np.compress})


def memory_behind(node: Any) -> Any:
    """The array in which the numbers of a node lie: of one that differs between examples, those of all."""
    while node.trace_kind == "batch":
        node = node.values
        if not isinstance(node, Value):
            return node
    return node.raw_value


def overlaps(target: Any, *sources: Any) -> bool:
    """Whether a source, if it is a node, may share memory with the target."""
    there = memory_behind(target)
    nodes = [there_too for s in sources if isinstance(s, Value) and (there_too := memory_behind(s)).__class__ is ndarray]
    return any(owner_of(plain) is owner_of(there) and np.may_share_memory(plain, there) for plain in nodes)


def assign(target: Any, index: Any, value: Any, casting: Any = None) -> None:
    """``target[index] = value``, as by `stores.store`, if both may share memory."""
    value = unwrap_buffer(value)
    plain = getattr(value, "raw_value", None)  # of a value that has lost its history, `store` tells
    if plain is not None and "batch" in (value.trace_kind, target.trace_kind):
        plain = None  # what its own `store` does is right for all examples
    is_view = (
        type(plain) is ndarray and plain.base is not None and owner_of(plain) is owner_of(getattr(target, "raw_value", None))
    )
    if is_view and _reads_late(target, index, value) and overlaps(target, value):
        move_elements(target, (value,), lambda there, source: put_plain(there, index, source, casting))
    else:
        store(target, index, value, casting)


def _reads_late(target: Any, index: Any, value: Any) -> bool:
    """Whether item assignment may read overwritten elements: with a mask, and along one axis if the strides differ."""
    arrays = [part for part in (index if isinstance(index, tuple) else (index,)) if isinstance(part, ndarray)]
    if arrays:
        return any(part.dtype == bool for part in arrays)
    there = target.raw_value[index]
    return bool(there.ndim == 1 and value.ndim > 0 and there.strides[-1] != value.raw_value.strides[-1])


def move_elements(target: Any, sources: Sequence[Any], do: Callable[..., object]) -> None:
    """Do to a target what ``do(target, *sources)``, called on plain arrays with the same overlaps, does: it moves elements.

    It is called on arrays of numbered elements. So it is known which element moves where, and that is recorded and stored.
    """
    require_unbatched("a write whose source shares memory with its target", target, *sources)
    require_writeable(target)
    if any(isinstance(s, Value) and s.dtype != target.dtype and overlaps(target, s) for s in sources):
        raise ValueError(
            "source and target of a write share memory and have different dtypes, so that NumPy reads halves of what "
            "it has overwritten; write a copy (np.copy) of the source"
        )
    numbered, others = _numbered(target, sources)
    there = _part(numbered, target.raw_value)
    before = there.copy()
    pairs = zip(sources, others, strict=True)
    source_numbers = [_part(numbered, s.raw_value) if overlaps(target, s) else o for s, o in pairs]
    known = np.concatenate([np.ravel(g) for g in source_numbers])
    do(there, *source_numbers)
    changed = there != before
    if changed.any():
        order = np.argsort(known, kind="stable")
        places = order[np.searchsorted(known, there[changed], sorter=order)]
        values = np.concatenate([np.ravel(s) for s in sources])[places]
        store(target, np.nonzero(changed) if target.ndim else ..., values if target.ndim else values[0])


def _part(numbered: BufferCopy, plain: Any) -> Any:
    """The numbers, in a twin, of the elements of a view."""
    return numbered.cut(plain.shape, **{**numbered.place(plain), "dtype": numbered.dtype})


def _numbered(target: Any, sources: Sequence[Any]) -> tuple[BufferCopy, list[Any]]:
    """A twin of the target's memory with its elements numbered, and for each source an array of further numbers.

    The latter serve for sources that lie elsewhere.
    """
    kind: Any = {2: np.uint16, 4: np.uint32, 8: np.uint64}.get(target.itemsize, target.dtype)
    owner = owner_of(target.raw_value)
    twin = BufferCopy(owner.view(kind) if owner.dtype.itemsize == target.itemsize else owner)
    if twin.dtype.itemsize != target.itemsize or twin.count + sum(map(np.size, sources)) > 2 ** min(48, 8 * target.itemsize - 1):
        raise ValueError("source and target of a write share memory; write a copy (np.copy) of the source")
    twin.buffer[...] = np.arange(twin.count)
    others, count = [], twin.count
    for source in sources:
        others.append(np.arange(count, count + np.size(source)).astype(kind).reshape(np.shape(source)))
        count += np.size(source)
    return twin, others


def as_numpy_writes(function: Any, args: tuple[Any, ...], options: dict[str, Any], targets: tuple[Any, ...]) -> Any:
    """Return the values that NumPy's call with ``out=``, on copies, writes into overlapping targets; None without overlap."""
    if isinstance(function, ops.UfuncMethod) or (isinstance(function, np.ufunc) and function.signature is None):
        return None  # NumPy promises of ufuncs that overlaps make no difference
    sources = [leaf for leaf in flatten_sequences((args, tuple(options.values()))) if isinstance(leaf, Value)]
    if not any(overlaps(t, *sources) for t in targets if t is not None):
        return None
    require_unbatched("out= that shares memory with an operand", *targets, *sources)
    twins: dict[int, BufferCopy] = {}

    def apart(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(apart, value))
        if not isinstance(value, Value) or type(value.raw_value) is not ndarray:
            return value.raw_value if isinstance(value, Value) else value
        owner = owner_of(value.raw_value)
        if id(owner) not in twins:
            twins[id(owner)] = BufferCopy.copy_of(owner)
        return twins[id(owner)].cut(value.shape, **twins[id(owner)].place(value.raw_value))

    outs = tuple([None if t is None else apart(t) for t in targets])
    function(*apart(args), out=outs if len(outs) > 1 else outs[0], **{k: apart(v) for k, v in options.items()})
    return outs
