"""Nests become code: loops over their axes, in vectors along one of them (a pass).

Along one axis as many elements are computed at once as the processor's vectors hold; what is left over at its end is computed one
by one. Reductions have an accumulator in every loop that they go along, and long ones loops of `BLOCK` turns, so that their
rounding errors grow as those of a sum by pairs do (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2).

The code of a nest that is cut does one piece, whose number it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import elementwise
from ..code import LONG, Code, Value
from ..planning import NEAR, Loops, Nest
from ..steps import Buffer, Place, Reduce
from .addresses import Base, Turns, address_of

BLOCK = 64
_IDENTITY = {"add": 0, "mean": 0, "multiply": 1, "maximum": -np.inf, "minimum": np.inf, "logical_or": 0, "logical_and": 1}
_COMBINED = {"mean": "add"}


def emit_nest(
    code: Code, nest: Nest, base: Base, turns: Turns, kept: set[Buffer], width: int, piece: Value | None = None
) -> None:
    """Write the code of a nest.

    Parameters
    ----------
    code : Code
        The function in which it stands.
    nest : Nest
        What is computed.
    base : callable
        Gives the address of a buffer's first element.
    turns : mapping
        For each loop that it stands in, the turn.
    kept : set of Buffer
        Those whose values go to memory.
    width : int
        The bytes of a vector.
    piece : Value, optional
        The number of the piece that is done, of a nest that is cut.
    """
    _Writer(code, nest, base, turns, kept, width, piece).write()


class _Writer:
    def __init__(
        self, code: Code, nest: Nest, base: Base, turns: Turns, kept: set[Buffer], width: int, piece: Value | None
    ) -> None:
        self.code, self.nest, self.base, self.turns, self.kept, self.piece = code, nest, base, turns, kept, piece
        self.loops = Loops(nest, kept, width)
        self.axes, self.vector, self.lanes = self.loops.axes, self.loops.vector, self.loops.lanes
        self.reductions = [step for step in nest.steps if isinstance(step, Reduce)]
        self.parts = () if nest.pieces is None else nest.pieces.parts

    # ------------------------------------------------------------------------------------------ loops

    def write(self) -> None:
        """Write all loops."""
        totals = self._loops(0, {}, 1)
        if self.reductions and not any(not axis.is_reduced for axis in self.axes):
            self._finish(totals, {}, 1)

    def _loops(self, depth: int, indices: dict[int, Value], lanes: int) -> list[Value]:
        """Write the loops from one depth on; returns what the reductions have gathered in them."""
        if depth == len(self.axes):
            return self._body(indices, lanes)
        axis, whole = self.axes[depth], self.loops.whole(depth)
        pieces = self.nest.pieces
        is_cut = pieces is not None and pieces.depth == depth
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
        with self.code.where(self._is_last(), found) as with_rest:
            with_rest[:] = self._with_rest(found, depth, indices, lanes)
        return with_rest

    def _bounds(self, whole: int) -> tuple[Value, Value]:
        """The first turn of the loop that is cut, and the one after the last, in the piece that is done."""
        pieces, code = self.nest.pieces, self.code
        assert pieces is not None
        assert self.piece is not None
        start = code.binary("mul", self.piece, code.number(pieces.length, LONG))
        return start, self._end(start, pieces.length, code.number(whole, LONG))

    def _is_last(self) -> Value:
        """Whether the piece that is done is the last."""
        assert self.nest.pieces is not None
        assert self.piece is not None
        return self.code.compare("eq", self.piece, self.code.number(self.nest.pieces.count - 1, LONG))

    def _end(self, start: Value, turns: int, most: Value) -> Value:
        return self.code.intrinsic("smin", self.code.binary("add", start, self.code.number(turns, LONG)), most)

    def _with_rest(self, found: list[Value], depth: int, indices: dict[int, Value], lanes: int) -> list[Value]:
        """What is left over of the axis along which vectors lie, one by one."""
        axis = self.axes[depth]
        rest = self._loop(depth, self.loops.whole(depth), axis.length, 1, indices, lanes)
        return self._combined(found, rest) if axis.is_reduced else found

    def _loop(
        self, depth: int, start: Value | int, stop: Value | int, step: int, indices: dict[int, Value], lanes: int
    ) -> list[Value]:
        axis = self.axes[depth]
        if axis.is_reduced:
            pieces = self.nest.pieces
            most = stop - start if isinstance(stop, int) and isinstance(start, int) else pieces.length if pieces else 0
            return self._gathered(depth, start, stop, step, indices, lanes, most // step)
        with self.code.loop(start, stop, step) as loop:
            inside = {**indices, depth: loop.index}
            found = self._loops(depth + 1, inside, lanes)
            if self.reductions and all(a.is_reduced for a in self.axes[depth + 1 :]):
                self._finish(found, inside, lanes)
        return []

    def _gathered(
        self, depth: int, start: Value | int, stop: Value | int, step: int, indices: dict[int, Value], lanes: int, most: int
    ) -> list[Value]:
        """A loop of at most so many turns along a reduced axis; a long one as a loop of shorter ones."""
        code = self.code
        if most <= BLOCK:
            with code.loop(start, stop, step, self._identities(lanes)) as loop:
                loop.then = self._combined(loop.now, self._loops(depth + 1, {**indices, depth: loop.index}, lanes))
            return loop.then
        block = BLOCK
        while most > block * BLOCK:
            block *= BLOCK
        last = code.number(stop, LONG) if isinstance(stop, int) else stop
        with code.loop(start, stop, block * step, self._identities(lanes)) as loop:
            end = self._end(loop.index, block * step, last)
            loop.then = self._combined(loop.now, self._gathered(depth, loop.index, end, step, indices, lanes, block))
        return loop.then

    # ------------------------------------------------------------------------------------------ reductions

    def _identities(self, lanes: int) -> list[Value]:
        code = self.code
        return [
            code.number(_identity(r.operation, r.out.buffer.dtype), elementwise.type_of(r.out.buffer.dtype).with_lanes(lanes))
            for r in self.reductions
        ]

    def _combined(self, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        return [self._two(r, x, y) for r, x, y in zip(self.reductions, a, b, strict=True)]

    def _two(self, step: Reduce, a: Value, b: Value) -> Value:
        name = _COMBINED.get(step.operation, step.operation)
        return elementwise.emit(self.code, name, [a, b], step.out.buffer.dtype)

    def _across(self, step: Reduce, a: Value) -> Value:
        """What a reduction gives of all lanes: of halves, of quarters, ..."""
        parts = [self.code.lane(a, k) for k in range(a.type.lanes)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [self._two(step, x, y) for x, y in zip(parts[:half], parts[half:], strict=True)]
        return parts[0]

    def _finish(self, totals: list[Value], indices: dict[int, Value], lanes: int) -> None:
        """Store what the reductions gave."""
        for number, (step, total) in enumerate(zip(self.reductions, totals, strict=True)):
            if self.parts:
                own = Place(self.parts[number].buffer, 0, step.shape, step.out.strides)  # of each piece
                self._store(own, total, indices, lanes)
                continue
            if step.operation == "mean":
                count = 1
                for k in step.axes:
                    count *= step.shape[k]
                total = self.code.binary("fdiv", total, self.code.number(count, total.type))
            self._store(step.out, total, indices, lanes)

    # ------------------------------------------------------------------------------------------ the body

    def _body(self, indices: dict[int, Value], lanes: int) -> list[Value]:
        """Write what is done for one index, or as many as there are lanes; returns what each reduction reads."""
        code, there = self.code, dict[Place, Value]()
        gathered = []
        for step in self.nest.steps:
            if isinstance(step, Reduce):
                gathered.append(self._read(step.operand, there, indices, lanes))
                continue
            operands = []
            for k, operand in enumerate(step.operands):
                wanted = step.operand_dtype(k)
                if isinstance(operand, Place):
                    value = elementwise.converted(code, self._read(operand, there, indices, lanes), operand.buffer.dtype, wanted)
                else:
                    value = code.number(_exactly(operand, wanted), elementwise.type_of(wanted).with_lanes(lanes))
                operands.append(value)
            value = elementwise.emit(code, step.operation, operands, step.computed_in)
            result = np.dtype(bool) if value.type.of == "i1" else step.computed_in
            value = elementwise.converted(code, value, result, step.out.buffer.dtype)
            if step.is_write:  # other places of the buffer may show the same elements
                there = {p: v for p, v in there.items() if p.buffer is not step.out.buffer or _are_apart(p, step.out)}
            there[step.out] = value
            if step.out.buffer in self.kept:
                self._store(step.out, value, indices, lanes)
        return gathered

    def _read(self, place: Place, there: dict[Place, Value], indices: dict[int, Value], lanes: int) -> Value:
        if place not in there:
            there[place] = self._load(place, indices, lanes)
        return there[place]

    def _address(self, place: Place, indices: dict[int, Value]) -> Value:
        strides = [(self.axes[depth].stride(place), index) for depth, index in indices.items()]
        for part in self.parts:
            if part.buffer is place.buffer:
                assert self.piece is not None
                strides.append((part.strides[0], self.piece))
        return address_of(self.code, place, self.base, self.turns, strides)

    def _load(self, place: Place, indices: dict[int, Value], lanes: int) -> Value:
        code, memory, size = self.code, elementwise.in_memory(place.buffer.dtype), place.buffer.dtype.itemsize
        address = self._address(place, indices)
        stride = self.axes[self.vector].stride(place) if lanes > 1 and self.vector is not None else 0
        if lanes == 1 or stride == 0:
            value = code.splat(code.load(address, memory, size), lanes)
        elif stride == 1:
            value = code.load(address, memory.with_lanes(lanes), size)
        elif abs(stride) <= NEAR:  # all that lies between is loaded too
            first = address if stride > 0 else code.at(address, stride * (lanes - 1), memory)
            all_of_it = code.load(first, memory.with_lanes(abs(stride) * (lanes - 1) + 1), size)
            value = code.chosen(all_of_it, [abs(stride) * (k if stride > 0 else lanes - 1 - k) for k in range(lanes)])
        else:
            value = code.number(0, memory.with_lanes(lanes))
            for k in range(lanes):
                value = code.insert(value, code.load(code.at(address, k * stride, memory), memory, size), k)
        if place.buffer.dtype.kind == "b":
            return code.compare("ne", value, code.number(0, value.type))
        return value

    def _store(self, place: Place, value: Value, indices: dict[int, Value], lanes: int) -> None:
        code, memory, size = self.code, elementwise.in_memory(place.buffer.dtype), place.buffer.dtype.itemsize
        if place.buffer.dtype.kind == "b":
            value = code.cast("zext", value, memory)
        address = self._address(place, indices)
        stride = self.axes[self.vector].stride(place) if value.type.lanes > 1 and self.vector is not None else 1
        if stride == -1:
            value, address = code.chosen(value, range(lanes)[::-1]), code.at(address, 1 - lanes, memory)
        if value.type.lanes == 1 or abs(stride) == 1:
            code.store(value, address, size)
            return
        for k in range(lanes):
            code.store(code.lane(value, k), code.at(address, k * stride, memory), size)


def _identity(operation: str, dtype: Any) -> Any:
    """What a reduction begins with."""
    found = _IDENTITY[operation]
    if dtype.kind in "iu" and operation in ("maximum", "minimum"):
        return np.iinfo(dtype).min if operation == "maximum" else np.iinfo(dtype).max
    return found


def _exactly(number: Any, dtype: Any) -> Any:
    """A number as one of a dtype."""
    found = np.asarray(number).astype(dtype)[()]
    return float(found) if dtype.kind == "f" else int(found)


def _are_apart(a: Place, b: Place) -> bool:
    """Whether two single elements of a buffer are two."""
    return not a.shape and not b.shape and a.offset != b.offset and a.moves == b.moves
