"""Writes whose source and target lie in one memory, where NumPy reads what it has already overwritten.

Ufuncs take care of that, and item assignment mostly does. What does not (``v[::2] = v[:3]``, ``v[mask] = v[:3]``,
``v.flat[1:] = v[:-1]``, ``np.concatenate(..., out=v)``) leaves what NumPy's loops happen to, and that is the value here too.
Where elements are only moved, NumPy is asked where each comes from: it does the same on numbered elements. Of functions that
compute, an answer that depends on it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import operations as ops
from ..graph import Node, Twin, leaves_of, owner_of, require_single
from .writing import put_plain, require_writeable, store

ndarray = np.ndarray
# They move elements; what they write has been somewhere before.
MOVING: frozenset[Any] = frozenset({np.concatenate, np.stack, np.take, np.compress})


def memory_behind(node: Any) -> Any:
    """The array in which the numbers of a node lie: of one that differs between examples, those of all."""
    while node.carries == "batch":
        node = node.values
        if not isinstance(node, Node):
            return node
    return node.plain


def overlap(target: Any, *sources: Any) -> bool:
    """Whether a source may lie where a target does."""
    there = memory_behind(target)
    nodes = [there_too for s in sources if isinstance(s, Node) and (there_too := memory_behind(s)).__class__ is ndarray]
    return any(owner_of(plain) is owner_of(there) and np.may_share_memory(plain, there) for plain in nodes)


def assign(target: Any, index: Any, value: Any, casting: Any = None) -> None:
    """``target[index] = value``, which may lie in one memory; see `writing.store`."""
    plain = getattr(value, "plain", None)  # of a value that has lost its history, `store` tells
    if plain is not None and (value.level or target.level) and "batch" in (value.carries, target.carries):
        plain = None  # what its own `store` does is right for all examples
    is_view = (
        plain.__class__ is ndarray and plain.base is not None and owner_of(plain) is owner_of(getattr(target, "plain", None))
    )
    if is_view and _reads_late(target, index, value) and overlap(target, value):
        move(target, (value,), lambda there, given: put_plain(there, index, given, casting))
    else:
        store(target, index, value, casting)


def _reads_late(target: Any, index: Any, value: Any) -> bool:
    """Whether NumPy may read what it has overwritten: at a mask, and along one axis if the strides differ."""
    arrays = [part for part in (index if isinstance(index, tuple) else (index,)) if isinstance(part, ndarray)]
    if arrays:
        return any(part.dtype == bool for part in arrays)
    there = target.plain[index]
    return bool(there.ndim == 1 and value.ndim > 0 and there.strides[-1] != value.plain.strides[-1])


def move(target: Any, sources: Sequence[Any], do: Callable[..., object]) -> None:
    """Write into a target what ``do(target, *sources)`` moves there, of plain arrays that lie as these do."""
    require_single("a write whose source lies in the memory of its target", target, *sources)
    require_writeable(target)
    if any(isinstance(s, Node) and s.dtype != target.dtype and overlap(target, s) for s in sources):
        raise ValueError(
            "source and target of a write lie in the same memory and have different dtypes, so that NumPy reads halves of what "
            "it has overwritten; write a copy (np.copy) of the source"
        )
    numbered, others = _numbered(target, sources)
    there = _part(numbered, target.plain)
    before = there.copy()
    pairs = zip(sources, others, strict=True)
    given = [_part(numbered, s.plain) if overlap(target, s) else o for s, o in pairs]
    known = np.concatenate([np.ravel(g) for g in given])
    do(there, *given)
    changed = there != before
    if changed.any():
        order = np.argsort(known, kind="stable")
        places = order[np.searchsorted(known, there[changed], sorter=order)]
        values = np.concatenate([np.ravel(s) for s in sources])[places]
        store(target, np.nonzero(changed) if target.ndim else ..., values if target.ndim else values[0])


def _part(numbered: Twin, plain: Any) -> Any:
    """The numbers of the elements of a view."""
    return numbered.cut(plain.shape, **{**numbered.place(plain), "dtype": numbered.dtype})


def _numbered(target: Any, sources: Sequence[Any]) -> tuple[Twin, list[Any]]:
    """The memory of a target with the elements numbered, and sources that lie elsewhere, with numbers that go on from there."""
    kind: Any = {2: np.uint16, 4: np.uint32, 8: np.uint64}.get(target.itemsize, target.dtype)
    owner = owner_of(target.plain)
    twin = Twin(owner.view(kind) if owner.dtype.itemsize == target.itemsize else owner)
    if twin.dtype.itemsize != target.itemsize or twin.count + sum(map(np.size, sources)) > 2 ** min(48, 8 * target.itemsize - 1):
        raise ValueError("source and target of a write lie in the same memory; write a copy (np.copy) of the source")
    twin.buffer[...] = np.arange(twin.count)
    others, count = [], twin.count
    for source in sources:
        others.append(np.arange(count, count + np.size(source)).astype(kind).reshape(np.shape(source)))
        count += np.size(source)
    return twin, others


def as_numpy_writes(function: Any, args: tuple[Any, ...], options: dict[str, Any], targets: tuple[Any, ...]) -> Any:
    """What a call with ``out=`` leaves in its targets, if these lie in the memory of an operand; else None."""
    if isinstance(function, ops.UfuncMethod) or (isinstance(function, np.ufunc) and function.signature is None):
        return None  # NumPy promises that it makes no difference
    sources = [leaf for leaf in leaves_of((args, tuple(options.values()))) if isinstance(leaf, Node)]
    if not any(overlap(t, *sources) for t in targets if t is not None):
        return None
    require_single("out= that lies in the memory of an operand", *targets, *sources)
    twins: dict[int, Twin] = {}

    def apart(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(apart, value))
        if not isinstance(value, Node) or value.plain.__class__ is not ndarray:
            return value.plain if isinstance(value, Node) else value
        owner = owner_of(value.plain)
        if id(owner) not in twins:
            twins[id(owner)] = Twin.copy_of(owner)
        return twins[id(owner)].cut(value.shape, **twins[id(owner)].place(value.plain))

    outs = tuple([None if t is None else apart(t) for t in targets])
    function(*apart(args), out=outs if len(outs) > 1 else outs[0], **{k: apart(v) for k, v in options.items()})
    return outs
