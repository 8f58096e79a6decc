"""Sums of products in registers: the inner loops of products of matrices and of convolutions.

A tile is a few rows by a few vectors of columns of ``out[r, c] = sum over k of a[r, k] b[k, c]``. Its sums stay in registers for
all `k`: each turn loads the vectors of a row of `b`, and multiplies them by one number of each row of `a` (K. Goto and R. van de
Geijn, "Anatomy of high-performance matrix multiplication", 2008). Columns that do not fill a vector are computed by one that
overlaps that before it, not by one with idle lanes: those would raise flags for numbers that are not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from ...code import LONG, Code, Type, Value

UNROLLED = 9  # turns of the innermost loops that are written out
WIDEST = 4  # vectors of a tile


@dataclass(frozen=True)
class Along:
    """One axis of a sum of products: its length, and by how many elements `a` and `b` are passed through."""

    length: int
    a: int
    b: int


@dataclass(frozen=True)
class Part:
    """Equal blocks of rows, or of columns, one after the other.

    Attributes
    ----------
    first : int
        The first row of the first block.
    turns : int
        How many blocks there are.
    step : int
        From one block to the next.
    within : tuple of int
        The rows of a block, counted from its first.
    """

    first: int
    turns: int
    step: int
    within: tuple[int, ...]


def most_rows(vectors: int, width: int) -> int:
    """The rows of a tile of so many vectors whose sums stay in registers: AVX2 has 16 of these, others have 32.

    The vectors of `b`, and one number of `a`, need registers too.
    """
    return ((16 if width == 32 else 32) - 1 - vectors) // vectors


def lanes_for(length: int, itemsize: int, width: int) -> int:
    """How many elements of an axis of a `length` are handled as one vector: a power of 2."""
    return int(min(width // itemsize, 1 << (length.bit_length() - 1)))


def columns(length: int, lanes: int, width: int) -> list[Part]:
    """Blocks of columns, `within` being where their vectors begin."""
    most = WIDEST if width != 32 else WIDEST - 1
    return columns_by(length, lanes, 2 if -(-length // lanes) > most else most)


def columns_by(length: int, lanes: int, count: int) -> list[Part]:
    """Blocks of so many vectors of columns, and one of those that are left over."""
    starts = [min(v * lanes, length - lanes) for v in range(-(-length // lanes))]
    if len(starts) <= count:
        return [Part(0, 1, 0, tuple(starts))]
    full = length // lanes
    whole = (
        full // count if length % lanes == 0 else (full - 1) // count
    )  # what overlaps is in one tile: sums are added to but once
    found = [Part(0, whole, count * lanes, tuple(starts[:count]))] if whole else []
    rest = starts[whole * count :]
    return [*found, Part(0, 1, 0, tuple(rest))] if rest else found


def rows(length: int, most: int) -> list[Part]:
    """Blocks of at most so many rows, all of nearly one size."""
    count = -(-length // -(-length // max(most, 1)))
    full = length // count
    found = [Part(0, full, count, tuple(range(count)))]
    if length % count:
        found.append(Part(full * count, 1, 0, tuple(range(length % count))))
    return found


def blocks(code: Code, part: Part) -> Iterator[Value]:
    """Write a loop over the blocks of a part; it gives where each begins, once."""
    if part.turns == 1:
        yield code.number(part.first, LONG)
        return
    with code.loop(0, part.turns) as loop:
        start = code.binary("mul", loop.index, code.number(part.step, LONG))
        yield code.binary("add", start, code.number(part.first, LONG)) if part.first else start


def summed(
    code: Code, kind: Type, a: Value, b: Value, rows: Sequence[int], columns: Sequence[int], axes: Sequence[Along]
) -> list[list[Value]]:
    """Write the sums of a tile.

    Parameters
    ----------
    code : Code
        The function in which they stand.
    kind : Type
        Of a vector of columns.
    a, b : Value
        The addresses of the first numbers.
    rows, columns : sequence of int
        By how many elements the numbers of each row lie behind `a`, and the vectors of columns behind `b`.
    axes : sequence of Along
        What is summed along, the outermost first.

    Returns
    -------
    list of list of Value
        For each row its vectors.
    """
    tile = _Tile(code, kind, rows, columns, [axis for axis in axes if axis.length != 1])
    found = [code.number(0.0, kind)] * (len(rows) * len(columns))
    if all(axis.length for axis in axes):
        found = tile.along(0, a, b, found)
    return [found[r * len(columns) : (r + 1) * len(columns)] for r in range(len(rows))]


class _Tile:
    def __init__(self, code: Code, kind: Type, rows: Sequence[int], columns: Sequence[int], axes: Sequence[Along]) -> None:
        self.code, self.kind, self.rows, self.columns, self.axes = code, kind, rows, columns, axes
        self.one, self.size = kind.with_lanes(1), 8 if kind.of == "double" else 4
        self.looped = len(axes)
        while self.looped and prod(axis.length for axis in axes[self.looped - 1 :]) <= UNROLLED:
            self.looped -= 1

    def along(self, depth: int, a: Value, b: Value, sums: list[Value]) -> list[Value]:
        """Write the loops from one depth on; gives the sums after them."""
        code = self.code
        if depth == self.looped:
            for offset_a, offset_b in _offsets(self.axes[depth:]):
                sums = self._turn(code.at(a, offset_a, self.one), code.at(b, offset_b, self.one), sums)
            return sums
        axis = self.axes[depth]
        with code.loop(0, axis.length, 1, sums) as loop:
            inside_a, inside_b = (
                code.at(base, code.binary("mul", loop.index, code.number(stride, LONG)), self.one)
                for base, stride in ((a, axis.a), (b, axis.b))
            )
            loop.then = self.along(depth + 1, inside_a, inside_b, loop.now)
        return loop.then

    def _turn(self, a: Value, b: Value, sums: list[Value]) -> list[Value]:
        code = self.code
        found = list(sums)
        vectors = [code.load(code.at(b, c, self.one), self.kind, self.size) for c in self.columns]
        for r, row in enumerate(self.rows):
            number = code.splat(code.load(code.at(a, row, self.one), self.one, self.size), self.kind.lanes)
            for c, vector in enumerate(vectors):
                k = r * len(vectors) + c
                found[k] = code.fma(number, vector, found[k])
        return found


def _offsets(axes: Sequence[Along]) -> list[tuple[int, int]]:
    found = [(0, 0)]
    for axis in axes:
        found = [(a + k * axis.a, b + k * axis.b) for a, b in found for k in range(axis.length)]
    return found


def scaled(code: Code, index: Value, factor: int) -> Value:
    """An index times a constant."""
    return index if factor == 1 else code.binary("mul", index, code.number(factor, LONG))


def behind(code: Code, base: Value, kind: Type, *terms: tuple[Value, int]) -> Value:
    """An address, as many elements behind another as indices times constants say."""
    for index, factor in terms:
        if factor and index.text != "0":
            base = code.at(base, scaled(code, index, factor), kind)
    return base


def stored(
    code: Code, values: Sequence[Sequence[Value]], address: Value, rows: Sequence[int], columns: Sequence[int], step: int = 1
) -> None:
    """Store a tile.

    `rows` and `columns` say where its rows and vectors lie behind an address, `step` where the elements of a vector do.
    """
    for row, vectors in zip(rows, values, strict=True):
        for column, vector in zip(columns, vectors, strict=True):
            one, apart = vector.type.with_lanes(1), vector.type.lanes if step != 1 else 1
            size = 8 if one.of == "double" else 4
            for k in range(apart):
                part = code.lane(vector, k) if apart > 1 else vector
                code.store(part, code.at(address, row + column + k * step, one), size)
