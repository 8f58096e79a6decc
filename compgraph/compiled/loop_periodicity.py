"""Detection of unrolled loops in a graph: iterations with equal operations, whose indices change by constant steps.

A graph is compared as a table: for each operation, a kind that is equal in all iterations, and integers that may differ.
Distances between equal windows of a few items are candidate periods. For each, the list of items is compared with itself, shifted
by the period. So each loop is verified exactly, in a time of O(n log n) for n items.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import ops
from ..storage import Write, layout_in, value_at
from ..values import MultiOutput, Value

# Operations whose derivatives and machine code do not depend on the values of constants.
ARITHMETIC = frozenset(function for function, sign in ops.INFIX.items() if sign in ("+", "-", "*", "/"))
_REAL_NUMBERS = frozenset({float, int, np.float64, np.float32})
_COMPARED_BY_REPR = _REAL_NUMBERS | {complex}  # which distinguishes the signs of zeros
_COMPARED_BY_VALUE = frozenset({str, bool, type(None), type(Ellipsis), type})
MAX_COMPARED_BYTES = 4096  # size of the largest array that is compared by value
MAX_WRITES = 64  # an array with more writes is not compared by its initial contents


class GraphTable:
    """The items of a graph as a `RowTable`.

    Parameters
    ----------
    items : sequence
        Nodes, multi-output operations and writes, in the order of recording.
    inputs : collection of Node
        The inputs of the graph.

    Attributes
    ----------
    row_of : dict
        The row of each item.
    kinds, integers, may_change : arrays
        See `RowTable`. The integers are the rows of the operands, then indices and offsets into arrays; all may change.
    integer_counts, operand_counts : arrays
        By row, the number of its integers, and the number of integers that refer to operands.
    """

    def __init__(self, items: Sequence[Any], inputs: Collection[Any]) -> None:
        self.items = items
        self.row_of = {item: row for row, item in enumerate(items)}
        self._roots = {id(item.memory): row for row, item in enumerate(items) if isinstance(item, Value) and item.memory}
        self._kinds: dict[Any, int] = {}  # by key
        kinds, all_integers, integer_counts, operand_counts = [], list[int](), [], []
        for item in items:
            before = len(all_integers)
            is_input = item in inputs
            if is_input:
                key: Any = ("input", id(item))
            else:
                key = self._write_key(item, all_integers) if type(item) is Write else self._node_key(item, all_integers)
            kinds.append(self._kinds.setdefault(key, len(self._kinds)))
            integer_counts.append(len(all_integers) - before)
            is_write = type(item) is Write  # its operands include the root
            operand_counts.append(0 if is_input else len(item.parent_argnums) + is_write)
        self.kinds = np.array(kinds, np.int64)
        self.integer_counts, self.operand_counts = np.array(integer_counts), np.array(operand_counts)
        widest = int(self.integer_counts.max(initial=1))
        self.integers = np.zeros((len(items), widest), np.int64)
        self.integers[np.arange(widest) < self.integer_counts[:, None]] = all_integers
        self.may_change = np.ones(self.integers.shape, bool)

    def _node_key(self, item: Any, integers: list[int]) -> Any:
        """Return the key of a node or multi-output operation; append its integers, operands first."""
        function, args = item.function, item.args
        if not args:
            return self._leaf_key(item)
        row_of = self.row_of
        integers += [row_of[args[position]] for position in item.parent_argnums]
        key: list[Any] = [function, item.parent_argnums]
        if isinstance(item, Value):
            value = item.raw_value
            key += (value.dtype, value.shape, item.is_scalar)
            if type(value) is np.ndarray:
                key.append(value.strides)
            if item.memory:
                key.append("root")
        if len(item.parent_argnums) < len(args):
            is_index, is_arithmetic = function is ops.getitem, function in ARITHMETIC
            for a in args:
                if isinstance(a, (Value, MultiOutput)):
                    continue
                if is_arithmetic and type(a) in _REAL_NUMBERS:
                    key.append(type(a))  # the value may differ between iterations
                else:
                    key.append(_index_key(a, integers) if is_index else constant_key(a))
        if item.options:
            key.append(tuple([(name, constant_key(option)) for name, option in item.options.items()]))
        return tuple(key)

    def _leaf_key(self, item: Any) -> Any:
        """Return the key of a leaf. Leaves with writes are equal if their initial contents are; others only to themselves."""
        memory = getattr(item, "memory", None)
        if not memory or item.raw_value.nbytes > MAX_COMPARED_BYTES or len(memory.log) > MAX_WRITES:
            return ("leaf", id(item))
        array = value_at(item, item.sequence_number)
        return ("initial contents", type(item), array.dtype, array.shape, array.strides, array.tobytes())

    def _write_key(self, item: Write, integers: list[int]) -> Any:
        """Return the key of a write; append its integers, operands first."""
        root = self._roots[id(item.memory)]
        integers.append(root)
        (value,) = item.args
        if item.parent_argnums:
            integers.append(self.row_of[value])
        key = ["write", None if item.parent_argnums else constant_key(value), _index_key(item.index, integers)]
        buffer, window = self.items[root].raw_value, item.window
        if window is not buffer:
            layout = layout_in(buffer, window)
            integers.append(layout["offset"] // buffer.itemsize)
            key += (layout["offset"] % buffer.itemsize, layout["shape"], layout["strides"], layout["dtype"])
        return tuple(key)


def _index_key(value: Any, integers: list[int]) -> Any:
    """Return the key of an index; append its integers."""
    cls = type(value)
    if cls is int or isinstance(value, np.integer):
        integers.append(int(value))
        return cls, value < 0
    if cls is slice:
        return (slice, *[_index_key(part, integers) for part in (value.start, value.stop, value.step)])
    if cls is tuple:
        return (tuple, *[_index_key(part, integers) for part in value])
    return constant_key(value)


def constant_key(value: Any) -> Any:
    """Return a key that is equal for values that are interchangeable in an operation."""
    cls = type(value)
    if cls in _COMPARED_BY_REPR:
        return cls, repr(value)
    if cls in _COMPARED_BY_VALUE or isinstance(value, np.dtype):
        return cls, value
    if cls is tuple or cls is list:
        return (cls, *map(constant_key, value))
    if cls is slice:
        return (slice, constant_key(value.start), constant_key(value.stop), constant_key(value.step))
    if isinstance(value, (np.ndarray, np.generic)) and value.nbytes <= MAX_COMPARED_BYTES and value.dtype.kind in "biufc":
        return cls, value.dtype, value.shape, getattr(value, "strides", ()), value.tobytes()
    return cls, id(value)


MIN_TRIP_COUNT = 8  # the fewest iterations of a loop
WINDOW_LENGTHS = (1, 3, 6, 12, 24, 48, 96)  # items per window; distances of equal windows are candidate periods
MAX_PERIODS = 40  # candidate periods


class UnrolledLoop(NamedTuple):
    """A loop whose iterations are consecutive items of a table.

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


def find_unrolled_loops(table: RowTable, min_items: int) -> list[UnrolledLoop]:
    """Return disjoint loops of at least `min_items` items, in order; the shortest period takes precedence."""
    is_covered = np.zeros(len(table.kinds), bool)
    loops: list[UnrolledLoop] = []
    for period in find_candidate_periods(table.kinds):
        for unrolled in find_unrolled_loops_of_period(table, period, is_covered, min_items):
            is_covered[unrolled.start : unrolled.stop] = True
            loops.append(unrolled)
    return sorted(loops)


def find_candidate_periods(kinds: NDArray[Any], max_periods: int = MAX_PERIODS) -> list[int]:
    """Return the most frequent distances between equal windows, the shortest first."""
    counts: dict[int, int] = {}
    for length in WINDOW_LENGTHS:
        if len(kinds) < 2 * length:
            break
        windows = np.lib.stride_tricks.sliding_window_view(kinds, length)
        weights = np.random.default_rng(0).integers(1, 2**31, length) * 2 + 1
        hashes = windows @ weights  # collisions are harmless, because items are compared exactly
        order = np.argsort(hashes, kind="stable")
        is_equal_to_previous = hashes[order][1:] == hashes[order][:-1]
        distances, occurrences = np.unique(np.diff(order)[is_equal_to_previous], return_counts=True)
        for distance, count in zip(distances.tolist(), occurrences.tolist(), strict=True):
            counts[distance] = max(counts.get(distance, 0), count)
    likely = sorted(counts, key=lambda distance: -counts[distance])[:max_periods]
    return sorted({*likely, *[2 * distance for distance in likely]})  # an iteration may swap two arrays


def find_unrolled_loops_of_period(
    table: RowTable, period: int, is_excluded: NDArray[Any], min_items: int
) -> Iterator[UnrolledLoop]:
    """Yield disjoint loops of one period with at least `min_items` items, none of them excluded."""
    kinds, integers, may_change = table.kinds, table.integers, table.may_change
    if len(kinds) < period * MIN_TRIP_COUNT:
        return
    steps = integers[period:] - integers[:-period]
    is_repeated = (kinds[period:] == kinds[:-period]) & ~is_excluded[period:] & ~is_excluded[:-period]
    is_repeated &= ((steps == 0) | (may_change[period:] & may_change[:-period])).all(axis=1)
    step_changes = np.flatnonzero((steps[period:] != steps[:-period]).any(axis=1))
    edges = np.flatnonzero(np.diff(np.concatenate(([0], is_repeated.view(np.int8), [0]))))
    first_free = 0  # a loop ends up to a period after the first item that differs from the next iteration's
    for first_repeated, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        start = max(first_repeated, first_free)
        while stop - start >= period * (MIN_TRIP_COUNT - 1):
            index = int(np.searchsorted(step_changes, start))
            has_change = index < len(step_changes) and step_changes[index] < stop - period
            change = int(step_changes[index]) if has_change else None  # the loop ends where the step changes
            end = stop + period if change is None else change + 2 * period
            trip_count = (end - start) // period
            if trip_count >= MIN_TRIP_COUNT and trip_count * period >= min_items:
                yield UnrolledLoop(start, period, trip_count)
                start += trip_count * period
                first_free = start
            elif change is None:
                break
            else:
                start = change + 1
