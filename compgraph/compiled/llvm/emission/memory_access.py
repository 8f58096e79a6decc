"""Addresses, loads and stores of buffer views, and arithmetic of indices that are constants or values at run time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .. import elementwise_ops
from ..buffer_ir import BufferView, LoopIndex
from ..ir_builder import LONG, IRBuilder, Value

ViewAddress = Callable[[BufferView], Value]
LoopIndices = Mapping[LoopIndex, Value]


def as_value(ir: IRBuilder, x: int | Value) -> Value:
    """Return an integer as a value."""
    return ir.number(x, LONG) if isinstance(x, int) else x


def scale_index(ir: IRBuilder, index: Value, stride: int | Value) -> Value:
    """Return an index times a stride."""
    return index if stride == 1 else ir.binary("mul", index, as_value(ir, stride))


def element_offset(ir: IRBuilder, terms: Iterable[tuple[int | Value, Value]]) -> Value | None:
    """Return the sum of strides times indices; None if it is 0."""
    offset = None
    for term in [scale_index(ir, index, stride) for stride, index in terms if stride]:
        offset = term if offset is None else ir.binary("add", offset, term)
    return offset


def round_down(ir: IRBuilder, length: int | Value, lanes: int) -> int | Value:
    """Return the largest multiple of a power of 2 that is at most `length`."""
    return length - length % lanes if isinstance(length, int) else ir.binary("and", length, ir.number(-lanes, LONG))


def constant_stride(axis: int, view: BufferView) -> int | Value:
    """Return the stride of a view along an axis, in elements."""
    return view.strides[axis]


class MemoryAccess(NamedTuple):
    """Access to buffer views within a function.

    Attributes
    ----------
    ir : IRBuilder
        The function.
    base_address : callable
        Returns the address of the first element of a view, in the first iteration of all loops.
    loop_indices : mapping
        The current index of each enclosing loop.
    stride : callable
        Returns the stride of a view along an axis.
    """

    ir: IRBuilder
    base_address: ViewAddress
    loop_indices: LoopIndices = MappingProxyType({})
    stride: Callable[[int, BufferView], int | Value] = constant_stride

    def address(self, view: BufferView, indices: Sequence[Value | None] = ()) -> Value:
        """Return the address of an element in the current iteration; missing indices and None mean 0."""
        axes = range(min(len(view.shape), len(indices)))
        terms: list[tuple[int | Value, Value]] = [(stride, self.loop_indices[loop]) for loop, stride in view.loop_strides]
        terms += [(self.stride(axis, view), index) for axis in axes if (index := indices[axis]) is not None]
        offset, start = element_offset(self.ir, terms), self.base_address(view)
        return start if offset is None else self.ir.element_address(start, offset, elementwise_ops.memory_type(view.buffer.dtype))

    def read(
        self, operand: np.generic | int | BufferView, indices: Sequence[Value | None], dtype: np.dtype[Any], lanes: int = 1
    ) -> Value:
        """Load an operand as a dtype: a literal, or elements of a view whose last stride is 1 or 0."""
        ir = self.ir
        if not isinstance(operand, BufferView):
            return constant(ir, operand, dtype, lanes)
        source_dtype, address = operand.buffer.dtype, self.address(operand, indices)
        if lanes > 1 and not any(operand.strides[-1:]):
            return elementwise_ops.convert(ir, ir.splat(load(ir, address, source_dtype), lanes), source_dtype, dtype)
        return elementwise_ops.convert(ir, load(ir, address, source_dtype, lanes), source_dtype, dtype)


@contextmanager
def index_loops(ir: IRBuilder, shape: Sequence[int]) -> Iterator[list[Value | None]]:
    """Emit nested loops over the indices of a shape; yield the indices, with None for 0 in axes of length 1."""
    with ExitStack() as loops:
        yield [loops.enter_context(ir.loop(0, length)).index if length > 1 else None for length in shape]


def constant(ir: IRBuilder, literal: np.generic | float, dtype: np.dtype[Any], lanes: int = 1) -> Value:
    """Return a literal, converted to a dtype, as a constant of the code."""
    scalar = np.asarray(literal).astype(dtype)[()]
    return ir.number(float(scalar) if dtype.kind == "f" else int(scalar), elementwise_ops.type_of(dtype).with_lanes(lanes))


def load(ir: IRBuilder, address: Value, dtype: np.dtype[Any], lanes: int = 1) -> Value:
    """Load contiguous elements of a dtype."""
    value = ir.load(address, elementwise_ops.memory_type(dtype).with_lanes(lanes), dtype.itemsize)
    return ir.compare("ne", value, ir.number(0, value.type)) if dtype.kind == "b" else value


def store(ir: IRBuilder, value: Value, address: Value, dtype: np.dtype[Any]) -> None:
    """Store contiguous elements of a dtype."""
    if dtype.kind == "b":
        value = ir.cast("zext", value, elementwise_ops.memory_type(dtype))
    ir.store(value, address, dtype.itemsize)
