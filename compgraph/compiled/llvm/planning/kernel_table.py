"""Kernels: units of the same structure share machine code, and a program is a sequence of records with their integers (a pass).

The *signature* of a unit is its structure: operations, dtypes, which views are the same, which loop is vectorized. Its
*parameters* are integers: trip counts, strides, the location of each view, and literals. A parameter that is equal in all
records of a kernel is a constant of its code. A parameter that differs from another by a constant is computed from it. The others
are words of the record. So compile time depends on the number of distinct kernels, which does not grow with the trip counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, fields
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..buffer_ir import Buffer, BufferView, Gather, LoopIndex, Map, MatMul, Reduce, Scatter, dense_view
from .loop_order import MAX_STRIDED_LOAD, LoopOrder, views_in_memory
from .memory_planning import buffers_used
from .nest_fusion import FusedLoop, LoopNest, Unit

SUM_BLOCK = 64  # iterations of a reduction whose terms are summed in order; longer ones are summed in nested blocks
MAX_CONSTANT_LENGTH = 4  # largest trip count that is a part of the signature, so that LLVM unrolls the loop
MAX_PRODUCT_SHAPES = 8  # distinct shapes of vector-matrix products; beyond, they share the kernels of nests
# Operations whose code does not depend on the value of a literal, so that it can be a parameter.
_PARAMETRIC = frozenset({
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "copy", "where", "less", "less_equal", "greater",
    "greater_equal", "equal", "not_equal",
})  # fmt: skip

# A parameter of a unit, with the numbers of its view, loop, step or index: ("array", view), ("offset", view), ("length", depth),
# ("stride", view, depth), ("literal", step, argnum), ("term count", step), ("trip count", loop), ("index bound", index),
# ("index stride", index).
Key = tuple[Hashable, ...]
LocateView = Callable[[BufferView], tuple[int, int]]  # returns the number of the array that holds a view, and the byte offset


@dataclass(eq=False)
class UnitRecord:
    """A unit as a signature and parameters.

    Attributes
    ----------
    unit : Unit
        The unit.
    signature : hashable
        Equal for units that can share code.
    parameters : dict
        The integer of each key. Equal signatures have the same keys, in the same order.
    views : dict
        The number that keys use for each view in memory.
    loops : dict
        The number that keys use for each loop of a `FusedLoop`.
    loop_order : LoopOrder or None
        The loops of a nest that is not within a `FusedLoop`; their trip counts, strides and literals are parameters.
    registers : list of Buffer
        For a `FusedLoop`, the scalars that no other unit uses. They are local variables.
    """

    unit: Unit
    signature: Hashable
    parameters: dict[Key, int]
    views: dict[BufferView, int]
    loops: dict[LoopIndex, int]
    loop_order: LoopOrder | None
    registers: list[Buffer]


class ParameterSource(NamedTuple):
    """The source of a parameter: a word of the record plus a constant, or the constant alone if `word` is None."""

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
    sources : dict
        The source of each parameter; set by `compress`.
    words : ndarray of int64
        The words of each record, one record per row; set by `compress`.
    """

    name: str
    example: UnitRecord
    rows: list[list[int]] = field(default_factory=list)
    sources: dict[Key, ParameterSource] = field(default_factory=dict)
    words: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0), np.int64))

    def compress(self) -> None:
        """Set `sources` and `words` from `rows`: parameters with equal differences between the records share a word."""
        rows = np.array(self.rows, np.int64).reshape(len(self.rows), -1)
        word_numbers: dict[bytes, int] = {}  # by the differences of a parameter from the first record
        words: list[NDArray[np.int64]] = []
        for key, first, differences in zip(self.example.parameters, rows[0].tolist(), (rows - rows[0]).T, strict=True):
            if not differences.any():
                self.sources[key] = ParameterSource(None, first)
                continue
            word = word_numbers.setdefault(differences.tobytes(), len(words))
            if word == len(words):
                words.append(differences + first)
            self.sources[key] = ParameterSource(word, first - int(words[word][0]))
        self.words = np.stack(words, 1) if words else np.empty((len(rows), 0), np.int64)


class KernelTable:
    """The kernels of a program.

    Parameters
    ----------
    materialized : collection of Buffer
        Buffers whose values are stored in memory.
    registers : collection of Buffer
        Scalars in the workspace that a single unit uses.
    width : int
        The bytes of a vector.
    """

    def __init__(self, materialized: Collection[Buffer], registers: Collection[Buffer], width: int) -> None:
        self.kernels: dict[Hashable, Kernel] = {}
        self._materialized, self._registers, self._width = materialized, registers, width

    def add(self, unit: Unit, locate: LocateView) -> tuple[Kernel, int]:
        """Add the record of a unit; return its kernel, which may be new, and the number of the record."""
        record = _RecordBuilder(self._materialized, self._registers, locate).record(unit, self._width)
        kernel = self.kernels.get(record.signature)
        if kernel is None:
            kernel = self.kernels[record.signature] = Kernel(f"kernel{len(self.kernels)}", record)
        kernel.rows.append(list(record.parameters.values()))
        return kernel, len(kernel.rows) - 1


def block_levels(iterations: int) -> int:
    """Return how deeply the blocks of a reduction are nested; see `SUM_BLOCK`."""
    levels, block = 0, SUM_BLOCK
    while iterations > block:
        levels, block = levels + 1, block * SUM_BLOCK
    return levels


class _RecordBuilder:
    """Computes the signature of a unit, and collects its parameters."""

    def __init__(self, materialized: Collection[Buffer], registers: Collection[Buffer], locate: LocateView) -> None:
        self._materialized, self._registers, self._locate = materialized, registers, locate
        self.parameters: dict[Key, int] = {}
        self._numbers: dict[BufferView, int] = {}  # of all views
        self._buffers: dict[Buffer, int] = {}  # the number of each buffer
        self._views: dict[BufferView, int] = {}  # the number of each view in memory
        self._loops: dict[LoopIndex, int] = {}

    def record(self, unit: Unit, width: int) -> UnitRecord:
        """Return the record of a unit."""
        loop_order = LoopOrder(unit, self._materialized, width) if isinstance(unit, LoopNest) else None
        registers: list[Buffer] = []
        if isinstance(unit, LoopNest) and loop_order is not None:
            signature = self._nest_signature(unit, loop_order)
        elif isinstance(unit, (Gather, Scatter)):
            signature = self._indexed_signature(unit)
        else:
            if isinstance(unit, FusedLoop):
                registers = [b for b in dict.fromkeys(buffers_used(unit)) if b in self._registers]
            signature = self._unit_signature(unit, frozenset(registers))
        return UnitRecord(unit, signature, self.parameters, self._views, self._loops, loop_order, registers)

    def _view_signature(self, view: BufferView, is_in_memory: bool, layout: Callable[[int], Hashable]) -> Hashable:
        """Return the signature of a view, at its first use with its layout; the location of a view in memory is a parameter."""
        number = self._numbers.get(view)
        if number is not None:
            return number
        number = self._numbers[view] = len(self._numbers)
        if is_in_memory:
            self._views[view] = number
            self.parameters["array", number], self.parameters["offset", number] = self._locate(view)
        buffer = self._buffers.setdefault(view.buffer, len(self._buffers))
        return buffer, view.buffer.dtype.str, view.buffer in self._materialized, is_in_memory, layout(number)

    # ------------------------------------------------------------------------------------------ units with constant layouts

    def _unit_signature(self, unit: Unit, registers: frozenset[Buffer]) -> Hashable:
        """Return the signature of a unit with constant strides, literals and lengths; trip counts of loops are parameters."""
        if isinstance(unit, FusedLoop):
            index = unit.loop.loop_index
            number = self._loops[index] = len(self._loops)
            self.parameters["trip count", number] = index.trip_count
            return _constant_length(index.trip_count), *[self._unit_signature(inner, registers) for inner in unit.units]
        if isinstance(unit, LoopNest):
            in_memory = set(views_in_memory(unit, self._materialized))
            steps = [self._step_signature(step, in_memory.__contains__, registers) for step in unit.steps]
            return unit.shape, unit.reduced_axes, *steps
        return self._step_signature(unit, lambda _: True, registers)

    def _step_signature(self, step: Any, is_in_memory: Callable[[BufferView], bool], registers: frozenset[Buffer]) -> Hashable:
        """Return the signature of a step whose code has constant strides and literals."""

        def operand_signature(operand: float | BufferView) -> Hashable:
            if not isinstance(operand, BufferView):
                return _literal_signature(operand)
            loop_strides = tuple((self._loops[index], stride) for index, stride in operand.loop_strides)
            is_register = operand.buffer in registers
            layout = (operand.shape, operand.strides, loop_strides, is_register)
            return self._view_signature(operand, not is_register and is_in_memory(operand), lambda _: layout)

        attributes = [getattr(step, field.name) for field in fields(step) if field.name not in ("operands", "operand", "out")]
        return type(step), *attributes, *map(operand_signature, (*step.operands, step.out))

    # ------------------------------------------------------------------------------------------ gathers and scatters

    def _indexed_signature(self, step: Gather | Scatter) -> Hashable:
        """Return the signature of a step whose trip counts, strides and index bounds are parameters."""
        for axis, length in enumerate(step.out.shape):
            self.parameters["length", axis] = length
        for k, (bound, stride) in enumerate(zip(step.lengths, step.strides, strict=True)):
            self.parameters["index bound", k], self.parameters["index stride", k] = bound, stride

        def operand_signature(operand: float | BufferView) -> Hashable:
            if not isinstance(operand, BufferView):
                return _literal_signature(operand)
            return self._view_signature(operand, True, lambda number: self._indexed_stride_signature(operand, number))

        operation = step.operation if isinstance(step, Scatter) else None
        lengths, is_checked = tuple(map(_constant_length, step.out.shape)), tuple(bound > 0 for bound in step.lengths)
        return type(step), operation, lengths, is_checked, *map(operand_signature, (*step.operands, step.out))

    def _indexed_stride_signature(self, view: BufferView, number: int) -> Hashable:
        """Return the strides that the code depends on, 0 and 1; the others are parameters."""
        for axis, stride in enumerate(view.strides):
            if stride not in (0, 1):
                self.parameters["stride", number, axis] = stride
        return tuple([stride if stride in (0, 1) else None for stride in view.strides])

    # ------------------------------------------------------------------------------------------ nests

    def _nest_signature(self, nest: LoopNest, loops: LoopOrder) -> Hashable:
        """Return the signature of a nest whose trip counts, strides and literals are parameters."""
        in_memory = set(loops.views)
        for depth, axis in enumerate(loops.axes):
            self.parameters["length", depth] = axis.length

        def view_signature(view: BufferView) -> Hashable:
            is_in_memory = view in in_memory
            return self._view_signature(
                view, is_in_memory, lambda number: is_in_memory and self._stride_signature(view, number, loops)
            )

        steps: list[Hashable] = []
        for number, step in enumerate(nest.steps):
            if isinstance(step, Reduce):
                steps.append((step.operation, view_signature(step.operand), view_signature(step.out)))
                if step.operation == "mean":
                    self.parameters["term count", number] = prod(step.shape[k] for k in step.axes)
            else:
                operands = [
                    view_signature(operand)
                    if isinstance(operand, BufferView)
                    else self._parameter_signature(step, number, argnum)
                    for argnum, operand in enumerate(step.operands)
                ]
                steps.append((step.operation, step.compute_dtype.str, step.is_write, *operands, view_signature(step.out)))
        axes = [
            (
                block_levels(loops.vectorized_length(depth) // loops.step(depth)) if axis.is_reduced else None,
                _constant_length(axis.length),
            )
            for depth, axis in enumerate(loops.axes)
        ]
        return not nest.shape, tuple(axes), loops.vector_depth, loops.lanes, *steps

    def _stride_signature(self, view: BufferView, number: int, loops: LoopOrder) -> Hashable:
        """Return the strides that the code depends on; the others are parameters."""
        strides: list[int | None] = []
        for depth, axis in enumerate(loops.axes):
            stride = axis.stride(view)
            is_constant = stride == 0 or (depth == loops.vector_depth and abs(stride) <= MAX_STRIDED_LOAD)
            strides.append(stride if is_constant else None)
            if not is_constant:
                self.parameters["stride", number, depth] = stride
        return tuple(strides)

    def _parameter_signature(self, step: Map, number: int, argnum: int) -> Hashable:
        """Return the signature of a literal, which is a parameter if the code does not depend on its value."""
        dtype = step.operand_dtype(argnum)
        word = literal_word(step.operands[argnum], dtype)
        if step.operation not in _PARAMETRIC or dtype.itemsize != 8 or dtype.kind not in "if":
            return "literal", word
        self.parameters["literal", number, argnum] = word
        return "literal"


def _literal_signature(literal: float) -> Hashable:
    """Return the signature of a literal that is a constant of the code."""
    array = np.asarray(literal)
    return array.dtype.str, array.tobytes()


def _constant_length(length: int) -> int | None:
    """Return a trip count that is a part of the signature, or None."""
    return length if length <= MAX_CONSTANT_LENGTH else None


def literal_word(literal: object, dtype: np.dtype[Any]) -> int:
    """Return a literal, converted to a dtype, as an integer: the bits of a floating-point number."""
    scalar = np.asarray(literal).astype(dtype)[()]
    return int(np.float64(scalar).view(np.int64)) if dtype.kind == "f" else int(scalar)


def products_as_nests(units: Sequence[Unit]) -> list[Unit]:
    """Replace products of a vector and a matrix by nests if they have many shapes, because each shape would need a kernel."""
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
