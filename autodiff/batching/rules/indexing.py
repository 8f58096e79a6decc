"""Batching rules of indexing, for reading and for accumulating; indices may be batched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.bind import bind
from compgraph.ops import getitem
from compgraph.values import BatchedValueError, Value

from ..levels import broadcast_batch, is_batch, pad_ndim
from .call import RULES_BY_OPNAME, Call, NoBatchRuleError, flatten_elements, shift_axis

ALL = slice(None)
Part = tuple[Any, bool]  # a part of an index, and whether it is batched


class BatchIndex:
    """The index of a batched array that selects from each element what an index of one element selects.

    Attributes
    ----------
    index : tuple
        The parts of the index.
    shape : tuple of int
        The shape of the selection from one element.
    axis_move : tuple or None
        ``(source, destination)`` for `numpy.moveaxis`, which moves the batch axis of a selection to the front; None if it is
        there.
    """

    __slots__ = ("axis_move", "index", "shape")

    def __init__(self, index: tuple[Any, ...], shape: tuple[int, ...], axis_move: tuple[Any, Any] | None = None) -> None:
        self.index, self.shape, self.axis_move = index, shape, axis_move

    def to_front(self, selection: NDArray[Any]) -> Any:
        """Move the batch axis of a selection to the front."""
        return selection if self.axis_move is None else np.moveaxis(selection, *self.axis_move)

    def from_front(self, values: NDArray[Any]) -> Any:
        """Move the batch axis of values to where NumPy expects it in an assignment at this index."""
        return values if self.axis_move is None else np.moveaxis(values, *self.axis_move[::-1])


def batch_index(shape: tuple[int, ...], parts: Sequence[Any], batched: Sequence[bool], batch_size: int | None) -> BatchIndex:
    """Convert an index of one element to an index of the batched array.

    Parameters
    ----------
    shape : tuple of int
        The shape of one element of the array.
    parts : sequence
        The parts of the index; batched ones with the batch axis first.
    batched : sequence of bool
        Which parts are batched.
    batch_size : int or None
        The length of the batch axis of the array; None if the array is not batched.
    """
    full = _expand_ellipsis(len(shape), _to_integers(parts, batched))
    region = np.empty(shape, bool)[tuple([_unbatched_part(part, is_batched) for part, is_batched in full])].shape
    advanced = [k for k, (part, _) in enumerate(full) if not (part is None or isinstance(part, slice))]
    arrays = [k for k in advanced if isinstance(full[k][0], np.ndarray)]
    before = (ALL,) if batch_size is not None else ()
    if not arrays:
        return BatchIndex((*before, *[part for part, _ in full]), region)
    ndim = max(full[k][0].ndim - full[k][1] for k in arrays)
    is_split = advanced[-1] - advanced[0] + 1 != len(advanced)  # NumPy puts the axes of separated index arrays first
    first_axis = 0 if is_split else advanced[0]  # of the index arrays, in a selection
    if not any(is_batched for _, is_batched in full):
        return BatchIndex((*before, *[part for part, _ in full]), region, (ndim, 0) if is_split else None)
    index = tuple([pad_ndim(part, ndim) if is_batched else part for part, is_batched in full])
    if batch_size is None:
        return BatchIndex(index, region, (first_axis, 0) if first_axis else None)
    rows = np.reshape(np.arange(batch_size), (batch_size, *(1,) * ndim))
    # The rows are the first index array. Unless the others follow directly, NumPy puts the axes of all of them first.
    axis_move = tuple(range(1, 1 + ndim)), tuple(range(1 + first_axis, 1 + first_axis + ndim))
    return BatchIndex((rows, *index), region, axis_move if first_axis else None)


def _unbatched_part(part: Any, batched: bool) -> Any:
    """A part of an index for one element; zeros in place of batched integers."""
    if batched or is_batch(part):
        return np.zeros(part.shape[batched:], np.intp)
    return part.raw_value if isinstance(part, Value) else part


def _to_integers(parts: Sequence[Any], batched: Sequence[bool]) -> list[Part]:
    """The parts of an index, with boolean arrays replaced by arrays of integers."""
    if len(parts) == 1 and isinstance(parts[0], tuple):
        parts = list(parts[0])
        batched = [False] * len(parts)
    integers: list[Part] = []
    for part, is_batched in zip(parts, batched, strict=True):
        if (is_batched or is_batch(part)) and part.dtype.kind == "b":
            raise BatchedValueError(
                "vmap: x[mask] with a batched mask would have a different shape for each batch element. Use np.where(mask, x, "
                "other), or a reduction with where=, such as np.sum(x, where=mask)"
            )
        if isinstance(part, (bool, np.bool_)) or (
            isinstance(part, np.ndarray) and not is_batched and part.dtype.kind == "b" and not part.ndim
        ):
            raise NoBatchRuleError
        if isinstance(part, list):
            part = np.array(part) if part else np.array(part, np.intp)
        if isinstance(part, np.ndarray) and not is_batched and part.dtype.kind == "b":
            integers += [(positions, False) for positions in np.nonzero(part)]
        else:
            integers.append((part, is_batched))
    return integers


def _expand_ellipsis(ndim: int, parts: list[Part]) -> list[Part]:
    """An index with one part for each axis."""
    used = sum(1 for part, _ in parts if part is not None and part is not Ellipsis)
    if used > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed")
    if not any(part is Ellipsis for part, _ in parts):
        parts = [*parts, (Ellipsis, False)]
    full: list[Part] = []
    for part, is_batched in parts:
        full += [(ALL, False)] * (ndim - used) if part is Ellipsis else [(part, is_batched)]
    return full


def has_ellipsis(parts: Sequence[Any]) -> bool:
    """Whether an index contains an ellipsis, so that it selects a 0-d array rather than a number."""
    parts = parts[0] if len(parts) == 1 and isinstance(parts[0], tuple) else parts
    return any(part is Ellipsis for part in parts)


def select(call: Call) -> Any:
    """``x[index]``."""
    x, *parts = call.values
    shape = np.shape(x)[1:] if call.has_batch_axis[0] else np.shape(x)
    batched_index = batch_index(shape, parts, call.has_batch_axis[1:], call.batch_size if call.has_batch_axis[0] else None)
    has_nodes = any(isinstance(i, Value) for i in batched_index.index)
    selection = batched_index.to_front(bind(getitem, (x, *batched_index.index) if has_nodes else (x, batched_index.index)))
    if selection.ndim == 1 and not has_ellipsis(parts):
        return np.copy(selection)  # a number of each element, which is not a view
    return selection


def scatter(call: Call) -> Any:
    """``scatter(like, update, *index, update, *index, ..., index_counts=...)``, the transpose of ``like[index]``."""
    like, shape = call.values[0], call.values[0].shape[1:] if call.has_batch_axis[0] else call.values[0].shape
    size = call.batch_size
    if not call.has_batch_axis[0]:
        like = np.broadcast_to(np.zeros((), like.dtype), (size, *shape))
    operands: list[Any] = [like]
    index_counts, start = [], 1
    for width in call.options["index_counts"]:
        stop = start + 1 + width
        batched_index = batch_index(shape, call.values[start + 1 : stop], call.has_batch_axis[start + 1 : stop], size)
        updates = call.values[start] if call.has_batch_axis[start] else broadcast_batch(call.values[start], size)
        updates = np.broadcast_to(pad_ndim(updates, len(batched_index.shape)), (size, *batched_index.shape))
        operands += [batched_index.from_front(updates), *batched_index.index]
        index_counts.append(len(batched_index.index))
        start = stop
    return call.run(operands, index_counts=tuple(index_counts))


def take(call: Call) -> Any:
    """``np.take``; without an axis, from flattened elements."""
    axis, x = call.options.get("axis"), call.values[0]
    if len(call.values) < 2 or not call.has_batch_axis[1]:
        if axis is None:
            return call.on_first(flatten_elements(call.first()), axis=1)
        return call.on_first(x, axis=shift_axis(axis, call.ndims[0]))
    if call.options.get("mode", "raise") != "raise":
        raise NoBatchRuleError
    ndim = call.ndims[0]
    if axis is None:
        x, axis, ndim = flatten_elements(x) if call.has_batch_axis[0] else np.ravel(x), 0, 1
    parts = [x, *[ALL] * (shift_axis(axis, ndim) - 1), call.values[1]]
    return select(Call(getitem, parts, [call.has_batch_axis[0], *[False] * (len(parts) - 2), True], {}, call.batch_size))


def take_along_axis(call: Call) -> Any:
    """``np.take_along_axis``."""
    x, indices = call.all_batched()
    axis = call.options.get("axis", -1)
    if axis is None:
        return call.run((flatten_elements(x), indices), axis=1)
    return call.run((x, indices), axis=shift_axis(axis, call.ndims[0]))


RULES_BY_OPNAME |= {"getitem": select, "scatter": scatter, "take": take, "take_along_axis": take_along_axis}
