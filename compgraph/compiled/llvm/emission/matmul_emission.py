"""Matrix products: calls of BLAS, or tiled kernels for known shapes."""

from __future__ import annotations

from contextlib import ExitStack

from .. import elementwise_ops
from ..buffer_ir import BufferView, MatMul
from ..ir_builder import BYTE, INT, POINTER, IRBuilder, Module, Value
from ..llvm_compiler import processor
from .memory_access import LoopIndices, ViewAddress, address_of
from .register_tiles import (
    Blocks,
    SumAxis,
    accumulate_tile,
    block_starts,
    column_blocks,
    lanes_for,
    max_tile_rows,
    offset_address,
    row_blocks,
    store_tile,
    transpose_kernel,
)


def emit_matmul(ir: IRBuilder, step: MatMul, start: ViewAddress, loop_indices: LoopIndices) -> None:
    """Emit a matrix product."""
    if not step.is_small:
        emit_blas(ir, step, start, loop_indices)
        return
    addresses = [address_of(ir, view, start, loop_indices, ()) for view in (step.out, *step.operands)]
    ir.call_void(matmul_kernel(ir.module, step, processor()[2]), *addresses)


def emit_blas(ir: IRBuilder, product: MatMul, start: ViewAddress, loop_indices: LoopIndices) -> None:
    """Emit a matrix product: a loop over the stack, with one call of ``gemm`` per matrix.

    Fortran's matrices are column-major, so ``gemm`` computes ``out.T = b.T @ a.T``, and row-major matrices are passed without
    transposition.
    """
    left, right = product.operands
    (m, k), n = left.shape[-2:], right.shape[-1]
    constant = ir.module.constant
    kind = elementwise_ops.type_of(product.out.buffer.dtype)
    length = [constant(ir.number(size, INT)) for size in (n, m, k)]
    (trans_b, lead_b), (trans_a, lead_a) = (_gemm_layout(p) for p in (right, left))
    letters = [constant(ir.number(ord(letter), BYTE)) for letter in (trans_b, trans_a)]
    leads = [constant(ir.number(size, INT)) for size in (lead_b, lead_a, n)]
    one, zero = (constant(ir.number(x, kind)) for x in (1.0, 0.0))
    name = "blas_dgemm" if product.out.buffer.dtype.itemsize == 8 else "blas_sgemm"
    ir.module.declare(name, None, [POINTER] * 13)
    with ExitStack() as loops:
        indices = [loops.enter_context(ir.loop(0, size)).index for size in product.out.shape[:-2]]
        a, b, out = (
            address_of(ir, view, start, loop_indices, zip(view.strides, indices, strict=False))
            for view in (left, right, product.out)
        )
        ir.call_void(name, *letters, *length, one, b, leads[0], a, leads[1], zero, out, leads[2])


def _gemm_layout(view: BufferView) -> tuple[str, int]:
    """Return the transposition flag of ``gemm`` for the transpose of a matrix, and its leading dimension."""
    (m, n), (s, t) = view.shape[-2:], view.strides[-2:]
    if (t == 1 or n == 1) and (s >= n or m == 1):
        return "N", max(s, n) if m > 1 else n
    return "T", max(t, m) if n > 1 else m


def matmul_kernel(module: Module, step: MatMul, width: int) -> str:
    """Return the name of a function that computes a step; its arguments are the addresses of its result and operands."""
    kind = elementwise_ops.type_of(step.out.buffer.dtype)
    a, b = step.operands[:2]
    parts = [*step.out.shape, a.shape[-1], *a.strides, *b.strides]
    name = f".product_{kind.mangled}_{'_'.join(str(n).replace('-', 'm') for n in parts)}"

    def write() -> None:
        ir = module.function(name, None, [POINTER] * (1 + len(step.operands)), "noinline")
        _emit_stack(ir, step, width, list(ir.operands[:3]), 0)
        ir.ret()

    return module.define_once(name, write)


def _emit_stack(ir: IRBuilder, step: MatMul, width: int, bases: list[Value], axis: int) -> None:
    """Emit the loops over a stack of matrices, from one axis on."""
    if axis == len(step.out.shape) - 2:
        _emit_matmul(ir, step, width, *bases)
        return
    places, kind = (step.out, *step.operands[:2]), elementwise_ops.type_of(step.out.buffer.dtype)
    with ir.loop(0, step.out.shape[axis]) as loop:
        inside = [offset_address(ir, base, kind, (loop.index, p.strides[axis])) for base, p in zip(bases, places, strict=True)]
        _emit_stack(ir, step, width, inside, axis + 1)


def _emit_matmul(ir: IRBuilder, step: MatMul, width: int, out: Value, a: Value, b: Value) -> None:
    """Emit the product of two matrices."""
    left, right = step.operands[:2]
    (m, k), n = left.shape[-2:], right.shape[-1]
    dtype = step.out.buffer.dtype
    one, (down, across) = elementwise_ops.type_of(dtype), right.strides[-2:]
    lanes = lanes_for(n, dtype.itemsize, width)
    kind, (per_row, per_turn) = one.with_lanes(lanes), left.strides[-2:]
    for part in column_blocks(n, lanes, width):
        for start in block_starts(ir, part):
            panel, offsets, length = offset_address(ir, b, one, (start, 1)), part.within, down
            if len(step.operands) > 2:
                panel, offsets, length = _copy_panel(ir, step, width, part, offset_address(ir, b, one, (start, across)))
            axes = [SumAxis(k, per_turn, length)]
            for rows_part in row_blocks(m, max_tile_rows(len(part.within), width)):
                for row in block_starts(ir, rows_part):
                    source = offset_address(ir, a, one, (row, per_row))
                    tile_sums = accumulate_tile(ir, kind, source, panel, [r * per_row for r in rows_part.within], offsets, axes)
                    target = offset_address(ir, out, one, (row, n), (start, 1))
                    store_tile(ir, tile_sums, target, [r * n for r in rows_part.within], part.within)


def _copy_panel(ir: IRBuilder, step: MatMul, width: int, part: Blocks, b: Value) -> tuple[Value, tuple[int, ...], int]:
    """Emit a copy of columns as rows; return its address, the offsets of its vectors, and its row length."""
    k, n = step.operands[1].shape[-2:]
    across = step.operands[1].strides[-1]
    one, work = elementwise_ops.type_of(step.out.buffer.dtype), ir.operands[3]
    first, lanes = part.within[0], lanes_for(n, step.out.buffer.dtype.itemsize, width)
    wide = part.within[-1] + lanes - first
    ir.call_void(
        transpose_kernel(ir.module, one, (wide, k), across, wide, width), work, ir.element_address(b, first * across, one)
    )
    return work, tuple(c - first for c in part.within), wide
