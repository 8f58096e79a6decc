"""Large values that follow by few operations from small ones are computed again where they are read (a pass).

Differences of all pairs, ``x[:, None] - x[None]``, take a subtraction each, and memory many times that of `x`. So a nest that
reads them computes them from `x`, in registers, and they need no memory. Nor does what follows from one value of the same size
that lies in memory for others to read: where ``1 - h * h`` would be read, `h` is. The bits are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from ..steps import Buffer, Map, Place
from .buffers import needing_memory, read_by, steps_of
from .group import LoopUnit, Nest, Unit

CHEAP = frozenset({"add", "subtract", "multiply", "negative", "square", "copy", "absolute", "maximum", "minimum", "where"})
MOST = 4  # operations that are done again for one value
SMALLER = 3  # by how many times less numbers must be read


def computed_again(units: Sequence[Unit], outputs: Collection[Place]) -> None:
    """Have nests compute what other nests would leave in memory, where that is cheap.

    Parameters
    ----------
    units : sequence of Nest, Product and Call
        A program, in order; its nests are changed.
    outputs : collection of Place
        Its results.
    """
    found = _Again(units, {place.buffer for place in outputs})
    for number, unit in enumerate(units):
        if isinstance(unit, Nest):
            found.change(unit, number)
    found.drop()


class _Again:
    def __init__(self, units: Sequence[Unit], outputs: Collection[Buffer]) -> None:
        self._units = units
        self._kept = needing_memory(units).union(outputs)
        self._writers: Counter[Buffer] = Counter()
        self._made: dict[Buffer, tuple[int, Map]] = {}
        elsewhere: set[Buffer] = set(outputs)  # what is read otherwise than by a nest, as it was made
        for number, unit in enumerate(units):
            for step in steps_of(unit):
                for place in read_by(step):
                    made = self._made.get(place.buffer)
                    if made is None or made[1].out != place or not isinstance(unit, Nest):
                        elsewhere.add(place.buffer)
                if step.out is not None:
                    self._writers[step.out.buffer] += 2 if isinstance(unit, LoopUnit) else 1  # once in each turn
                    if isinstance(step, Map) and isinstance(unit, Nest):
                        self._made[step.out.buffer] = number, step
        self._trees = {b: self._tree(b, b.size) for b in self._made if b in self._kept and b not in elsewhere}
        self._replaced: set[Buffer] = set()

    def _tree(self, buffer: Buffer, size: int, depth: int = 0) -> list[Map] | None:
        """The operations, in order, that compute a value from small ones that lie in memory; None if they are too many."""
        _, step = self._made[buffer]
        if depth == MOST or step.is_write or self._writers[buffer] > 1 or step.operation not in CHEAP:
            return None
        found: list[Map] = []
        for operand in step.operands:
            if isinstance(operand, Place) and not self._is_small(operand.buffer, size):
                made = self._made.get(operand.buffer)
                inner = None if made is None or made[1].out != operand else self._tree(operand.buffer, size, depth + 1)
                if inner is None and not self._lies_there(operand, buffer):
                    return None
                found += [s for s in inner or () if s not in found]
        read = {o for s in (*found, step) for o in s.operands if isinstance(o, Place) and not self._is_small(o.buffer, size)}
        is_enough = len(read - {s.out for s in found}) > 1  # such values as are read instead of it
        return None if len(found) >= MOST or is_enough else [*found, step]

    def _lies_there(self, place: Place, buffer: Buffer) -> bool:
        """Whether a value that takes no more memory than another lies in memory anyway, and is never written again."""
        source = place.buffer
        is_whole = source in self._made and self._made[source][1].out == place
        return is_whole and source in self._kept and self._writers[source] == 1 and source.nbytes <= buffer.nbytes

    def _is_small(self, buffer: Buffer, size: int) -> bool:
        """Whether a value lies in memory, is never written again, and is much smaller than what is computed of it."""
        once = self._writers[buffer] == 0 if buffer.is_given else self._writers[buffer] <= 1
        return once and (buffer.is_given or buffer in self._kept) and buffer.size * SMALLER <= size

    def change(self, nest: Nest, number: int) -> None:
        """Put operations into a nest before those that read what they compute."""
        steps: list[Any] = []
        there: dict[Place, Place] = {}
        for step in nest.steps:
            for place in read_by(step):
                tree = self._trees.get(place.buffer)
                if tree and self._made[place.buffer][0] != number:
                    self._replaced.add(place.buffer)
                    steps += [self._copied(again, there) for again in tree if again.out not in there]
            steps.append(_reading(step, there))
        nest.steps = steps

    @staticmethod
    def _copied(step: Map, there: dict[Place, Place]) -> Map:
        old = step.out
        buffer = Buffer(old.buffer.dtype, old.buffer.size, old.buffer.node)
        out = Place(buffer, old.offset, old.shape, old.strides)
        made: Map = replace(_reading(step, there), out=out)
        there[old] = made.out
        return made

    def drop(self) -> None:
        """Leave out what nobody reads any more."""
        read = {place.buffer for unit in self._units for step in steps_of(unit) for place in read_by(step)}
        for buffer in self._replaced - read:
            nest = self._units[self._made[buffer][0]]
            assert isinstance(nest, Nest)
            nest.steps = [step for step in nest.steps if step.out.buffer is not buffer]  # which may be another step by now


def _reading(step: Any, there: dict[Place, Place]) -> Any:
    """A step that reads values from where they are now."""
    if not any(place in there for place in read_by(step)):
        return step
    operands = tuple(there.get(o, o) if isinstance(o, Place) else o for o in step.operands)
    if isinstance(step, Map):
        return replace(step, operands=operands)
    return replace(step, operand=operands[0])
