"""Where buffers lie: which values need memory at all, and which may lie where others did that are needed no more (a pass)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ..steps import Buffer, Call, Map, Place, Single
from .group import LoopUnit, Nest, Unit

LINE = 64  # bytes: a buffer begins with a line of the cache


class Plan:
    """Memory of a program.

    Attributes
    ----------
    offsets : dict
        For each buffer that lies in the common work space, where it begins, in bytes.
    size : int
        The bytes of the work space.
    kept : set of Buffer
        All buffers that need memory. Values of other buffers are only ever in registers.
    """

    def __init__(self, units: Sequence[Unit], outputs: Iterable[Place]) -> None:
        self.offsets: dict[Buffer, int] = {}
        self.size = 0
        self.kept = needing_memory(units)
        self._own = {place.buffer for place in outputs}
        self.kept |= self._own
        first, last = self._lives(units)
        begins, ends = defaultdict(list), defaultdict(list)
        for buffer in first:
            begins[first[buffer]].append(buffer)
            ends[last[buffer]].append(buffer)
        free: list[tuple[int, int]] = []  # where, and how many bytes
        for place in range(len(units)):
            for buffer in begins[place]:
                self._give(buffer, free)
            for buffer in ends[place]:
                _release(free, self.offsets[buffer], _bytes(buffer))

    def _lives(self, units: Sequence[Unit]) -> tuple[dict[Buffer, int], dict[Buffer, int]]:
        """The first and last units that use each buffer of the work space."""
        first: dict[Buffer, int] = {}
        last: dict[Buffer, int] = {}
        for place, unit in enumerate(units):
            for buffer in used(unit):
                if buffer in self.kept and not (buffer.is_given or buffer.is_called or buffer in self._own):
                    first.setdefault(buffer, place)
                    last[buffer] = place
        return first, last

    def _give(self, buffer: Buffer, free: list[tuple[int, int]]) -> None:
        wanted = _bytes(buffer)
        fitting = min((entry for entry in free if entry[1] >= wanted), key=lambda entry: entry[1], default=None)
        if fitting is None:
            self.offsets[buffer] = self.size
            self.size += wanted
            return
        free.remove(fitting)
        self.offsets[buffer] = fitting[0]
        if fitting[1] > wanted:
            free.append((fitting[0] + wanted, fitting[1] - wanted))


def used(unit: Unit) -> Iterable[Buffer]:
    """The buffers that a unit reads or writes."""
    for step in steps_of(unit):
        yield from (place.buffer for place in read_by(step))
        if step.out is not None:
            yield step.out.buffer
    if isinstance(unit, Nest) and unit.pieces is not None:
        yield from (part.buffer for part in unit.pieces.parts)


def steps_of(unit: Unit) -> Sequence[Single]:
    """What a unit does, in order."""
    if isinstance(unit, LoopUnit):
        return [step for inner in unit.units for step in steps_of(inner)]
    return unit.steps if isinstance(unit, Nest) else (unit,)


def _inner(units: Iterable[Unit]) -> Iterator[Unit]:
    """All units but loops, those within loops in the place of these."""
    for unit in units:
        if isinstance(unit, LoopUnit):
            yield from _inner(unit.units)
        else:
            yield unit


def read_by(step: Single) -> Iterable[Place]:
    """The places that a step reads."""
    operands = step.places.values() if isinstance(step, Call) else step.operands
    return (operand for operand in operands if isinstance(operand, Place))


def needing_memory(units: Sequence[Unit]) -> set[Buffer]:
    """Buffers that are read elsewhere than where each element is computed, or are written in parts."""
    made: dict[Buffer, tuple[int, Place]] = {}
    found: set[Buffer] = set()
    for number, unit in enumerate(_inner(units)):
        for step in steps_of(unit):
            for place in read_by(step):
                if made.get(place.buffer) != (number, place):
                    found.add(place.buffer)
            if isinstance(step, Map) and not step.is_write:
                made[step.out.buffer] = number, step.out
            elif step.out is not None:
                found.add(step.out.buffer)
    return found


def _bytes(buffer: Buffer) -> int:
    return max(-(-buffer.size * buffer.dtype.itemsize // LINE) * LINE, LINE)


def _release(free: list[tuple[int, int]], start: int, size: int) -> None:
    """Give bytes back; joined to those next to them that are free."""
    for entry in tuple(free):
        if entry[0] + entry[1] == start:
            free.remove(entry)
            start, size = entry[0], size + entry[1]
        elif start + size == entry[0]:
            free.remove(entry)
            size += entry[1]
    free.append((start, size))
