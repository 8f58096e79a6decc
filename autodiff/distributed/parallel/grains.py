"""How a batch is cut into grains and summed, which decides the bits; and how grains are dealt to machines, which does not.

A grain is a run of rows, for which the loss is called once. The number of rows alone decides the cuts. The results of the
grains are added in the order of one binary tree over their numbers, so a sum has the same bits whoever computed which part of
it. A machine that has grains ``a ... b - 1`` sends the sums at the largest nodes of the tree within them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np

WORTH = 1.1  # a step may take so many times as long if fewer arrays are sent for it

Run = tuple[int, int]  # grains a ... b - 1
Sums = list[np.ndarray]


def cuts(rows: int, grains: int) -> list[int]:
    """The rows at which the grains of a batch begin, and its end; a batch has at most as many grains as rows."""
    count = min(rows, grains)
    return [rows * g // count for g in range(count + 1)]


def nodes_within(run: Run, node: Run) -> list[Run]:
    """The largest nodes of the tree below a node that lie within a run of grains."""
    (a, b), (low, high) = run, node
    if a <= low and high <= b:
        return [node]
    if b <= low or high <= a:
        return []
    middle = (low + high) // 2
    return nodes_within(run, (low, middle)) + nodes_within(run, (middle, high))


def folded(leaf: Callable[[int], Sums], node: Run) -> Sums:
    """The sum over the grains below a node, in the order of the tree."""
    low, high = node
    if high - low == 1:
        return leaf(low)
    middle = (low + high) // 2
    return _plus(folded(leaf, (low, middle)), folded(leaf, (middle, high)), middle - low > 1)


def assembled(parts: Mapping[Run, Sums], node: Run) -> Sums:
    """The sum at a node, from sums at nodes below that cover all its grains."""
    if node in parts:
        return parts[node]
    low, high = node
    middle = (low + high) // 2
    return _plus(assembled(parts, (low, middle)), assembled(parts, (middle, high)), middle - low > 1)


def _plus(one: Sums, other: Sums, is_sum: bool) -> Sums:
    """The sums of arrays. Memory of the first is used again only if it is a sum: others may refer to a gradient."""
    places = [x if is_sum and isinstance(x, np.ndarray) and x.flags.writeable else None for x in one]
    return [np.add(x, y, out=place) for x, y, place in zip(one, other, places, strict=True)]


def assign_grains(run: Run, speeds: Sequence[float], count: int) -> list[Run]:
    """The run of grains of each machine, perhaps empty, so that the last machine is done as early as possible.

    Parameters
    ----------
    run : tuple
        The grains.
    speeds : sequence of float
        How many grains, or rows, each machine does in a second.
    count : int
        The number of all grains.

    Notes
    -----
    Each machine gets at least one grain, if there are enough, because a machine without work is not measured again. The others
    are assigned sequentially to the machine that would finish first. Then borders of shares are moved to borders of the tree's
    branches, if that costs at most `WORTH`: for each branch of its share a machine sends arrays of the size of the parameters.

    Examples
    --------
    >>> assign_grains((0, 16), [4.0, 1.0], 16)
    [(0, 13), (13, 16)]
    """
    grains = run[1] - run[0]
    first = sorted(range(len(speeds)), key=lambda i: -speeds[i])[:grains]
    counts = [int(i in first) for i in range(len(speeds))]
    waiting = [(2 / speeds[i], i) for i in first]
    heapq.heapify(waiting)
    for _ in range(grains - len(first)):
        i = waiting[0][1]
        counts[i] += 1
        heapq.heapreplace(waiting, ((counts[i] + 1) / speeds[i], i))
    edges = list(accumulate(counts, initial=run[0]))
    latest = WORTH * _latest(edges, speeds)
    borders = [0, count]
    while len(borders) <= count:
        borders = sorted({*borders, *[(a + b) // 2 for a, b in pairwise(borders)]})
        moved = [run[0], *[min(borders, key=lambda border: abs(border - e)) for e in edges[1:-1]], run[1]]
        if _same_idle(edges, moved) and _latest(moved, speeds) <= latest:
            edges = moved
            break
    return list(pairwise(edges))


def _latest(edges: Sequence[int], speeds: Sequence[float]) -> float:
    """When the last machine is done."""
    return max((b - a) / speed for (a, b), speed in zip(pairwise(edges), speeds, strict=True))


def _same_idle(edges: Sequence[int], moved: Sequence[int]) -> bool:
    """Whether the moved edges increase, and leave no share empty that was not."""
    return all(b - a >= min(d - c, 1) for (c, d), (a, b) in zip(pairwise(edges), pairwise(moved), strict=True))
