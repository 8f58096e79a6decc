"""Memory planning: which buffers need memory, and where it is; buffers with disjoint live ranges share it (a pass)."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from ..buffer_ir import Buffer, BufferView, Map, NumPyCall, Single
from .nest_fusion import FusedLoop, LoopNest, Unit

CACHE_LINE = 64  # bytes; buffers begin at a cache line
MIN_HOSTED_BYTES = 2**14  # bytes of the smallest buffer placed in the array of a result


class Arena:
    """Memory that is allocated and released in whole cache lines.

    Attributes
    ----------
    size : int
        Its size in bytes.
    """

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self._free = [(0, size)] if size else []

    def try_allocate(self, size: int) -> int | None:
        """Return the offset of free memory of a size, and mark it used, or return None."""
        fitting = min((entry for entry in self._free if entry[1] >= size), key=itemgetter(1), default=None)
        if fitting is None:
            return None
        self._free.remove(fitting)
        start, length = fitting
        if length > round_to_lines(size):
            self._free.append((start + round_to_lines(size), length - round_to_lines(size)))
        return start

    def allocate(self, size: int) -> int:
        """As `try_allocate`, but grow the arena if necessary."""
        start = self.try_allocate(round_to_lines(size))
        if start is None:
            start = self.size
            self.size += round_to_lines(size)
        return start

    def release(self, start: int, size: int) -> None:
        """Release memory and merge it with adjacent free memory."""
        size = min(round_to_lines(size), self.size - start)
        for entry in tuple(self._free):
            if entry[0] + entry[1] == start:
                self._free.remove(entry)
                start, size = entry[0], size + entry[1]
            elif start + size == entry[0]:
                self._free.remove(entry)
                size += entry[1]
        self._free.append((start, size))


class MemoryPlan:
    """The memory layout of a program.

    Attributes
    ----------
    offsets : dict
        The byte offset of each buffer without an array of its own, in its host or in the workspace.
    hosts : dict
        For each buffer inside the array of a result that is written later, the buffer of this result.
    size : int
        The bytes of the workspace.
    materialized : set of Buffer
        All buffers in memory. Other values are only ever in registers.
    """

    def __init__(self, units: Sequence[Unit], outputs: Iterable[BufferView]) -> None:
        self.offsets: dict[Buffer, int] = {}
        self.hosts: dict[Buffer, Buffer] = {}
        own = dict.fromkeys(place.buffer for place in outputs)
        self.materialized = find_materialized(units).union(own)
        first, last = self._live_ranges(units)
        self._results = sorted(((first[b], b) for b in own if b in first and b.nbytes >= MIN_HOSTED_BYTES), key=itemgetter(0))
        self._spaces = {b: Arena(b.nbytes) for _, b in self._results}
        self._work = Arena()
        begins, ends = defaultdict(list), defaultdict(list)
        for buffer in first:
            if buffer not in own:
                begins[first[buffer]].append(buffer)
                ends[last[buffer]].append(buffer)
        for place in range(len(units)):
            for buffer in begins[place]:
                self._place(buffer, last[buffer])
            for buffer in ends[place]:
                space = self._spaces[self.hosts[buffer]] if buffer in self.hosts else self._work
                space.release(self.offsets[buffer], buffer.nbytes)
        self.size = self._work.size

    def _live_ranges(self, units: Sequence[Unit]) -> tuple[dict[Buffer, int], dict[Buffer, int]]:
        """Return the first and last units that use each buffer that is not an input or constant."""
        first: dict[Buffer, int] = {}
        last: dict[Buffer, int] = {}
        for place, unit in enumerate(units):
            for buffer in buffers_used(unit):
                if buffer in self.materialized and not (buffer.is_external or buffer.is_numpy_result):
                    first.setdefault(buffer, place)
                    last[buffer] = place
        return first, last

    def _place(self, buffer: Buffer, last: int) -> None:
        """Allocate a buffer; a large one inside the result that is first written soonest after its last use."""
        size = buffer.nbytes
        if size >= MIN_HOSTED_BYTES:
            for _, result in self._results[bisect_right(self._results, last, key=itemgetter(0)) :]:
                start = self._spaces[result].try_allocate(size)
                if start is not None:
                    self.offsets[buffer], self.hosts[buffer] = start, result
                    return
        self.offsets[buffer] = self._work.allocate(size)


def buffers_used(unit: Unit) -> Iterable[Buffer]:
    """Yield the buffers that a unit reads or writes."""
    for step in steps_in(unit):
        yield from (place.buffer for place in views_read(step))
        if step.out is not None:
            yield step.out.buffer
    if isinstance(unit, LoopNest) and unit.tiling is not None:
        yield from (part.buffer for part in unit.tiling.partials)


def steps_in(unit: Unit) -> Sequence[Single]:
    """Return the steps of a unit, in order."""
    if isinstance(unit, FusedLoop):
        return [step for inner in unit.units for step in steps_in(inner)]
    return unit.steps if isinstance(unit, LoopNest) else (unit,)


def _without_loops(units: Iterable[Unit]) -> Iterator[Unit]:
    """Yield all units, with loops replaced by their bodies."""
    for unit in units:
        if isinstance(unit, FusedLoop):
            yield from _without_loops(unit.units)
        else:
            yield unit


def views_read(step: Single) -> Iterable[BufferView]:
    """Return the views that a step reads."""
    operands = step.views.values() if isinstance(step, NumPyCall) else step.operands
    return (operand for operand in operands if isinstance(operand, BufferView))


def find_materialized(units: Sequence[Unit]) -> set[Buffer]:
    """Return the buffers that need memory: read outside of the iteration that computes them, or written in parts."""
    last_writes: dict[Buffer, tuple[int, BufferView]] = {}
    materialized_buffers: set[Buffer] = set()
    for number, unit in enumerate(_without_loops(units)):
        for step in steps_in(unit):
            for place in views_read(step):
                if last_writes.get(place.buffer) != (number, place):
                    materialized_buffers.add(place.buffer)
            if isinstance(step, Map) and not step.is_write:
                last_writes[step.out.buffer] = number, step.out
            elif step.out is not None:
                materialized_buffers.add(step.out.buffer)
    return materialized_buffers


def round_to_lines(size: int) -> int:
    """Round a size up to whole cache lines, at least one."""
    return max(-(-size // CACHE_LINE) * CACHE_LINE, CACHE_LINE)
