"""Loop distribution: splits a loop into sequential loops and steps that are vectorized over all iterations.

Two steps depend on each other if they access the same element and one of them writes it. Steps in a dependence cycle stay in a
sequential loop. Every other step is vectorized: the loop becomes its first axis. All topological orders of the partitions are
equivalent (Kennedy and Allen, Optimizing Compilers for Modern Architectures, chapter 2: loop distribution).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..buffer_ir import BufferView, LoopIndex, Map, Reduce, Step

MAX_STEP_SIZE = 32  # elements of a step; larger steps are vectorized along their own axes
MAX_ROWS = 400  # steps of a distributed loop
MAX_PAIRS = 20_000  # pairs of accesses to one buffer that are compared


class Access(NamedTuple):
    """An access of a step to a buffer, as a function of the iteration.

    Attributes
    ----------
    row : int
        The row of the step in its `StepTable`.
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
        The rows of the steps in their `StepTable`.
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
    low, high = view.bounds
    return Access(row, low + shift, high + shift + 1, stride, is_written)


def partition_loop(rows: range, accesses_by_buffer: dict[Any, list[Access]], trip_count: int) -> list[Partition]:
    """Return the partitions of a loop, in order.

    Parameters
    ----------
    rows : range
        The steps of the loop.
    accesses_by_buffer : dict
        The accesses to each buffer.
    trip_count : int
        The number of iterations.
    """
    successors: dict[int, set[int]] = defaultdict(set)
    for accesses in accesses_by_buffer.values():
        if len(accesses) ** 2 > MAX_PAIRS:
            return [Partition(list(rows), is_vectorized=False)]
        for a in accesses:
            for b in accesses:
                if (a.is_written or b.is_written) and _must_precede(a, b, trip_count):
                    successors[a.row].add(b.row)
    return _topological_partitions(rows, successors)


def _must_precede(a: Access, b: Access, trip_count: int) -> bool:
    """Return whether the step of `b` depends on the step of `a`, in a later iteration or later in the same one."""
    smallest, largest = _dependence_distances(a, b, trip_count)
    return smallest <= largest and (largest > 0 or (largest == 0 and a.row < b.row))


def _dependence_distances(a: Access, b: Access, trip_count: int) -> tuple[int, int]:
    """Return the smallest and largest number of iterations from an access by `a` to one by `b`; empty if smallest > largest."""
    if a.stride != b.stride:
        return 1 - trip_count, trip_count - 1
    if not a.stride:
        return (1 - trip_count, trip_count - 1) if a.start < b.stop and b.start < a.stop else (1, 0)
    # the ranges overlap if b.start + stride d < a.stop  and  a.start < b.stop + stride d
    low, high = a.start - b.stop + 1, a.stop - b.start - 1
    ends = (low, high) if a.stride > 0 else (-high, -low)
    smallest, largest = -(-ends[0] // abs(a.stride)), ends[1] // abs(a.stride)
    return max(smallest, 1 - trip_count), min(largest, trip_count - 1)


def _topological_partitions(rows: range, successors: dict[int, set[int]]) -> list[Partition]:
    """Return the strongly connected components of the dependences in topological order; adjacent sequential ones are merged."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    edges = [(source - rows.start, sink - rows.start) for source in successors for sink in successors[source]]
    if not edges:
        return [Partition([row], is_vectorized=True) for row in rows]
    sources, sinks = np.array(edges).T
    graph = csr_array((np.ones(len(sources), np.int8), (sources, sinks)), shape=(len(rows), len(rows)))
    count, component = connected_components(graph, directed=True, connection="strong")
    rows_of: list[list[int]] = [[] for _ in range(count)]  # by component
    for row, number in zip(rows, component.tolist(), strict=True):
        rows_of[number].append(row)
    is_vectorizable = [len(members) == 1 and members[0] not in successors[members[0]] for members in rows_of]
    predecessors: list[set[int]] = [set() for _ in range(count)]
    for a, b in zip(component[sources].tolist(), component[sinks].tolist(), strict=True):
        if a != b:
            predecessors[b].add(a)
    partitions: list[Partition] = []
    remaining = set(range(count))
    while remaining:
        ready = [number for number in remaining if predecessors[number].isdisjoint(remaining)]
        is_last_vectorized = partitions[-1].is_vectorized if partitions else None
        following = min(ready, key=lambda number: (is_vectorizable[number] != is_last_vectorized, rows_of[number][0]))
        remaining.remove(following)
        if is_last_vectorized is False and not is_vectorizable[following]:
            partitions[-1].rows.extend(rows_of[following])
        else:
            partitions.append(Partition(rows_of[following], is_vectorizable[following]))
    return [Partition(sorted(partition.rows), partition.is_vectorized) for partition in partitions]


def vectorize_step(step: Step, loop_index: LoopIndex) -> Step:
    """Return a step for all iterations at once: the loop becomes its first axis."""
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
