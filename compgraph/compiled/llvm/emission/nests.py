"""Nests become code: loops over their axes, in vectors along one of them (a pass).

The axes are put in the order in which memory is passed through, those that lie behind each other as one. Along the axis where
most values follow each other, as many elements are computed at once as the processor's vectors hold; what is left over at its end
is computed one by one. Reductions have an accumulator in every loop that they go along, and long ones loops of `BLOCK` turns, so
that their rounding errors grow as those of a sum by pairs do (Higham, Accuracy and Stability of Numerical Algorithms, section
4.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import elementwise
from ..code import Code, Value
from ..planning import Nest
from ..steps import Buffer, Place, Reduce
from .addresses import Base, Turns, address_of

BLOCK = 64
_IDENTITY = {"add": 0, "mean": 0, "multiply": 1, "maximum": -np.inf, "minimum": np.inf, "logical_or": 0, "logical_and": 1}
_COMBINED = {"mean": "add"}


@dataclass
class Axis:
    """One loop, or several axes of an array as one.

    Attributes
    ----------
    length : int
        Its turns.
    numbers : tuple of int
        Which axes of the nest it is, the outermost first.
    is_reduced : bool
        Whether the reductions of the nest go along it.
    """

    length: int
    numbers: tuple[int, ...]
    is_reduced: bool

    def stride(self, place: Place) -> int:
        """By how many elements a place is passed through with each turn."""
        return place.strides[self.numbers[-1]]


def emit_nest(code: Code, nest: Nest, base: Base, turns: Turns, kept: set[Buffer], width: int) -> None:
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
    """
    _Writer(code, nest, base, turns, kept, width).write()


class _Writer:
    def __init__(self, code: Code, nest: Nest, base: Base, turns: Turns, kept: set[Buffer], width: int) -> None:
        self.code, self.nest, self.base, self.turns, self.kept = code, nest, base, turns, kept
        self.places = list(_places(nest, kept))
        self.axes = _merged(nest, self.places)
        self.reductions = [step for step in nest.steps if isinstance(step, Reduce)]
        sizes = [p.buffer.dtype.itemsize for p in self.places] or [8]
        self.lanes = max(width // max(sizes), 1)
        self.vector = self._vector_axis()
        if self.vector is not None:  # innermost among its like
            axis = self.axes[self.vector]
            rest = [a for a in self.axes if a is not axis]
            last = len(rest) if axis.is_reduced else sum(not a.is_reduced for a in rest)
            self.axes = [*rest[:last], axis, *rest[last:]]
            self.vector = last

    def _vector_axis(self) -> int | None:
        """Along which axis vectors lie: where most values follow each other; None if no axis is long enough."""
        best, most = None, 0
        for k, axis in enumerate(self.axes):
            if axis.length >= self.lanes > 1:
                strides = [axis.stride(p) for p in self.places]
                score = (
                    4 * sum(s == 1 for s in strides) + sum(s == 0 for s in strides) - 4 * sum(s not in (0, 1) for s in strides)
                )
                score = score * 1000 + 2 * min(axis.length, 400) + (not axis.is_reduced)
                if score > most:
                    best, most = k, score
        return best

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
        axis = self.axes[depth]
        if depth != self.vector:
            return self._loop(depth, 0, axis.length, 1, indices, lanes)
        full = axis.length - axis.length % self.lanes
        found = self._loop(depth, 0, full, self.lanes, indices, self.lanes)
        if axis.is_reduced:
            found = [self._across(step, value) for step, value in zip(self.reductions, found, strict=True)]
        if full < axis.length:
            rest = self._loop(depth, full, axis.length, 1, indices, lanes)
            if axis.is_reduced:
                found = self._combined(found, rest)
        return found

    def _loop(self, depth: int, start: int, stop: int, step: int, indices: dict[int, Value], lanes: int) -> list[Value]:
        axis = self.axes[depth]
        if not axis.is_reduced:
            with self.code.loop(start, stop, step) as loop:
                inside = {**indices, depth: loop.index}
                found = self._loops(depth + 1, inside, lanes)
                if self.reductions and all(a.is_reduced for a in self.axes[depth + 1 :]):
                    self._finish(found, inside, lanes)
            return []
        return self._gathered(depth, start, stop, step, indices, lanes)

    def _gathered(self, depth: int, start: int, stop: int, step: int, indices: dict[int, Value], lanes: int) -> list[Value]:
        """A loop along a reduced axis; a long one in blocks."""
        turns = (stop - start) // step
        total = self._identities(lanes)
        block = BLOCK
        while turns > block * BLOCK:
            block *= BLOCK
        if turns <= BLOCK:
            return self._turns(depth, start, stop, step, indices, lanes, None)
        whole = turns - turns % block
        with self.code.loop(start, start + whole * step, block * step, total) as loop:
            loop.then = self._combined(loop.now, self._block(depth, block, step, indices, lanes, loop.index))
        total = loop.then
        if whole < turns:
            total = self._combined(total, self._gathered(depth, start + whole * step, stop, step, indices, lanes))
        return total

    def _block(self, depth: int, block: int, step: int, indices: dict[int, Value], lanes: int, origin: Value) -> list[Value]:
        """`block` turns from an index on, in blocks of blocks."""
        if block <= BLOCK:
            return self._turns(depth, 0, block * step, step, indices, lanes, origin)
        inner = block // BLOCK
        with self.code.loop(0, block * step, inner * step, self._identities(lanes)) as loop:
            place = self.code.binary("add", origin, loop.index)
            loop.then = self._combined(loop.now, self._block(depth, inner, step, indices, lanes, place))
        return loop.then

    def _turns(
        self, depth: int, start: int, stop: int, step: int, indices: dict[int, Value], lanes: int, origin: Value | None
    ) -> list[Value]:
        with self.code.loop(start, stop, step, self._identities(lanes)) as loop:
            index = loop.index if origin is None else self.code.binary("add", origin, loop.index)
            loop.then = self._combined(loop.now, self._loops(depth + 1, {**indices, depth: index}, lanes))
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
        for step, total in zip(self.reductions, totals, strict=True):
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
        return address_of(self.code, place, self.base, self.turns, strides)

    def _load(self, place: Place, indices: dict[int, Value], lanes: int) -> Value:
        code, memory, size = self.code, elementwise.in_memory(place.buffer.dtype), place.buffer.dtype.itemsize
        address = self._address(place, indices)
        stride = self.axes[self.vector].stride(place) if lanes > 1 and self.vector is not None else 0
        if lanes == 1 or stride == 0:
            value = code.splat(code.load(address, memory, size), lanes)
        elif stride == 1:
            value = code.load(address, memory.with_lanes(lanes), size)
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
        if value.type.lanes == 1 or stride == 1:
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


def _places(nest: Nest, kept: set[Buffer]) -> Iterator[Place]:
    """All places that are read from, or written to, memory."""
    there: set[Place] = set()
    for step in nest.steps:
        for operand in step.operands:
            if isinstance(operand, Place) and operand not in there:
                yield operand
                there.add(operand)
        if isinstance(step, Reduce) or step.out.buffer in kept:
            yield step.out
        there.add(step.out)


def _merged(nest: Nest, places: list[Place]) -> list[Axis]:
    """The axes of a nest, those that go outermost first; of several that can be passed through as one, one."""
    gone = nest.axes or frozenset()
    order = [k for k in range(len(nest.shape)) if nest.shape[k] != 1]
    order = sorted(order, key=lambda k: (k in gone, -_mean_stride(places, k)))
    axes: list[Axis] = []
    for k in order:
        last = axes[-1] if axes else None
        if (
            last is not None
            and last.is_reduced == (k in gone)
            and all(p.strides[last.numbers[-1]] == p.strides[k] * nest.shape[k] for p in places)
        ):
            axes[-1] = Axis(last.length * nest.shape[k], (*last.numbers, k), last.is_reduced)
        else:
            axes.append(Axis(nest.shape[k], (k,), k in gone))
    return axes


def _mean_stride(places: list[Place], axis: int) -> float:
    return sum(abs(p.strides[axis]) for p in places)
