"""Emission of loop nests, vectorized along one axis.

Scalar code computes the remainder of the vectorized axis. A reduction has an accumulator in every loop over a reduced axis. A
long loop is split into blocks of `SUM_BLOCK` iterations, so that rounding errors grow as in pairwise summation (Higham, Accuracy
and Stability of Numerical Algorithms, section 4.2). The code of a tiled nest computes one tile, whose number is an argument.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import elementwise_ops
from ..buffer_ir import Buffer, BufferView, Reduce
from ..ir_builder import LONG, IRBuilder, Type, Value
from ..planning import MAX_STRIDED_LOAD, SUM_BLOCK, LoopNest, LoopOrder
from .memory_access import MemoryAccess, as_value, constant, element_offset, round_down

_IDENTITIES = {"mean": 0, "maximum": -np.inf, "minimum": np.inf}  # of reductions without an identity in NumPy
_COMBINERS = {"mean": "add"}


class NestParameters(Protocol):
    """The trip counts, strides, addresses and literals of a nest: constants, or values at run time."""

    def length(self, depth: int) -> int | Value:
        """Return the trip count of a loop."""

    def stride(self, depth: int, view: BufferView) -> int | Value:
        """Return the stride of a view along a loop, in elements."""

    def base_address(self, view: BufferView) -> Value:
        """Return the address of the first element of a view."""

    def literal(self, step_index: int, argnum: int) -> Value | None:
        """Return a literal as a value at run time; None if the literal of the nest is used."""

    def term_count(self, step_index: int) -> int | Value:
        """Return the number of terms of each result of a reduction."""


class ConstantParameters(NamedTuple):
    """The parameters of a nest as constants; see `emit_nest`."""

    memory: MemoryAccess
    nest: LoopNest
    loops: LoopOrder

    def length(self, depth: int) -> int:
        """Return the trip count of a loop."""
        return self.loops.axes[depth].length

    def stride(self, depth: int, view: BufferView) -> int:
        """Return the stride of a view along a loop, in elements."""
        return self.loops.axes[depth].stride(view)

    def base_address(self, view: BufferView) -> Value:
        """Return the address of the first element of a view."""
        return self.memory.address(view)

    def literal(self, step_index: int, argnum: int) -> None:
        """Return None: the literals of the nest are used."""

    def term_count(self, step_index: int) -> int:
        """Return the number of terms of each result of a reduction."""
        reduction = self.nest.steps[step_index]
        assert isinstance(reduction, Reduce)
        return prod(reduction.shape[axis] for axis in reduction.axes)


def emit_nest(
    memory: MemoryAccess, nest: LoopNest, materialized: Collection[Buffer], width: int, tile: Value | None = None
) -> None:
    """Emit a nest with constant trip counts, strides and literals.

    Parameters
    ----------
    memory : MemoryAccess
        The access to the views of the nest.
    nest : LoopNest
        The loops and their steps.
    materialized : collection of Buffer
        Buffers whose values are stored in memory.
    width : int
        The bytes of a vector.
    tile : Value, optional
        The number of the tile, for a tiled nest.
    """
    loops = LoopOrder(nest, materialized, width)
    emit_parametric_nest(memory.ir, nest, loops, ConstantParameters(memory, nest, loops), materialized, tile)


def emit_parametric_nest(
    ir: IRBuilder,
    nest: LoopNest,
    loops: LoopOrder,
    parameters: NestParameters,
    materialized: Collection[Buffer],
    tile: Value | None = None,
) -> None:
    """Emit a nest of the structure of `nest`, with the trip counts, strides and literals in `parameters`."""
    _NestEmitter(ir, nest, loops, parameters, materialized, tile).emit()


class _LoopRange(NamedTuple):
    """The range of a loop.

    Attributes
    ----------
    start, stop : int or Value
        The first index, and the index after the last.
    step : int
        The distance of two indices.
    max_iterations : int
        An upper bound of the trip count, which determines the blocks of reductions.
    """

    start: int | Value
    stop: int | Value
    step: int
    max_iterations: int


class _NestEmitter:
    """Emits the code of a nest; see `emit_parametric_nest`."""

    def __init__(
        self,
        ir: IRBuilder,
        nest: LoopNest,
        loops: LoopOrder,
        parameters: NestParameters,
        materialized: Collection[Buffer],
        tile: Value | None,
    ) -> None:
        self.ir, self.nest, self.loop_order, self.parameters = ir, nest, loops, parameters
        self.materialized, self.tile = materialized, tile
        self.axes, self.vector_depth, self.lanes = loops.axes, loops.vector_depth, loops.lanes
        self.reductions = [(step_index, step) for step_index, step in enumerate(nest.steps) if isinstance(step, Reduce)]
        self.partials = () if nest.tiling is None else nest.tiling.partials

    # ------------------------------------------------------------------------------------------ loops

    def emit(self) -> None:
        """Emit all loops."""
        totals = self._emit_loops(0, {}, 1)
        if self.reductions and all(axis.is_reduced for axis in self.axes):
            self._store_results(totals, {}, 1)

    def _emit_loops(self, depth: int, indices: dict[int, Value], lanes: int) -> list[Value]:
        """Emit the loops from a depth inwards; return the accumulators of the reductions."""
        if depth == len(self.axes):
            return self._emit_body(indices, lanes)
        axis, length, vectorized_length = self.axes[depth], self.parameters.length(depth), self._vectorized_length(depth)
        tiling = self.nest.tiling
        is_tiled = tiling is not None and tiling.depth == depth
        start, stop = self._tile_bounds(vectorized_length) if is_tiled else (0, vectorized_length)
        max_iterations = tiling.tile_length if tiling is not None and is_tiled else self.loop_order.vectorized_length(depth)
        if depth != self.vector_depth:
            return self._emit_loop(depth, _LoopRange(start, stop, 1, max_iterations), indices, lanes)
        vector_range = _LoopRange(start, stop, self.lanes, max_iterations // self.lanes)
        results = self._emit_loop(depth, vector_range, indices, self.lanes)
        if axis.is_reduced:
            results = [self._reduce_lanes(step, value) for (_, step), value in zip(self.reductions, results, strict=True)]
        if vectorized_length == length:
            return results
        if isinstance(vectorized_length, int) and not is_tiled:
            return self._emit_remainder(results, depth, vectorized_length, indices, lanes)
        if is_tiled:
            has_remainder = self._is_last_tile()
        else:
            has_remainder = self.ir.compare("slt", as_value(self.ir, vectorized_length), as_value(self.ir, length))
        with self.ir.branch_if(has_remainder, results) as merged_results:
            merged_results[:] = self._emit_remainder(results, depth, vectorized_length, indices, lanes)
        return merged_results

    def _vectorized_length(self, depth: int) -> int | Value:
        """Return the number of iterations of a loop without its scalar remainder, which only the vectorized loop has."""
        length = self.parameters.length(depth)
        return round_down(self.ir, length, self.lanes) if depth == self.vector_depth else length

    def _tile_bounds(self, stop: int | Value) -> tuple[Value, Value]:
        """Return the range of the tiled loop in the current tile."""
        tiling, ir = self.nest.tiling, self.ir
        assert tiling is not None
        assert self.tile is not None
        start = ir.binary("mul", self.tile, ir.number(tiling.tile_length, LONG))
        return start, self._block_end(start, tiling.tile_length, as_value(ir, stop))

    def _is_last_tile(self) -> Value:
        """Return whether the current tile is the last."""
        assert self.nest.tiling is not None
        assert self.tile is not None
        return self.ir.compare("eq", self.tile, self.ir.number(self.nest.tiling.count - 1, LONG))

    def _block_end(self, start: Value, length: int, stop: Value) -> Value:
        return self.ir.intrinsic("smin", self.ir.binary("add", start, self.ir.number(length, LONG)), stop)

    def _emit_remainder(
        self, results: list[Value], depth: int, start: int | Value, indices: dict[int, Value], lanes: int
    ) -> list[Value]:
        """Emit the scalar remainder of the vectorized axis, which has fewer iterations than lanes."""
        loop_range = _LoopRange(start, self.parameters.length(depth), 1, self.lanes - 1)
        remainder = self._emit_loop(depth, loop_range, indices, lanes)
        return self._combine(results, remainder) if self.axes[depth].is_reduced else results

    def _emit_loop(self, depth: int, loop_range: _LoopRange, indices: dict[int, Value], lanes: int) -> list[Value]:
        """Emit a loop and its body; return the accumulators of the reductions if the axis is reduced."""
        if self.axes[depth].is_reduced:
            return self._emit_reduction_loop(depth, loop_range, indices, lanes)
        with self.ir.loop(loop_range.start, loop_range.stop, loop_range.step) as loop:
            body_indices = {**indices, depth: loop.index}
            results = self._emit_loops(depth + 1, body_indices, lanes)
            if self.reductions and all(a.is_reduced for a in self.axes[depth + 1 :]):
                self._store_results(results, body_indices, lanes)
        return []

    def _emit_reduction_loop(self, depth: int, loop_range: _LoopRange, indices: dict[int, Value], lanes: int) -> list[Value]:
        """Emit a loop over a reduced axis; a long loop becomes nested blocks."""
        ir, (start, stop, step, max_iterations) = self.ir, loop_range
        if max_iterations <= SUM_BLOCK:
            with ir.loop(start, stop, step, self._identities(lanes)) as loop:
                loop.next = self._combine(loop.current, self._emit_loops(depth + 1, {**indices, depth: loop.index}, lanes))
            return loop.next
        block = SUM_BLOCK
        while max_iterations > block * SUM_BLOCK:
            block *= SUM_BLOCK
        stop_value = as_value(ir, stop)
        with ir.loop(start, stop, block * step, self._identities(lanes)) as loop:
            end = self._block_end(loop.index, block * step, stop_value)
            block_results = self._emit_reduction_loop(depth, _LoopRange(loop.index, end, step, block), indices, lanes)
            loop.next = self._combine(loop.current, block_results)
        return loop.next

    # ------------------------------------------------------------------------------------------ reductions

    def _identities(self, lanes: int) -> list[Value]:
        ir = self.ir
        return [
            ir.number(_identity(r.operation, r.out.buffer.dtype), elementwise_ops.type_of(r.out.buffer.dtype).with_lanes(lanes))
            for _, r in self.reductions
        ]

    def _combine(self, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        return [self._combine_pair(r, x, y) for (_, r), x, y in zip(self.reductions, a, b, strict=True)]

    def _combine_pair(self, step: Reduce, a: Value, b: Value) -> Value:
        name = _COMBINERS.get(step.operation, step.operation)
        return elementwise_ops.emit(self.ir, name, [a, b], step.out.buffer.dtype)

    def _reduce_lanes(self, step: Reduce, a: Value) -> Value:
        """Reduce the lanes of a vector pairwise."""
        parts = [self.ir.lane(a, k) for k in range(a.type.lanes)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [self._combine_pair(step, x, y) for x, y in zip(parts[:half], parts[half:], strict=True)]
        return parts[0]

    def _store_results(self, totals: list[Value], indices: dict[int, Value], lanes: int) -> None:
        """Store the results of the reductions."""
        for position, ((step_index, step), total) in enumerate(zip(self.reductions, totals, strict=True)):
            if self.partials:  # each tile stores its own partial results
                partial = BufferView(self.partials[position].buffer, 0, step.shape, step.out.strides)
                self._store(partial, total, indices, lanes)
                continue
            if step.operation == "mean":
                total = self.ir.binary("fdiv", total, self._float_term_count(step_index, total.type))
            self._store(step.out, total, indices, lanes)

    def _float_term_count(self, step_index: int, type: Type) -> Value:
        """Return the number of terms of each result of a reduction, as a floating-point number."""
        count = self.parameters.term_count(step_index)
        if isinstance(count, int):
            return self.ir.number(count, type)
        return self.ir.splat(self.ir.cast("sitofp", count, type.with_lanes(1)), type.lanes)

    # ------------------------------------------------------------------------------------------ body

    def _emit_body(self, indices: dict[int, Value], lanes: int) -> list[Value]:
        """Emit the loop body for one index, or one per lane; return the operand of each reduction."""
        ir, registers = self.ir, dict[BufferView, Value]()
        reduced_operands = []
        for step_index, step in enumerate(self.nest.steps):
            if isinstance(step, Reduce):
                reduced_operands.append(self._read(step.operand, registers, indices, lanes))
                continue
            operands: list[Value] = []
            for argnum, operand in enumerate(step.operands):
                dtype = step.operand_dtype(argnum)
                if isinstance(operand, BufferView):
                    value = self._read(operand, registers, indices, lanes)
                    operands.append(elementwise_ops.convert(ir, value, operand.buffer.dtype, dtype))
                elif (parameter := self.parameters.literal(step_index, argnum)) is not None:
                    operands.append(ir.splat(parameter, lanes))
                else:
                    operands.append(constant(ir, operand, dtype, lanes))
            value = elementwise_ops.emit(ir, step.operation, operands, step.compute_dtype)
            result_dtype = np.dtype(bool) if value.type.scalar == "i1" else step.compute_dtype
            value = elementwise_ops.convert(ir, value, result_dtype, step.out.buffer.dtype)
            if step.is_write:  # values of views that may overlap are loaded again
                registers = {view: v for view, v in registers.items() if not _may_overlap(view, step.out)}
            registers[step.out] = value
            if step.out.buffer in self.materialized:
                self._store(step.out, value, indices, lanes)
        return reduced_operands

    def _read(self, view: BufferView, registers: dict[BufferView, Value], indices: dict[int, Value], lanes: int) -> Value:
        """Return the value of a view, which is loaded on first use."""
        if view not in registers:
            registers[view] = self._load(view, indices, lanes)
        return registers[view]

    def _address(self, view: BufferView, indices: dict[int, Value]) -> Value:
        terms = [(self.parameters.stride(depth, view), index) for depth, index in indices.items()]
        for partial in self.partials:
            if partial.buffer is view.buffer:
                assert self.tile is not None
                terms.append((partial.strides[0], self.tile))
        offset, start = element_offset(self.ir, terms), self.parameters.base_address(view)
        return start if offset is None else self.ir.element_address(start, offset, elementwise_ops.memory_type(view.buffer.dtype))

    def _lane_address(self, address: Value, view: BufferView, lane: int) -> Value:
        """Return the address of the element of a lane; `address` is the address of lane 0."""
        assert self.vector_depth is not None
        stride, memory = self.parameters.stride(self.vector_depth, view), elementwise_ops.memory_type(view.buffer.dtype)
        offset = stride * lane if isinstance(stride, int) else self.ir.binary("mul", stride, self.ir.number(lane, LONG))
        return self.ir.element_address(address, offset, memory)

    def _load(self, view: BufferView, indices: dict[int, Value], lanes: int) -> Value:
        ir, memory, size = self.ir, elementwise_ops.memory_type(view.buffer.dtype), view.buffer.dtype.itemsize
        address = self._address(view, indices)
        # strides that select one of these cases are part of the structure, so they are taken from the nest
        stride = self.axes[self.vector_depth].stride(view) if lanes > 1 and self.vector_depth is not None else 0
        if lanes == 1 or stride == 0:
            value = ir.splat(ir.load(address, memory, size), lanes)
        elif stride == 1:
            value = ir.load(address, memory.with_lanes(lanes), size)
        elif abs(stride) <= MAX_STRIDED_LOAD:  # loads the elements in between too, and selects lanes
            first = address if stride > 0 else ir.element_address(address, stride * (lanes - 1), memory)
            span = ir.load(first, memory.with_lanes(abs(stride) * (lanes - 1) + 1), size)
            value = ir.select_lanes(span, [abs(stride) * (k if stride > 0 else lanes - 1 - k) for k in range(lanes)])
        else:
            value = ir.number(0, memory.with_lanes(lanes))
            for k in range(lanes):
                value = ir.insert(value, ir.load(self._lane_address(address, view, k), memory, size), k)
        if view.buffer.dtype.kind == "b":
            return ir.compare("ne", value, ir.number(0, value.type))
        return value

    def _store(self, view: BufferView, value: Value, indices: dict[int, Value], lanes: int) -> None:
        ir, memory, size = self.ir, elementwise_ops.memory_type(view.buffer.dtype), view.buffer.dtype.itemsize
        if view.buffer.dtype.kind == "b":
            value = ir.cast("zext", value, memory)
        address = self._address(view, indices)
        stride = self.axes[self.vector_depth].stride(view) if value.type.lanes > 1 and self.vector_depth is not None else 1
        if stride == -1:
            value, address = ir.select_lanes(value, range(lanes)[::-1]), ir.element_address(address, 1 - lanes, memory)
        if value.type.lanes == 1 or abs(stride) == 1:
            ir.store(value, address, size)
            return
        for k in range(lanes):
            ir.store(ir.lane(value, k), self._lane_address(address, view, k), size)


def _identity(operation: str, dtype: np.dtype[Any]) -> Any:
    """Return the identity of a reduction."""
    identity = _IDENTITIES[operation] if operation in _IDENTITIES else int(getattr(np, operation).identity)
    if dtype.kind in "iu" and operation in ("maximum", "minimum"):
        return np.iinfo(dtype).min if operation == "maximum" else np.iinfo(dtype).max
    return identity


def _may_overlap(a: BufferView, b: BufferView) -> bool:
    """Return whether two views may share elements; distinct single elements of a buffer do not."""
    are_distinct_scalars = not a.shape and not b.shape and a.offset != b.offset and a.loop_strides == b.loop_strides
    return a.buffer is b.buffer and not are_distinct_scalars
