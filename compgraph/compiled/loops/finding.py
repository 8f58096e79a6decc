"""Which loops of a graph can be cut to a few turns: those whose turns read nothing but what is near, or always the same."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...storage import Write
from .periods import Run, likely_periods, runs_of_period
from .rows import Rows

SAMPLE, SAMPLES = 8192, 8  # rows in which periods are looked for, and how many such pieces of a long table
PERIODS = 12  # that are tried
LOOPS = 4  # that are cut
FEWEST, SMALLEST = 32, 600  # turns, and rows, that are left of a loop
STEP = 12  # turns that are left out at once, since a loop of few of them may be found to do several in each of its own
SAVED = 3  # how many times as many turns a loop must have


class Cut(NamedTuple):
    """A loop that can be cut.

    Attributes
    ----------
    run : Run
        Its turns.
    least : int
        How many have to be left.
    """

    run: Run
    least: int

    @property
    def saved(self) -> int:
        """How many rows are left out."""
        return (self.run.turns - self.least) * self.run.period


def cuts_of(rows: Rows) -> list[Cut]:
    """The loops of a table that are worth to be cut, in order; none if little of it lies in such loops."""
    size = len(rows.items)
    found: list[Cut] = []
    for period in _periods(rows.kinds):
        for run in runs_of_period(rows, period, np.zeros(size, bool), SMALLEST):
            cut = _cut(rows, run)
            if cut is not None:
                found.append(cut)
        if sum(cut.saved for cut in found) > 0.9 * size:
            break
    chosen: list[Cut] = []
    for cut in sorted(found, key=lambda cut: -cut.saved):
        if all(cut.run.stop <= other.run.start or other.run.stop <= cut.run.start for other in chosen):
            chosen.append(cut)
    chosen = sorted(chosen[:LOOPS], key=lambda cut: cut.run.start)
    if 2 * sum(cut.saved for cut in chosen) < size or not _reads_ends(rows, chosen):
        return []
    return chosen


def _periods(kinds: Any) -> list[int]:
    """Lengths that turns may have, the shortest first."""
    if len(kinds) <= 2 * SAMPLE:
        return likely_periods(kinds, PERIODS)
    starts = np.linspace(0, len(kinds) - SAMPLE, SAMPLES).astype(int).tolist()
    found = {period for start in starts for period in likely_periods(kinds[start : start + SAMPLE], PERIODS // 2)}
    return sorted(found)[: 4 * PERIODS]


def _cut(rows: Rows, run: Run) -> Cut | None:
    """A run as a loop that can be cut; None if its turns read what other turns of it, or of others, made long before."""
    turn = slice(run.start, run.start + run.period)
    numbers, counts = rows.numbers[turn], rows.operands[turn]
    change = rows.numbers[run.start + run.period : run.start + 2 * run.period] - numbers
    is_operand = np.arange(numbers.shape[1]) < counts[:, None]
    if (is_operand & (change != 0) & (change != run.period)).any():
        return None
    behind = np.arange(run.start, run.start + run.period)[:, None] - numbers
    back = int((behind[is_operand & (change == run.period)] // run.period + 1).max(initial=1))
    fixed = numbers[is_operand & (change == 0)]
    ahead = int(((fixed - run.start) // run.period + 1).max(initial=0))  # turns of its own that all later ones read
    back = max(back, _back_in_memory(rows, run, change))
    least = max(FEWEST, 2 * max(back, ahead) + 8, -(-SMALLEST // run.period))
    least += (run.turns - least) % STEP
    return Cut(run, least) if run.turns >= SAVED * least else None


def _back_in_memory(rows: Rows, run: Run, change: Any) -> int:
    """From how many turns before, or after, a turn touches an element of an array that is written into."""
    touched: dict[int, list[tuple[Any, Any]]] = {}
    roots = {int(rows.numbers[row, 0]) for row in range(run.start, run.start + run.period) if type(rows.items[row]) is Write}
    for row in range(run.start, run.start + run.period):
        first, count, operands = int(rows.numbers[row, 0]), int(rows.counts[row]), int(rows.operands[row])
        if count > operands and first in roots:
            place = slice(operands, count)
            touched.setdefault(first, []).append((rows.numbers[row, place], change[row - run.start, place]))
    most = 1
    for accesses in touched.values():
        for numbers, by in accesses:
            for others, also in accesses:
                for a, b, g, h in zip(numbers, others, by, also, strict=False):
                    if g == h != 0:
                        most = max(most, int(abs(a - b) // abs(g)) + 1)
    return most


def _reads_ends(rows: Rows, cuts: list[Cut]) -> bool:
    """Whether all that is left reads only of the first and of the last turns that are left of a loop, and writes into neither."""
    size = len(rows.items)
    for cut in cuts:
        run = cut.run
        half = (cut.least // 2) * run.period
        first, last = run.start + half, run.stop - half
        outside = np.ones(size, bool)
        outside[run.start : run.stop] = False
        for other in cuts:
            if other is not cut:  # its turns read the same in all of them, or what lies near
                outside[other.run.start + 2 * other.run.period : other.run.stop] = False
        is_operand = np.arange(rows.numbers.shape[1]) < rows.operands[:, None]
        read = rows.numbers[outside]
        if (is_operand[outside] & (read >= first) & (read < last)).any():
            return False
        for row in np.flatnonzero(outside).tolist():
            if type(rows.items[row]) is Write and run.start <= rows.numbers[row, 0] < run.stop:
                return False
    return True
