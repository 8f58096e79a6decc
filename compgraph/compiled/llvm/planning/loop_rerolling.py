"""Loop rerolling: repeated steps, as a traced Python loop leaves them, become a `Loop` (a pass).

A run of iterations (see `periodicity`) keeps the order of its steps, so only the memory of its values must be decided. A value
that is dead after its iteration has one buffer. A value that the next iteration reads has two. A value that is read later, as
by the reverse sweep through a loop, is stacked: the values of all iterations are stored one after the other. Nested loops are
found from the inside, because a loop is a step of the next search.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...loops import MIN_TRIP_COUNT, PeriodicRun, find_runs
from ..buffer_ir import Buffer, BufferView, Loop, LoopIndex, Map, Step
from .loop_distribution import Access, Partition, access_of, can_be_distributed, partition_loop, vectorize_step
from .step_table import StepTable, column_dtypes, columns, with_columns, written_columns

MAX_DISTANCE = 8  # largest dependence distance within a loop, in iterations
MAX_BYTES = 2**30  # of stacked values


@dataclass(eq=False)
class LoopValue:
    """A value that each iteration of a loop defines.

    Attributes
    ----------
    prototype : Buffer
        Its buffer in the first iteration.
    is_stacked : bool
        Whether the values of all iterations are stored.
    distance : int
        The largest dependence distance of its reads, in iterations.
    initial_distances : set of int
        The distances at which iterations read values from before the loop.
    buffer : Buffer
        Its buffer in the rerolled loop; `before`, if it is not stacked, is that of the previous iteration.
    """

    prototype: Buffer
    is_stacked: bool = False
    distance: int = 0
    initial_distances: set[int] = field(default_factory=set)
    buffer: Any = None
    copies_before: Any = None

    def allocate(self, turns: int) -> int:
        """Allocate its buffers; return their bytes."""
        dtype, size = self.prototype.dtype, self.prototype.size
        self.is_stacked |= self.distance > 1
        self.buffer = Buffer(dtype, size * (turns + self.distance) if self.is_stacked else size)
        if self.distance and not self.is_stacked:
            self.copies_before = Buffer(dtype, size)
        return int(self.buffer.size * dtype.itemsize)

    def at(self, place: BufferView, turn: int, loop_index: LoopIndex | None = None, by: int = 0) -> BufferView:
        """Return a view of the value of an iteration; within a loop, of an iteration with a stride `by` per iteration of that."""
        if not self.is_stacked:
            return BufferView(self.buffer, place.offset, place.shape, place.strides, place.loop_strides)
        size = self.prototype.size
        offset = place.offset + (turn + self.distance) * size
        return with_loop_stride(
            BufferView(self.buffer, offset, place.shape, place.strides, place.loop_strides), loop_index, by * size
        )


def with_loop_stride(place: BufferView, loop_index: LoopIndex | None, by: int) -> BufferView:
    """Return a view with a further stride per iteration of a loop."""
    if loop_index is None or not by:
        return place
    moves = dict(place.loop_strides)
    moves[loop_index] = moves.get(loop_index, 0) + by
    return BufferView(place.buffer, place.offset, place.shape, place.strides, tuple(moves.items()))


class RerolledLoop:
    """A run of iterations that becomes a loop.

    Parameters
    ----------
    table : StepTable
        The rows of all steps.
    run : PeriodicRun
        The iterations.

    Attributes
    ----------
    first, count : int
        The number of the first buffer that the first iteration defines, and the number of buffers per iteration.
    slots : list of LoopValue
        The values that each iteration defines.
    partitions : list of Partition
        The partitions of the loop, in order.
    """

    partitions: list[Partition]

    def __init__(self, table: StepTable, run: PeriodicRun) -> None:
        self.table, self.run = table, run
        self.first = int(table.buffer_counts[run.start])
        self.count = int(table.buffer_counts[run.start + run.period]) - self.first
        self.slots = [LoopValue(buffer) for buffer in table.buffers[self.first : self.first + self.count]]

    def reads(self) -> list[tuple[int, int, int, int, bool]]:
        """Return for each view of an iteration: row, column, buffer number, its change per iteration, and a write flag."""
        reads, table, run = [], self.table, self.run
        for row in range(run.start, run.start + run.period):
            written = written_columns(table.steps[row])
            for column, value in enumerate(table.columns[row]):
                if isinstance(value, BufferView):
                    number = int(table.numbers[row, 2 * column])
                    change = int(table.numbers[row + run.period, 2 * column]) - number
                    reads.append((row, column, number, change, written[column]))
        return reads

    def distribute(self, many: int) -> None:
        """Partition the loop, and stack the values that cross partitions, for a given trip count."""
        steps = self.table.steps[self.run.start : self.run.start + self.run.period]
        rows = range(self.run.start, self.run.start + self.run.period)
        if not can_be_distributed(steps):
            self.partitions = [Partition(list(rows), is_vectorized=False)]
            return
        touched: dict[Any, list[Access]] = defaultdict(list)
        for row, column, number, change, is_written in self.reads():
            place, by = self.table.columns[row][column], self._growth(row, column)
            if number >= self.first - MAX_DISTANCE * self.count and (
                change == self.count or (not change and self.defines(number))
            ):
                slot, turn = self.value_of(number)
                size, position = slot.prototype.size, (number - self.first) % self.count
                touched[position, "made"].append(access_of(row, place, turn * size, by + size * bool(change), is_written))
            elif not change and number >= 0:
                touched[number].append(access_of(row, place, 0, by, is_written))
        self.partitions = partition_loop(rows, touched, many)
        home = {row: piece for piece in self.partitions for row in piece.rows}
        for key, accesses in touched.items():
            if isinstance(key, tuple):
                homes = [home[a.row] for a in accesses]
                self.slots[key[0]].is_stacked |= any(h.is_vectorized or h is not homes[0] for h in homes)

    def defines(self, number: int) -> bool:
        """Return whether an iteration defines a buffer."""
        return self.first <= number < self.first + self.count * self.run.trip_count

    def _growth(self, row: int, column: int) -> int:
        """Return the change of a view's offset per iteration."""
        numbers, later = self.table.numbers[row], self.table.numbers[row + self.run.period]
        return int(later[2 * column + 1] - numbers[2 * column + 1])

    def distance(self, number: int, change: int) -> int | None:
        """Return the dependence distance of a value of this loop; None if it is defined elsewhere, or much earlier."""
        if not change or change != self.count or not self.first - MAX_DISTANCE * self.count <= number < self.first + self.count:
            return None
        return -((number - self.first) // self.count)

    def value_of(self, number: int) -> tuple[LoopValue, int]:
        """Return the `LoopValue` of a buffer that an iteration defines, and the iteration."""
        turn, slot = divmod(number - self.first, self.count)
        return self.slots[slot], turn

    def view_in_loop(self, within: LoopSet, loop_index: LoopIndex, row: int, column: int) -> BufferView:
        """Return a view of an iteration, within the loop."""
        numbers, later = self.table.numbers[row], self.table.numbers[row + self.run.period]
        number, change = int(numbers[2 * column]), int(later[2 * column] - numbers[2 * column])
        place = with_loop_stride(self.table.columns[row][column], loop_index, self._growth(row, column))
        back = self.distance(number, change)
        if back is not None:
            slot = self.slots[(number - self.first) % self.count]
            if back and not slot.is_stacked:
                return BufferView(slot.copies_before, place.offset, place.shape, place.strides, place.loop_strides)
            return slot.at(place, -back, loop_index, 1)
        if not change:
            return within.relocated(place, number)
        other = within.owner(number)
        assert other is not None
        slot, turn = other.value_of(number)
        return slot.at(place, turn, loop_index, change // other.count)

    def copies_before(self, within: LoopSet) -> list[Step]:
        """Return the copies before the loop: values of earlier steps that the first iterations read as loop values."""
        steps: list[Step] = []
        for position, slot in enumerate(self.slots):
            for back in sorted(slot.initial_distances):
                number = self.first + position - back * self.count
                source = within.relocated(_entire_view(self.table.buffers[number]), number)
                steps.append(
                    _copy_step(
                        source,
                        _entire_view(slot.copies_before)
                        if slot.copies_before is not None
                        else slot.at(_entire_view(slot.prototype), -back),
                    )
                )
        return steps

    def copies_after(self) -> list[Map]:
        """Return the copies at the end of an iteration, for the next one."""
        return [
            _copy_step(_entire_view(slot.buffer), _entire_view(slot.copies_before))
            for slot in self.slots
            if slot.copies_before is not None
        ]


class LoopSet:
    """All rerolled loops of a table.

    Parameters
    ----------
    table : StepTable
        The rows of all steps.
    max_trip_count : int
        The largest trip count of the loops that these represent.

    Attributes
    ----------
    loops : list of RerolledLoop
        The loops, in order.
    """

    def __init__(self, table: StepTable, max_trip_count: int = 0) -> None:
        self.table, self._max_trip_count = table, max_trip_count
        self.loops: list[RerolledLoop] = []
        self._owner = np.full(len(table.buffers), -1)  # the loop that defines each buffer

    def owner(self, number: int) -> RerolledLoop | None:
        """Return the loop that defines a buffer."""
        place = int(self._owner[number]) if number >= 0 else -1
        return self.loops[place] if place >= 0 else None

    def enter(self, run: PeriodicRun) -> None:
        """Add a run, or its longest part whose iterations all access evenly moving views."""
        while run.trip_count >= MIN_TRIP_COUNT:
            turns = RerolledLoop(self.table, run)
            fitting = self._fitting(turns)
            if fitting.all():
                self._owner[turns.first : turns.first + turns.count * run.trip_count] = len(self.loops)
                self.loops.append(turns)
                turns.distribute(max(run.trip_count, self._max_trip_count))
                return
            edges = np.flatnonzero(np.diff(np.concatenate(([0], fitting.view(np.int8), [0]))))
            parts = list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
            start, stop = max(parts, key=lambda part: part[1] - part[0], default=(0, 0))
            run = PeriodicRun(run.start + start * run.period, run.period, stop - start)

    def _fitting(self, turns: RerolledLoop) -> Any:
        """Return which iterations of a run can be part of a loop."""
        count, reads = turns.run.trip_count, turns.reads()
        fitting = np.ones(count, bool)
        written = {number for _, _, number, change, is_written in reads if is_written and not change}
        for _, _, number, change, is_written in reads:
            if number < 0 or not change:
                continue
            back = turns.distance(number, change)
            if is_written and back != 0:
                return np.zeros(count, bool)
            if back is None:
                fitting &= self._evenly(number + change * np.arange(count))
            elif not written.isdisjoint(
                range(number, number + change * back, change)
            ):  # it would write values that are copied before the loop
                fitting[:back] = False
        return fitting

    def _evenly(self, numbers: Any) -> Any:
        """Return which of some buffers are the same value of iterations of one loop."""
        is_known = (numbers >= 0) & (numbers < len(self._owner))
        owners = np.where(is_known, self._owner[np.where(is_known, numbers, 0)], -1)
        chosen = int(np.bincount(owners + 1, minlength=1)[1:].argmax()) if (owners >= 0).any() else -1
        if chosen < 0 or (numbers[1] - numbers[0]) % self.loops[chosen].count:
            return np.zeros(len(numbers), bool)
        return owners == chosen

    def allocate(self) -> bool:
        """Decide which values are stacked, and allocate them; return whether the memory is within the limit."""
        inside = np.zeros(len(self.table.steps), bool)
        for turns in self.loops:
            inside[turns.run.start : turns.run.stop] = True
        for row in np.flatnonzero(~inside):
            for column in self.table.columns[row]:
                if isinstance(column, BufferView):
                    self._note(self.table.number(column.buffer), None)
        for turns in self.loops:
            for _, _, number, change, _ in turns.reads():
                self._note_read(turns, number, change)
        return sum(slot.allocate(turns.run.trip_count) for turns in self.loops for slot in turns.slots) <= MAX_BYTES

    def _note_read(self, turns: RerolledLoop, number: int, change: int) -> None:
        back = turns.distance(number, change)
        if back is None and change:
            owner = self.owner(number)
            assert owner is not None
            owner.value_of(number)[0].is_stacked = True
        elif back is None:
            self._note(number, turns)
        elif back:
            position = (number - turns.first) % turns.count
            slot = turns.slots[position]
            slot.distance = max(slot.distance, back)
            for turn in range(min(back, turns.run.trip_count)):
                slot.initial_distances.add(back - turn)
                self._note(turns.first + position - (back - turn) * turns.count, None)

    def _note(self, number: int, reader: RerolledLoop | None) -> None:
        """Note that a buffer is read outside of its loop, or by all iterations of it."""
        owner = self.owner(number)
        if owner is not None:
            slot, turn = owner.value_of(number)
            slot.is_stacked |= owner is reader or turn != owner.run.trip_count - 1

    def relocated(self, place: BufferView, number: int | None = None) -> BufferView:
        """Return the new location of a view."""
        number = self.table.number(place.buffer) if number is None else number
        owner = self.owner(number)
        if owner is None:
            return place
        slot, turn = owner.value_of(number)
        return slot.at(place, turn)


def _entire_view(buffer: Buffer) -> BufferView:
    return BufferView(buffer, 0, (buffer.size,), (1,)) if buffer.size != 1 else BufferView(buffer, 0, (), ())


def _copy_step(source: BufferView, out: BufferView) -> Map:
    return Map("copy", (source,), out, out.buffer.dtype, is_write=True)


MIN_STEPS = 300  # steps of the smallest program that is rerolled
MIN_LOOP_STEPS = 48  # steps of the smallest loop
MAX_DEPTH = 4  # nesting depth


def reroll_loops(steps: Sequence[Step], outputs: Iterable[BufferView], max_trip_count: int = 0) -> list[Step]:
    """Replace repeated steps by loops.

    Parameters
    ----------
    steps : sequence of Step
        Steps in order.
    outputs : iterable of BufferView
        Results, whose buffers are kept.
    max_trip_count : int, optional
        The largest trip count of the loops that the found ones represent.
    """
    rerolled_steps, single = list(steps), [place.buffer for place in outputs]
    least = MIN_LOOP_STEPS
    for _ in range(MAX_DEPTH if len(rerolled_steps) >= MIN_STEPS else 0):
        further = _reroll_once(StepTable(rerolled_steps, single), least, max_trip_count)
        if further is None:
            break
        rerolled_steps, least = further, 1
    return rerolled_steps


def _reroll_once(table: StepTable, least: int, max_trip_count: int) -> list[Step] | None:
    """Return the steps of a table with runs of at least `least` steps as loops; None without such runs."""
    within = LoopSet(table, max_trip_count)
    for run in find_runs(table, least):
        within.enter(run)
    if not within.loops:
        return None
    if not within.allocate():
        return None
    steps: list[Step] = []
    place = 0
    for turns in within.loops:
        steps += [_step_outside(table, row, within) for row in range(place, turns.run.start)]
        steps += turns.copies_before(within)
        steps += _emit_partitions(table, turns, within)
        place = turns.run.stop
    return steps + [_step_outside(table, row, within) for row in range(place, len(table.steps))]


def _step_outside(table: StepTable, row: int, within: LoopSet) -> Step:
    """Return a step outside of loops, with relocated views."""
    relocated_columns = [within.relocated(c) if isinstance(c, BufferView) else c for c in table.columns[row]]
    return with_columns(table.steps[row], relocated_columns)


def _emit_partitions(table: StepTable, turns: RerolledLoop, within: LoopSet) -> Iterator[Step]:
    """Yield the steps that replace a run."""
    done = turns.copies_after()
    for piece in turns.partitions:
        loop_index = LoopIndex(turns.run.trip_count)
        steps = [_loop_step(table, turns, within, row, loop_index) for row in piece.rows]
        if piece.is_vectorized:
            yield vectorize_step(steps[0], loop_index)
        else:
            partition_buffers = {column.buffer for step in steps for column in columns(step) if isinstance(column, BufferView)}
            yield Loop(loop_index, steps + [copy for copy in done if copy.out.buffer in partition_buffers])


def _loop_step(table: StepTable, turns: RerolledLoop, within: LoopSet, row: int, loop_index: LoopIndex) -> Step:
    """Return a step of the loop body."""
    wanted, values = column_dtypes(table.steps[row]), list[Any]()
    for number, column in enumerate(table.columns[row]):
        if isinstance(column, BufferView):
            values.append(turns.view_in_loop(within, loop_index, row, number))
        else:
            numbers = [table.columns[r][number] for r in range(row, turns.run.stop, turns.run.period)]
            values.append(_loop_constant(numbers, wanted[number], loop_index))
    return with_columns(table.steps[row], values)


def _loop_constant(numbers: list[Any], dtype: Any, loop_index: LoopIndex) -> Any:
    """Return a constant, or a view of a table of its values in all iterations."""
    table = np.array([np.asarray(number).astype(dtype) for number in numbers], dtype)
    if len({number.tobytes() for number in table}) == 1:
        return numbers[0]
    return with_loop_stride(BufferView(Buffer(table.dtype, table.size, table, is_external=True), 0, (), ()), loop_index, 1)
