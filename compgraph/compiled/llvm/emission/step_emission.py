"""Emission of units: loops, nests, convolutions, scans, gathers, sorts, searches and matrix products."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack

from .. import elementwise_ops
from ..buffer_ir import Buffer, Convolution, Factorization, Gather, LoopIndex, MatMul, Scan, Scatter, Search, Sort
from ..ir_builder import INT, IRBuilder, Value
from ..llvm_compiler import processor
from ..planning import FusedLoop, LoopNest, Unit
from .convolution_kernels import convolution_kernel
from .factorization_kernels import emit_factorization
from .gather_emission import emit_constant_indexed
from .matmul_emission import emit_matmul
from .memory_access import LoopIndices, MemoryAccess, ViewAddress, address_of, store
from .nest_emission import emit_nest
from .sort_emission import emit_search, emit_sort


def emit_convolution(ir: IRBuilder, step: Convolution, base_address: ViewAddress, loop_indices: LoopIndices) -> None:
    """Emit a convolution; bail out if the result is not finite."""
    addresses = [address_of(ir, view, base_address, loop_indices, ()) for view in (step.out, *step.operands)]
    is_non_finite = ir.call(convolution_kernel(ir.module, step, processor().vector_bytes), INT, *addresses)
    if step.kind != "forward":
        ir.bail_out_if(ir.compare("ne", is_non_finite, ir.number(0, INT)))


def emit_scan(ir: IRBuilder, step: Scan, base_address: ViewAddress, loop_indices: LoopIndices) -> None:
    """Emit a scan; the first element is the operand's, as in NumPy."""
    memory = MemoryAccess(ir, base_address, loop_indices)
    operand, dtype, shape = step.operands[0], step.out.buffer.dtype, step.out.shape
    with ExitStack() as loops:
        first: list[Value | None] = [None] * len(shape)
        for axis, length in enumerate(shape):
            if axis != step.axis and length > 1:
                first[axis] = loops.enter_context(ir.loop(0, length)).index
        value = memory.read(operand, first, dtype)
        store(ir, value, memory.address(step.out, first), dtype)
        if shape[step.axis] == 1:
            return
        with ir.loop(1, shape[step.axis], 1, [value]) as loop:
            indices = [*first[: step.axis], loop.index, *first[step.axis + 1 :]]
            value = elementwise_ops.emit(ir, step.operation, [loop.current[0], memory.read(operand, indices, dtype)], dtype)
            store(ir, value, memory.address(step.out, indices), dtype)
            loop.next = [value]


_EMITTERS: dict[type, Callable[..., None]] = {  # steps outside of nests
    MatMul: emit_matmul,
    Factorization: emit_factorization,
    Convolution: emit_convolution,
    Gather: emit_constant_indexed,
    Scatter: emit_constant_indexed,
    Scan: emit_scan,
    Sort: emit_sort,
    Search: emit_search,
}


def emit_units(
    ir: IRBuilder,
    units: Iterable[Unit],
    base_address: ViewAddress,
    trip_count: Callable[[LoopIndex], int | Value],
    materialized: Collection[Buffer],
    width: int,
    loop_indices: LoopIndices | None = None,
) -> None:
    """Emit units without NumPy calls; see `emit_nest` for the parameters. `trip_count` returns that of a loop."""
    loop_indices = loop_indices or {}
    for unit in units:
        if isinstance(unit, FusedLoop):
            index = unit.loop.loop_index
            with ir.loop(0, trip_count(index)) as loop:
                emit_units(ir, unit.units, base_address, trip_count, materialized, width, {**loop_indices, index: loop.index})
        elif isinstance(unit, LoopNest):
            emit_nest(ir, unit, base_address, loop_indices, materialized, width)
        else:
            _EMITTERS[type(unit)](ir, unit, base_address, loop_indices)
