"""Loop rerolling: the repeated steps of a traced Python loop become a `Loop` (a pass).

A rerolled loop keeps the order of its steps, so only the memory of its values must be decided. A value that is dead after its
iteration has one buffer. A value that the next iteration reads has two. A value that is read later, for instance by a reverse
sweep, is stacked: the values of all iterations are stored one after the other. Inner loops are rerolled first; each is one step
when outer loops are detected.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...loop_periodicity import MIN_TRIP_COUNT, UnrolledLoop, find_unrolled_loops
from ..buffer_ir import Buffer, BufferView, Loop, LoopIndex, Map, Step, c_strides
from .loop_distribution import Access, Partition, access_of, can_be_distributed, partition_loop, vectorize_step
from .step_table import StepTable, column_dtypes, columns, with_columns, written_columns

MAX_DISTANCE = 8  # largest dependence distance in a loop, in iterations
MAX_BYTES = 2**30  # bytes of the values of all loops
MIN_STEPS = 300  # steps of the smallest program that is rerolled
MIN_LOOP_STEPS = 48  # steps of the smallest loop
MAX_DEPTH = 4  # nesting depth


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
        Its buffer in the rerolled loop.
    previous_buffer : Buffer or None
        The buffer of its value in the previous iteration, if a later iteration reads it and it is not stacked.
    """

    prototype: Buffer
    is_stacked: bool = False
    distance: int = 0
    initial_distances: set[int] = field(default_factory=set)
    buffer: Any = None
    previous_buffer: Any = None

    def allocate(self, trip_count: int) -> int:
        """Allocate its buffers; return the bytes of `buffer`."""
        dtype, size = self.prototype.dtype, self.prototype.size
        self.is_stacked |= self.distance > 1
        self.buffer = Buffer(dtype, size * (trip_count + self.distance) if self.is_stacked else size)
        if self.distance and not self.is_stacked:
            self.previous_buffer = Buffer(dtype, size)
        return int(self.buffer.size * dtype.itemsize)

    def view_at(self, view: BufferView, iteration: int, loop_index: LoopIndex | None = None, step: int = 0) -> BufferView:
        """Return a view of the value of an iteration; within a loop, `iteration` grows by `step` per iteration of that loop."""
        if not self.is_stacked:
            return BufferView(self.buffer, view.offset, view.shape, view.strides, view.loop_strides)
        size = self.prototype.size
        offset = view.offset + (iteration + self.distance) * size
        stacked_view = BufferView(self.buffer, offset, view.shape, view.strides, view.loop_strides)
        return with_loop_stride(stacked_view, loop_index, step * size)


def with_loop_stride(view: BufferView, loop_index: LoopIndex | None, stride: int) -> BufferView:
    """Return a view with an additional stride per iteration of a loop."""
    if loop_index is None or not stride:
        return view
    loop_strides = dict(view.loop_strides)
    loop_strides[loop_index] = loop_strides.get(loop_index, 0) + stride
    return BufferView(view.buffer, view.offset, view.shape, view.strides, tuple(loop_strides.items()))


class ViewAccess(NamedTuple):
    """An access to a view by the iterations of a loop.

    Attributes
    ----------
    row, column : int
        The view in the first iteration, by its row and column in the `StepTable`.
    buffer_number, number_stride : int
        The number of its buffer in the first iteration, and the change of this number per iteration.
    is_written : bool
        Whether the access is a write.
    """

    row: int
    column: int
    buffer_number: int
    number_stride: int
    is_written: bool


class RerolledLoop:
    """An unrolled loop that becomes a loop of the program.

    Parameters
    ----------
    table : StepTable
        The table of all steps.
    unrolled : UnrolledLoop
        The iterations.

    Attributes
    ----------
    first_buffer : int
        The number of the first buffer that the first iteration defines.
    buffer_count : int
        How many buffers each iteration defines.
    values : list of LoopValue
        The values that each iteration defines.
    partitions : list of Partition
        The partitions of the loop, in order; see `loop_distribution`.
    """

    partitions: list[Partition]

    def __init__(self, table: StepTable, unrolled: UnrolledLoop) -> None:
        self.table, self.unrolled = table, unrolled
        self.first_buffer = int(table.buffer_counts[unrolled.start])
        self.buffer_count = int(table.buffer_counts[unrolled.start + unrolled.period]) - self.first_buffer
        self.values = [LoopValue(b) for b in table.buffers[self.first_buffer : self.first_buffer + self.buffer_count]]

    @property
    def body_rows(self) -> range:
        """The rows of the first iteration."""
        return range(self.unrolled.start, self.unrolled.start + self.unrolled.period)

    def accesses(self) -> list[ViewAccess]:
        """Return the accesses of an iteration."""
        table = self.table
        return [
            ViewAccess(row, column, *self._number_and_stride(row, 2 * column), is_written)
            for row in self.body_rows
            for column, is_written in enumerate(written_columns(table.steps[row]))
            if isinstance(table.columns[row][column], BufferView)
        ]

    def _number_and_stride(self, row: int, position: int) -> tuple[int, int]:
        """Return an integer of the table in the first iteration, and its change per iteration."""
        integers = self.table.integers
        integer = int(integers[row, position])
        return integer, int(integers[row + self.unrolled.period, position]) - integer

    def distribute(self, trip_count: int) -> None:
        """Partition the loop for a trip count, and stack the values that cross partitions."""
        if not can_be_distributed([self.table.steps[row] for row in self.body_rows]):
            self.partitions = [Partition(list(self.body_rows), is_vectorized=False)]
            return
        # by value of this loop, or by the number of another buffer
        accesses_by_buffer: dict[LoopValue | int, list[Access]] = defaultdict(list)
        for row, column, number, number_stride, is_written in self.accesses():
            view, offset_stride = self.table.columns[row][column], self._offset_stride(row, column)
            if self._is_own_value(number, number_stride) or (not number_stride and self.defines(number)):
                value, iteration = self.value_of(number)
                size = value.prototype.size  # the distance of two iterations, as if the value were stacked
                access = access_of(row, view, iteration * size, offset_stride + size * bool(number_stride), is_written)
                accesses_by_buffer[value].append(access)
            elif not number_stride and number >= 0:
                accesses_by_buffer[number].append(access_of(row, view, 0, offset_stride, is_written))
        self.partitions = partition_loop(self.body_rows, accesses_by_buffer, trip_count)
        partition_of = {row: partition for partition in self.partitions for row in partition.rows}
        for key, accesses in accesses_by_buffer.items():
            if isinstance(key, LoopValue):
                partitions = [partition_of[access.row] for access in accesses]
                key.is_stacked |= any(p.is_vectorized or p is not partitions[0] for p in partitions)

    def defines(self, number: int) -> bool:
        """Return whether an iteration defines a buffer."""
        return self.first_buffer <= number < self.first_buffer + self.buffer_count * self.unrolled.trip_count

    def _is_own_value(self, number: int, number_stride: int) -> bool:
        """Return whether each iteration accesses a value that it, or an earlier iteration, defines."""
        return number_stride == self.buffer_count > 0 and number >= self.first_buffer - MAX_DISTANCE * self.buffer_count

    def _offset_stride(self, row: int, column: int) -> int:
        """Return the change of a view's offset per iteration."""
        return self._number_and_stride(row, 2 * column + 1)[1]

    def distance(self, number: int, number_stride: int) -> int | None:
        """Return the dependence distance of a value of this loop; None if it is defined elsewhere, or beyond `MAX_DISTANCE`."""
        if not self._is_own_value(number, number_stride) or number >= self.first_buffer + self.buffer_count:
            return None
        return -self.value_of(number)[1]

    def value_of(self, number: int) -> tuple[LoopValue, int]:
        """Return the `LoopValue` of a buffer, and its iteration, which is negative before the loop."""
        iteration, position = divmod(number - self.first_buffer, self.buffer_count)
        return self.values[position], iteration

    def view_in_loop(self, loops: LoopSet, loop_index: LoopIndex, row: int, column: int) -> BufferView:
        """Return a view of the first iteration as a view in the loop body."""
        number, number_stride = self._number_and_stride(row, 2 * column)
        view = with_loop_stride(self.table.columns[row][column], loop_index, self._offset_stride(row, column))
        if self.distance(number, number_stride) is not None:
            value, iteration = self.value_of(number)
            if iteration and not value.is_stacked:
                return BufferView(value.previous_buffer, view.offset, view.shape, view.strides, view.loop_strides)
            return value.view_at(view, iteration, loop_index, 1)
        if not number_stride:
            return loops.relocate(view, number)
        owner = loops.owner(number)
        assert owner is not None
        value, iteration = owner.value_of(number)
        return value.view_at(view, iteration, loop_index, number_stride // owner.buffer_count)

    def initial_copies(self, loops: LoopSet) -> list[Step]:
        """Return copies of the values from before the loop that its first iterations read."""
        steps: list[Step] = []
        for position, value in enumerate(self.values):
            for distance in sorted(value.initial_distances):
                number = self.first_buffer + position - distance * self.buffer_count
                source = loops.relocate(_entire_view(self.table.buffers[number]), number)
                if value.previous_buffer is not None:
                    target = _entire_view(value.previous_buffer)
                else:
                    target = value.view_at(_entire_view(value.prototype), -distance)
                steps.append(_copy_step(source, target))
        return steps

    def carried_copies(self) -> list[Map]:
        """Return the copies of loop-carried values at the end of an iteration, for the next iteration.

        A copy has the iteration space of the step that computes the value, so that it can join the nest of this step.
        """
        shapes = {}
        for step in (self.table.steps[row] for row in self.body_rows):
            if isinstance(step, Map) and step.out.buffer.size == prod(step.shape) and step.out.is_dense:
                shapes[step.out.buffer] = step.shape
        copies = []
        for value in self.values:
            if value.previous_buffer is not None:
                shape = shapes.get(value.prototype, _entire_view(value.buffer).shape)
                source, target = (BufferView(b, 0, shape, c_strides(shape)) for b in (value.buffer, value.previous_buffer))
                copies.append(_copy_step(source, target))
        return copies


class LoopSet:
    """All rerolled loops of a table.

    Parameters
    ----------
    table : StepTable
        The table of all steps.
    max_trip_count : int
        The largest trip count to which the loops may be extrapolated.

    Attributes
    ----------
    loops : list of RerolledLoop
        The loops, in order.
    """

    def __init__(self, table: StepTable, max_trip_count: int = 0) -> None:
        self.table, self._max_trip_count = table, max_trip_count
        self.loops: list[RerolledLoop] = []
        self._owner = np.full(len(table.buffers), -1)  # the position in `loops` of the loop that defines each buffer

    def owner(self, number: int) -> RerolledLoop | None:
        """Return the loop that defines a buffer; None if no loop does."""
        position = int(self._owner[number]) if number >= 0 else -1
        return self.loops[position] if position >= 0 else None

    def add(self, unrolled: UnrolledLoop) -> None:
        """Add an unrolled loop, or its longest range of iterations that a loop can express."""
        while unrolled.trip_count >= MIN_TRIP_COUNT:
            loop = RerolledLoop(self.table, unrolled)
            is_regular = self._regular_iterations(loop)
            if is_regular.all():
                self._owner[loop.first_buffer : loop.first_buffer + loop.buffer_count * unrolled.trip_count] = len(self.loops)
                self.loops.append(loop)
                loop.distribute(max(unrolled.trip_count, self._max_trip_count))
                return
            start, stop = _longest_interval(is_regular)
            unrolled = UnrolledLoop(unrolled.start + start * unrolled.period, unrolled.period, stop - start)

    def _regular_iterations(self, loop: RerolledLoop) -> Any:
        """Return a mask of the iterations whose accesses a loop can express; all False if a write prevents a loop."""
        trip_count, accesses = loop.unrolled.trip_count, loop.accesses()
        is_regular = np.ones(trip_count, bool)
        invariant_writes = {access.buffer_number for access in accesses if access.is_written and not access.number_stride}
        for _, _, number, number_stride, is_written in accesses:
            if number < 0 or not number_stride:
                continue
            distance = loop.distance(number, number_stride)
            if is_written and distance != 0:
                return np.zeros(trip_count, bool)
            if distance is None:
                is_regular &= self._same_value_mask(number + number_stride * np.arange(trip_count))
            elif not invariant_writes.isdisjoint(range(number, number + number_stride * distance, number_stride)):
                is_regular[:distance] = False  # they would write values that are copied before the loop
        return is_regular

    def _same_value_mask(self, numbers: NDArray[Any]) -> Any:
        """Return a mask of the buffers that hold the same value of one loop, each from one of its iterations."""
        is_in_range = (numbers >= 0) & (numbers < len(self._owner))
        owners = np.where(is_in_range, self._owner[np.where(is_in_range, numbers, 0)], -1)
        main_owner = int(np.bincount(owners + 1, minlength=1)[1:].argmax()) if (owners >= 0).any() else -1
        if main_owner < 0 or (numbers[1] - numbers[0]) % self.loops[main_owner].buffer_count:
            return np.zeros(len(numbers), bool)
        return owners == main_owner

    def allocate(self) -> bool:
        """Decide which values are stacked, and allocate them; return whether the memory is within the limit."""
        is_in_loop = np.zeros(len(self.table.steps), bool)
        for loop in self.loops:
            is_in_loop[loop.unrolled.start : loop.unrolled.stop] = True
        for row in np.flatnonzero(~is_in_loop):
            for column in self.table.columns[row]:
                if isinstance(column, BufferView):
                    self._record_read(self.table.number(column.buffer), None)
        for loop in self.loops:
            for access in loop.accesses():
                self._record_loop_access(loop, access.buffer_number, access.number_stride)
        return sum(value.allocate(loop.unrolled.trip_count) for loop in self.loops for value in loop.values) <= MAX_BYTES

    def _record_loop_access(self, loop: RerolledLoop, number: int, number_stride: int) -> None:
        """Record that a loop accesses a buffer whose number changes by `number_stride` per iteration."""
        distance = loop.distance(number, number_stride)
        if distance is None and number_stride:
            owner = self.owner(number)
            assert owner is not None
            owner.value_of(number)[0].is_stacked = True
        elif distance is None:
            self._record_read(number, loop)
        elif distance:
            value, _ = loop.value_of(number)
            value.distance = max(value.distance, distance)
            for iteration in range(min(distance, loop.unrolled.trip_count)):
                value.initial_distances.add(distance - iteration)
                self._record_read(number + iteration * loop.buffer_count, None)

    def _record_read(self, number: int, reader: RerolledLoop | None) -> None:
        """Record that a buffer is read outside of its loop, or by all iterations of `reader`."""
        owner = self.owner(number)
        if owner is not None:
            value, iteration = owner.value_of(number)
            value.is_stacked |= owner is reader or iteration != owner.unrolled.trip_count - 1

    def relocate(self, view: BufferView, number: int | None = None) -> BufferView:
        """Return a view at its new location; unchanged if no loop defines its buffer."""
        number = self.table.number(view.buffer) if number is None else number
        owner = self.owner(number)
        if owner is None:
            return view
        value, iteration = owner.value_of(number)
        return value.view_at(view, iteration)


def _longest_interval(mask: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the range of the longest sequence of True in a mask."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.view(np.int8), [0]))))
    intervals = list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
    return max(intervals, key=lambda interval: interval[1] - interval[0], default=(0, 0))


def _entire_view(buffer: Buffer) -> BufferView:
    return BufferView(buffer, 0, (buffer.size,), (1,)) if buffer.size != 1 else BufferView(buffer, 0, (), ())


def _copy_step(source: BufferView, out: BufferView) -> Map:
    return Map("copy", (source,), out, out.buffer.dtype, is_write=True)


def reroll_loops(steps: Sequence[Step], outputs: Iterable[BufferView], max_trip_count: int = 0) -> list[Step]:
    """Replace repeated steps by loops.

    Parameters
    ----------
    steps : sequence of Step
        Steps in order.
    outputs : iterable of BufferView
        The results. Steps that define their buffers stay outside of loops.
    max_trip_count : int, optional
        The largest trip count to which the loops may be extrapolated.
    """
    rerolled_steps, result_buffers = list(steps), [view.buffer for view in outputs]
    min_steps = MIN_LOOP_STEPS
    for _ in range(MAX_DEPTH if len(rerolled_steps) >= MIN_STEPS else 0):
        next_steps = _reroll_once(StepTable(rerolled_steps, result_buffers), min_steps, max_trip_count)
        if next_steps is None:
            break
        rerolled_steps, min_steps = next_steps, 1
    return rerolled_steps


def _reroll_once(table: StepTable, min_steps: int, max_trip_count: int) -> list[Step] | None:
    """Return the steps of a table with unrolled loops of at least `min_steps` steps rerolled; None if there are none."""
    loops = LoopSet(table, max_trip_count)
    for unrolled in find_unrolled_loops(table, min_steps):
        loops.add(unrolled)
    if not loops.loops or not loops.allocate():
        return None
    steps: list[Step] = []
    next_row = 0
    for loop in loops.loops:
        steps += [_relocate_step(table, row, loops) for row in range(next_row, loop.unrolled.start)]
        steps += loop.initial_copies(loops)
        steps += _replacement_steps(table, loop, loops)
        next_row = loop.unrolled.stop
    return steps + [_relocate_step(table, row, loops) for row in range(next_row, len(table.steps))]


def _relocate_step(table: StepTable, row: int, loops: LoopSet) -> Step:
    """Return a step outside of loops, with relocated views."""
    relocated_columns = [loops.relocate(c) if isinstance(c, BufferView) else c for c in table.columns[row]]
    return with_columns(table.steps[row], relocated_columns)


def _replacement_steps(table: StepTable, loop: RerolledLoop, loops: LoopSet) -> Iterator[Step]:
    """Yield the steps that replace an unrolled loop."""
    carried_copies = loop.carried_copies()
    for partition in loop.partitions:
        loop_index = LoopIndex(loop.unrolled.trip_count)
        steps = [_loop_step(table, loop, loops, row, loop_index) for row in partition.rows]
        if partition.is_vectorized:
            yield vectorize_step(steps[0], loop_index)
        else:
            partition_buffers = {column.buffer for step in steps for column in columns(step) if isinstance(column, BufferView)}
            yield Loop(loop_index, steps + [copy for copy in carried_copies if copy.out.buffer in partition_buffers])


def _loop_step(table: StepTable, loop: RerolledLoop, loops: LoopSet, row: int, loop_index: LoopIndex) -> Step:
    """Return a step of the loop body."""
    dtypes, values = column_dtypes(table.steps[row]), list[Any]()
    for position, column in enumerate(table.columns[row]):
        if isinstance(column, BufferView):
            values.append(loop.view_in_loop(loops, loop_index, row, position))
        else:
            literals = [table.columns[r][position] for r in range(row, loop.unrolled.stop, loop.unrolled.period)]
            values.append(_loop_literal(literals, dtypes[position], loop_index))
    return with_columns(table.steps[row], values)


def _loop_literal(literals: list[Any], dtype: np.dtype[Any], loop_index: LoopIndex) -> Any:
    """Return the literal that all iterations share, or a view of a table with the literal of each iteration."""
    table = np.array([np.asarray(literal).astype(dtype) for literal in literals], dtype)
    if len({entry.tobytes() for entry in table}) == 1:
        return literals[0]
    return with_loop_stride(BufferView(Buffer(table.dtype, table.size, table, is_external=True), 0, (), ()), loop_index, 1)
