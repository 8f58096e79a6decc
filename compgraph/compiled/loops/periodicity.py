"""Detection of periodic runs: iterations with equal operations, whose indices change by constant steps.

Distances between equal windows of a few items are candidate periods. For each, the list of items is compared with itself, shifted
by the period. So each run is verified exactly, in a time of O(n log n) for n items.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

MIN_TRIP_COUNT = 8  # iterations of a run
WINDOW_LENGTHS = (1, 3, 6, 12, 24, 48, 96)  # items per window; distances of equal windows are candidate periods
MAX_PERIODS = 40  # candidate periods


class PeriodicRun(NamedTuple):
    """A run of consecutive iterations.

    Attributes
    ----------
    start : int
        The first item of the first iteration.
    period : int
        The number of items of an iteration.
    trip_count : int
        The number of iterations.
    """

    start: int
    period: int
    trip_count: int

    @property
    def stop(self) -> int:
        """The item after the last."""
        return self.start + self.period * self.trip_count


class RowTable(Protocol):
    """A list of items as a table.

    Attributes
    ----------
    kinds : (n,) array of int
        The kind of each item; equal for items that may have the same position in two iterations.
    integers : (n, m) array of int
        Integers that may change between iterations, by a constant step.
    may_change : (n, m) array of bool
        Which integers may change at all.
    """

    kinds: Any
    integers: Any
    may_change: Any


def find_runs(table: RowTable, min_items: int) -> list[PeriodicRun]:
    """Return disjoint runs of at least `min_items` items, in order; the shortest period takes precedence."""
    is_covered = np.zeros(len(table.kinds), bool)
    runs: list[PeriodicRun] = []
    for period in find_candidate_periods(table.kinds):
        for run in find_runs_of_period(table, period, is_covered, min_items):
            is_covered[run.start : run.stop] = True
            runs.append(run)
    return sorted(runs)


def find_candidate_periods(kinds: NDArray[Any], max_periods: int = MAX_PERIODS) -> list[int]:
    """Return the most frequent distances between equal windows, the shortest first."""
    counts: dict[int, int] = {}
    for length in WINDOW_LENGTHS:
        if len(kinds) < 2 * length:
            break
        windows = np.lib.stride_tricks.sliding_window_view(kinds, length)
        weights = np.random.default_rng(0).integers(1, 2**31, length) * 2 + 1
        hashes = windows @ weights  # collisions are harmless, because runs are compared exactly
        order = np.argsort(hashes, kind="stable")
        is_equal_to_previous = hashes[order][1:] == hashes[order][:-1]
        distances, occurrences = np.unique(np.diff(order)[is_equal_to_previous], return_counts=True)
        for distance, count in zip(distances.tolist(), occurrences.tolist(), strict=True):
            counts[distance] = max(counts.get(distance, 0), count)
    likely = sorted(counts, key=lambda distance: -counts[distance])[:max_periods]
    return sorted(likely)


def find_runs_of_period(table: RowTable, period: int, is_excluded: NDArray[Any], min_items: int) -> Iterator[PeriodicRun]:
    """Yield disjoint runs of one period with at least `min_items` items, none of them excluded."""
    kinds, integers, may_change = table.kinds, table.integers, table.may_change
    if len(kinds) < period * MIN_TRIP_COUNT:
        return
    steps = integers[period:] - integers[:-period]
    is_repeated = (kinds[period:] == kinds[:-period]) & ~is_excluded[period:] & ~is_excluded[:-period]
    is_repeated &= ((steps == 0) | (may_change[period:] & may_change[:-period])).all(axis=1)
    step_changes = np.flatnonzero((steps[period:] != steps[:-period]).any(axis=1))
    edges = np.flatnonzero(np.diff(np.concatenate(([0], is_repeated.view(np.int8), [0]))))
    first_free = 0  # a run ends up to a period after the first item that differs from the next iteration's
    for first_repeated, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        start = max(first_repeated, first_free)
        while stop - start >= period * (MIN_TRIP_COUNT - 1):
            index = int(np.searchsorted(step_changes, start))
            has_change = index < len(step_changes) and step_changes[index] < stop - period
            change = int(step_changes[index]) if has_change else None  # the run ends where the step changes
            end = stop + period if change is None else change + 2 * period
            trip_count = (end - start) // period
            if trip_count >= MIN_TRIP_COUNT and trip_count * period >= min_items:
                yield PeriodicRun(start, period, trip_count)
                start += trip_count * period
                first_free = start
            elif change is None:
                break
            else:
                start = change + 1
