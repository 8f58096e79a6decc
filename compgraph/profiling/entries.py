"""The entries of a profile: operations at a line of the user's code, with their steps; and live bytes over time by entry."""

from __future__ import annotations

import os
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from operator import itemgetter
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..frames import source_lines
from ..ops import opname_of

CURVE_POINTS = 2000  # about the width of a screen in pixels
CHUNK_POINTS = 200  # points that each call of `process_log` adds to the curve
MAX_SWEEPS = 1000  # the latest sweeps that are recorded


class Holder(NamedTuple):
    """An entry with live bytes at the peak."""

    operation: str
    line: str
    place: str
    scope: str
    bytes: int


class TrackedArray(weakref.ref[Any]):
    """A weak reference to an allocated array. The log contains it twice: at the allocation, and at the release.

    The callback of the weak reference is the log's ``append``, because a Python function would dominate the overhead.

    Attributes
    ----------
    allocation : tuple of (Entry, float, int, int)
        The entry that allocated it, the time, the bytes, and the identity of the array.
    ledgers : tuple of Ledger or None
        The ledgers that count it; None before it is processed.
    """

    __slots__ = ("allocation", "ledgers")

    allocation: tuple[Entry, float, int, int]
    ledgers: tuple[Ledger, ...] | None


class Ledger:
    """The allocations of one block.

    Attributes
    ----------
    alive, total : dict of int, int
        The live bytes, by entry and in total.
    peak, peak_at, holders : int, float, dict of int
        The maximum of live bytes, its time, and the bytes of each entry at that time.
    curve : list of (float, int)
        The live bytes over time; a long curve keeps the largest of neighboring points.
    sweeps : list of (float, float)
        Start and end of each sweep.
    """

    def __init__(self) -> None:
        self.total = self.peak = 0
        self.peak_at = 0.0
        self.alive: defaultdict[Entry, int] = defaultdict(int)
        self.holders: dict[Entry, int] = {}
        self.curve: list[tuple[float, int]] = []
        self.sweeps: list[tuple[float, float]] = []

    def add(self, times: list[float], entries: list[Entry], sizes: list[int]) -> None:
        """Add allocations and releases (negative bytes) in order: their times, entries and bytes."""
        totals = self.total + np.cumsum(sizes)
        highest = int(totals.argmax())
        is_peak = bool(totals[highest] > self.peak)
        alive = self.alive
        for index, (entry, size) in enumerate(zip(entries, sizes, strict=True)):
            alive[entry] += size
            if is_peak and index == highest:
                self.peak, self.peak_at = int(totals[highest]), times[highest]
                self.holders = {e: n for e, n in alive.items() if n > 0}
        self.total = int(totals[-1])
        step = max(1, len(times) // CHUNK_POINTS)
        starts = np.arange(0, len(times), step)
        largest = np.maximum.reduceat(totals, starts).tolist()
        self.curve += [(times[start], total) for start, total in zip(starts.tolist(), largest, strict=True)]
        self.curve = downsample([*self.curve, (times[-1], self.total)])

    def end(self, start: float, stop: float) -> None:
        """Close the curve of a block that ran from `start` to `stop`."""
        self.curve = [(start, 0), *self.curve, (stop, self.total)]

    def append(self, other: Ledger) -> None:
        """Append the ledger of a later block. Times count from 0, without the time between blocks."""
        shift = (self.curve[-1][0] if self.curve else 0.0) - other.curve[0][0]
        if other.peak > self.peak:
            self.peak, self.peak_at, self.holders = other.peak, other.peak_at + shift, other.holders
        self.curve += [(time + shift, total) for time, total in other.curve]
        self.sweeps = [*self.sweeps, *[(start + shift, stop + shift) for start, stop in other.sweeps]][-MAX_SWEEPS:]
        self.curve = downsample(self.curve)

    def peak_holders(self) -> list[Holder]:
        """Return the holders of the peak, the largest first."""
        return [
            Holder(entry.operation, entry.line, entry.place, "/".join(entry.scope), size)
            for entry, size in sorted(self.holders.items(), key=itemgetter(1), reverse=True)
        ]


def downsample(curve: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Reduce a curve to about `CURVE_POINTS` points: the largest of neighbors, and the last."""
    if len(curve) <= 2 * CURVE_POINTS:
        return curve
    step = len(curve) // CURVE_POINTS
    largest = [max(curve[start : start + step], key=itemgetter(1)) for start in range(0, len(curve), step)]
    return [*largest, curve[-1]]


def process_log(log: list[TrackedArray], alive: dict[int, TrackedArray], ledgers: tuple[Ledger, ...], now: float) -> None:
    """Move the allocations and releases in a log into ledgers; `alive` are the tracked arrays."""
    count = len(log)  # other threads may append meanwhile
    chunk = log[:count]
    del log[:count]
    times: list[float] = []
    entries: list[Entry] = []
    sizes: list[int] = []
    earlier_arrays: list[TrackedArray] = []
    for tracked in chunk:
        entry, time, size, key = tracked.allocation
        if tracked.ledgers is None:
            tracked.ledgers = ledgers
            # Releases have no time of their own: they take that of the next allocation.
            times += [time] * (len(entries) + 1 - len(times))
        else:
            size = -size
            if alive.get(key) is tracked:
                del alive[key]
            if tracked.ledgers is not ledgers:  # allocated before the innermost block began, or in a block that ended
                earlier_arrays.append(tracked)
                continue
        entries.append(entry)
        sizes.append(size)
    times += [now] * (len(entries) - len(times))
    for ledger in ledgers:
        if times:
            ledger.add(times, entries, sizes)
        freed = [tracked.allocation for tracked in earlier_arrays if tracked.ledgers is not None and ledger in tracked.ledgers]
        if freed:
            ledger.add([now] * len(freed), [entry for entry, *_ in freed], [-size for _, _, size, _ in freed])


Function: TypeAlias = Callable[..., Any] | str  # an operation, or a name
Code: TypeAlias = CodeType | str | None  # of the user's line

FORWARD, BACKWARD, TANGENT, BATCHED = "forward", "backward", "tangent", "vmap"


class Entry:
    """The calls, the time and the bytes of one operation in one direction, at one line and in one scope.

    Parameters
    ----------
    direction : {"forward", "backward", "tangent", "vmap"}
        The pass: the operation itself, the cotangents of its operands, the operation with tangents, or on a batch of `vmap`.
    function : callable or str
        The recorded function, or a name.
    code, instruction : object, int
        The user's line, as nodes store it.
    scope : tuple of str
        The names of the enclosing scopes.

    Attributes
    ----------
    calls, seconds, allocated : int, float, int
        The number of calls, their time with all steps, and the bytes of the results and of copied operands.
    steps : dict of Entry
        The entries recorded within this one, by `key`.
    """

    __slots__ = ("allocated", "calls", "code", "direction", "function", "instruction", "key", "scope", "seconds", "steps")

    def __init__(self, direction: str, function: Function, code: Code, instruction: int, scope: tuple[str, ...]) -> None:
        self.direction, self.function, self.code, self.instruction, self.scope = direction, function, code, instruction, scope
        self.key = (direction, function, id(code), instruction, scope)  # hashing a code object is slow
        self.calls, self.seconds, self.allocated = 0, 0.0, 0
        self.steps: dict[Any, Entry] = {}

    def step(self, direction: str, function: Function, code: Code, instruction: int, scope: tuple[str, ...]) -> Entry:
        """Return the entry of a step, which is added if needed."""
        key = (direction, function, id(code), instruction, scope)
        step = self.steps.get(key)
        if step is None:
            step = self.steps[key] = Entry(direction, function, code, instruction, scope)
        return step

    def merge(self, other: Entry) -> None:
        """Add the steps of another entry. Steps of a derivative get its line and scope."""
        queue = [(self, other)]
        for target, source in queue:
            for step in source.steps.values():
                location = step if target.direction is FORWARD else target
                own_step = target.step(step.direction, step.function, location.code, location.instruction, location.scope)
                own_step.calls += step.calls
                own_step.seconds += step.seconds
                own_step.allocated += step.allocated
                queue.append((own_step, step))

    @property
    def own(self) -> float:
        """The time without the steps, in seconds."""
        return max(0.0, self.seconds - sum(step.seconds for step in self.steps.values()))

    @property
    def operation(self) -> str:
        """The name of the operation, with its direction."""
        name = self.function if isinstance(self.function, str) else opname_of(self.function)
        return name if self.direction == FORWARD else f"{name} ({self.direction})"

    @property
    def line(self) -> str:
        """File and line, as ``model.py:12``; empty if unknown."""
        if self.code is None:
            return ""
        if isinstance(self.code, str):  # text, in a graph that was loaded
            return self.code.partition(", in ")[0].removeprefix("File ").replace('"', "").replace(", line ", ":")
        return f"{os.path.basename(self.code.co_filename)}:{source_lines.line_number(self.code, self.instruction)}"

    @property
    def full_line(self) -> str:
        """File and line with the full path."""
        if self.code is None or isinstance(self.code, str):
            return self.line
        return f"{self.code.co_filename}:{source_lines.line_number(self.code, self.instruction)}"

    @property
    def place(self) -> str:
        """File, line, function and text of the user's line; empty if unknown."""
        return source_lines.format_line(self.code, self.instruction) or ""

    def walk(self) -> Iterator[tuple[Entry, tuple[Entry, ...]]]:
        """Yield all entries within this one, each with the enclosing ones, the outermost first."""
        queue: list[tuple[Entry, tuple[Entry, ...]]] = [(step, ()) for step in self.steps.values()]
        for entry, outer in queue:
            yield entry, outer
            queue.extend([(step, (*outer, entry)) for step in entry.steps.values()])


def root_entry() -> Entry:
    """Return an entry to contain all others."""
    return Entry(FORWARD, "", None, 0, ())
