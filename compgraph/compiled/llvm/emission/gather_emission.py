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


def emit_gather(ir: IRBuilder, step: Gather, start: ViewAddress, loop_indices: LoopIndices) -> None:
    """Emit a gather."""
    source, *indices = step.operands
    memory = MemoryAccess(ir, start, loop_indices)
    loops = _IndexLoops(memory, step, source, indices)

    def body(counters: list[Value | None], offset: Value, lanes: int) -> None:
        dtype = source.buffer.dtype
        where = ir.element_address(memory.address(source, counters), offset, elementwise_ops.memory_type(dtype))
        value = elementwise_ops.convert(ir, load(ir, where, dtype, lanes), dtype, step.out.buffer.dtype)
        store(ir, value, memory.address(step.out, counters), step.out.buffer.dtype)

    loops.write(body, (source, step.out))


def emit_scatter(ir: IRBuilder, step: Scatter, start: ViewAddress, loop_indices: LoopIndices) -> None:
    """Emit a scatter."""
    value, *indices = step.operands
    memory = MemoryAccess(ir, start, loop_indices)
    loops = _IndexLoops(memory, step, step.out, indices)

    def body(counters: list[Value | None], offset: Value, lanes: int) -> None:
        dtype = step.out.buffer.dtype
        where = ir.element_address(memory.address(step.out, counters), offset, elementwise_ops.memory_type(dtype))
        now = memory.read(value, counters, dtype, lanes)
        if step.operation != "copy":
            now = elementwise_ops.emit(ir, step.operation, [load(ir, where, dtype, lanes), now], dtype)
        store(ir, now, where, dtype)

    loops.write(body, (step.out,), value)


class _IndexLoops:
    """Loops over the axes of a gather or a scatter.

    Parameters
    ----------
    memory : MemoryAccess
        Access to views.
    step : Gather or Scatter
        The step.
    chosen : BufferView
        The indexed view.
    indices : sequence of BufferView
        The indices.
    """

    def __init__(self, memory: MemoryAccess, step: Gather | Scatter, chosen: BufferView, indices: Sequence[BufferView]) -> None:
        self.ir, self.memory, self.step, self.select_lanes, self.indices = memory.ir, memory, step, chosen, indices
        self.depths = [max((k + 1 for k, s in enumerate(p.strides) if s and p.shape[k] > 1), default=0) for p in indices]

    def write(self, body: Callable[..., None], passed: Sequence[BufferView], value: object = None) -> None:
        """Emit the loops; `body` receives the loop indices, the offset of the indices, and the number of lanes.

        The last axis is vectorized if the views of `passed`, and `value` if it is a view, are contiguous along it.
        """
        shape, items = self.step.out.shape, [p.buffer.dtype.itemsize for p in passed]
        is_dense = bool(shape) and max(self.depths) < len(shape) and all(p.strides[-1] == 1 for p in passed)
        is_dense = is_dense and (not isinstance(value, BufferView) or value.strides[-1:] in ((), (0,), (1,)))
        lanes = processor()[2] // max(items) if is_dense else 1
        self._at(0, [], self.ir.number(0, LONG), body, lanes)

    def _at(self, depth: int, counters: list[Value | None], offset: Value, body: Callable[..., None], lanes: int) -> None:
        """Emit the loops from one depth on."""
        for k, known in enumerate(self.depths):
            if known == depth:
                offset = self.ir.binary("add", offset, self._index_offset(k, counters))
        shape = self.step.out.shape
        if depth == len(shape):
            body(counters, offset, 1)
            return
        full = shape[depth] - shape[depth] % lanes if depth == len(shape) - 1 and lanes > 1 else 0
        if full:
            with self._counted(0, full, lanes) as counter:
                body([*counters, counter], offset, lanes)
        if full < shape[depth]:
            with self._counted(full, shape[depth], 1) as counter:
                self._at(depth + 1, [*counters, counter], offset, body, lanes)

    @contextmanager
    def _counted(self, start: int, stop: int, step: int) -> Iterator[Value | None]:
        if (start, stop) == (0, 1):
            yield None
            return
        with self.ir.loop(start, stop, step) as loop:
            yield loop.index

    def _index_offset(self, k: int, counters: list[Value | None]) -> Value:
        """Return the offset of an index; an index out of range bails out."""
        ir, dtype = self.ir, self.indices[k].buffer.dtype
        index = load(ir, self.memory.address(self.indices[k], counters), dtype)
        if dtype.itemsize < 8:
            index = ir.cast("sext" if dtype.kind == "i" else "zext", index, LONG)
        stride = ir.number(self.step.strides[k], LONG)
        if not self.step.lengths[k]:
            return ir.binary("mul", index, stride)
        length = ir.number(self.step.lengths[k], LONG)
        negative = ir.compare("slt", index, ir.number(0, LONG))
        index = ir.select(negative, ir.binary("add", index, length), index)
        outside = ir.compare("uge", index, length)
        ir.bail_out_if(outside)
        index = ir.select(outside, ir.number(0, LONG), index)
        return ir.binary("mul", index, stride)
