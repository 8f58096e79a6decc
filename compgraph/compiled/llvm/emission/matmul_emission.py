"""Emission of matrix products: calls of BLAS, or kernels of register tiles for small matrices."""

from __future__ import annotations

from .. import elementwise_ops
from ..buffer_ir import BufferView, MatMul
from ..ir_builder import BYTE, INT, POINTER, IRBuilder, Module, Value
from ..llvm_compiler import processor
from .memory_access import MemoryAccess, index_loops
from .register_tiles import (
    Blocks,
    PairedAxis,
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


def emit_matmul(memory: MemoryAccess, step: MatMul) -> None:
    """Emit a matrix product."""
    if not step.is_small:
        emit_blas(memory, step)
        return
    addresses = [memory.address(view) for view in (step.out, *step.operands)]
    memory.ir.call_void(matmul_kernel(memory.ir.module, step, processor().vector_bytes), *addresses)


def emit_blas(memory: MemoryAccess, product: MatMul) -> None:
    """Emit a matrix product: a loop over the stack, with one call of ``gemm`` per matrix.

    Fortran's matrices are column-major, so ``gemm`` computes ``out.T = b.T @ a.T``, and row-major matrices are passed without
    transposition.
    """
    ir, (left, right) = memory.ir, product.operands
    (m, k), n = left.shape[-2:], right.shape[-1]
    constant = ir.module.constant
    type = elementwise_ops.type_of(product.out.buffer.dtype)
    lengths = [constant(ir.number(size, INT)) for size in (n, m, k)]
    (flag_b, leading_b), (flag_a, leading_a) = (_gemm_layout(view) for view in (right, left))
    flags = [constant(ir.number(ord(flag), BYTE)) for flag in (flag_b, flag_a)]
    leading_dimensions = [constant(ir.number(size, INT)) for size in (leading_b, leading_a, n)]
    one, zero = (constant(ir.number(x, type)) for x in (1.0, 0.0))
    name = "blas_dgemm" if product.out.buffer.dtype.itemsize == 8 else "blas_sgemm"
    ir.module.declare(name, None, [POINTER] * 13)
    with index_loops(ir, product.out.shape[:-2]) as indices:
        a, b, out = (memory.address(view, indices) for view in (left, right, product.out))
        b_and_a = b, leading_dimensions[0], a, leading_dimensions[1]
        ir.call_void(name, *flags, *lengths, one, *b_and_a, zero, out, leading_dimensions[2])


def _gemm_layout(view: BufferView) -> tuple[str, int]:
    """Return the transposition flag of ``gemm`` for the transpose of a matrix, and its leading dimension."""
    (m, n), (s, t) = view.shape[-2:], view.strides[-2:]
    if (t == 1 or n == 1) and (s >= n or m == 1):
        return "N", max(s, n) if m > 1 else n
    return "T", max(t, m) if n > 1 else m


def matmul_kernel(module: Module, step: MatMul, width: int) -> str:
    """Return the name of a function that computes a step; its arguments are the addresses of its result and operands."""
    type = elementwise_ops.type_of(step.out.buffer.dtype)
    a, b = step.operands[:2]
    layout = [*step.out.shape, a.shape[-1], *a.strides, *b.strides]
    name = f".product_{type.mangled}_{'_'.join(str(n).replace('-', 'm') for n in layout)}"

    def emit_body() -> None:
        ir = module.function(name, None, [POINTER] * (1 + len(step.operands)), "noinline")
        _emit_stack(ir, step, width, list(ir.operands[:3]), 0)
        ir.ret()

    return module.define_once(name, emit_body)


def _emit_stack(ir: IRBuilder, step: MatMul, width: int, bases: list[Value], axis: int) -> None:
    """Emit the loops over a stack of matrices from an axis on; `bases` are the addresses of the result and operands."""
    if axis == len(step.out.shape) - 2:
        _emit_matmul(ir, step, width, *bases)
        return
    views, type = (step.out, *step.operands[:2]), elementwise_ops.type_of(step.out.buffer.dtype)
    with ir.loop(0, step.out.shape[axis]) as loop:
        terms = [(loop.index, view.strides[axis]) for view in views]
        slices = [offset_address(ir, base, type, term) for base, term in zip(bases, terms, strict=True)]
        _emit_stack(ir, step, width, slices, axis + 1)


def _emit_matmul(ir: IRBuilder, step: MatMul, width: int, out: Value, a: Value, b: Value) -> None:
    """Emit the product of two matrices."""
    left, right = step.operands[:2]
    (m, k), n = left.shape[-2:], right.shape[-1]
    dtype = step.out.buffer.dtype
    scalar_type, (row_stride_b, column_stride_b) = elementwise_ops.type_of(dtype), right.strides[-2:]
    lanes = lanes_for(n, dtype.itemsize, width)
    vector_type, (row_stride_a, column_stride_a) = scalar_type.with_lanes(lanes), left.strides[-2:]
    for column_block in column_blocks(n, lanes, width):
        for start in block_starts(ir, column_block):
            panel, offsets, panel_stride = offset_address(ir, b, scalar_type, (start, 1)), column_block.offsets, row_stride_b
            if len(step.operands) > 2:
                columns = offset_address(ir, b, scalar_type, (start, column_stride_b))
                panel, offsets, panel_stride = _copy_panel(ir, step, width, column_block, columns)
            axes = [PairedAxis(k, column_stride_a, panel_stride)]
            for row_block in row_blocks(m, max_tile_rows(len(column_block.offsets), width)):
                for row in block_starts(ir, row_block):
                    source = offset_address(ir, a, scalar_type, (row, row_stride_a))
                    rows_a = [r * row_stride_a for r in row_block.offsets]
                    tile_sums = accumulate_tile(ir, vector_type, source, panel, rows_a, offsets, axes)
                    target = offset_address(ir, out, scalar_type, (row, n), (start, 1))
                    store_tile(ir, tile_sums, target, [r * n for r in row_block.offsets], column_block.offsets)


def _copy_panel(ir: IRBuilder, step: MatMul, width: int, column_block: Blocks, b: Value) -> tuple[Value, tuple[int, ...], int]:
    """Emit a transposed copy of columns of `b`; return its address, the offsets of its vectors, and its row stride."""
    k, n = step.operands[1].shape[-2:]
    column_stride = step.operands[1].strides[-1]
    type, scratch = elementwise_ops.type_of(step.out.buffer.dtype), ir.operands[3]
    first, lanes = column_block.offsets[0], lanes_for(n, step.out.buffer.dtype.itemsize, width)
    count = column_block.offsets[-1] + lanes - first
    kernel = transpose_kernel(ir.module, type, (count, k), column_stride, count, width)
    ir.call_void(kernel, scratch, ir.element_address(b, first * column_stride, type))
    return scratch, tuple(c - first for c in column_block.offsets), count
