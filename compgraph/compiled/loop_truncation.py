"""Loop truncation: traces with fewer iterations of their Python loops, to make passes and compilation fast.

The function is called once with all iterations. Where iterations repeat exactly (see `loop_periodicity`), its graph is
recorded again with only the first few iterations. Operations after the loop then read the last remaining iteration. Later
stages are not aware of the truncation. Constants that differ between iterations are read from tables, so they are not folded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bind import bind
from ..context import Setting, collector, trace_guards
from ..executor import collect_dependencies, retrace_graph
from ..guards import is_length_guard, select_guards
from ..ops import getitem
from ..storage import Write
from ..trees import flatten, unflatten
from ..values import ArgumentNode, MultiOutput, Value, new_leaf, next_sequence_number
from .loop_periodicity import ARITHMETIC, GraphTable, UnrolledLoop, find_candidate_periods, find_unrolled_loops_of_period
from .result_trees import result_leaf

MIN_GRAPH_SIZE = 3000  # items; smaller graphs compile fast enough
MAX_EXACT_INTEGER = 2**53  # larger integers are not exact as floats
SAMPLE_SIZE, SAMPLE_COUNT = 8192, 8  # rows of a sample in which periods are detected, and number of samples of a long table
MAX_PERIODS = 12  # candidate periods
MAX_LOOPS = 4  # truncated loops of one graph
MIN_ITERATIONS, MIN_ROWS = 32, 600  # remaining iterations and rows of a truncated loop
TRIP_COUNT_STEP = 12  # iterations by which trip counts differ: rerolling may merge several iterations into one
MIN_SAVING = 3  # minimal ratio of a loop's trip count to the truncated one


class LoopMismatchError(Exception):
    """A trace with truncated loops possibly differs from the full loops."""


class LoopTruncation:
    """Calls the functions passed to operators during a trace, and truncates the loops in their results.

    Attributes
    ----------
    has_failed : bool
        Whether a `LoopMismatchError` was raised, which the function may have caught.
    """

    def __init__(self) -> None:
        self.has_failed = False
        self._graphs: list[TruncatedGraph | None] = []  # by call, in the order in which they started
        self._call_number = 0
        self._trip_counts: tuple[int, ...] | None = None  # trip counts of all loops, once they are detected

    @property
    def loops(self) -> list[TruncatedLoop]:
        """All truncated loops."""
        return [loop for graph in self._graphs if graph is not None for loop in graph.loops]

    @property
    def min_trip_counts(self) -> tuple[int, ...]:
        """The trip count of each loop in the first trace."""
        return tuple([loop.min_trip_count for loop in self.loops])

    @property
    def trip_counts(self) -> tuple[int, ...]:
        """The original trip count of each loop."""
        return tuple([loop.unrolled.trip_count for loop in self.loops])

    def further_trip_counts(self) -> list[tuple[int, ...]]:
        """Return the trip counts of further traces: one per loop measures its growth, the last verifies the extrapolation."""
        min_counts = self.min_trip_counts
        one_loop_longer = [
            tuple([n + TRIP_COUNT_STEP * (k == position) for k, n in enumerate(min_counts)])
            for position in range(len(min_counts))
        ]
        return [*one_loop_longer, tuple([n + TRIP_COUNT_STEP * (2 + k) for k, n in enumerate(min_counts)])]

    @property
    def tables(self) -> list[Any]:
        """Input nodes with the constants that differ between iterations."""
        return [table for graph in self._graphs if graph is not None for table in graph.tables]

    def restart(self, counts_by_loop: Sequence[int]) -> None:
        """Use these trip counts in the next trace, which does not call the truncated functions."""
        self._trip_counts, self._call_number = tuple(counts_by_loop), 0

    def __call__(self, f: Callable[..., Any], args: Sequence[Any]) -> Any:
        """Call ``f(*args)``, and return its result with truncated loops."""
        number = self._call_number
        self._call_number += 1
        if self._trip_counts is not None:
            if number >= len(self._graphs):
                self.has_failed = True
                raise LoopMismatchError
            graph = self._graphs[number]
            return f(*args) if graph is None else graph.rerecord(self._trip_counts_of(number, self._trip_counts), args)
        self._graphs.append(None)
        since = next_sequence_number()
        result = f(*args)
        if self._call_number > number + 1:  # a nested call handled its own loops
            return result
        try:
            graph = self._graphs[number] = truncate_graph(result, args, since)
            return result if graph is None else graph.rerecord([loop.min_trip_count for loop in graph.loops], args)
        except Exception as error:
            self.has_failed = True
            raise LoopMismatchError from error

    def _trip_counts_of(self, number: int, counts_by_loop: Sequence[int]) -> Sequence[int]:
        """Return the trip counts of the loops of one call, a slice of `counts_by_loop`."""
        counts = [len(graph.loops) if graph is not None else 0 for graph in self._graphs[: number + 1]]
        return counts_by_loop[sum(counts[:-1]) : sum(counts)]


def truncate_graph(result: object, args: Sequence[Any], since: float) -> TruncatedGraph | None:
    """Detect the loops in the result of a function; return None without loops, or if truncation may be unsafe."""
    leaves, structure = flatten(result)
    leaves = [result_leaf(value) if not isinstance(value, Value) else value for value in leaves]
    ends = [value for value in leaves if isinstance(value, Value)]
    if not ends or any(value.trace_kind for value in (*ends, *(a for a in args if isinstance(a, Value)))):
        return None
    argument_nodes = frozenset([a for a in args if isinstance(a, Value)])
    items = collect_dependencies(ends, stop=argument_nodes)
    if len(items) < MIN_GRAPH_SIZE or _depends_on_values(items, argument_nodes, since):
        return None
    items.sort(key=_sequence_number)
    table = GraphTable(items, argument_nodes)
    loops = find_loops(table)
    if not loops:
        return None
    truncated_graph = TruncatedGraph(table, loops, leaves, structure, args)
    if not truncated_graph.is_valid:
        return None
    if (unused_results := collector.get()) is not None:
        unused_results.discard_since(since)
    return truncated_graph


def _sequence_number(item: Any) -> float:
    return float(item.sequence_number)


def _depends_on_values(items: list[Any], argument_nodes: Collection[Any], since: float) -> bool:
    """Return whether Python branched on values, or the graph extends beyond the call."""
    if any(item.sequence_number < since and item.args and item not in argument_nodes for item in items):
        return True
    if any(getattr(item, "origin", None) is not None for item in items):  # nodes with an origin would be recomputed
        return True
    unused_results = collector.get()
    if unused_results is not None and not unused_results.are_all_in(items, since):  # they may warn or raise in each iteration
        return True
    guards, unchecked = select_guards(trace_guards.get() or (), items)
    return bool(unchecked) or not all(map(is_length_guard, guards))  # a program has fixed shapes


class TruncatedGraph:
    """A graph with truncated loops.

    Parameters
    ----------
    table : GraphTable
        Its items.
    loops : list of TruncatedLoop
        Its loops.
    leaves, structure : list, object
        The result of the function.
    args : sequence
        Its arguments.

    Attributes
    ----------
    tables : list of Node
        Constants that differ between iterations.
    is_valid : bool
        Whether these constants fit into tables, and the result depends only on the first and last iterations of loops.
    """

    def __init__(
        self, table: GraphTable, loops: list[TruncatedLoop], leaves: list[Any], structure: object, args: Sequence[Any]
    ) -> None:
        self._table, self.loops, self._leaves, self._structure, self._args = table, loops, leaves, structure, args
        self.tables: list[Any] = []
        self._tables_by_operand: dict[tuple[int, int], Any] = {}  # by row in the first iteration, and operand position
        self.is_valid = all(map(self._tabulate_constants, loops)) and self._returns_only_ends()

    def _returns_only_ends(self) -> bool:
        """Return whether the results depend only on the first and last iterations of each loop."""
        for value in self._leaves:
            row = self._table.row_of[value] if isinstance(value, Value) else 0
            for unrolled, min_trip_count in self.loops:
                half = (min_trip_count // 2) * unrolled.period
                if unrolled.start + half <= row < unrolled.stop - half:
                    return False
        return True

    def _tabulate_constants(self, loop: TruncatedLoop) -> bool:
        """Put constants that differ between the iterations of a loop into tables; return whether this is possible."""
        unrolled, items = loop.unrolled, self._table.items
        for row in range(unrolled.start, unrolled.start + unrolled.period):
            item = items[row]
            if type(item) is Write or item.function not in ARITHMETIC:
                continue
            for position, first in enumerate(item.args):
                if position in item.parent_argnums or isinstance(first, np.ndarray):
                    continue
                values = [other.args[position] for other in items[row : unrolled.stop : unrolled.period]]
                if type(first) is int and max(map(abs, values)) > MAX_EXACT_INTEGER:
                    return False
                numbers = np.array(values, np.float64)
                if numbers.tobytes() == numbers[:1].tobytes() * len(numbers):
                    continue
                is_weak = type(first) in (int, float)
                dtype = item.raw_value.dtype if is_weak else first.dtype
                if dtype.kind != "f":
                    return False
                self._tables_by_operand[row, position] = table = new_leaf(numbers.astype(dtype), ArgumentNode, None)
                self.tables.append(table)
        return True

    def rerecord(self, counts_by_loop: Sequence[int], args: Sequence[Any]) -> Any:
        """Record the function's result again, with other arguments and trip counts."""
        remaining, removed_ranges = self._remaining_rows(counts_by_loop)
        items, rows_by_item = self._table.items, self._table.row_of
        table_entries = {
            (items[row + iteration * unrolled.period], position): (table, iteration)
            for (unrolled, _), trip_count in zip(self.loops, counts_by_loop, strict=True)
            for (row, position), table in self._tables_by_operand.items()
            if unrolled.start <= row < unrolled.start + unrolled.period
            for iteration in range(trip_count)
        }

        def remaining_item(value: object) -> Any:
            row = rows_by_item[value]  # operands and argument tracers are items
            shift = next((shift for start, stop, shift in removed_ranges if start <= row < stop), 0)
            return items[row - shift]

        def read_operand(item: Any, position: int, new_nodes: Mapping[Any, Any]) -> Any:
            operand = item.args[position]
            if isinstance(operand, (Value, MultiOutput)):
                return new_nodes[remaining_item(operand)]
            table_entry = table_entries.get((item, position))
            return None if table_entry is None else bind(getitem, table_entry)

        substitutions = {a: b for a, b in zip(self._args, args, strict=True) if isinstance(a, Value)}
        with Setting({collector: None}):  # `truncate_graph` has checked all iterations
            new_nodes = retrace_graph([items[row] for row in remaining], {}, substitutions, read_operand)
        leaves = [new_nodes[remaining_item(value)] if isinstance(value, Value) else value for value in self._leaves]
        return unflatten(self._structure, leaves)

    def _remaining_rows(self, counts_by_loop: Sequence[int]) -> tuple[list[int], list[tuple[int, int, int]]]:
        """Return the remaining rows; and for each removed range its start, its stop, and the distance to its replacement."""
        remaining, removed_ranges, start = list[int](), [], 0
        for (unrolled, _), trip_count in zip(self.loops, counts_by_loop, strict=True):
            stop = unrolled.start + trip_count * unrolled.period
            remaining += range(start, stop)
            removed_ranges.append((stop, unrolled.stop, (unrolled.trip_count - trip_count) * unrolled.period))
            start = unrolled.stop
        return remaining + list(range(start, len(self._table.items))), removed_ranges


class TruncatedLoop(NamedTuple):
    """A loop that can be truncated.

    Attributes
    ----------
    unrolled : UnrolledLoop
        Its iterations.
    min_trip_count : int
        The smallest trip count that represents it.
    """

    unrolled: UnrolledLoop
    min_trip_count: int

    @property
    def saved_rows(self) -> int:
        """The number of rows that truncation removes."""
        return (self.unrolled.trip_count - self.min_trip_count) * self.unrolled.period


def find_loops(table: GraphTable) -> list[TruncatedLoop]:
    """Return the loops of a table that are worth truncating, in order; none if they cover less than half of it."""
    size = len(table.items)
    candidates: list[TruncatedLoop] = []
    for period in _find_periods_in_samples(table.kinds):
        for unrolled in find_unrolled_loops_of_period(table, period, np.zeros(size, bool), MIN_ROWS):
            loop = _as_truncated_loop(table, unrolled)
            if loop is not None:
                candidates.append(loop)
        if sum(loop.saved_rows for loop in candidates) > 0.9 * size:
            break
    selected: list[TruncatedLoop] = []
    for loop in sorted(candidates, key=lambda loop: -loop.saved_rows):
        if all(loop.unrolled.stop <= other.unrolled.start or other.unrolled.stop <= loop.unrolled.start for other in selected):
            selected.append(loop)
    selected = sorted(selected[:MAX_LOOPS], key=lambda loop: loop.unrolled.start)
    if 2 * sum(loop.saved_rows for loop in selected) < size or not _reads_only_ends(table, selected):
        return []
    return selected


def _find_periods_in_samples(kinds: NDArray[Any]) -> list[int]:
    """Return likely periods, the shortest first."""
    if len(kinds) <= 2 * SAMPLE_SIZE:
        return find_candidate_periods(kinds, MAX_PERIODS)
    starts = np.linspace(0, len(kinds) - SAMPLE_SIZE, SAMPLE_COUNT).astype(int).tolist()
    samples = [kinds[start : start + SAMPLE_SIZE] for start in starts]
    periods = {period for sample in samples for period in find_candidate_periods(sample, MAX_PERIODS // 2)}
    return sorted(periods)[: 4 * MAX_PERIODS]


def _as_truncated_loop(table: GraphTable, unrolled: UnrolledLoop) -> TruncatedLoop | None:
    """Return a loop that can be truncated; None if it has too few iterations, or operands do not move with the iterations."""
    iteration = slice(unrolled.start, unrolled.start + unrolled.period)
    integers, counts = table.integers[iteration], table.operand_counts[iteration]
    change = table.integers[unrolled.start + unrolled.period : unrolled.start + 2 * unrolled.period] - integers
    is_operand = np.arange(integers.shape[1]) < counts[:, None]
    if (is_operand & (change != 0) & (change != unrolled.period)).any():
        return None
    distances = np.arange(unrolled.start, unrolled.start + unrolled.period)[:, None] - integers
    max_distance = int((distances[is_operand & (change == unrolled.period)] // unrolled.period + 1).max(initial=1))
    fixed = integers[is_operand & (change == 0)]
    # The number of first iterations that all later ones read.
    shared_iterations = int(((fixed - unrolled.start) // unrolled.period + 1).max(initial=0))
    max_distance = max(max_distance, _memory_distance(table, unrolled, change))
    min_trip_count = max(MIN_ITERATIONS, 2 * max(max_distance, shared_iterations) + 8, -(-MIN_ROWS // unrolled.period))
    min_trip_count += (unrolled.trip_count - min_trip_count) % TRIP_COUNT_STEP
    return TruncatedLoop(unrolled, min_trip_count) if unrolled.trip_count >= MIN_SAVING * min_trip_count else None


def _memory_distance(table: GraphTable, unrolled: UnrolledLoop, change: NDArray[Any]) -> int:
    """Return the maximal distance in iterations between accesses to the same element of an array with writes."""
    rows = range(unrolled.start, unrolled.start + unrolled.period)
    written_roots = {int(table.integers[row, 0]) for row in rows if type(table.items[row]) is Write}
    accesses_by_root: dict[int, list[tuple[Any, Any]]] = {}  # the indices of each access, and their steps
    for row in rows:
        root, columns = int(table.integers[row, 0]), slice(int(table.operand_counts[row]), int(table.integer_counts[row]))
        if columns.stop > columns.start and root in written_roots:
            accesses_by_root.setdefault(root, []).append((table.integers[row, columns], change[row - unrolled.start, columns]))
    distances = (
        int(abs(index - other_index) // abs(step))
        for accesses in accesses_by_root.values()
        for (indices, steps), (other_indices, other_steps) in product(accesses, repeat=2)
        for index, other_index, step, other_step in zip(indices, other_indices, steps, other_steps, strict=False)
        if step == other_step != 0
    )
    return 1 + max(distances, default=0)


def _reads_only_ends(table: GraphTable, loops: list[TruncatedLoop]) -> bool:
    """Return whether items outside each loop read only its first and last iterations, and do not write into any."""
    size = len(table.items)
    for loop in loops:
        unrolled = loop.unrolled
        half = (loop.min_trip_count // 2) * unrolled.period
        first, last = unrolled.start + half, unrolled.stop - half
        outside = np.ones(size, bool)
        outside[unrolled.start : unrolled.stop] = False
        for other in loops:
            if other is not loop:  # two iterations represent all of its reads
                outside[other.unrolled.start + 2 * other.unrolled.period : other.unrolled.stop] = False
        is_operand = np.arange(table.integers.shape[1]) < table.operand_counts[:, None]
        read = table.integers[outside]
        if (is_operand[outside] & (read >= first) & (read < last)).any():
            return False
        for row in np.flatnonzero(outside).tolist():
            if type(table.items[row]) is Write and unrolled.start <= table.integers[row, 0] < unrolled.stop:
                return False
    return True
