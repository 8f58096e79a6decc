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
from numpy.typing import NDArray

from .. import ops
from ..graph import flatten_sequences
from ..storage import BufferCopy, owner_of
from ..values import Value, require_unbatched, unwrap_buffer
from .stores import require_writeable, store, store_plain

ndarray = np.ndarray


def backing_array(node: Any) -> Any:
    """Return the plain array of a node; for a batched value, that of all batch elements."""
    while node.trace_kind == "batch":
        node = node.values
        if not isinstance(node, Value):
            return node
    return node.raw_value


def overlaps(target: object, *sources: object) -> bool:
    """Whether a node among the sources may share memory with the target."""
    target_array = backing_array(target)
    nodes = [source_array for s in sources if isinstance(s, Value) and (source_array := backing_array(s)).__class__ is ndarray]
    return any(owner_of(plain) is owner_of(target_array) and np.may_share_memory(plain, target_array) for plain in nodes)


def assign(target: Any, index: object, value: Any, casting: str | None = None) -> None:
    """Store ``target[index] = value`` as `stores.store` does, also if both share memory."""
    value = unwrap_buffer(value)
    plain = getattr(value, "raw_value", None)  # `store` raises for a value without history
    if plain is not None and "batch" in (value.trace_kind, target.trace_kind):
        plain = None  # the `store` of batched values handles overlaps
    is_view = (
        type(plain) is ndarray and plain.base is not None and owner_of(plain) is owner_of(getattr(target, "raw_value", None))
    )
    if is_view and _may_read_overwritten(target, index, value) and overlaps(target, value):
        move_elements(target, (value,), lambda target_array, source: store_plain(target_array, index, source, casting))
    else:
        store(target, index, value, casting)


def _may_read_overwritten(target: Any, index: Any, value: Any) -> bool:
    """Whether item assignment may read overwritten elements: with a mask, and along one axis if the strides differ."""
    arrays = [part for part in (index if isinstance(index, tuple) else (index,)) if isinstance(part, ndarray)]
    if arrays:
        return any(part.dtype == bool for part in arrays)
    target_array = target.raw_value[index]
    return bool(target_array.ndim == 1 and value.ndim > 0 and target_array.strides[-1] != value.raw_value.strides[-1])


def move_elements(target: Any, sources: Sequence[Any], move: Callable[..., object]) -> None:
    """Reproduce and record the call ``move(target, *sources)``, which only moves elements, for sources that overlap the target.

    `move` is called on plain arrays of element numbers with the same overlaps. The result shows which element moved where.
    """
    require_unbatched("a write whose source shares memory with its target", target, *sources)
    require_writeable(target)
    if any(isinstance(s, Value) and s.dtype != target.dtype and overlaps(target, s) for s in sources):
        raise ValueError(
            "source and target of a write share memory and have different dtypes, so that NumPy reads partly overwritten "
            "elements; write a copy (np.copy) of the source"
        )
    numbered, other_numbers = _number_elements(target, sources)
    target_array = _window_numbers(numbered, target.raw_value)
    before = target_array.copy()
    source_numbers = [
        _window_numbers(numbered, source.raw_value) if overlaps(target, source) else other
        for source, other in zip(sources, other_numbers, strict=True)
    ]
    all_numbers = np.concatenate([np.ravel(numbers) for numbers in source_numbers])
    move(target_array, *source_numbers)
    changed = target_array != before
    if changed.any():
        order = np.argsort(all_numbers, kind="stable")
        positions = order[np.searchsorted(all_numbers, target_array[changed], sorter=order)]
        values = np.concatenate([np.ravel(s) for s in sources])[positions]
        store(target, np.nonzero(changed) if target.ndim else ..., values if target.ndim else values[0])


def _window_numbers(numbered: BufferCopy, plain: NDArray[Any]) -> Any:
    """Return the element numbers of a view."""
    return numbered.view_at(plain.shape, **{**numbered.layout(plain), "dtype": numbered.dtype})


def _number_elements(target: Any, sources: Sequence[Any]) -> tuple[BufferCopy, list[Any]]:
    """Number the elements of the target's memory; return the numbered copy, and an array of further numbers for each source.

    The further numbers are used for sources in other memory.
    """
    dtype: Any = {2: np.uint16, 4: np.uint32, 8: np.uint64}.get(target.itemsize, target.dtype)
    owner = owner_of(target.raw_value)
    numbered = BufferCopy(owner.view(dtype) if owner.dtype.itemsize == target.itemsize else owner)
    max_count = 2 ** min(48, 8 * target.itemsize - 1)  # numbers that the dtype represents exactly
    if numbered.dtype.itemsize != target.itemsize or numbered.count + sum(map(np.size, sources)) > max_count:
        raise ValueError("source and target of a write share memory; write a copy (np.copy) of the source")
    numbered.buffer[...] = np.arange(numbered.count)
    other_numbers, count = [], numbered.count
    for source in sources:
        other_numbers.append(np.arange(count, count + np.size(source)).astype(dtype).reshape(np.shape(source)))
        count += np.size(source)
    return numbered, other_numbers


def simulate_numpy_writes(
    function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], targets: tuple[Any, ...]
) -> Any:
    """Call NumPy with ``out=`` on copies of overlapping arrays and return the written values; None without overlap."""
    if isinstance(function, ops.UfuncMethod) or (isinstance(function, np.ufunc) and function.signature is None):
        return None  # NumPy guarantees that overlaps do not change the results of ufuncs
    sources = [leaf for leaf in flatten_sequences((args, tuple(options.values()))) if isinstance(leaf, Value)]
    if not any(overlaps(t, *sources) for t in targets if t is not None):
        return None
    require_unbatched("out= that shares memory with an operand", *targets, *sources)
    copies: dict[int, BufferCopy] = {}

    def copy_operand(value: object) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(copy_operand, value))
        if not isinstance(value, Value) or type(value.raw_value) is not ndarray:
            return value.raw_value if isinstance(value, Value) else value
        owner = owner_of(value.raw_value)
        if id(owner) not in copies:
            copies[id(owner)] = BufferCopy.copy_of(owner)
        return copies[id(owner)].view_at(value.shape, **copies[id(owner)].layout(value.raw_value))

    outs = tuple([None if t is None else copy_operand(t) for t in targets])
    function(*copy_operand(args), out=outs if len(outs) > 1 else outs[0], **{k: copy_operand(v) for k, v in options.items()})
    return outs
