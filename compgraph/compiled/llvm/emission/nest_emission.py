"""Emission of loop nests, vectorized along one axis.

The remainder of the vectorized axis is computed by scalar code. Reductions have an accumulator in every loop that they go
along. Long ones are split into blocks of `SUM_BLOCK` iterations, so that rounding errors grow as in pairwise summation (Higham,
Accuracy and Stability of Numerical Algorithms, section 4.2). The code of a tiled nest computes one tile, whose index is an
argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import elementwise_ops
from ..buffer_ir import Buffer, BufferView, Reduce
from ..ir_builder import LONG, IRBuilder, Value
from ..planning import MAX_STRIDED_LOAD, LoopNest, NestLoops
from .memory_access import BufferAddress, LoopIndices, address_of

SUM_BLOCK = 64
_IDENTITIES = {"add": 0, "mean": 0, "multiply": 1, "maximum": -np.inf, "minimum": np.inf, "logical_or": 0, "logical_and": 1}
_COMBINERS = {"mean": "add"}


def emit_nest(
    ir: IRBuilder,
    nest: LoopNest,
    base: BufferAddress,
    loop_indices: LoopIndices,
    materialized: set[Buffer],
    width: int,
    tile: Value | None = None,
) -> None:
    """Emit a nest.

    Parameters
    ----------
    ir : IRBuilder
        The function.
    nest : LoopNest
        The nest.
    base : callable
        Returns the address of a buffer.
    loop_indices : mapping
        The current index of each enclosing loop.
    materialized : set of Buffer
        Buffers whose values are stored in memory.
    width : int
        The bytes of a vector.
    tile : Value, optional
        The index of the tile, for a tiled nest.
    """
    _NestEmitter(ir, nest, base, loop_indices, materialized, width, tile).write()


class _NestEmitter:
    def __init__(
        self,
        ir: IRBuilder,
        nest: LoopNest,
        base: BufferAddress,
        loop_indices: LoopIndices,
        materialized: set[Buffer],
        width: int,
        tile: Value | None,
    ) -> None:
        self.ir, self.nest, self.base, self.loop_indices, self.materialized, self.tile = (
            ir,
            nest,
            base,
            loop_indices,
            materialized,
            tile,
        )
        self.loops = NestLoops(nest, materialized, width)
        self.axes, self.vector, self.lanes = self.loops.axes, self.loops.vector, self.loops.lanes
        self.reductions = [step for step in nest.steps if isinstance(step, Reduce)]
        self.partials = () if nest.tiling is None else nest.tiling.partials

    # ------------------------------------------------------------------------------------------ loops

    def write(self) -> None:
        """Emit all loops."""
        totals = self._loops(0, {}, 1)
        if self.reductions and not any(not axis.is_reduced for axis in self.axes):
            self._finish(totals, {}, 1)

    def _loops(self, depth: int, indices: dict[int, Value], lanes: int) -> list[Value]:
        """Emit the loops from one depth on; return the accumulators of the reductions."""
        if depth == len(self.axes):
            return self._body(indices, lanes)
        axis, whole = self.axes[depth], self.loops.vectorized_length(depth)
        tiling = self.nest.tiling
        is_cut = tiling is not None and tiling.depth == depth
        start, stop = self._bounds(whole) if is_cut else (0, whole)
        if depth != self.vector:
            return self._loop(depth, start, stop, 1, indices, lanes)
        found = self._loop(depth, start, stop, self.lanes, indices, self.lanes)
        if axis.is_reduced:
            found = [self._across(step, value) for step, value in zip(self.reductions, found, strict=True)]
        if whole == axis.length:
            return found
        if not is_cut:
            return self._with_rest(found, depth, indices, lanes)
        with self.ir.branch_if(self._is_last(), found) as with_rest:
            with_rest[:] = self._with_rest(found, depth, indices, lanes)
        return with_rest

    def _bounds(self, whole: int) -> tuple[Value, Value]:
        """Return the range of the tiled loop in the current tile."""
        tiling, ir = self.nest.tiling, self.ir
        assert tiling is not None
        assert self.tile is not None
        start = ir.binary("mul", self.tile, ir.number(tiling.tile_length, LONG))
        return start, self._end(start, tiling.tile_length, ir.number(whole, LONG))

    def _is_last(self) -> Value:
        """Return whether the current tile is the last."""
        assert self.nest.tiling is not None
        assert self.tile is not None
        return self.ir.compare("eq", self.tile, self.ir.number(self.nest.tiling.count - 1, LONG))

    def _end(self, start: Value, loop_indices: int, most: Value) -> Value:
        return self.ir.intrinsic("smin", self.ir.binary("add", start, self.ir.number(loop_indices, LONG)), most)

    def _with_rest(self, found: list[Value], depth: int, indices: dict[int, Value], lanes: int) -> list[Value]:
        """Emit the scalar remainder of the vectorized axis."""
        axis = self.axes[depth]
        rest = self._loop(depth, self.loops.vectorized_length(depth), axis.length, 1, indices, lanes)
        return self._combined(found, rest) if axis.is_reduced else found

    def _loop(
        self, depth: int, start: Value | int, stop: Value | int, step: int, indices: dict[int, Value], lanes: int
    ) -> list[Value]:
        axis = self.axes[depth]
        if axis.is_reduced:
            tiling = self.nest.tiling
            most = stop - start if isinstance(stop, int) and isinstance(start, int) else tiling.tile_length if tiling else 0
            return self._gathered(depth, start, stop, step, indices, lanes, most // step)
        with self.ir.loop(start, stop, step) as loop:
            inside = {**indices, depth: loop.index}
            found = self._loops(depth + 1, inside, lanes)
            if self.reductions and all(a.is_reduced for a in self.axes[depth + 1 :]):
                self._finish(found, inside, lanes)
        return []

    def _gathered(
        self, depth: int, start: Value | int, stop: Value | int, step: int, indices: dict[int, Value], lanes: int, most: int
    ) -> list[Value]:
        """Emit a loop of at most `most` iterations along a reduced axis; a long one as nested blocks."""
        ir = self.ir
        if most <= SUM_BLOCK:
            with ir.loop(start, stop, step, self._identities(lanes)) as loop:
                loop.next = self._combined(loop.current, self._loops(depth + 1, {**indices, depth: loop.index}, lanes))
            return loop.next
        block = SUM_BLOCK
        while most > block * SUM_BLOCK:
            block *= SUM_BLOCK
        last = ir.number(stop, LONG) if isinstance(stop, int) else stop
        with ir.loop(start, stop, block * step, self._identities(lanes)) as loop:
            end = self._end(loop.index, block * step, last)
            loop.next = self._combined(loop.current, self._gathered(depth, loop.index, end, step, indices, lanes, block))
        return loop.next

    # ------------------------------------------------------------------------------------------ reductions

    def _identities(self, lanes: int) -> list[Value]:
        ir = self.ir
        return [
            ir.number(_identity(r.operation, r.out.buffer.dtype), elementwise_ops.type_of(r.out.buffer.dtype).with_lanes(lanes))
            for r in self.reductions
        ]

    def _combined(self, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        return [self._two(r, x, y) for r, x, y in zip(self.reductions, a, b, strict=True)]

    def _two(self, step: Reduce, a: Value, b: Value) -> Value:
        name = _COMBINERS.get(step.operation, step.operation)
        return elementwise_ops.emit(self.ir, name, [a, b], step.out.buffer.dtype)

    def _across(self, step: Reduce, a: Value) -> Value:
        """Reduce the lanes of a vector pairwise."""
        parts = [self.ir.lane(a, k) for k in range(a.type.lanes)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [self._two(step, x, y) for x, y in zip(parts[:half], parts[half:], strict=True)]
        return parts[0]

    def _finish(self, totals: list[Value], indices: dict[int, Value], lanes: int) -> None:
        """Store the results of the reductions."""
        for number, (step, total) in enumerate(zip(self.reductions, totals, strict=True)):
            if self.partials:
                own = BufferView(self.partials[number].buffer, 0, step.shape, step.out.strides)  # of each tile
                self._store(own, total, indices, lanes)
                continue
            if step.operation == "mean":
                count = 1
                for k in step.axes:
                    count *= step.shape[k]
                total = self.ir.binary("fdiv", total, self.ir.number(count, total.type))
            self._store(step.out, total, indices, lanes)

    # ------------------------------------------------------------------------------------------ body

    def _body(self, indices: dict[int, Value], lanes: int) -> list[Value]:
        """Emit the loop body for one index, or one per lane; return the operand of each reduction."""
        ir, there = self.ir, dict[BufferView, Value]()
        gathered = []
        for step in self.nest.steps:
            if isinstance(step, Reduce):
                gathered.append(self._read(step.operand, there, indices, lanes))
                continue
            operands = []
            for k, operand in enumerate(step.operands):
                wanted = step.operand_dtype(k)
                if isinstance(operand, BufferView):
                    value = elementwise_ops.convert(ir, self._read(operand, there, indices, lanes), operand.buffer.dtype, wanted)
                else:
                    value = ir.number(_convert_constant(operand, wanted), elementwise_ops.type_of(wanted).with_lanes(lanes))
                operands.append(value)
            value = elementwise_ops.emit(ir, step.operation, operands, step.computed_in)
            result = np.dtype(bool) if value.type.of == "i1" else step.computed_in
            value = elementwise_ops.convert(ir, value, result, step.out.buffer.dtype)
            if step.is_write:  # other views of the buffer may overlap
                there = {p: v for p, v in there.items() if p.buffer is not step.out.buffer or _are_distinct_scalars(p, step.out)}
            there[step.out] = value
            if step.out.buffer in self.materialized:
                self._store(step.out, value, indices, lanes)
        return gathered

    def _read(self, view: BufferView, there: dict[BufferView, Value], indices: dict[int, Value], lanes: int) -> Value:
        if view not in there:
            there[view] = self._load(view, indices, lanes)
        return there[view]

    def _address(self, view: BufferView, indices: dict[int, Value]) -> Value:
        strides = [(self.axes[depth].stride(view), index) for depth, index in indices.items()]
        for part in self.partials:
            if part.buffer is view.buffer:
                assert self.tile is not None
                strides.append((part.strides[0], self.tile))
        return address_of(self.ir, view, self.base, self.loop_indices, strides)

    def _load(self, view: BufferView, indices: dict[int, Value], lanes: int) -> Value:
        ir, memory, size = self.ir, elementwise_ops.memory_type(view.buffer.dtype), view.buffer.dtype.itemsize
        address = self._address(view, indices)
        stride = self.axes[self.vector].stride(view) if lanes > 1 and self.vector is not None else 0
        if lanes == 1 or stride == 0:
            value = ir.splat(ir.load(address, memory, size), lanes)
        elif stride == 1:
            value = ir.load(address, memory.with_lanes(lanes), size)
        elif abs(stride) <= MAX_STRIDED_LOAD:  # the elements in between are loaded too
            first = address if stride > 0 else ir.element_address(address, stride * (lanes - 1), memory)
            all_of_it = ir.load(first, memory.with_lanes(abs(stride) * (lanes - 1) + 1), size)
            value = ir.select_lanes(all_of_it, [abs(stride) * (k if stride > 0 else lanes - 1 - k) for k in range(lanes)])
        else:
            value = ir.number(0, memory.with_lanes(lanes))
            for k in range(lanes):
                value = ir.insert(value, ir.load(ir.element_address(address, k * stride, memory), memory, size), k)
        if view.buffer.dtype.kind == "b":
            return ir.compare("ne", value, ir.number(0, value.type))
        return value

    def _store(self, view: BufferView, value: Value, indices: dict[int, Value], lanes: int) -> None:
        ir, memory, size = self.ir, elementwise_ops.memory_type(view.buffer.dtype), view.buffer.dtype.itemsize
        if view.buffer.dtype.kind == "b":
            value = ir.cast("zext", value, memory)
        address = self._address(view, indices)
        stride = self.axes[self.vector].stride(view) if value.type.lanes > 1 and self.vector is not None else 1
        if stride == -1:
            value, address = ir.select_lanes(value, range(lanes)[::-1]), ir.element_address(address, 1 - lanes, memory)
        if value.type.lanes == 1 or abs(stride) == 1:
            ir.store(value, address, size)
            return
        for k in range(lanes):
            ir.store(ir.lane(value, k), ir.element_address(address, k * stride, memory), size)


def _identity(operation: str, dtype: Any) -> Any:
    """Return the identity of a reduction."""
    found = _IDENTITIES[operation]
    if dtype.kind in "iu" and operation in ("maximum", "minimum"):
        return np.iinfo(dtype).min if operation == "maximum" else np.iinfo(dtype).max
    return found


def _convert_constant(number: Any, dtype: Any) -> Any:
    """Convert a number to a dtype."""
    found = np.asarray(number).astype(dtype)[()]
    return float(found) if dtype.kind == "f" else int(found)


def _are_distinct_scalars(a: BufferView, b: BufferView) -> bool:
    """Return whether two single elements of a buffer are distinct."""
    return not a.shape and not b.shape and a.offset != b.offset and a.loop_strides == b.loop_strides
