"""The bytes that are alive, over time; their peak, and what held it."""

from __future__ import annotations

import weakref
from collections import defaultdict
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from .entries import Entry

POINTS = 2000  # of the curve that is kept, about as many as a screen has columns
FEW = 200  # points that what is read at once adds to it
SWEEPS = 1000


class Holder(NamedTuple):
    """Who held bytes at the peak."""

    operation: str
    line: str
    place: str
    scope: str
    bytes: int


class Held(weakref.ref[Any]):
    """An array that is followed. It stands in a log where it was allocated, and a second time where it was freed.

    What is called when the array dies is the log's own ``append``: a function of Python's would take longer than all the rest.

    Attributes
    ----------
    told : tuple of (Entry, float, int, int)
        Who allocated it, when, how many bytes, and the identity of the array.
    ledgers : tuple of Ledger or None
        Where it was entered; None as long as it was not.
    """

    __slots__ = ("ledgers", "told")

    told: tuple[Entry, float, int, int]
    ledgers: tuple[Ledger, ...] | None


class Ledger:
    """What was allocated and freed while one block ran.

    Attributes
    ----------
    alive, total : dict of int, int
        The bytes that are alive, of each entry and of all.
    peak, peak_at, holders : int, float, dict of int
        The most bytes that were alive at once, when, and those of each entry.
    curve : list of (float, int)
        The bytes alive over time; of neighbours the larger, if they are too many.
    sweeps : list of (float, float)
        From when to when derivatives were passed back.
    """

    def __init__(self) -> None:
        self.total = self.peak = 0
        self.peak_at = 0.0
        self.alive: defaultdict[Entry, int] = defaultdict(int)
        self.holders: dict[Entry, int] = {}
        self.curve: list[tuple[float, int]] = []
        self.sweeps: list[tuple[float, float]] = []

    def add(self, times: list[float], entries: list[Entry], sizes: list[int]) -> None:
        """Add what was allocated and freed (negative bytes), when and by whom, in order."""
        totals = self.total + np.cumsum(sizes)
        highest = int(totals.argmax())
        is_peak = bool(totals[highest] > self.peak)
        alive = self.alive
        for place, (entry, size) in enumerate(zip(entries, sizes, strict=True)):
            alive[entry] += size
            if is_peak and place == highest:
                self.peak, self.peak_at = int(totals[highest]), times[highest]
                self.holders = {e: n for e, n in alive.items() if n > 0}
        self.total = int(totals[-1])
        step = max(1, len(times) // FEW)
        starts = np.arange(0, len(times), step)
        largest = np.maximum.reduceat(totals, starts).tolist()
        self.curve += [(times[start], total) for start, total in zip(starts.tolist(), largest, strict=True)]
        self.curve = shortened([*self.curve, (times[-1], self.total)])

    def end(self, start: float, stop: float) -> None:
        """Close it, at the end of a block that ran from `start` to `stop`."""
        self.curve = [(start, 0), *self.curve, (stop, self.total)]

    def take(self, other: Ledger) -> None:
        """Add what another, that ended, has seen, as if it had begun when this one ended; times count from 0."""
        shift = (self.curve[-1][0] if self.curve else 0.0) - other.curve[0][0]
        if other.peak > self.peak:
            self.peak, self.peak_at, self.holders = other.peak, other.peak_at + shift, other.holders
        self.curve += [(at + shift, total) for at, total in other.curve]
        self.sweeps = [*self.sweeps, *[(start + shift, stop + shift) for start, stop in other.sweeps]][-SWEEPS:]
        self.curve = shortened(self.curve)

    def held(self) -> list[Holder]:
        """Who held the peak, the largest first."""
        return [
            Holder(entry.operation, entry.line, entry.place, "/".join(entry.scope), size)
            for entry, size in sorted(self.holders.items(), key=itemgetter(1), reverse=True)
        ]


def shortened(curve: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """A curve of at most about `POINTS` points: of neighbours the largest, and the last."""
    if len(curve) <= 2 * POINTS:
        return curve
    step = len(curve) // POINTS
    largest = [max(curve[place : place + step], key=itemgetter(1)) for place in range(0, len(curve), step)]
    return [*largest, curve[-1]]


def read(log: list[Held], alive: dict[int, Held], ledgers: tuple[Ledger, ...], now: float) -> None:
    """Enter what stands in a log into ledgers, and take it out of the log; `alive` are the arrays that are known."""
    count = len(log)  # arrays die in other threads, too
    chunk = log[:count]
    del log[:count]
    times: list[float] = []
    entries: list[Entry] = []
    sizes: list[int] = []
    others: list[Held] = []
    for held in chunk:
        entry, at, size, key = held.told
        if held.ledgers is None:
            held.ledgers = ledgers
            times += [at] * (len(entries) + 1 - len(times))  # that others were freed is noticed only now
        else:
            size = -size
            if alive.get(key) is held:
                del alive[key]
            if held.ledgers is not ledgers:  # it was allocated before the innermost block was entered, or in one that was left
                others.append(held)
                continue
        entries.append(entry)
        sizes.append(size)
    times += [now] * (len(entries) - len(times))
    for ledger in ledgers:
        if times:
            ledger.add(times, entries, sizes)
        freed = [held.told for held in others if held.ledgers is not None and ledger in held.ledgers]
        if freed:
            ledger.add([now] * len(freed), [entry for entry, *_ in freed], [-size for _, _, size, _ in freed])
