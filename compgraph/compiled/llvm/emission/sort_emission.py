"""Emission of sorts: a call of NumPy's function for each row."""

from __future__ import annotations

from contextlib import ExitStack

from .. import numpy_sorting
from ..buffer_ir import Sort
from ..ir_builder import INT, LONG, POINTER, IRBuilder, Value
from .memory_access import LoopIndices, MemoryAccess, ViewAddress, load, store


def emit_sort(ir: IRBuilder, step: Sort, start: ViewAddress, loop_indices: LoopIndices) -> None:
    """Emit a sort. A function that finds no memory makes the program fall back to NumPy."""
    memory = MemoryAccess(ir, start, loop_indices)
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
