"""Where buffers lie: which values need memory at all, and which may lie where others did that are needed no more (a pass)."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from ..steps import Buffer, Call, Map, Place, Single
from .group import LoopUnit, Nest, Unit

LINE = 64  # bytes: a buffer begins with a line of the cache
LARGE = 2**14  # bytes of buffers that lie in results for a time: of small ones, an array more in a call costs more than is gained


class Space:
    """Memory that is given out and taken back, in whole lines.

    Attributes
    ----------
    size : int
        How many bytes it has.
    """

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self._free = [(0, size)] if size else []

    def taken(self, size: int) -> int | None:
        """Where so many bytes are free, from now on taken; None if there is no such place."""
        fitting = min((entry for entry in self._free if entry[1] >= size), key=itemgetter(1), default=None)
        if fitting is None:
            return None
        self._free.remove(fitting)
        start, length = fitting
        if length > rounded(size):
            self._free.append((start + rounded(size), length - rounded(size)))
        return start

    def grown(self, size: int) -> int:
        """As `taken`; if there is no such place the space becomes larger."""
        start = self.taken(rounded(size))
        if start is None:
            start = self.size
            self.size += rounded(size)
        return start

    def release(self, start: int, size: int) -> None:
        """Give bytes back; joined to those next to them that are free."""
        size = min(rounded(size), self.size - start)
        for entry in tuple(self._free):
            if entry[0] + entry[1] == start:
                self._free.remove(entry)
                start, size = entry[0], size + entry[1]
            elif start + size == entry[0]:
                self._free.remove(entry)
                size += entry[1]
        self._free.append((start, size))


class Plan:
    """Memory of a program.

    Attributes
    ----------
    offsets : dict
        For each buffer that has no array of its own, where it begins, in bytes: in its host, or in the common work space.
    hosts : dict
        For each buffer that lies in the array of a result, until that is first written, the buffer of the result.
    size : int
        The bytes of the work space.
    kept : set of Buffer
        All buffers that need memory. Values of other buffers are only ever in registers.
    """

    def __init__(self, units: Sequence[Unit], outputs: Iterable[Place]) -> None:
        self.offsets: dict[Buffer, int] = {}
        self.hosts: dict[Buffer, Buffer] = {}
        own = dict.fromkeys(place.buffer for place in outputs)
        self.kept = needing_memory(units).union(own)
        first, last = self._lives(units)
        self._results = sorted(((first[b], b) for b in own if b in first and b.nbytes >= LARGE), key=itemgetter(0))
        self._spaces = {b: Space(b.nbytes) for _, b in self._results}
        self._work = Space()
        begins, ends = defaultdict(list), defaultdict(list)
        for buffer in first:
            if buffer not in own:
                begins[first[buffer]].append(buffer)
                ends[last[buffer]].append(buffer)
        for place in range(len(units)):
            for buffer in begins[place]:
                self._give(buffer, last[buffer])
            for buffer in ends[place]:
                space = self._spaces[self.hosts[buffer]] if buffer in self.hosts else self._work
                space.release(self.offsets[buffer], buffer.nbytes)
        self.size = self._work.size

    def _lives(self, units: Sequence[Unit]) -> tuple[dict[Buffer, int], dict[Buffer, int]]:
        """The first and last units that use each buffer that is not there before."""
        first: dict[Buffer, int] = {}
        last: dict[Buffer, int] = {}
        for place, unit in enumerate(units):
            for buffer in used(unit):
                if buffer in self.kept and not (buffer.is_given or buffer.is_called):
                    first.setdefault(buffer, place)
                    last[buffer] = place
        return first, last

    def _give(self, buffer: Buffer, last: int) -> None:
        """Place a buffer; a large one in the array of the result that is written soonest after it is needed no more."""
        size = buffer.nbytes
        if size >= LARGE:
            for _, result in self._results[bisect_right(self._results, last, key=itemgetter(0)) :]:
                start = self._spaces[result].taken(size)
                if start is not None:
                    self.offsets[buffer], self.hosts[buffer] = start, result
                    return
        self.offsets[buffer] = self._work.grown(size)


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


def rounded(size: int) -> int:
    """So many bytes as whole lines, of which there is at least one."""
    return max(-(-size // LINE) * LINE, LINE)
