"""Loads and stores of buffer views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import elementwise_ops
from ..buffer_ir import BufferView, LoopIndex
from ..ir_builder import LONG, IRBuilder, Value

ViewAddress = Callable[[BufferView], Value]
LoopIndices = Mapping[LoopIndex, Value]


def address_of(
    ir: IRBuilder,
    view: BufferView,
    base_address: ViewAddress,
    loop_indices: LoopIndices,
    indices: Iterable[tuple[int | Value, Value]],
) -> Value:
    """Return the address of an element.

    Parameters
    ----------
    ir : IRBuilder
        The function.
    view : BufferView
        The array.
    base_address : callable
        Returns the address of the first element of a view, in the first iteration of all loops.
    loop_indices : mapping
        The current index of each enclosing loop.
    indices : iterable of (int or Value, Value)
        Strides and indices.
    """
    offset = None
    for stride, index in [*[(loop_stride, loop_indices[loop_index]) for loop_index, loop_stride in view.loop_strides], *indices]:
        if stride:
            term = index if stride == 1 else ir.binary("mul", index, as_value(ir, stride))
            offset = term if offset is None else ir.binary("add", offset, term)
    first = base_address(view)
    return first if offset is None else ir.element_address(first, offset, elementwise_ops.memory_type(view.buffer.dtype))


def as_value(ir: IRBuilder, x: int | Value) -> Value:
    """Return an integer as a value."""
    return ir.number(x, LONG) if isinstance(x, int) else x


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
    loop_indices: LoopIndices
    stride: Callable[[int, BufferView], int | Value] = constant_stride

    def address(self, view: BufferView, indices: Sequence[Value | None]) -> Value:
        """Return the address of an element; missing indices and None mean 0."""
        axes = range(min(len(view.shape), len(indices)))
        terms = [(self.stride(axis, view), index) for axis in axes if (index := indices[axis]) is not None]
        return address_of(self.ir, view, self.base_address, self.loop_indices, terms)

    def read(
        self, operand: np.generic | int | BufferView, indices: Sequence[Value | None], dtype: np.dtype[Any], lanes: int = 1
    ) -> Value:
        """Load an operand as a dtype: a number, or elements of a view whose last stride is 1 or 0."""
        ir = self.ir
        if not isinstance(operand, BufferView):
            return constant(ir, operand, dtype, lanes)
        source_dtype, address = operand.buffer.dtype, self.address(operand, indices)
        if lanes > 1 and not any(operand.strides[-1:]):
            return elementwise_ops.convert(ir, ir.splat(load(ir, address, source_dtype), lanes), source_dtype, dtype)
        return elementwise_ops.convert(ir, load(ir, address, source_dtype, lanes), source_dtype, dtype)


def constant(ir: IRBuilder, number: np.generic | float, dtype: np.dtype[Any], lanes: int = 1) -> Value:
    """Return a number, converted to a dtype, as a constant."""
    scalar = np.asarray(number).astype(dtype)[()]
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
