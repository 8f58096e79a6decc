"""Memory planning: assigns memory to the buffers that need it; buffers with disjoint live ranges share it (a pass)."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from ..buffer_ir import Buffer, BufferView, Map, NumPyCall, SingleStep
from .nest_fusion import FusedLoop, LoopNest, Unit

CACHE_LINE = 64  # bytes; buffers begin at a cache line
MIN_HOSTED_BYTES = 2**14  # bytes of the smallest buffer that is placed in the array of a result


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
        """Allocate memory in the smallest sufficient gap; return its offset, or None if there is no such gap."""
        gap = min((gap for gap in self._free if gap[1] >= size), key=itemgetter(1), default=None)
        if gap is None:
            return None
        self._free.remove(gap)
        start, length = gap
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
        for gap in tuple(self._free):
            if gap[0] + gap[1] == start:
                self._free.remove(gap)
                start, size = gap[0], size + gap[1]
            elif start + size == gap[0]:
                self._free.remove(gap)
                size += gap[1]
        self._free.append((start, size))


class MemoryPlan:
    """The memory layout of a program.

    Attributes
    ----------
    offsets : dict
        The byte offset of each buffer that has no array of its own, in its host or in the workspace.
    hosts : dict
        For each buffer that is placed in the array of a result, the buffer of this result, which is written after its last use.
    size : int
        The bytes of the workspace.
    materialized : set of Buffer
        The buffers in memory. All other values stay in registers.
    """

    def __init__(self, units: Sequence[Unit], outputs: Iterable[BufferView]) -> None:
        self.offsets: dict[Buffer, int] = {}
        self.hosts: dict[Buffer, Buffer] = {}
        results = dict.fromkeys(view.buffer for view in outputs)
        self.materialized = find_materialized(units).union(results)
        first, last = self._live_ranges(units)
        hosts = ((first[b], b) for b in results if b in first and b.nbytes >= MIN_HOSTED_BYTES)  # with their first writes
        self._possible_hosts = sorted(hosts, key=itemgetter(0))
        self._host_arenas = {b: Arena(b.nbytes) for _, b in self._possible_hosts}
        self._workspace = Arena()
        begins, ends = defaultdict(list), defaultdict(list)
        for buffer in first:
            if buffer not in results:
                begins[first[buffer]].append(buffer)
                ends[last[buffer]].append(buffer)
        for number in range(len(units)):
            for buffer in begins[number]:
                self._allocate(buffer, last[buffer])
            for buffer in ends[number]:
                arena = self._host_arenas[self.hosts[buffer]] if buffer in self.hosts else self._workspace
                arena.release(self.offsets[buffer], buffer.nbytes)
        self.size = self._workspace.size

    def _live_ranges(self, units: Sequence[Unit]) -> tuple[dict[Buffer, int], dict[Buffer, int]]:
        """Return the numbers of the first and of the last unit that uses each buffer; inputs and constants are omitted."""
        first: dict[Buffer, int] = {}
        last: dict[Buffer, int] = {}
        for number, unit in enumerate(units):
            for buffer in buffers_used(unit):
                if buffer in self.materialized and not (buffer.is_external or buffer.is_numpy_result):
                    first.setdefault(buffer, number)
                    last[buffer] = number
        return first, last

    def _allocate(self, buffer: Buffer, last: int) -> None:
        """Allocate a buffer whose last use is in the unit number `last`.

        A large buffer is placed in the array of a result that is written later, the next one with room; other buffers are placed
        in the workspace.
        """
        size = buffer.nbytes
        if size >= MIN_HOSTED_BYTES:
            for _, host in self._possible_hosts[bisect_right(self._possible_hosts, last, key=itemgetter(0)) :]:
                start = self._host_arenas[host].try_allocate(size)
                if start is not None:
                    self.offsets[buffer], self.hosts[buffer] = start, host
                    return
        self.offsets[buffer] = self._workspace.allocate(size)


def buffers_used(unit: Unit) -> list[Buffer]:
    """Return the buffers that a unit reads or writes, with repetitions."""
    views: list[BufferView] = []
    for step in steps_in(unit):
        views += views_read(step)
        if step.out is not None:
            views.append(step.out)
    if isinstance(unit, LoopNest) and unit.tiling is not None:
        views += unit.tiling.partials
    return [view.buffer for view in views]


def steps_in(unit: Unit) -> Sequence[SingleStep]:
    """Return the steps of a unit, in order."""
    if isinstance(unit, FusedLoop):
        return [step for inner in unit.units for step in steps_in(inner)]
    return unit.steps if isinstance(unit, LoopNest) else (unit,)


def _without_loops(units: Iterable[Unit]) -> Iterator[Unit]:
    """Yield the units of all loop bodies and those outside of loops, in order."""
    for unit in units:
        if isinstance(unit, FusedLoop):
            yield from _without_loops(unit.units)
        else:
            yield unit


def views_read(step: SingleStep) -> list[BufferView]:
    """Return the views that a step reads."""
    operands = step.views.values() if isinstance(step, NumPyCall) else step.operands
    return [operand for operand in operands if isinstance(operand, BufferView)]


def find_materialized(units: Sequence[Unit]) -> set[Buffer]:
    """Return the buffers in memory: other units or other views read them, or they are written in parts or outside of nests."""
    definitions: dict[Buffer, tuple[int, BufferView]] = {}  # the number of the unit that computes a buffer, and the view
    materialized: set[Buffer] = set()
    for number, unit in enumerate(_without_loops(units)):
        for step in steps_in(unit):
            for view in views_read(step):
                if definitions.get(view.buffer) != (number, view):
                    materialized.add(view.buffer)
            if isinstance(step, Map) and not step.is_write:
                definitions[step.out.buffer] = number, step.out
            elif step.out is not None:
                materialized.add(step.out.buffer)
    return materialized


def round_to_lines(size: int) -> int:
    """Round a size up to whole cache lines, at least one."""
    return max(-(-size // CACHE_LINE) * CACHE_LINE, CACHE_LINE)
