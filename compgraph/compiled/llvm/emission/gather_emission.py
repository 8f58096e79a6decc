"""Emission of gathers and scatters: loops in C order, so that the last of repeated indices wins.

An index is loaded in the outermost loop where it is constant. The last axis is vectorized if no index depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from .. import elementwise_ops
from ..buffer_ir import BufferView, Gather, Scatter
from ..ir_builder import LONG, IRBuilder, Value
from ..llvm_compiler import processor
from .memory_access import LoopIndices, MemoryAccess, ViewAddress, load, store


def emit_gather(ir: IRBuilder, step: Gather, base_address: ViewAddress, loop_indices: LoopIndices) -> None:
    """Emit a gather."""
    source, *indices = step.operands
    memory = MemoryAccess(ir, base_address, loop_indices)
    loops = _IndexLoops(memory, step, indices)

    def body(positions: list[Value | None], offset: Value, lanes: int) -> None:
        dtype = source.buffer.dtype
        address = ir.element_address(memory.address(source, positions), offset, elementwise_ops.memory_type(dtype))
        value = elementwise_ops.convert(ir, load(ir, address, dtype, lanes), dtype, step.out.buffer.dtype)
        store(ir, value, memory.address(step.out, positions), step.out.buffer.dtype)

    loops.emit(body, (source, step.out))


def emit_scatter(ir: IRBuilder, step: Scatter, base_address: ViewAddress, loop_indices: LoopIndices) -> None:
    """Emit a scatter."""
    value, *indices = step.operands
    memory = MemoryAccess(ir, base_address, loop_indices)
    loops = _IndexLoops(memory, step, indices)

    def body(positions: list[Value | None], offset: Value, lanes: int) -> None:
        dtype = step.out.buffer.dtype
        address = ir.element_address(memory.address(step.out, positions), offset, elementwise_ops.memory_type(dtype))
        element = memory.read(value, positions, dtype, lanes)
        if step.operation != "copy":
            element = elementwise_ops.emit(ir, step.operation, [load(ir, address, dtype, lanes), element], dtype)
        store(ir, element, address, dtype)

    loops.emit(body, (step.out,), value)


class _IndexLoops:
    """Loops over the axes of a gather or a scatter.

    Parameters
    ----------
    memory : MemoryAccess
        The addresses of views.
    step : Gather or Scatter
        The step whose axes the loops iterate over.
    indices : sequence of BufferView
        The index arrays of the step.
    """

    def __init__(self, memory: MemoryAccess, step: Gather | Scatter, indices: Sequence[BufferView]) -> None:
        self.ir, self.memory, self.step, self.indices = memory.ir, memory, step, indices
        # an index is loaded in the innermost loop on which it depends
        self.load_depths = [
            max((axis + 1 for axis, stride in enumerate(view.strides) if stride and view.shape[axis] > 1), default=0)
            for view in indices
        ]

    def emit(self, body: Callable[..., None], views: Sequence[BufferView], value: object = None) -> None:
        """Emit the loops; `body` receives the position in each axis, the offset of the indices, and the number of lanes.

        The last axis is vectorized if no index depends on it, all `views` are contiguous along it, and `value` is a number or is
        contiguous or constant along it.
        """
        shape, itemsizes = self.step.out.shape, [view.buffer.dtype.itemsize for view in views]
        is_vectorizable = bool(shape) and max(self.load_depths) < len(shape) and all(view.strides[-1] == 1 for view in views)
        is_vectorizable = is_vectorizable and (not isinstance(value, BufferView) or value.strides[-1:] in ((), (0,), (1,)))
        lanes = processor().vector_bytes // max(itemsizes) if is_vectorizable else 1
        self._emit_axes(0, [], self.ir.number(0, LONG), body, lanes)

    def _emit_axes(self, depth: int, positions: list[Value | None], offset: Value, body: Callable[..., None], lanes: int) -> None:
        """Emit the loops from one depth on."""
        for k, load_depth in enumerate(self.load_depths):
            if load_depth == depth:
                offset = self.ir.binary("add", offset, self._index_offset(k, positions))
        shape = self.step.out.shape
        if depth == len(shape):
            body(positions, offset, 1)
            return
        vectorized_length = shape[depth] - shape[depth] % lanes if depth == len(shape) - 1 and lanes > 1 else 0
        if vectorized_length:
            with self._axis_loop(0, vectorized_length, lanes) as position:
                body([*positions, position], offset, lanes)
        if vectorized_length < shape[depth]:
            with self._axis_loop(vectorized_length, shape[depth], 1) as position:
                self._emit_axes(depth + 1, [*positions, position], offset, body, lanes)

    @contextmanager
    def _axis_loop(self, start: int, stop: int, step: int) -> Iterator[Value | None]:
        """Emit a loop; yield its index, or None for a single iteration."""
        if (start, stop) == (0, 1):
            yield None
            return
        with self.ir.loop(start, stop, step) as loop:
            yield loop.index

    def _index_offset(self, k: int, positions: list[Value | None]) -> Value:
        """Return the offset of an index; bail out if it is out of range."""
        ir, dtype = self.ir, self.indices[k].buffer.dtype
        index = load(ir, self.memory.address(self.indices[k], positions), dtype)
        if dtype.itemsize < 8:
            index = ir.cast("sext" if dtype.kind == "i" else "zext", index, LONG)
        stride = ir.number(self.step.strides[k], LONG)
        if not self.step.lengths[k]:  # the index is known to be in range
            return ir.binary("mul", index, stride)
        length = ir.number(self.step.lengths[k], LONG)
        is_negative = ir.compare("slt", index, ir.number(0, LONG))
        index = ir.select(is_negative, ir.binary("add", index, length), index)
        is_out_of_range = ir.compare("uge", index, length)
        ir.bail_out_if(is_out_of_range)
        # the bailout takes effect after the loop, so the access must be valid until then
        index = ir.select(is_out_of_range, ir.number(0, LONG), index)
        return ir.binary("mul", index, stride)
