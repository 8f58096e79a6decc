"""The turns of the loops that are found: where the values of each lie, and from where others read them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...loops import LEAST_TURNS, Run
from ..steps import Buffer, Counter, Map, Place, Step
from .columns import Table, writes
from .distribution import Access, Piece, access, can_be_distributed, pieces_of

BACK = 8  # turns from which a turn may read what they made, but for loops that are over
MOST_BYTES = 2**30  # of values that are kept for all turns


@dataclass(eq=False)
class Slot:
    """One of the values that each turn of a loop makes.

    Attributes
    ----------
    like : Buffer
        That of the first turn.
    is_stacked : bool
        Whether the values of all turns are kept.
    back : int
        How many turns later it is read.
    needed : set of int
        From how many turns before the first it is read.
    now : Buffer
        Where it lies, in the end; `before`, if it is not stacked, that of the last turn.
    """

    like: Buffer
    is_stacked: bool = False
    back: int = 0
    needed: set[int] = field(default_factory=set)
    now: Any = None
    before: Any = None

    def settle(self, turns: int) -> int:
        """Make its memory; returns the bytes."""
        dtype, size = self.like.dtype, self.like.size
        self.is_stacked |= self.back > 1
        self.now = Buffer(dtype, size * (turns + self.back) if self.is_stacked else size)
        if self.back and not self.is_stacked:
            self.before = Buffer(dtype, size)
        return int(self.now.size * dtype.itemsize)

    def at(self, place: Place, turn: int, counter: Counter | None = None, by: int = 0) -> Place:
        """A place in the value of a turn, as it lies now; within a loop, of a turn that grows by `by` with the turns of that."""
        if not self.is_stacked:
            return Place(self.now, place.offset, place.shape, place.strides, place.moves)
        size = self.like.size
        offset = place.offset + (turn + self.back) * size
        return moving(Place(self.now, offset, place.shape, place.strides, place.moves), counter, by * size)


def moving(place: Place, counter: Counter | None, by: int) -> Place:
    """A place that moves by so many elements more with the turns of a loop."""
    if counter is None or not by:
        return place
    moves = dict(place.moves)
    moves[counter] = moves.get(counter, 0) + by
    return Place(place.buffer, place.offset, place.shape, place.strides, tuple(moves.items()))


class Turns:
    """A run of turns.

    Parameters
    ----------
    table : Table
        The rows of all steps.
    run : Run
        Which of them are turns of it.

    Attributes
    ----------
    first, many : int
        The number of the first buffer that the first turn makes, and how many each makes.
    slots : list of Slot
        What each turn makes.
    pieces : list of Piece
        What is done for all turns before what.
    """

    pieces: list[Piece]

    def __init__(self, table: Table, run: Run) -> None:
        self.table, self.run = table, run
        self.first = int(table.made[run.start])
        self.many = int(table.made[run.start + run.period]) - self.first
        self.slots = [Slot(buffer) for buffer in table.buffers[self.first : self.first + self.many]]

    def reads(self) -> list[tuple[int, int, int, int, bool]]:
        """For each place of a turn: row, column, number of its buffer at first, growth of that number, whether it is written."""
        found, table, run = [], self.table, self.run
        for row in range(run.start, run.start + run.period):
            written = writes(table.steps[row])
            for column, value in enumerate(table.columns[row]):
                if isinstance(value, Place):
                    number = int(table.numbers[row, 2 * column])
                    change = int(table.numbers[row + run.period, 2 * column]) - number
                    found.append((row, column, number, change, written[column]))
        return found

    def distribute(self, many: int) -> None:
        """Find the pieces, and the values that one piece makes and another reads, for so many turns."""
        steps = self.table.steps[self.run.start : self.run.start + self.run.period]
        rows = range(self.run.start, self.run.start + self.run.period)
        if not can_be_distributed(steps):
            self.pieces = [Piece(list(rows), is_vector=False)]
            return
        touched: dict[Any, list[Access]] = defaultdict(list)
        for row, column, number, change, is_written in self.reads():
            place, by = self.table.columns[row][column], self._growth(row, column)
            if number >= self.first - BACK * self.many and (change == self.many or (not change and self.makes(number))):
                slot, turn = self.where(number)
                size, position = slot.like.size, (number - self.first) % self.many
                touched[position, "made"].append(access(row, place, turn * size, by + size * bool(change), is_written))
            elif not change and number >= 0:
                touched[number].append(access(row, place, 0, by, is_written))
        self.pieces = pieces_of(rows, touched, many)
        home = {row: piece for piece in self.pieces for row in piece.rows}
        for key, accesses in touched.items():
            if isinstance(key, tuple):
                homes = [home[a.row] for a in accesses]
                self.slots[key[0]].is_stacked |= any(h.is_vector or h is not homes[0] for h in homes)

    def makes(self, number: int) -> bool:
        """Whether a turn makes a buffer."""
        return self.first <= number < self.first + self.many * self.run.turns

    def _growth(self, row: int, column: int) -> int:
        """By how much the offset of a place grows with each turn."""
        numbers, later = self.table.numbers[row], self.table.numbers[row + self.run.period]
        return int(later[2 * column + 1] - numbers[2 * column + 1])

    def back(self, number: int, change: int) -> int | None:
        """From how many turns before a value comes that this run makes; None if it does not make it, or long before."""
        if not change or change != self.many or not self.first - BACK * self.many <= number < self.first + self.many:
            return None
        return -((number - self.first) // self.many)

    def where(self, number: int) -> tuple[Slot, int]:
        """The slot of a buffer that a turn makes, and which turn."""
        turn, slot = divmod(number - self.first, self.many)
        return self.slots[slot], turn

    def in_loop(self, within: Within, counter: Counter, row: int, column: int) -> Place:
        """A place of a turn, within the loop."""
        numbers, later = self.table.numbers[row], self.table.numbers[row + self.run.period]
        number, change = int(numbers[2 * column]), int(later[2 * column] - numbers[2 * column])
        place = moving(self.table.columns[row][column], counter, self._growth(row, column))
        back = self.back(number, change)
        if back is not None:
            slot = self.slots[(number - self.first) % self.many]
            if back and not slot.is_stacked:
                return Place(slot.before, place.offset, place.shape, place.strides, place.moves)
            return slot.at(place, -back, counter, 1)
        if not change:
            return within.lying(place, number)
        other = within.owner(number)
        assert other is not None
        slot, turn = other.where(number)
        return slot.at(place, turn, counter, change // other.many)

    def before(self, within: Within) -> list[Step]:
        """What must be copied before the first turn: values of earlier steps that it reads as those of turns before it."""
        steps: list[Step] = []
        for position, slot in enumerate(self.slots):
            for back in sorted(slot.needed):
                number = self.first + position - back * self.many
                source = within.lying(_whole(self.table.buffers[number]), number)
                steps.append(_copy(source, _whole(slot.before) if slot.before is not None else slot.at(_whole(slot.like), -back)))
        return steps

    def after(self) -> list[Map]:
        """What must be copied at the end of a turn, for the next."""
        return [_copy(_whole(slot.now), _whole(slot.before)) for slot in self.slots if slot.before is not None]


class Within:
    """All runs of a table.

    Parameters
    ----------
    table : Table
        The rows of all steps.
    longest : int
        Of runs that stand for longer ones, how many turns those have at most.

    Attributes
    ----------
    all : list of Turns
        In order.
    """

    def __init__(self, table: Table, longest: int = 0) -> None:
        self.table, self._longest = table, longest
        self.all: list[Turns] = []
        self._owner = np.full(len(table.buffers), -1)  # which of them makes a buffer

    def owner(self, number: int) -> Turns | None:
        """The run of which a turn makes a buffer."""
        place = int(self._owner[number]) if number >= 0 else -1
        return self.all[place] if place >= 0 else None

    def enter(self, run: Run) -> None:
        """Take a run, or the longest part of it of which all turns read from places that move evenly."""
        while run.turns >= LEAST_TURNS:
            turns = Turns(self.table, run)
            fitting = self._fitting(turns)
            if fitting.all():
                self._owner[turns.first : turns.first + turns.many * run.turns] = len(self.all)
                self.all.append(turns)
                turns.distribute(max(run.turns, self._longest))
                return
            edges = np.flatnonzero(np.diff(np.concatenate(([0], fitting.view(np.int8), [0]))))
            parts = list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
            start, stop = max(parts, key=lambda part: part[1] - part[0], default=(0, 0))
            run = Run(run.start + start * run.period, run.period, stop - start)

    def _fitting(self, turns: Turns) -> Any:
        """Which turns of a run may be turns of a loop."""
        count, reads = turns.run.turns, turns.reads()
        fitting = np.ones(count, bool)
        written = {number for _, _, number, change, is_written in reads if is_written and not change}
        for _, _, number, change, is_written in reads:
            if number < 0 or not change:
                continue
            back = turns.back(number, change)
            if is_written and back != 0:
                return np.zeros(count, bool)
            if back is None:
                fitting &= self._evenly(number + change * np.arange(count))
            elif not written.isdisjoint(range(number, number + change * back, change)):  # what is copied beforehand is written
                fitting[:back] = False
        return fitting

    def _evenly(self, numbers: Any) -> Any:
        """Which of some buffers are one value of turns of one loop."""
        is_known = (numbers >= 0) & (numbers < len(self._owner))
        owners = np.where(is_known, self._owner[np.where(is_known, numbers, 0)], -1)
        chosen = int(np.bincount(owners + 1, minlength=1)[1:].argmax()) if (owners >= 0).any() else -1
        if chosen < 0 or (numbers[1] - numbers[0]) % self.all[chosen].many:
            return np.zeros(len(numbers), bool)
        return owners == chosen

    def settle(self) -> bool:
        """Find out which values have to be kept, and make their memory; whether there is enough for it."""
        inside = np.zeros(len(self.table.steps), bool)
        for turns in self.all:
            inside[turns.run.start : turns.run.stop] = True
        for row in np.flatnonzero(~inside):
            for column in self.table.columns[row]:
                if isinstance(column, Place):
                    self._note(self.table.number(column.buffer), None)
        for turns in self.all:
            for _, _, number, change, _ in turns.reads():
                self._note_read(turns, number, change)
        return sum(slot.settle(turns.run.turns) for turns in self.all for slot in turns.slots) <= MOST_BYTES

    def _note_read(self, turns: Turns, number: int, change: int) -> None:
        back = turns.back(number, change)
        if back is None and change:
            owner = self.owner(number)
            assert owner is not None
            owner.where(number)[0].is_stacked = True
        elif back is None:
            self._note(number, turns)
        elif back:
            position = (number - turns.first) % turns.many
            slot = turns.slots[position]
            slot.back = max(slot.back, back)
            for turn in range(min(back, turns.run.turns)):
                slot.needed.add(back - turn)
                self._note(turns.first + position - (back - turn) * turns.many, None)

    def _note(self, number: int, reader: Turns | None) -> None:
        """Note that a buffer is read outside of the loop that makes it, or always the same in it."""
        owner = self.owner(number)
        if owner is not None:
            slot, turn = owner.where(number)
            slot.is_stacked |= owner is reader or turn != owner.run.turns - 1

    def lying(self, place: Place, number: int | None = None) -> Place:
        """Where a place lies now."""
        number = self.table.number(place.buffer) if number is None else number
        owner = self.owner(number)
        if owner is None:
            return place
        slot, turn = owner.where(number)
        return slot.at(place, turn)


def _whole(buffer: Buffer) -> Place:
    return Place(buffer, 0, (buffer.size,), (1,)) if buffer.size != 1 else Place(buffer, 0, (), ())


def _copy(source: Place, out: Place) -> Map:
    return Map("copy", (source,), out, out.buffer.dtype, is_write=True)
