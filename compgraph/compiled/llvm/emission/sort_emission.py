"""Emission of sorts, by a call of NumPy's function for each row, and of searches in sorted tables."""

from __future__ import annotations

from contextlib import ExitStack

from .. import numpy_sorting
from ..buffer_ir import Search, Sort
from ..ir_builder import INT, LONG, POINTER, IRBuilder, Value
from .memory_access import LoopIndices, MemoryAccess, ViewAddress, load, store


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
