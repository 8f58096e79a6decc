"""A trace whose loops have fewer turns, so that passes through it and its compilation take moments.

A function is called once, with all its turns. Where turns repeat exactly (`rows`, `finding`), what it returned is recorded again
with the first few turns alone, and what comes after them reads of the last that is left what it read of the last. Nothing later
knows of this. Numbers that change from turn to turn are read from tables, so that nothing is computed of them beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ...bind import bind
from ...context import Setting, collector, trace_guards
from ...executor import needed, replay
from ...guards import guards_among, is_length_guard
from ...ops import getitem
from ...storage import Write
from ...trees import flatten, unflatten
from ...values import ArgumentNode, MultiOutput, Value, new_leaf, next_sequence_number
from ..results import as_result
from .finding import STEP, Cut, cuts_of
from .rows import ARITHMETIC, Rows

FEWEST = 3000  # items of a graph: others are compiled as fast as they are
EXACT = 2**53  # whole numbers up to this are floating numbers


class NotAlikeError(Exception):
    """What is found with a few turns is not what all turns give."""


class Shortening:
    """What calls the functions that operators are given while a function is traced, and shortens what they return.

    Attributes
    ----------
    has_failed : bool
        Whether an error was raised, which the function may have caught.
    """

    def __init__(self) -> None:
        self.has_failed = False
        self._cuts: list[CutGraph | None] = []  # of each call, in the order in which they begin
        self._number = 0
        self._turns: tuple[int, ...] | None = None  # of all loops, once they are found

    @property
    def loops(self) -> list[Cut]:
        """All loops that are cut."""
        return [cut for graph in self._cuts if graph is not None for cut in graph.cuts]

    @property
    def least(self) -> tuple[int, ...]:
        """The turns that are left of each loop in the first trace."""
        return tuple([cut.least for cut in self.loops])

    @property
    def wanted(self) -> tuple[int, ...]:
        """The turns that each loop has."""
        return tuple([cut.run.turns for cut in self.loops])

    def further(self) -> list[tuple[int, ...]]:
        """Turns for further traces: some more of each loop, and by what it can be seen that all grow evenly with them."""
        least = self.least
        more = [tuple([n + STEP * (k == place) for k, n in enumerate(least)]) for place in range(len(least))]
        return [*more, tuple([n + STEP * (2 + k) for k, n in enumerate(least)])]

    @property
    def tables(self) -> list[Any]:
        """Input nodes over the numbers that change from turn to turn."""
        return [table for graph in self._cuts if graph is not None for table in graph.tables]

    def begin_again(self, turns: Sequence[int]) -> None:
        """Have the next trace do so many turns of each loop, and call nothing that was cut."""
        self._turns, self._number = tuple(turns), 0

    def __call__(self, f: Callable[..., Any], args: Sequence[Any]) -> Any:
        """What ``f(*args)`` gives, of a graph that may be shorter."""
        number = self._number
        self._number += 1
        if self._turns is not None:
            if number >= len(self._cuts):
                self.has_failed = True
                raise NotAlikeError
            graph = self._cuts[number]
            return f(*args) if graph is None else graph.again(self._turns_of(number, self._turns), args)
        self._cuts.append(None)
        since = next_sequence_number()
        result = f(*args)
        if self._number > number + 1:  # what was called within has been shortened itself
            return result
        try:
            graph = self._cuts[number] = cut_graph(result, args, since)
            return result if graph is None else graph.again([cut.least for cut in graph.cuts], args)
        except Exception as error:
            self.has_failed = True
            raise NotAlikeError from error

    def _turns_of(self, number: int, turns: Sequence[int]) -> Sequence[int]:
        """The turns of the loops of one call, among those of all."""
        counts = [len(graph.cuts) if graph is not None else 0 for graph in self._cuts[: number + 1]]
        return turns[sum(counts[:-1]) : sum(counts)]


def cut_graph(result: Any, args: Sequence[Any], since: float) -> CutGraph | None:
    """What a function returned, as a graph of which loops are cut; None if there is none, or it is not known to be safe."""
    leaves, structure = flatten(result)
    leaves = [as_result(value) if not isinstance(value, Value) else value for value in leaves]
    ends = [value for value in leaves if isinstance(value, Value)]
    if not ends or any(value.trace_kind for value in (*ends, *(a for a in args if isinstance(a, Value)))):
        return None
    given = frozenset([a for a in args if isinstance(a, Value)])
    items = needed(ends, stop=given)
    if len(items) < FEWEST or _hangs_on_values(items, given, since):
        return None
    items.sort(key=_tick)
    rows = Rows(items, given)
    cuts = cuts_of(rows)
    if not cuts:
        return None
    made = CutGraph(rows, cuts, leaves, structure, args)
    if not made.is_known:
        return None
    if (collected := collector.get()) is not None:
        collected.forget(since)
    return made


def _tick(item: Any) -> float:
    return float(item.sequence_number)


def _hangs_on_values(items: list[Any], given: Collection[Any], since: float) -> bool:
    """Whether Python was told of values, or the graph goes on beyond the call."""
    if any(item.sequence_number < since and item.args and item not in given for item in items):
        return True
    if any(getattr(item, "origin", None) is not None for item in items):  # nodes with an origin, which would be computed again
        return True
    collected = collector.get()
    if collected is not None and not collected.all_among(items, since):  # all turns warn or raise of what nobody uses
        return True
    guards, escaped = guards_among(trace_guards.get() or (), items)
    return bool(escaped) or not all(map(is_length_guard, guards))  # a program is of one shape


class CutGraph:
    """A graph, and which of its loops are cut.

    Parameters
    ----------
    rows : Rows
        Its items.
    cuts : list of Cut
        Its loops.
    leaves, structure : list, object
        What the function returned.
    args : sequence
        What it was called with.

    Attributes
    ----------
    tables : list of Node
        Numbers that change from turn to turn.
    is_known : bool
        Whether all such numbers could be entered into tables.
    """

    def __init__(self, rows: Rows, cuts: list[Cut], leaves: list[Any], structure: Any, args: Sequence[Any]) -> None:
        self._rows, self.cuts, self._leaves, self._structure, self._args = rows, cuts, leaves, structure, args
        self.tables: list[Any] = []
        self._tabled: dict[tuple[int, int], Any] = {}  # by the row in the first turn, and the position of the operand
        self.is_known = all(map(self._entered, cuts)) and self._gives_ends()

    def _gives_ends(self) -> bool:
        """Whether what is returned is not of turns that lie between the first and the last ones."""
        for value in self._leaves:
            row = self._rows.place[value] if isinstance(value, Value) else 0
            for run, least in self.cuts:
                half = (least // 2) * run.period
                if run.start + half <= row < run.stop - half:
                    return False
        return True

    def _entered(self, cut: Cut) -> bool:
        """Enter the numbers of a loop that change from turn to turn; whether that could be done."""
        run, items = cut.run, self._rows.items
        for row in range(run.start, run.start + run.period):
            item = items[row]
            if type(item) is Write or item.function not in ARITHMETIC:
                continue
            for position, first in enumerate(item.args):
                if position in item.parent_argnums or isinstance(first, np.ndarray):
                    continue
                values = [other.args[position] for other in items[row : run.stop : run.period]]
                if type(first) is int and max(map(abs, values)) > EXACT:
                    return False
                numbers = np.array(values, np.float64)
                if numbers.tobytes() == numbers[:1].tobytes() * len(numbers):
                    continue
                is_weak = type(first) in (int, float)
                dtype = item.raw_value.dtype if is_weak else first.dtype
                if dtype.kind != "f":
                    return False
                self._tabled[row, position] = table = new_leaf(numbers.astype(dtype), ArgumentNode, None)
                self.tables.append(table)
        return True

    def again(self, turns: Sequence[int], args: Sequence[Any]) -> Any:
        """What the function returned, recorded with other arguments and so many turns of each loop."""
        kept, moved = self._kept(turns)
        items, place = self._rows.items, self._rows.place
        tabled = {
            (items[row + turn * run.period], position): (table, turn)
            for (run, _), many in zip(self.cuts, turns, strict=True)
            for (row, position), table in self._tabled.items()
            if run.start <= row < run.start + run.period
            for turn in range(many)
        }

        def lying(value: Any) -> Any:
            row = place[value]  # all that is read is an item, and so is what stands for an argument
            shift = next((shift for start, stop, shift in moved if start <= row < stop), 0)
            return items[row - shift]

        def reading(item: Any, position: int, made: Mapping[Any, Any]) -> Any:
            operand = item.args[position]
            if isinstance(operand, (Value, MultiOutput)):
                return made[lying(operand)]
            found = tabled.get((item, position))
            return None if found is None else bind(getitem, found)

        instead = {a: b for a, b in zip(self._args, args, strict=True) if isinstance(a, Value)}
        with Setting({collector: None}):  # `cut_graph` has looked at all turns
            made = replay([items[row] for row in kept], {}, instead, reading)
        leaves = [made[lying(value)] if isinstance(value, Value) else value for value in self._leaves]
        return unflatten(self._structure, leaves)

    def _kept(self, turns: Sequence[int]) -> tuple[list[int], list[tuple[int, int, int]]]:
        """The rows that are left; and from where to where others are left out, and how far before them what stands for them."""
        kept, moved, begin = list[int](), [], 0
        for (run, _), many in zip(self.cuts, turns, strict=True):
            end = run.start + many * run.period
            kept += range(begin, end)
            moved.append((end, run.stop, (run.turns - many) * run.period))
            begin = run.stop
        return kept + list(range(begin, len(self._rows.items))), moved
