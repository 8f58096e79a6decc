"""Loop distribution: splits a loop into sequential loops and steps that are vectorized over all iterations.

Two steps depend on each other if they access the same element and one of them writes it. Steps in a dependence cycle stay in a
loop; each other step gets a further axis. Any topological order of the partitions is equivalent (Kennedy and Allen,
Optimizing Compilers for Modern Architectures, chapter 2: loop distribution).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..buffer_ir import BufferView, LoopIndex, Map, Reduce, Step

MAX_STEP_SIZE = 32  # elements of a step; larger ones are vectorized anyway
MAX_ROWS, MAX_PAIRS = 400, 20_000  # rows of a loop; compared pairs of accesses to one buffer


class Access(NamedTuple):
    """An access of a step to a buffer, as a function of the iteration.

    Attributes
    ----------
    row : int
        The step.
    start, stop : int
        The range of elements that it may access in the first iteration.
    by : int
        The stride of this range per iteration.
    is_written : bool
        Whether it is a write.
    """

    row: int
    start: int
    stop: int
    by: int
    is_written: bool


class Partition(NamedTuple):
    """Steps of a loop that run together.

    Attributes
    ----------
    rows : list of int
        The steps.
    is_vectorized : bool
        Whether all iterations run at once; then there is one step.
    """

    rows: list[int]
    is_vectorized: bool


def can_be_distributed(steps: Sequence[Step]) -> bool:
    """Return whether a loop is a candidate for distribution."""
    return len(steps) <= MAX_ROWS and all(isinstance(step, (Map, Reduce)) and prod(step.shape) <= MAX_STEP_SIZE for step in steps)


def access_of(row: int, view: BufferView, further: int, by: int, is_written: bool) -> Access:
    """Return the access to a view that is shifted by `further` elements, with a stride per iteration."""
    reach = [stride * (length - 1) for stride, length in zip(view.strides, view.shape, strict=True)]
    low, high = (view.offset + further + sum(end(r, 0) for r in reach) for end in (min, max))
    return Access(row, low, high + 1, by, is_written)


def partition_loop(rows: range, touched: dict[Any, list[Access]], trip_count: int) -> list[Partition]:
    """Return the partitions of a loop in order, from the accesses to each buffer."""
    follows: dict[int, set[int]] = defaultdict(set)
    for accesses in touched.values():
        if len(accesses) ** 2 > MAX_PAIRS:
            return [Partition(list(rows), is_vectorized=False)]
        for a in accesses:
            for b in accesses:
                if a.is_written or b.is_written:
                    for first, then in _dependences(a, b, trip_count):
                        follows[first].add(then)
    return _topological_partitions(rows, follows)


def _dependences(a: Access, b: Access, trip_count: int) -> Iterable[tuple[int, int]]:
    """Yield the pairs of steps that must run in this order, where `b` accesses an element some iterations after `a`."""
    least, most = _dependence_distances(a, b, trip_count)
    if least <= most:
        if most > 0:
            yield a.row, b.row
        if least <= 0 <= most and a.row < b.row:
            yield a.row, b.row


def _dependence_distances(a: Access, b: Access, trip_count: int) -> tuple[int, int]:
    """Return the smallest and largest number of iterations from an access by `a` to one by `b`; empty if smallest > largest."""
    if a.by != b.by:
        return 1 - trip_count, trip_count - 1
    if not a.by:
        return (1 - trip_count, trip_count - 1) if a.start < b.stop and b.start < a.stop else (1, 0)
    # b.start + by d < a.stop  and  a.start < b.stop + by d
    low, high = a.start - b.stop + 1, a.stop - b.start - 1
    ends = (low, high) if a.by > 0 else (-high, -low)
    least, most = -(-ends[0] // abs(a.by)), ends[1] // abs(a.by)
    return max(least, 1 - trip_count), min(most, trip_count - 1)


def _topological_partitions(rows: range, follows: dict[int, set[int]]) -> list[Partition]:
    """Return the strongly connected components in topological order; adjacent sequential ones share a loop."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    pairs = [(first - rows.start, then - rows.start) for first in follows for then in follows[first]]
    if not pairs:
        return [Partition([row], is_vectorized=True) for row in rows]
    first, then = np.array(pairs).T
    graph = csr_array((np.ones(len(first), np.int8), (first, then)), shape=(len(rows), len(rows)))
    count, circle = connected_components(graph, directed=True, connection="strong")
    members: list[list[int]] = [[] for _ in range(count)]
    for row, number in zip(rows, circle.tolist(), strict=True):
        members[number].append(row)
    is_vector = [len(m) == 1 and m[0] not in follows[m[0]] for m in members]
    before: list[set[int]] = [set() for _ in range(count)]
    for a, b in zip(circle[first].tolist(), circle[then].tolist(), strict=True):
        if a != b:
            before[b].add(a)
    partitions: list[Partition] = []
    left = set(range(count))
    while left:
        ready = [number for number in left if before[number].isdisjoint(left)]
        last = partitions[-1].is_vectorized if partitions else None
        chosen = min(ready, key=lambda number: (is_vector[number] != last, members[number][0]))
        left.remove(chosen)
        if last is False and not is_vector[chosen]:
            partitions[-1].rows.extend(members[chosen])
        else:
            partitions.append(Partition(members[chosen], is_vector[chosen]))
    return [Partition(sorted(piece.rows), piece.is_vectorized) for piece in partitions]


def vectorize_step(step: Step, loop_index: LoopIndex) -> Step:
    """Return a step over all iterations: the loop becomes its first axis."""
    if isinstance(step, Map):
        operands = tuple([_with_loop_axis(o, loop_index) if isinstance(o, BufferView) else o for o in step.operands])
        return Map(step.operation, operands, _with_loop_axis(step.out, loop_index), step.computed_in, step.is_write)
    assert isinstance(step, Reduce)
    axes = frozenset(axis + 1 for axis in step.axes)
    return Reduce(step.operation, _with_loop_axis(step.operand, loop_index), axes, _with_loop_axis(step.out, loop_index))


def _with_loop_axis(view: BufferView, loop_index: LoopIndex) -> BufferView:
    moves = dict(view.loop_strides)
    stride = moves.pop(loop_index, 0)
    shape, strides = (loop_index.trip_count, *view.shape), (stride, *view.strides)
    return BufferView(view.buffer, view.offset, shape, strides, tuple(moves.items()))
