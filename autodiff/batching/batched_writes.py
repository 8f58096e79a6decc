"""In-place writes into batched values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.inplace import numpy_writes, require_writeable, store_plain
from compgraph.inplace import store as store_node
from compgraph.values import BatchedValueError, Value, describe

from .levels import broadcast_batch, is_batch, pad_ndim, plain_base
from .rules import BatchIndex, NoBatchRuleError, batch_index


def require_batched_target(level: int, target: NDArray[Any], index: object) -> None:
    """Raise a TypeError unless the target of a write is batched at `level`, the innermost level of all operands."""
    parts = index if isinstance(index, tuple) else (index,)
    if not is_batch(target) or target.level != level or any(is_batch(i) and i.level > level for i in parts):
        raise TypeError(
            f"vmap: a batched value cannot be written into the {describe(target)}, which all batch elements share. Make the "
            "array inside the function under vmap, from a batched value (np.zeros_like(x), w + np.zeros_like(x)) or by "
            "cg.zeros(shape)"
        )


def store(target: Any, index: Any, value: Any, casting: str | None) -> None:
    """Write ``target[index] = value`` for all elements of the batch.

    Parameters
    ----------
    target : BatchNode
        The array that is written into.
    index : object
        An index of one element; it may be batched.
    value : array_like or BatchNode
        The new values, which broadcast as in NumPy.
    casting : str or None
        As in `compgraph.inplace.store`.
    """
    _require_writable(target)
    level = target.level
    is_batched = is_batch(value) and value.level == level
    values = value.values if is_batched else value
    parts, batched = _prepare_parts(target, index, (values,))
    if any(is_batch(i) and i.dtype.kind == "b" for i in parts):
        _store_masked(target, parts, value, casting)
        return
    target_values = target.values
    if not any(batched) and not is_batched and _is_basic(parts):
        _put(target_values, (slice(None), *parts), _shared_value(values, target_values, parts), casting)
        return
    where = _batch_index_of(target, parts, batched)
    values = values if is_batched else broadcast_batch(values, target.batch_size)
    values = _broadcast_elements(values, where.shape, target.batch_size)
    _put(target_values, where.index, where.from_front(values), casting)


def ufunc_at(ufunc: np.ufunc, target: Any, index: Any, others: tuple[Any, ...]) -> None:
    """Call ``ufunc.at(target, index, *others)`` for all elements of the batch at once."""
    _require_writable(target)
    level = target.level
    values = [other.values if is_batch(other) and other.level == level else other for other in others]
    parts, batched = _prepare_parts(target, numpy_writes.copy_index(index), values)
    if any(is_batch(i) and i.dtype.kind == "b" for i in parts):
        name = ufunc.__name__
        raise BatchedValueError(
            f"vmap: np.{name}.at with a batched mask would select a different number of elements for each batch element. Use "
            f"x[...] = np.where(mask, np.{name}(x, ...), x)"
        )
    where = _batch_index_of(target, parts, batched)
    size = target.batch_size
    pairs = zip(values, others, strict=True)
    operands = [where.from_front(_broadcast_operand(new, new is not old, where.shape, size)) for new, old in pairs]
    ufunc.at(target.values, where.index, *operands)


def _broadcast_operand(values: NDArray[Any], is_batched: bool, shape: tuple[int, ...], batch_size: int) -> Any:
    """Broadcast an operand of ``ufunc.at`` to the shape that the index selects, for each element."""
    if np.ndim(values) - is_batched > len(shape):
        raise ValueError("array is not broadcastable to correct shape")
    return np.broadcast_to(pad_ndim(values, len(shape)) if is_batched else values, (batch_size, *shape))


def _require_writable(target: Any) -> None:
    """Raise unless a target is writeable and its elements do not overlap in memory."""
    require_writeable(target)
    root = target if target.root is None else target.root
    is_locked = not root.borrows_values and not plain_base(target.values).flags.writeable
    pairs = zip(target.strides, target.shape, strict=True)
    overlaps = target.batch_size and any(step == 0 and length > 1 for step, length in pairs)  # an empty batch has strides 0
    if target.size and (is_locked or overlaps):
        raise ValueError("assignment destination is read-only")


def _prepare_parts(target: Any, index: object, values: Iterable[object]) -> tuple[list[Any], list[bool]]:
    """Prepare the target's buffer for values and indices; return the parts of the index, and which of them are batched."""
    for each in values:
        target.prepare_write(each)
    parts = list(index) if isinstance(index, tuple) else [index]
    batched = [is_batch(i) and i.level == target.level for i in parts]
    for part, is_batched in zip(parts, batched, strict=True):
        if is_batch(part):
            target.prepare_write(part.values if is_batched else part)  # for the batch axes of outer levels
    return parts, batched


def _batch_index_of(target: Any, parts: Sequence[Any], batched: Sequence[bool]) -> BatchIndex:
    """Return the index of a batched array, given the parts of an index of one element."""
    try:
        values = [i.values if is_batched else i for i, is_batched in zip(parts, batched, strict=True)]
        return batch_index(target.shape, values, batched, target.batch_size)
    except NoBatchRuleError:
        raise TypeError(
            f"vmap: an assignment to the {describe(target)} at an index that contains True or False is not supported. Use "
            "np.where(condition, values, x)"
        ) from None


def _is_basic(parts: Sequence[object]) -> bool:
    """Whether an index consists of integers, slices, None and an ellipsis."""
    return all(i is None or i is Ellipsis or (isinstance(i, (int, np.integer, slice)) and not isinstance(i, bool)) for i in parts)


def _drop_leading_ones(shape: tuple[int, ...], selected: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of values without leading axes of length one that a selection lacks; as NumPy, raises for longer ones."""
    rest = shape
    while len(rest) > len(selected):
        if rest[0] != 1:
            raise ValueError(f"could not broadcast input array from shape {shape} into shape {selected}")
        rest = rest[1:]
    return rest


def _shared_value(values: float, into: NDArray[Any], parts: Sequence[Any]) -> Any:
    """Reshape a value that all elements share: drop the leading axes that the selection of one element lacks."""
    selected = np.empty(into.shape[1:], bool)[tuple(parts)].shape
    shape = _drop_leading_ones(np.shape(values), selected)
    return values if shape == np.shape(values) else np.reshape(values, shape)


def _broadcast_elements(values: NDArray[Any], selected: tuple[int, ...], batch_size: int) -> Any:
    """Broadcast batched values to the shape that an index selects from each element."""
    if values.shape[1:] == selected:  # unchanged: it may be a view of the target
        return values
    shape = _drop_leading_ones(values.shape[1:], selected)
    if shape != values.shape[1:]:
        values = np.reshape(values, (batch_size, *shape))
    return np.broadcast_to(pad_ndim(values, len(selected)), (batch_size, *selected))


def _store_masked(target: Any, parts: Sequence[Any], value: Any, casting: str | None) -> None:
    """Write ``target[mask] = value`` with a batched mask, as ``target[...] = np.where(mask, value, target)``."""
    mask = parts[0]
    rest = target.ndim - mask.ndim
    if len(parts) > 1 or mask.shape != target.shape[: mask.ndim] or (np.ndim(value) > rest and np.size(value) != 1):
        raise TypeError(
            f"vmap: x[mask] = values with a batched mask of shape {mask.shape} needs a single value, not values of shape "
            f"{np.shape(value)}. Use x[...] = np.where(mask, values, x)"
        )
    mask = np.reshape(mask, (*mask.shape, *(1,) * rest))
    new = np.reshape(value, ()) if np.size(value) == 1 and np.ndim(value) > rest else value
    new_values: Any = np.where(mask, new, target)
    if casting is not None and casting != "unsafe":
        np.result_type(target, new)
    target.prepare_write(new_values.values)
    _put(target.values, ..., new_values.values, "unsafe")


def _put(target_values: object, index: object, values: NDArray[Any], casting: str | None) -> None:
    """Write into the values of a target, which are an array or a node."""
    if isinstance(target_values, Value):
        store_node(target_values, index if casting is None else ..., values, casting)
    elif isinstance(values, Value):
        raise TypeError(
            f"vmap: the {describe(values)} cannot be written into a plain array, which records no writes. Make the array by "
            "np.zeros_like(x)"
        )
    else:
        store_plain(target_values, index, values, casting)
