"""What is behind values that differ between examples: the axes of all vmaps around, in front of those of one example."""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph import ops
from compgraph.bind import bind
from compgraph.storage import address_of
from compgraph.values import Value

forms: dict[Any, Any] = {}  # by shape and dtype, what stands for the value of a batched one
_KEPT = 4096


def form(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array of numbers that belong to no element of the batch: nan, the least integer."""
    if len(forms) >= _KEPT:
        forms.clear()
    nothing: Any = np.nan if dtype.kind in "fc" else np.iinfo(dtype).min if dtype.kind in "iu" else False
    found = forms[shape, dtype] = np.ndarray(shape, dtype, np.full((), nothing, dtype), 0, (0,) * len(shape))
    return found


def is_batch(value: Any) -> bool:
    """Whether a value differs between the examples of a vmap."""
    return isinstance(value, Value) and value.trace_kind == "batch"


def base_of(value: Any) -> Any:
    """A value with the axes of all vmaps in front, an array or node like others."""
    while is_batch(value):
        value = value.values
    return value


def plain_base(value: Any) -> Any:
    """The plain array behind a value."""
    value = base_of(value)
    return value.raw_value if isinstance(value, Value) else value


def depth_of(value: Any) -> int:
    """How many vmaps a value is a BatchNode of."""
    depth = 0
    while is_batch(value):
        value, depth = value.values, depth + 1
    return depth


def copied(values: Any) -> Any:
    """Values of their own."""
    return bind(ops.copy, (values,)) if isinstance(values, Value) else np.array(values)


def filled_rows(buffer: Any, count: int) -> Any:
    """A buffer, an array or node, as one for each of many examples, each laid out as it is."""
    shape = (count, *buffer.shape)
    if isinstance(buffer, Value):
        return bind(ops.copy, (np.broadcast_to(buffer, shape),))
    low, high = np.lib.array_utils.byte_bounds(buffer) if buffer.size else (0, 0)
    length = -(-(high - low) // buffer.itemsize)
    rows = np.empty((count, length), buffer.dtype)
    if not rows.size:
        return np.empty(shape, buffer.dtype)
    made: Any = np.ndarray(shape, buffer.dtype, rows, address_of(buffer) - low, (rows.strides[0], *buffer.strides))
    made[...] = buffer
    return made
