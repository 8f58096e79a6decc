"""Register tiles: the inner loops of matrix products and convolutions, and transposes in registers.

A tile is a few rows by a few vectors of columns of ``out[r, c] = sum over k of a[r, k] b[k, c]``. Its sums stay in registers
for all `k`: each iteration loads the vectors of a row of `b` and multiplies them by one element of each row of `a` (K. Goto and
R. van de Geijn, "Anatomy of high-performance matrix multiplication", 2008). Remaining columns are computed by a vector that
overlaps the previous one, not by masked lanes, which would raise flags for elements that do not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from ..ir_builder import INT, LONG, POINTER, IRBuilder, Module, Type, Value
from .memory_access import scale_index

MAX_UNROLLED = 9  # iterations of unrolled innermost loops
MAX_VECTORS = 4  # vectors in a row of a tile


@dataclass(frozen=True)
class PairedAxis:
    """An axis that two arrays share: its length, and the strides of both."""

    length: int
    stride_a: int
    stride_b: int


@dataclass(frozen=True)
class Blocks:
    """Equal blocks of rows or columns.

    Attributes
    ----------
    first : int
        The first row of the first block.
    count : int
        The number of blocks.
    step : int
        The distance between blocks.
    offsets : tuple of int
        The rows of a block, relative to its first.
    """

    first: int
    count: int
    step: int
    offsets: tuple[int, ...]


def max_tile_rows(vectors: int, width: int) -> int:
    """Return how many rows a tile may have so that its sums fit into registers: AVX2 has 16, others have 32.

    The vectors of `b`, and one element of `a`, need registers too.
    """
    return ((16 if width == 32 else 32) - 1 - vectors) // vectors


def lanes_for(length: int, itemsize: int, width: int) -> int:
    """Return how many lanes vectors along an axis have: a power of 2."""
    return int(min(width // itemsize, 1 << (length.bit_length() - 1)))


def column_blocks(length: int, lanes: int, width: int) -> list[Blocks]:
    """Return blocks of columns, with the starts of their vectors as offsets."""
    max_vectors = MAX_VECTORS if width != 32 else MAX_VECTORS - 1
    return vector_blocks(length, lanes, 2 if -(-length // lanes) > max_vectors else max_vectors)


def vector_blocks(length: int, lanes: int, count: int) -> list[Blocks]:
    """Return blocks of `count` vectors of columns, and a block of the remaining vectors."""
    starts = [min(v * lanes, length - lanes) for v in range(-(-length // lanes))]
    if len(starts) <= count:
        return [Blocks(0, 1, 0, tuple(starts))]
    full_vectors = length // lanes
    # overlapping vectors are in one tile, so no sum is added twice
    full_blocks = full_vectors // count if length % lanes == 0 else (full_vectors - 1) // count
    blocks = [Blocks(0, full_blocks, count * lanes, tuple(starts[:count]))] if full_blocks else []
    remaining = starts[full_blocks * count :]
    return [*blocks, Blocks(0, 1, 0, tuple(remaining))] if remaining else blocks


def row_blocks(length: int, max_rows: int) -> list[Blocks]:
    """Return blocks of at most `max_rows` rows, of nearly equal size."""
    count = -(-length // -(-length // max(max_rows, 1)))
    full = length // count
    blocks = [Blocks(0, full, count, tuple(range(count)))]
    if length % count:
        blocks.append(Blocks(full * count, 1, 0, tuple(range(length % count))))
    return blocks


def block_starts(ir: IRBuilder, blocks: Blocks) -> Iterator[Value]:
    """Emit a loop over blocks; yield the start of each."""
    if blocks.count == 1:
        yield ir.number(blocks.first, LONG)
        return
    with ir.loop(0, blocks.count) as loop:
        start = ir.binary("mul", loop.index, ir.number(blocks.step, LONG))
        yield ir.binary("add", start, ir.number(blocks.first, LONG)) if blocks.first else start


def accumulate_tile(
    ir: IRBuilder,
    vector_type: Type,
    a: Value,
    b: Value,
    rows: Sequence[int],
    columns: Sequence[int],
    axes: Sequence[PairedAxis],
) -> list[list[Value]]:
    """Emit the sums of a tile.

    Parameters
    ----------
    ir : IRBuilder
        The function.
    vector_type : Type
        The type of a vector of columns.
    a, b : Value
        The addresses of the operands.
    rows, columns : sequence of int
        The offsets of the rows of `a`, and of the column vectors of `b`.
    axes : sequence of PairedAxis
        The axes of the sum, the outermost first.

    Returns
    -------
    list of list of Value
        The vectors of each row.
    """
    tile = _Tile(ir, vector_type, rows, columns, [axis for axis in axes if axis.length != 1])
    sums = [ir.number(0.0, vector_type)] * (len(rows) * len(columns))
    if all(axis.length for axis in axes):
        sums = tile.emit_loops(0, a, b, sums)
    return [sums[r * len(columns) : (r + 1) * len(columns)] for r in range(len(rows))]


class _Tile:
    """Emits the sums of a tile; see `accumulate_tile`."""

    def __init__(
        self, ir: IRBuilder, vector_type: Type, rows: Sequence[int], columns: Sequence[int], axes: Sequence[PairedAxis]
    ) -> None:
        self.ir, self.vector_type, self.rows, self.columns, self.axes = ir, vector_type, rows, columns, axes
        self.scalar_type, self.size = vector_type.with_lanes(1), vector_type.itemsize
        self.unrolled_depth = len(axes)  # the first of the unrolled axes
        while self.unrolled_depth and prod(axis.length for axis in axes[self.unrolled_depth - 1 :]) <= MAX_UNROLLED:
            self.unrolled_depth -= 1

    def emit_loops(self, depth: int, a: Value, b: Value, sums: list[Value]) -> list[Value]:
        """Emit the loops from a depth inwards; return the sums."""
        ir, type = self.ir, self.scalar_type
        if depth == self.unrolled_depth:
            for offset_a, offset_b in paired_offsets(self.axes[depth:]):
                sums = self._add_products(ir.element_address(a, offset_a, type), ir.element_address(b, offset_b, type), sums)
            return sums
        axis = self.axes[depth]
        with ir.loop(0, axis.length, 1, sums) as loop:
            current_a, current_b = (
                ir.element_address(base, ir.binary("mul", loop.index, ir.number(stride, LONG)), type)
                for base, stride in ((a, axis.stride_a), (b, axis.stride_b))
            )
            loop.next = self.emit_loops(depth + 1, current_a, current_b, loop.current)
        return loop.next

    def _add_products(self, a: Value, b: Value, sums: list[Value]) -> list[Value]:
        """Emit one iteration of the innermost loop; return the new sums."""
        ir, type, new_sums = self.ir, self.scalar_type, list(sums)
        vectors = [ir.load(ir.element_address(b, column, type), self.vector_type, self.size) for column in self.columns]
        for r, row in enumerate(self.rows):
            factor = ir.splat(ir.load(ir.element_address(a, row, type), type, self.size), self.vector_type.lanes)
            for c, vector in enumerate(vectors):
                k = r * len(vectors) + c
                new_sums[k] = ir.fma(factor, vector, new_sums[k])
        return new_sums


def paired_offsets(axes: Sequence[PairedAxis]) -> list[tuple[int, int]]:
    """Return the offsets of all elements along some axes, in both arrays."""
    offsets = [(0, 0)]
    for axis in axes:
        offsets = [(a + k * axis.stride_a, b + k * axis.stride_b) for a, b in offsets for k in range(axis.length)]
    return offsets


def offset_address(ir: IRBuilder, base: Value, type: Type, *terms: tuple[Value, int]) -> Value:
    """Return an address plus indices times constants."""
    for index, factor in terms:
        if factor and index.text != "0":
            base = ir.element_address(base, scale_index(ir, index, factor), type)
    return base


def store_tile(
    ir: IRBuilder,
    values: Sequence[Sequence[Value]],
    address: Value,
    rows: Sequence[int],
    columns: Sequence[int],
    step: int = 1,
) -> None:
    """Store a tile.

    `rows` and `columns` are the offsets of its rows and vectors in memory, and `step` is the stride of the elements of a vector.
    """
    for row, vectors in zip(rows, values, strict=True):
        for column, vector in zip(columns, vectors, strict=True):
            type, stores = vector.type.with_lanes(1), vector.type.lanes if step != 1 else 1
            size = type.itemsize
            for k in range(stores):
                part = ir.lane(vector, k) if stores > 1 else vector
                ir.store(part, ir.element_address(address, row + column + k * step, type), size)


def transpose_kernel(
    module: Module, type: Type, shape: tuple[int, int], source_stride: int, target_stride: int, width: int
) -> str:
    """Return the name of a function that stores the transpose of a matrix; its arguments are the target and the source.

    Parameters
    ----------
    module : Module
        The module of the function.
    type : Type
        The type of an element.
    shape : tuple of int
        The shape of the source. The rows of both matrices are contiguous.
    source_stride, target_stride : int
        The row strides of both.
    width : int
        The bytes of a vector.
    """
    name = f".transposed_{type.mangled}_{shape[0]}_{shape[1]}_{source_stride}_{target_stride}"

    def emit_body() -> None:
        ir = module.function(name, None, [POINTER, POINTER], "noinline")
        target, source = ir.operands
        (m, n), size = shape, type.itemsize
        if (m == 1 and target_stride == 1) or (n == 1 and source_stride == 1):  # the same elements in the same order
            _emit_copy(ir, type, target, source, m * n, lanes_for(m * n, size, width))
        else:
            strides = source_stride, target_stride
            _emit_transpose(ir, type, target, source, shape, strides, lanes_for(min(m, n), size, width))
        ir.ret()

    return module.define_once(name, emit_body)


def _emit_copy(ir: IRBuilder, type: Type, target: Value, source: Value, count: int, lanes: int) -> None:
    size = type.itemsize
    with ir.loop(0, -(-count // lanes)) as loop:
        start = _vector_start(ir, loop.index, count, lanes)
        value = ir.load(ir.element_address(source, start, type), type.with_lanes(lanes), size)
        ir.store(value, ir.element_address(target, start, type), size)


def _emit_transpose(
    ir: IRBuilder, type: Type, target: Value, source: Value, shape: tuple[int, int], strides: tuple[int, int], lanes: int
) -> None:
    (m, n), (source_stride, target_stride), size = shape, strides, type.itemsize
    with ir.loop(0, -(-n // lanes)) as across, ir.loop(0, -(-m // lanes)) as down:
        column, row = _vector_start(ir, across.index, n, lanes), _vector_start(ir, down.index, m, lanes)
        block = offset_address(ir, source, type, (row, source_stride), (column, 1))
        rows = [ir.load(ir.element_address(block, k * source_stride, type), type.with_lanes(lanes), size) for k in range(lanes)]
        block = offset_address(ir, target, type, (column, target_stride), (row, 1))
        for k, vector in enumerate(_transpose_square(ir, rows)):
            ir.store(vector, ir.element_address(block, k * target_stride, type), size)


def _vector_start(ir: IRBuilder, index: Value, length: int, lanes: int) -> Value:
    """Return the start of a vector; the last one overlaps the previous one unless the length is a multiple of `lanes`."""
    start = ir.binary("mul", index, ir.number(lanes, LONG))
    return ir.intrinsic("smin", start, ir.number(length - lanes, LONG)) if length % lanes else start


def _transpose_square(ir: IRBuilder, rows: list[Value]) -> list[Value]:
    """Transpose a square matrix by swapping halves, then quarters, and so on (J. Eklundh, 1972)."""
    lanes = len(rows)
    half = lanes // 2
    while half:
        upper = [k if not k & half else k - half + lanes for k in range(lanes)]
        lower = [k + half if not k & half else k + lanes for k in range(lanes)]
        for k in range(lanes):
            if not k & half:
                a, b = rows[k], rows[k + half]
                rows[k], rows[k + half] = (_shuffle(ir, a, b, positions) for positions in (upper, lower))
        half //= 2
    return rows


def _shuffle(ir: IRBuilder, a: Value, b: Value, positions: list[int]) -> Value:
    mask = ", ".join(f"i32 {k}" for k in positions)
    return ir.emit(f"shufflevector {a}, {b}, <{len(positions)} x i32> <{mask}>", a.type)


def non_finite_kernel(module: Module, type: Type, count: int, width: int) -> str:
    """Return the name of a function that checks whether any of `count` numbers at an address is inf or nan."""
    name = f".not_finite_{type.mangled}_{count}"

    def emit_body() -> None:
        ir = module.function(name, INT, [POINTER], "noinline")
        size = type.itemsize
        lanes = lanes_for(count, size, width)
        bits = Type(f"i{8 * size}", lanes)
        exponent = ir.number(0x7FF0 << 48 if size == 8 else 0x7F80 << 16, bits)
        with ir.loop(0, -(-count // lanes), 1, [ir.number(0, bits)]) as loop:
            value = ir.load(ir.element_address(ir.operands[0], _vector_start(ir, loop.index, count, lanes), type), bits, size)
            loop.next = [ir.intrinsic("umax", loop.current[0], ir.binary("and", value, exponent))]
        is_non_finite = ir.any(ir.compare("eq", loop.next[0], exponent))
        ir.ret(ir.cast("zext", is_non_finite, INT))

    return module.define_once(name, emit_body)
