"""Division of a batch into shards, the summation tree, and the assignment of shards to machines.

A shard is a range of rows, for which the loss is called once. The number of rows alone determines the bounds of the shards. The
results of shards are added along one binary tree over their numbers. So a sum has the same bits for every assignment of shards to
machines. A machine with shards ``a ... b - 1`` returns the sums at the largest tree nodes within them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np

MAX_SLOWDOWN = 1.1  # factor by which a step may become slower in order to send fewer arrays

ShardRange = tuple[int, int]  # shards a ... b - 1
Sums = list[np.ndarray]


def shard_bounds(rows: int, shards: int) -> list[int]:
    """Return the first row of each shard, and the number of rows. There are at most as many shards as rows."""
    count = min(rows, shards)
    return [rows * g // count for g in range(count + 1)]


def tree_nodes_within(shards: ShardRange, node: ShardRange) -> list[ShardRange]:
    """Return the largest nodes of the tree below `node` that lie within a range of shards."""
    (a, b), (low, high) = shards, node
    if a <= low and high <= b:
        return [node]
    if b <= low or high <= a:
        return []
    middle = (low + high) // 2
    return tree_nodes_within(shards, (low, middle)) + tree_nodes_within(shards, (middle, high))


def sum_by_tree(leaf: Callable[[int], Sums], node: ShardRange) -> Sums:
    """Sum the results of the shards below a node, in the order of the tree."""
    low, high = node
    if high - low == 1:
        return leaf(low)
    middle = (low + high) // 2
    return _add(sum_by_tree(leaf, (low, middle)), sum_by_tree(leaf, (middle, high)), middle - low > 1)


def combine_sums(partial_sums: Mapping[ShardRange, Sums], node: ShardRange) -> Sums:
    """Return the sum at a node from the sums at nodes below it, which cover all its shards."""
    if node in partial_sums:
        return partial_sums[node]
    low, high = node
    middle = (low + high) // 2
    return _add(combine_sums(partial_sums, (low, middle)), combine_sums(partial_sums, (middle, high)), middle - low > 1)


def _add(one: Sums, other: Sums, is_sum: bool) -> Sums:
    """Add arrays, in the memory of the first ones if these are sums. Other references to a gradient may exist."""
    buffers = [x if is_sum and isinstance(x, np.ndarray) and x.flags.writeable else None for x in one]
    return [np.add(x, y, out=buffer) for x, y, buffer in zip(one, other, buffers, strict=True)]


def assign_shards(shards: ShardRange, speeds: Sequence[float], count: int) -> list[ShardRange]:
    """Assign a range of shards, perhaps empty, to each machine so that the last machine finishes as early as possible.

    Parameters
    ----------
    shards : tuple
        The shards to assign.
    speeds : sequence of float
        The speed of each machine, in shards or rows per second.
    count : int
        The number of shards of the batch.

    Notes
    -----
    Each machine gets at least one shard if there are enough, because a machine without work is not measured again. The others
    are assigned sequentially to the machine that would finish first. Then the bounds of shares are moved to bounds of tree
    branches if the step becomes slower by at most `MAX_SLOWDOWN`: for each branch of its share, a machine sends arrays as large
    as the parameters.

    Examples
    --------
    >>> assign_shards((0, 16), [4.0, 1.0], 16)
    [(0, 13), (13, 16)]
    """
    size = shards[1] - shards[0]
    fastest = sorted(range(len(speeds)), key=lambda i: -speeds[i])[:size]
    counts = [int(i in fastest) for i in range(len(speeds))]
    finish_times = [(2 / speeds[i], i) for i in fastest]  # of each machine, with one more shard
    heapq.heapify(finish_times)
    for _ in range(size - len(fastest)):
        i = finish_times[0][1]
        counts[i] += 1
        heapq.heapreplace(finish_times, ((counts[i] + 1) / speeds[i], i))
    edges = list(accumulate(counts, initial=shards[0]))
    latest = MAX_SLOWDOWN * _finish_time(edges, speeds)
    borders = [0, count]
    while len(borders) <= count:
        borders = sorted({*borders, *[(a + b) // 2 for a, b in pairwise(borders)]})
        moved_edges = [shards[0], *[min(borders, key=lambda border: abs(border - e)) for e in edges[1:-1]], shards[1]]
        if _keeps_shares_nonempty(edges, moved_edges) and _finish_time(moved_edges, speeds) <= latest:
            edges = moved_edges
            break
    return list(pairwise(edges))


def _finish_time(edges: Sequence[int], speeds: Sequence[float]) -> float:
    """Return the time at which the last machine finishes."""
    return max((b - a) / speed for (a, b), speed in zip(pairwise(edges), speeds, strict=True))


def _keeps_shares_nonempty(edges: Sequence[int], moved_edges: Sequence[int]) -> bool:
    """Whether the moved edges increase, and leave no share empty that was not."""
    return all(b - a >= min(d - c, 1) for (c, d), (a, b) in zip(pairwise(edges), pairwise(moved_edges), strict=True))
