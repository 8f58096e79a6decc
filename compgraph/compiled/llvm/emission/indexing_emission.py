"""Emission of gathers and scatters, of sorts, and of searches in sorted tables.

Gathers and scatters are loops in C order, so that the last of repeated indices wins. An index is loaded in the outermost loop
where it is constant. The last axis is vectorized if no index depends on it. Sorts call NumPy's function for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, Protocol

from .. import elementwise_ops, numpy_sorting
from ..buffer_ir import BufferView, Gather, Scatter, Search, Sort
from ..ir_builder import INT, LONG, POINTER, IRBuilder, Value
from ..llvm_compiler import processor
from .memory_access import LoopIndices, MemoryAccess, ViewAddress, as_value, constant_stride, load, store


class IndexedParameters(Protocol):
    """The trip counts, strides and bounds of a gather or scatter: Python integers, or values at run time."""

    def length(self, depth: int) -> int | Value:
        """Return the trip count of the loop over an axis."""

    def stride(self, depth: int, view: BufferView) -> int | Value:
        """Return the stride of a view along an axis, in elements."""

    def base_address(self, view: BufferView) -> Value:
        """Return the address of the first element of a view."""

    def index_bound(self, k: int) -> int | Value:
        """Return the length of the axis of an index; 0 if it is known to be in range."""

    def index_stride(self, k: int) -> int | Value:
        """Return the stride of the axis of an index."""


class _ConstantParameters(NamedTuple):
    """The parameters of a step as constants."""

    step: Gather | Scatter
    base_address: ViewAddress

    def length(self, depth: int) -> int:
        return self.step.out.shape[depth]

    def stride(self, depth: int, view: BufferView) -> int | Value:
        return constant_stride(depth, view)

    def index_bound(self, k: int) -> int:
        return self.step.lengths[k]

    def index_stride(self, k: int) -> int:
        return self.step.strides[k]


def emit_constant_indexed(ir: IRBuilder, step: Gather | Scatter, base_address: ViewAddress, loop_indices: LoopIndices) -> None:
    """Emit a gather or a scatter with constant trip counts, strides and bounds."""
    emit_indexed(ir, step, _ConstantParameters(step, base_address), loop_indices)


def emit_indexed(
    ir: IRBuilder, step: Gather | Scatter, parameters: IndexedParameters, loop_indices: LoopIndices | None = None
) -> None:
    """Emit a gather or a scatter with `parameters` instead of its own, which have the same structure."""
    memory = MemoryAccess(ir, parameters.base_address, loop_indices or {}, parameters.stride)
    if isinstance(step, Gather):
        _emit_gather(memory, step, parameters)
    else:
        _emit_scatter(memory, step, parameters)


def _emit_gather(memory: MemoryAccess, step: Gather, parameters: IndexedParameters) -> None:
    ir, (source, *indices) = memory.ir, step.operands
    loops = _IndexLoops(memory, step, indices, parameters)

    def body(positions: list[Value | None], offset: Value, lanes: int) -> None:
        dtype = source.buffer.dtype
        address = ir.element_address(memory.address(source, positions), offset, elementwise_ops.memory_type(dtype))
        value = elementwise_ops.convert(ir, load(ir, address, dtype, lanes), dtype, step.out.buffer.dtype)
        store(ir, value, memory.address(step.out, positions), step.out.buffer.dtype)

    loops.emit(body, (source, step.out))


def _emit_scatter(memory: MemoryAccess, step: Scatter, parameters: IndexedParameters) -> None:
    ir, (value, *indices) = memory.ir, step.operands
    loops = _IndexLoops(memory, step, indices, parameters)

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
    parameters : IndexedParameters
        Its trip counts and bounds.
    """

    def __init__(
        self, memory: MemoryAccess, step: Gather | Scatter, indices: Sequence[BufferView], parameters: IndexedParameters
    ) -> None:
        self.ir, self.memory, self.step, self.indices, self.parameters = memory.ir, memory, step, indices, parameters
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
        if depth == len(self.step.out.shape):
            body(positions, offset, 1)
            return
        length, vectorized_length = self.parameters.length(depth), self._vectorized_length(depth, lanes)
        if vectorized_length != 0:
            with self._axis_loop(0, vectorized_length, lanes) as position:
                body([*positions, position], offset, lanes)
        if vectorized_length != length:
            with self._axis_loop(vectorized_length, length, 1) as position:
                self._emit_axes(depth + 1, [*positions, position], offset, body, lanes)

    def _vectorized_length(self, depth: int, lanes: int) -> int | Value:
        """Return the number of iterations of a loop that are vectorized."""
        length = self.parameters.length(depth)
        if lanes == 1 or depth < len(self.step.out.shape) - 1:
            return 0
        return length - length % lanes if isinstance(length, int) else self.ir.binary("and", length, self.ir.number(-lanes, LONG))

    @contextmanager
    def _axis_loop(self, start: int | Value, stop: int | Value, step: int) -> Iterator[Value | None]:
        """Emit a loop; yield its index, or None for a single iteration. Only a vectorized part, or the rest, may be empty."""
        if (start, stop) == (0, 1):
            yield None
            return
        with ExitStack() as stack:
            if isinstance(stop, Value) and (step > 1 or isinstance(start, Value)):
                is_needed = self.ir.compare("slt", as_value(self.ir, start), stop)
                stack.enter_context(self.ir.branch_if(is_needed, []))
            yield stack.enter_context(self.ir.loop(start, stop, step)).index

    def _index_offset(self, k: int, positions: list[Value | None]) -> Value:
        """Return the offset of an index; bail out if it is out of range."""
        ir, dtype = self.ir, self.indices[k].buffer.dtype
        index = load(ir, self.memory.address(self.indices[k], positions), dtype)
        if dtype.itemsize < 8:
            index = ir.cast("sext" if dtype.kind == "i" else "zext", index, LONG)
        stride = as_value(ir, self.parameters.index_stride(k))
        if not self.step.lengths[k]:  # the index is known to be in range
            return ir.binary("mul", index, stride)
        bound = as_value(ir, self.parameters.index_bound(k))
        is_negative = ir.compare("slt", index, ir.number(0, LONG))
        index = ir.select(is_negative, ir.binary("add", index, bound), index)
        is_out_of_range = ir.compare("uge", index, bound)
        ir.bail_out_if(is_out_of_range)
        # the bailout takes effect after the loop, so the access must be valid until then
        index = ir.select(is_out_of_range, ir.number(0, LONG), index)
        return ir.binary("mul", index, stride)


def emit_sort(ir: IRBuilder, step: Sort, base_address: ViewAddress, loop_indices: LoopIndices) -> None:
    """Emit a sort. A function that finds no memory makes the program fall back to NumPy."""
    memory = MemoryAccess(ir, base_address, loop_indices)
    (source,), out = step.operands, step.out
    *stack, length = out.shape
    dtype, count, nothing = source.buffer.dtype, ir.number(length, LONG), Value("null", POINTER)
    function = numpy_sorting.symbol_name(step.operation, dtype, step.is_stable)
    raised = ir.exceptions()  # the comparisons of NumPy's function raise some of nan
    with ExitStack() as loops:
        row: list[Value | None] = [loops.enter_context(ir.loop(0, n)).index if n > 1 else None for n in stack]
        with ir.loop(0, length) as loop:
            position = [*row, loop.index]
            value = load(ir, memory.address(source, position), dtype) if step.operation == "sort" else loop.index
            store(ir, value, memory.address(out, position), out.buffer.dtype)
        rows = [memory.address(view, row) for view in ((out,) if step.operation == "sort" else (source, out))]
        ir.module.declare(function, INT, [*[POINTER] * len(rows), LONG, POINTER])
        status = ir.call(function, INT, *rows, count, nothing)
        ir.bail_out_if(ir.compare("ne", status, ir.number(0, INT)))
    ir.clear_exceptions(raised)


def emit_search(ir: IRBuilder, step: Search, base_address: ViewAddress, loop_indices: LoopIndices) -> None:
    """Emit a binary search for each key, without branches: the number of its steps follows from the length of the table."""
    memory = MemoryAccess(ir, base_address, loop_indices)
    (table, keys), out = step.operands, step.out
    raised = ir.exceptions()  # comparisons with nan raise some
    with ExitStack() as loops:
        position: list[Value | None] = [loops.enter_context(ir.loop(0, n)).index if n > 1 else None for n in out.shape]
        key = memory.read(keys, position, step.dtype)
        first, count = ir.number(0, LONG), table.shape[0]  # all elements before `first` are before the key
        while count:
            half = count - count // 2
            last = ir.binary("add", first, ir.number(half - 1, LONG))
            is_before = _is_before(ir, step, memory.read(table, [last], step.dtype), key)
            first = ir.select(is_before, ir.binary("add", first, ir.number(half, LONG)), first)
            count -= half
        store(ir, first, memory.address(out, position), out.buffer.dtype)
    ir.clear_exceptions(raised)


def _is_before(ir: IRBuilder, step: Search, element: Value, key: Value) -> Value:
    """Return whether an element of the table is before a key."""
    if step.dtype.kind != "f":
        order = ("u" if step.dtype.kind in "ub" else "s") + ("lt" if step.side == "left" else "le")
        return ir.compare(order, element, key)
    if step.side == "right":
        return ir.binary("or", ir.compare("ole", element, key), ir.compare("uno", key, key))
    return ir.binary("and", ir.compare("ult", element, key), ir.compare("ord", element, element))
