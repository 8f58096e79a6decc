"""Where a list repeats itself: runs of turns in each of which the same things are done, to places that move evenly.

What is found is exact, and needs no search of pairs: two equal pieces of a few items tell a distance that may be a period, and
for each such distance the whole list is compared with itself at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

LEAST_TURNS = 8  # of a run
PIECES = (1, 3, 6, 12, 24, 48, 96)  # items whose distances are taken for periods
MOST = 40  # periods that are tried


class Run(NamedTuple):
    """Turns that follow each other.

    Attributes
    ----------
    start : int
        The first item of the first turn.
    period : int
        The items of a turn.
    turns : int
        How many.
    """

    start: int
    period: int
    turns: int

    @property
    def stop(self) -> int:
        """The item after the last."""
        return self.start + self.period * self.turns


class Rows(Protocol):
    """A list of items.

    Attributes
    ----------
    kinds : (n,) array of int
        What each item is like; equal for those that may be turns of each other.
    numbers : (n, m) array of int
        Numbers that may change from turn to turn, but by the same in each.
    may_change : (n, m) array of bool
        Which numbers may change at all.
    """

    kinds: Any
    numbers: Any
    may_change: Any


def runs_of(rows: Rows, least: int) -> list[Run]:
    """The runs of at least so many items, none of which overlap, in order; of two that would the shorter period is taken."""
    taken = np.zeros(len(rows.kinds), bool)
    found: list[Run] = []
    for period in likely_periods(rows.kinds):
        for run in runs_of_period(rows, period, taken, least):
            taken[run.start : run.stop] = True
            found.append(run)
    return sorted(found)


def likely_periods(kinds: Any, most: int = MOST) -> list[int]:
    """Distances between equal pieces, the shortest first: of so many that come most often."""
    counts: dict[int, int] = {}
    for length in PIECES:
        if len(kinds) < 2 * length:
            break
        windows = np.lib.stride_tricks.sliding_window_view(kinds, length)
        weights = np.random.default_rng(0).integers(1, 2**31, length) * 2 + 1
        pieces = windows @ weights  # collisions do no harm: runs are compared exactly
        order = np.argsort(pieces, kind="stable")
        same = pieces[order][1:] == pieces[order][:-1]
        distances, times = np.unique(np.diff(order)[same], return_counts=True)
        for distance, many in zip(distances.tolist(), times.tolist(), strict=True):
            counts[distance] = max(counts.get(distance, 0), many)
    likely = sorted(counts, key=lambda distance: -counts[distance])[:most]
    return sorted(likely)


def runs_of_period(rows: Rows, period: int, taken: Any, least: int) -> Iterator[Run]:
    """The runs of one period, of at least so many items, that hold none of those that are taken."""
    kinds, numbers, may_change = rows.kinds, rows.numbers, rows.may_change
    if len(kinds) < period * LEAST_TURNS:
        return
    steps = numbers[period:] - numbers[:-period]
    alike = (kinds[period:] == kinds[:-period]) & ~taken[period:] & ~taken[:-period]
    alike &= ((steps == 0) | (may_change[period:] & may_change[:-period])).all(axis=1)
    uneven = np.flatnonzero((steps[period:] != steps[:-period]).any(axis=1))
    edges = np.flatnonzero(np.diff(np.concatenate(([0], alike.view(np.int8), [0]))))
    for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        while stop - start >= period * (LEAST_TURNS - 1):
            place = int(np.searchsorted(uneven, start))
            first = int(uneven[place]) if place < len(uneven) and uneven[place] < stop - period else None
            end = stop + period if first is None else first + 2 * period
            turns = (end - start) // period
            if turns >= LEAST_TURNS and turns * period >= least:
                yield Run(start, period, turns)
                start += turns * period
            elif first is None:
                break
            else:
                start = first + 1
