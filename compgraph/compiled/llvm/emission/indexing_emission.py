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
from .memory_access import MemoryAccess, as_value, index_loops, load, round_down, store


class IndexedParameters(Protocol):
    """The trip counts and index bounds of a gather or scatter: constants, or values at run time."""

    def length(self, depth: int) -> int | Value:
        """Return the trip count of the loop over an axis."""

    def index_bound(self, k: int) -> int | Value:
        """Return the length of the axis that an index selects from; 0 if the index needs no check."""

    def index_stride(self, k: int) -> int | Value:
        """Return the stride of the axis that an index selects from."""


class _ConstantParameters(NamedTuple):
    """The parameters of a step as constants."""

    step: Gather | Scatter

    def length(self, depth: int) -> int:
        return self.step.out.shape[depth]

    def index_bound(self, k: int) -> int:
        return self.step.lengths[k]

    def index_stride(self, k: int) -> int:
        return self.step.strides[k]


def emit_constant_indexed(memory: MemoryAccess, step: Gather | Scatter) -> None:
    """Emit a gather or a scatter with constant trip counts and index bounds."""
    emit_indexed(memory, step, _ConstantParameters(step))


def emit_indexed(memory: MemoryAccess, step: Gather | Scatter, parameters: IndexedParameters) -> None:
    """Emit a gather or a scatter of the structure of `step`, with the trip counts and index bounds in `parameters`."""
    if isinstance(step, Gather):
        _emit_gather(memory, step, parameters)
    else:
        _emit_scatter(memory, step, parameters)


def _emit_gather(memory: MemoryAccess, step: Gather, parameters: IndexedParameters) -> None:
    ir, (source, *indices) = memory.ir, step.operands
    loops = _IndexLoops(memory, step, indices, parameters)

    def emit_element(positions: list[Value | None], offset: Value, lanes: int) -> None:
        dtype = source.buffer.dtype
        address = ir.element_address(memory.address(source, positions), offset, elementwise_ops.memory_type(dtype))
        value = elementwise_ops.convert(ir, load(ir, address, dtype, lanes), dtype, step.out.buffer.dtype)
        store(ir, value, memory.address(step.out, positions), step.out.buffer.dtype)

    loops.emit(emit_element, (source, step.out))


def _emit_scatter(memory: MemoryAccess, step: Scatter, parameters: IndexedParameters) -> None:
    ir, (value, *indices) = memory.ir, step.operands
    loops = _IndexLoops(memory, step, indices, parameters)

    def emit_element(positions: list[Value | None], offset: Value, lanes: int) -> None:
        dtype = step.out.buffer.dtype
        address = ir.element_address(memory.address(step.out, positions), offset, elementwise_ops.memory_type(dtype))
        element = memory.read(value, positions, dtype, lanes)
        if step.operation != "copy":
            element = elementwise_ops.emit(ir, step.operation, [load(ir, address, dtype, lanes), element], dtype)
        store(ir, element, address, dtype)

    loops.emit(emit_element, (step.out,), value)


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
        self.load_depths = [  # each index is loaded in the innermost loop that it depends on
            max((axis + 1 for axis, stride in enumerate(view.strides) if stride and view.shape[axis] > 1), default=0)
            for view in indices
        ]

    def emit(self, emit_element: Callable[..., None], views: Sequence[BufferView], value: object = None) -> None:
        """Emit the loops; `emit_element` is called with the position in each axis, the offset of the indices, and the lanes.

        The last axis is vectorized if no index depends on it, all `views` are contiguous along it, and `value` is a literal, or
        contiguous or constant along it.
        """
        shape, itemsizes = self.step.out.shape, [view.buffer.dtype.itemsize for view in views]
        is_vectorizable = bool(shape) and max(self.load_depths) < len(shape) and all(view.strides[-1] == 1 for view in views)
        is_vectorizable = is_vectorizable and (not isinstance(value, BufferView) or value.strides[-1:] in ((), (0,), (1,)))
        lanes = processor().vector_bytes // max(itemsizes) if is_vectorizable else 1
        self._emit_axes(0, [], self.ir.number(0, LONG), emit_element, lanes)

    def _emit_axes(
        self, depth: int, positions: list[Value | None], offset: Value, emit_element: Callable[..., None], lanes: int
    ) -> None:
        """Emit the loops from a depth inwards."""
        for k, load_depth in enumerate(self.load_depths):
            if load_depth == depth:
                offset = self.ir.binary("add", offset, self._index_offset(k, positions))
        if depth == len(self.step.out.shape):
            emit_element(positions, offset, 1)
            return
        length, vectorized_length = self.parameters.length(depth), self._vectorized_length(depth, lanes)
        if vectorized_length != 0:
            with self._axis_loop(0, vectorized_length, lanes) as position:
                emit_element([*positions, position], offset, lanes)
        if vectorized_length != length:
            with self._axis_loop(vectorized_length, length, 1) as position:
                self._emit_axes(depth + 1, [*positions, position], offset, emit_element, lanes)

    def _vectorized_length(self, depth: int, lanes: int) -> int | Value:
        """Return the number of iterations of a loop that are vectorized: 0 except for the last axis."""
        is_vectorized = lanes > 1 and depth == len(self.step.out.shape) - 1
        return round_down(self.ir, self.parameters.length(depth), lanes) if is_vectorized else 0

    @contextmanager
    def _axis_loop(self, start: int | Value, stop: int | Value, step: int) -> Iterator[Value | None]:
        """Emit a loop; yield its index, or None for a single iteration. A vectorized loop, or its remainder, may be empty."""
        if (start, stop) == (0, 1):
            yield None
            return
        with ExitStack() as stack:
            if isinstance(stop, Value) and (step > 1 or isinstance(start, Value)):
                has_iterations = self.ir.compare("slt", as_value(self.ir, start), stop)
                stack.enter_context(self.ir.branch_if(has_iterations, []))
            yield stack.enter_context(self.ir.loop(start, stop, step)).index

    def _index_offset(self, k: int, positions: list[Value | None]) -> Value:
        """Return the offset that an index selects; bail out if the index is out of range."""
        ir, dtype = self.ir, self.indices[k].buffer.dtype
        index = load(ir, self.memory.address(self.indices[k], positions), dtype)
        if dtype.itemsize < 8:
            index = ir.cast("sext" if dtype.kind == "i" else "zext", index, LONG)
        stride = as_value(ir, self.parameters.index_stride(k))
        if not self.step.lengths[k]:  # the index needs no check
            return ir.binary("mul", index, stride)
        bound = as_value(ir, self.parameters.index_bound(k))
        is_negative = ir.compare("slt", index, ir.number(0, LONG))
        index = ir.select(is_negative, ir.binary("add", index, bound), index)
        is_out_of_range = ir.compare("uge", index, bound)
        ir.bail_out_if(is_out_of_range)
        # the bailout takes effect after the loop, so until then the access must be valid
        index = ir.select(is_out_of_range, ir.number(0, LONG), index)
        return ir.binary("mul", index, stride)


def emit_sort(memory: MemoryAccess, step: Sort) -> None:
    """Emit a sort; if NumPy's function lacks memory, the program falls back to NumPy."""
    ir, (source,), out = memory.ir, step.operands, step.out
    *stack, length = out.shape
    dtype, count, null = source.buffer.dtype, ir.number(length, LONG), Value("null", POINTER)
    function = numpy_sorting.symbol_name(step.operation, dtype, step.is_stable)
    earlier_exceptions = ir.exceptions()  # the comparisons of NumPy's function raise further ones for nan
    with index_loops(ir, stack) as row:
        with ir.loop(0, length) as loop:
            position = [*row, loop.index]
            value = load(ir, memory.address(source, position), dtype) if step.operation == "sort" else loop.index
            store(ir, value, memory.address(out, position), out.buffer.dtype)
        rows = [memory.address(view, row) for view in ((out,) if step.operation == "sort" else (source, out))]
        ir.module.declare(function, INT, [*[POINTER] * len(rows), LONG, POINTER])
        status = ir.call(function, INT, *rows, count, null)
        ir.bail_out_if(ir.compare("ne", status, ir.number(0, INT)))
    ir.clear_exceptions(earlier_exceptions)


def emit_search(memory: MemoryAccess, step: Search) -> None:
    """Emit a binary search for each key, without branches: the length of the table determines the number of its steps."""
    ir, (table, keys), out = memory.ir, step.operands, step.out
    earlier_exceptions = ir.exceptions()  # comparisons with nan raise further ones
    with index_loops(ir, out.shape) as position:
        key = memory.read(keys, position, step.dtype)
        first, count = ir.number(0, LONG), table.shape[0]  # all elements before `first` are before the key
        while count:
            half = count - count // 2
            last = ir.binary("add", first, ir.number(half - 1, LONG))
            is_before = _is_before(ir, step, memory.read(table, [last], step.dtype), key)
            first = ir.select(is_before, ir.binary("add", first, ir.number(half, LONG)), first)
            count -= half
        store(ir, first, memory.address(out, position), out.buffer.dtype)
    ir.clear_exceptions(earlier_exceptions)


def _is_before(ir: IRBuilder, step: Search, element: Value, key: Value) -> Value:
    """Return whether an element of the table is before the position of a key."""
    if step.dtype.kind != "f":
        order = ("u" if step.dtype.kind in "ub" else "s") + ("lt" if step.side == "left" else "le")
        return ir.compare(order, element, key)
    if step.side == "right":
        return ir.binary("or", ir.compare("ole", element, key), ir.compare("uno", key, key))
    return ir.binary("and", ir.compare("ult", element, key), ir.compare("ord", element, element))
