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

MAX_STEP_SIZE = 32  # elements of a step; larger steps are vectorized without distribution
MAX_ROWS = 400  # steps of a loop that is distributed
MAX_PAIRS = 20_000  # compared pairs of accesses to one buffer


class Access(NamedTuple):
    """An access of a step to a buffer, as a function of the iteration.

    Attributes
    ----------
    row : int
        The step.
    start, stop : int
        The range of elements that it may access in the first iteration.
    stride : int
        The shift of this range per iteration.
    is_written : bool
        Whether it is a write.
    """

    row: int
    start: int
    stop: int
    stride: int
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


def access_of(row: int, view: BufferView, shift: int, stride: int, is_written: bool) -> Access:
    """Return the access to a view that is shifted by some elements, with a stride per iteration."""
    extents = [step * (length - 1) for step, length in zip(view.strides, view.shape, strict=True)]
    low, high = (view.offset + shift + sum(bound(extent, 0) for extent in extents) for bound in (min, max))
    return Access(row, low, high + 1, stride, is_written)


def partition_loop(rows: range, accesses_by_buffer: dict[Any, list[Access]], trip_count: int) -> list[Partition]:
    """Return the partitions of a loop in order, from the accesses to each buffer."""
    successors: dict[int, set[int]] = defaultdict(set)
    for accesses in accesses_by_buffer.values():
        if len(accesses) ** 2 > MAX_PAIRS:
            return [Partition(list(rows), is_vectorized=False)]
        for a in accesses:
            for b in accesses:
                if a.is_written or b.is_written:
                    for source, sink in _dependences(a, b, trip_count):
                        successors[source].add(sink)
    return _topological_partitions(rows, successors)


def _dependences(a: Access, b: Access, trip_count: int) -> Iterable[tuple[int, int]]:
    """Yield the dependences from `a` to `b`, as pairs of the step that must run first and the step that depends on it."""
    least, most = _dependence_distances(a, b, trip_count)
    if least <= most:
        if most > 0:
            yield a.row, b.row
        if least <= 0 <= most and a.row < b.row:
            yield a.row, b.row


def _dependence_distances(a: Access, b: Access, trip_count: int) -> tuple[int, int]:
    """Return the smallest and largest number of iterations from an access by `a` to one by `b`; empty if smallest > largest."""
    if a.stride != b.stride:
        return 1 - trip_count, trip_count - 1
    if not a.stride:
        return (1 - trip_count, trip_count - 1) if a.start < b.stop and b.start < a.stop else (1, 0)
    # the ranges overlap if b.start + stride d < a.stop  and  a.start < b.stop + stride d
    low, high = a.start - b.stop + 1, a.stop - b.start - 1
    ends = (low, high) if a.stride > 0 else (-high, -low)
    least, most = -(-ends[0] // abs(a.stride)), ends[1] // abs(a.stride)
    return max(least, 1 - trip_count), min(most, trip_count - 1)


def _topological_partitions(rows: range, successors: dict[int, set[int]]) -> list[Partition]:
    """Return the strongly connected components in topological order; adjacent sequential ones share a loop."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    edges = [(source - rows.start, sink - rows.start) for source in successors for sink in successors[source]]
    if not edges:
        return [Partition([row], is_vectorized=True) for row in rows]
    sources, sinks = np.array(edges).T
    graph = csr_array((np.ones(len(sources), np.int8), (sources, sinks)), shape=(len(rows), len(rows)))
    count, component = connected_components(graph, directed=True, connection="strong")
    members: list[list[int]] = [[] for _ in range(count)]
    for row, number in zip(rows, component.tolist(), strict=True):
        members[number].append(row)
    is_vectorizable = [len(m) == 1 and m[0] not in successors[m[0]] for m in members]
    predecessors: list[set[int]] = [set() for _ in range(count)]
    for a, b in zip(component[sources].tolist(), component[sinks].tolist(), strict=True):
        if a != b:
            predecessors[b].add(a)
    partitions: list[Partition] = []
    remaining = set(range(count))
    while remaining:
        ready = [number for number in remaining if predecessors[number].isdisjoint(remaining)]
        last = partitions[-1].is_vectorized if partitions else None
        following = min(ready, key=lambda number: (is_vectorizable[number] != last, members[number][0]))
        remaining.remove(following)
        if last is False and not is_vectorizable[following]:
            partitions[-1].rows.extend(members[following])
        else:
            partitions.append(Partition(members[following], is_vectorizable[following]))
    return [Partition(sorted(partition.rows), partition.is_vectorized) for partition in partitions]


def vectorize_step(step: Step, loop_index: LoopIndex) -> Step:
    """Return a step over all iterations: the loop becomes its first axis."""
    if isinstance(step, Map):
        operands = tuple([_with_loop_axis(o, loop_index) if isinstance(o, BufferView) else o for o in step.operands])
        return Map(step.operation, operands, _with_loop_axis(step.out, loop_index), step.compute_dtype, step.is_write)
    assert isinstance(step, Reduce)
    axes = frozenset(axis + 1 for axis in step.axes)
    return Reduce(step.operation, _with_loop_axis(step.operand, loop_index), axes, _with_loop_axis(step.out, loop_index))


def _with_loop_axis(view: BufferView, loop_index: LoopIndex) -> BufferView:
    loop_strides = dict(view.loop_strides)
    stride = loop_strides.pop(loop_index, 0)
    shape, strides = (loop_index.trip_count, *view.shape), (stride, *view.strides)
    return BufferView(view.buffer, view.offset, shape, strides, tuple(loop_strides.items()))
