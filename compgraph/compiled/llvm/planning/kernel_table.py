"""Kernels: units of the same structure share machine code, and a program is a table of records with their integers (a pass).

The *signature* of a unit is its structure: operations, dtypes, which views are the same, which loop is vectorized. Its
*parameters* are integers: trip counts, strides, the place of each view, and number operands. A parameter that is equal in all
records of a kernel is a constant of its code. One that differs from another by a constant is computed from that. The others are
words of the record. So compile time follows the number of distinct kernels, which does not grow with that of iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..buffer_ir import Buffer, BufferView, Map, MatMul, Reduce, dense_view
from .loop_nests import MAX_STRIDED_LOAD, NestLoops
from .memory_planning import buffers_used
from .nest_fusion import FusedLoop, LoopNest, Unit

SUM_BLOCK = 64  # iterations of a reduction that are summed in order
MAX_CONSTANT_LENGTH = 4  # longest trip count that is a part of the signature, so that LLVM unrolls the loop
MAX_PRODUCT_SHAPES = 8  # shapes of products of a vector and a matrix that have kernels of their own
# Operations whose code is the same for all numbers; others may look at a constant operand.
_ANY_NUMBER = frozenset({
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "copy", "where", "less", "less_equal", "greater",
    "greater_equal", "equal", "not_equal",
})  # fmt: skip

Key = tuple[Hashable, ...]  # of a parameter
Place = Callable[[BufferView], tuple[int, int]]  # the number of the array that a view is in, and the byte offset there


@dataclass(eq=False)
class UnitRecord:
    """A unit as a signature and parameters.

    Attributes
    ----------
    unit : Unit
        The unit; for a step outside of nests, with views of offset 0 in buffers of their own.
    signature : hashable
        Equal for units that can share code.
    parameters : dict
        The integer of each key. The keys of equal signatures are the same, in the same order.
    views : dict
        The number of each view in memory, which is a part of the keys.
    loops : NestLoops or None
        The loops of a nest.
    registers : sequence of Buffer
        Single numbers that only this unit, a `FusedLoop`, uses. They are local variables.
    """

    unit: Unit
    signature: Hashable
    parameters: dict[Key, int]
    views: dict[BufferView, int]
    loops: NestLoops | None = None
    registers: Sequence[Buffer] = ()


class Column(NamedTuple):
    """Where a parameter comes from: a word of the record, plus a constant; None without a word."""

    word: int | None
    constant: int


@dataclass(eq=False)
class Kernel:
    """Units of one signature.

    Attributes
    ----------
    name : str
        The name of its function.
    example : UnitRecord
        The first of its records.
    rows : list of list of int
        The parameters of each record.
    columns : dict
        The `Column` of each key; see `compress`.
    words : ndarray of int64
        The words of each record.
    """

    name: str
    example: UnitRecord
    rows: list[list[int]] = field(default_factory=list)
    columns: dict[Key, Column] = field(default_factory=dict)
    words: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0), np.int64))

    def compress(self) -> None:
        """Set `columns` and `words` from `rows`."""
        rows = np.array(self.rows, np.int64).reshape(len(self.rows), -1)
        relative = rows - rows[0]
        known: dict[bytes, int] = {}  # the word of each column that varies, relative to its first row
        words: list[NDArray[np.int64]] = []
        for key, first, column in zip(self.example.parameters, rows[0].tolist(), relative.T, strict=True):
            if not column.any():
                self.columns[key] = Column(None, first)
                continue
            word = known.setdefault(column.tobytes(), len(words))
            if word == len(words):
                words.append(column + first)
            self.columns[key] = Column(word, first - int(words[word][0]))
        self.words = np.stack(words, 1) if words else np.empty((len(rows), 0), np.int64)


class KernelTable:
    """The kernels of a program.

    Parameters
    ----------
    materialized : collection of Buffer
        Buffers whose values are stored in memory.
    registers : collection of Buffer
        Single numbers in the workspace that one unit uses.
    width : int
        The bytes of a vector.
    """

    def __init__(self, materialized: Collection[Buffer], registers: Collection[Buffer], width: int) -> None:
        self.kernels: dict[Hashable, Kernel] = {}
        self._materialized, self._registers, self._width = materialized, registers, width

    def add(self, unit: Unit, place: Place) -> tuple[Kernel, int]:
        """Return the kernel of a unit, which may be new, and the number of the record."""
        record = self._describe(unit, place)
        kernel = self.kernels.get(record.signature)
        if kernel is None:
            kernel = self.kernels[record.signature] = Kernel(f"kernel{len(self.kernels)}", record)
        kernel.rows.append(list(record.parameters.values()))
        return kernel, len(kernel.rows) - 1

    def _describe(self, unit: Unit, place: Place) -> UnitRecord:
        if isinstance(unit, LoopNest):
            return _describe_nest(unit, NestLoops(unit, self._materialized, self._width), self._materialized, place)
        if isinstance(unit, FusedLoop):
            return self._describe_loop(unit, place)
        return _describe_step(unit, place)

    def _describe_loop(self, loop: FusedLoop, place: Place) -> UnitRecord:
        """Describe a loop, whose code is its own; the places of its buffers are parameters."""
        views: dict[BufferView, int] = {}
        parameters: dict[Key, int] = {}
        buffers = dict.fromkeys(b for b in buffers_used(loop) if b in self._materialized)
        for number, buffer in enumerate(b for b in buffers if b not in self._registers):
            view = BufferView(buffer, 0, (), ())
            views[view] = number
            parameters["array", number], parameters["offset", number] = place(view)
        return UnitRecord(loop, id(loop), parameters, views, registers=[b for b in buffers if b in self._registers])


def block_levels(iterations: int) -> int:
    """Return how deep the blocks of a reduction of so many iterations are nested."""
    levels, block = 0, SUM_BLOCK
    while iterations > block:
        levels, block = levels + 1, block * SUM_BLOCK
    return levels


def _describe_nest(nest: LoopNest, loops: NestLoops, materialized: Collection[Buffer], place: Place) -> UnitRecord:
    parameters: dict[Key, int] = {}
    views: dict[BufferView, int] = {}
    buffers: dict[Buffer, int] = {}
    in_memory = set(loops.views)
    for depth, axis in enumerate(loops.axes):
        parameters["length", depth] = axis.length

    def view_signature(view: BufferView) -> Hashable:
        if view in views:
            return views[view]
        number = views[view] = len(views)
        buffer = buffers.setdefault(view.buffer, len(buffers))
        if view not in in_memory:
            return buffer, view.buffer.dtype.str, view.buffer in materialized
        parameters["array", number], parameters["offset", number] = place(view)
        strides: list[int | None] = []
        for depth, axis in enumerate(loops.axes):
            stride = axis.stride(view)
            is_constant = stride == 0 or (depth == loops.vector and abs(stride) <= MAX_STRIDED_LOAD)
            strides.append(stride if is_constant else None)
            if not is_constant:
                parameters["stride", number, depth] = stride
        return buffer, view.buffer.dtype.str, tuple(strides)

    def operand_signature(step: Map, number: int, position: int) -> Hashable:
        operand, dtype = step.operands[position], step.operand_dtype(position)
        if isinstance(operand, BufferView):
            return view_signature(operand)
        word = number_word(operand, dtype)
        if step.operation not in _ANY_NUMBER or dtype.itemsize != 8 or dtype.kind not in "if":
            return "number", word
        parameters["number", number, position] = word
        return "number"

    steps: list[Hashable] = []
    for number, step in enumerate(nest.steps):
        if isinstance(step, Reduce):
            steps.append((step.operation, view_signature(step.operand), view_signature(step.out)))
            parameters["count", number] = int(np.prod([step.shape[k] for k in step.axes]))
        else:
            operands = [operand_signature(step, number, position) for position in range(len(step.operands))]
            steps.append((step.operation, step.computed_in.str, step.is_write, *operands, view_signature(step.out)))
    axes = [
        (
            axis.is_reduced and block_levels(loops.vectorized_length(depth) // loops.step(depth)),
            axis.length if axis.length <= MAX_CONSTANT_LENGTH else None,
        )
        for depth, axis in enumerate(loops.axes)
    ]
    signature = (not nest.shape, tuple(axes), loops.vector, loops.lanes, tuple(steps))
    return UnitRecord(nest, signature, parameters, views, loops)


def _describe_step(step: Any, place: Place) -> UnitRecord:
    """Describe a step outside of nests; only the places of its views are parameters."""
    views: dict[BufferView, int] = {}
    parameters: dict[Key, int] = {}
    layouts: list[Hashable] = []

    def moved(operand: Any) -> Any:
        if not isinstance(operand, BufferView):
            layouts.append(np.asarray(operand).tobytes())
            return operand
        layouts.append((operand.buffer.dtype.str, operand.shape, operand.strides))
        number = len(views)
        parameters["array", number], parameters["offset", number] = place(operand)
        own = BufferView(Buffer(operand.buffer.dtype, operand.buffer.size), 0, operand.shape, operand.strides)
        views[own] = number
        return own

    operands = tuple(map(moved, step.operands))
    unit = replace(step, operands=operands, out=moved(step.out))
    others = [getattr(step, each.name) for each in fields(step) if each.name not in ("operands", "out")]
    return UnitRecord(unit, (type(step), *others, *layouts), parameters, views)


def number_word(number: object, dtype: np.dtype[Any]) -> int:
    """Return a number of a dtype as an integer; a floating-point number by its bits."""
    exact = np.asarray(number).astype(dtype)[()]
    return int(np.float64(exact).view(np.int64)) if dtype.kind == "f" else int(exact)


def products_as_nests(units: Sequence[Unit]) -> list[Unit]:
    """Replace products of a vector and a matrix by nests if they have many shapes, which would each be a kernel."""
    products = [unit for unit in units if isinstance(unit, MatMul) and unit.is_small and _is_vector_product(unit)]
    shapes = {(unit.operands[0].shape, unit.operands[1].shape) for unit in products}
    if len(shapes) <= MAX_PRODUCT_SHAPES:
        return list(units)
    return [_product_nest(unit) if isinstance(unit, MatMul) and unit in products else unit for unit in units]


def _is_vector_product(product: MatMul) -> bool:
    return len(product.out.shape) == 2 and 1 in product.out.shape


def _product_nest(product: MatMul) -> LoopNest:
    """Return the nest of a product of matrices: multiply, and add along the common axis."""
    a, b, out = product.operands[0], product.operands[1], product.out
    shape = (*out.shape, a.shape[1])
    nest = LoopNest(shape)
    terms = dense_view(out.buffer.dtype, shape)
    left = BufferView(a.buffer, a.offset, shape, (a.strides[0], 0, a.strides[1]), a.loop_strides)
    right = BufferView(b.buffer, b.offset, shape, (0, b.strides[1], b.strides[0]), b.loop_strides)
    nest.add(Map("multiply", (left, right), terms, out.buffer.dtype))
    nest.add(Reduce("add", terms, frozenset({2}), BufferView(out.buffer, out.offset, shape, (*out.strides, 0), out.loop_strides)))
    return nest
