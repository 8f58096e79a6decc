"""Products of matrices that fit into the cache become loops over tiles of registers, with no copies but of a transposed `b`."""

from __future__ import annotations

from ... import elementwise
from ...code import POINTER, Code, Module, Value
from ...steps import Product
from .tiles import Along, Part, behind, blocks, columns, lanes_for, most_rows, rows, stored, summed
from .transposition import transposition


def small_product(module: Module, step: Product, width: int) -> str:
    """The name of a function that does a step; it is given the addresses of its result, and of its operands."""
    kind = elementwise.type_of(step.out.buffer.dtype)
    a, b = step.operands[:2]
    parts = [*step.out.shape, a.shape[-1], *a.strides, *b.strides]
    name = f".product_{kind.mangled}_{'_'.join(str(n).replace('-', 'm') for n in parts)}"

    def write() -> None:
        code = module.function(name, None, [POINTER] * (1 + len(step.operands)), "noinline")
        _stacked(code, step, width, list(code.operands[:3]), 0)
        code.give()

    return module.made(name, write)


def _stacked(code: Code, step: Product, width: int, bases: list[Value], axis: int) -> None:
    """Write the loops over a stack of matrices, from one axis on."""
    if axis == len(step.out.shape) - 2:
        _one(code, step, width, *bases)
        return
    places, kind = (step.out, *step.operands[:2]), elementwise.type_of(step.out.buffer.dtype)
    with code.loop(0, step.out.shape[axis]) as loop:
        inside = [behind(code, base, kind, (loop.index, p.strides[axis])) for base, p in zip(bases, places, strict=True)]
        _stacked(code, step, width, inside, axis + 1)


def _one(code: Code, step: Product, width: int, out: Value, a: Value, b: Value) -> None:
    """Write the product of two matrices."""
    left, right = step.operands[:2]
    (m, k), n = left.shape[-2:], right.shape[-1]
    dtype = step.out.buffer.dtype
    one, (down, across) = elementwise.type_of(dtype), right.strides[-2:]
    lanes = lanes_for(n, dtype.itemsize, width)
    kind, (per_row, per_turn) = one.with_lanes(lanes), left.strides[-2:]
    for part in columns(n, lanes, width):
        for start in blocks(code, part):
            panel, offsets, length = behind(code, b, one, (start, 1)), part.within, down
            if len(step.operands) > 2:
                panel, offsets, length = _copied(code, step, width, part, behind(code, b, one, (start, across)))
            axes = [Along(k, per_turn, length)]
            for rows_part in rows(m, most_rows(len(part.within), width)):
                for row in blocks(code, rows_part):
                    source = behind(code, a, one, (row, per_row))
                    found = summed(code, kind, source, panel, [r * per_row for r in rows_part.within], offsets, axes)
                    target = behind(code, out, one, (row, n), (start, 1))
                    stored(code, found, target, [r * n for r in rows_part.within], part.within)


def _copied(code: Code, step: Product, width: int, part: Part, b: Value) -> tuple[Value, tuple[int, ...], int]:
    """Copy the columns of a block, that lie as rows; returns where the copy and its vectors begin, and how long its rows are."""
    k, n = step.operands[1].shape[-2:]
    across = step.operands[1].strides[-1]
    one, work = elementwise.type_of(step.out.buffer.dtype), code.operands[3]
    first, lanes = part.within[0], lanes_for(n, step.out.buffer.dtype.itemsize, width)
    wide = part.within[-1] + lanes - first
    code.run(transposition(code.module, one, (wide, k), across, wide, width), work, code.at(b, first * across, one))
    return work, tuple(c - first for c in part.within), wide
