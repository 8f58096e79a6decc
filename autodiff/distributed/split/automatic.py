"""Where to cut a graph into parts by default: in the order of recording, by measured time and bytes.

Parts that are runs of that order can never wait for each other in a cycle. Of all ways to cut the order into so many runs,
the one whose slowest part is fastest is taken (dynamic programming, exact for the costs that were measured).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.executor import between, origin_of, origins_of, replay
from compgraph.values import Value

from .layout import group_of, is_operation, roots_of

BYTES = 3e8  # that travel from part to part in a second
WAY = 2e-3  # seconds that sending a value takes, however small it is
BACK = 2.0  # about so many times as long as forward the backward pass takes
PLACES = 400  # at most so many places to cut are considered, those where least crosses


def linear(items: list[Any], count: int, feeds: Mapping[Any, Any]) -> dict[Any, int]:
    """The part of each operation.

    Parameters
    ----------
    items : list
        The graph, in the order of recording.
    count : int
        The greatest number of parts.
    feeds : mapping
        Values of the placeholders, as large as those that will be fed.
    """
    operations = [item for item in items if is_operation(item)]
    seconds, size = _measured(items, feeds)
    crossing = _crossing(items, operations, size)
    places = [k for k in range(1, len(operations)) if np.isfinite(crossing[k])]
    places = sorted(sorted(places, key=lambda k: crossing[k])[:PLACES])
    edges = [0, *places, len(operations)]
    before = np.concatenate([[0.0], np.cumsum([seconds.get(item, 0.0) for item in operations])]) * (1 + BACK)
    cuts = _best(before[edges], crossing[edges], min(count, len(edges) - 1))
    placement = {}
    for part, (a, b) in enumerate(pairwise(cuts)):
        placement.update(dict.fromkeys(operations[edges[a] : edges[b]], part))
    return placement


def _measured(items: list[Any], feeds: Mapping[Any, Any]) -> tuple[dict[Any, float], dict[Any, int]]:
    """The seconds that each operation takes (the shorter of two recordings), and the bytes of its value."""
    seconds: dict[Any, float] = {}
    replacements: Mapping[Any, Any] = {}
    for _ in range(2):
        begun: list[tuple[Any, float]] = []

        def look(item: NDArray[Any], place: int, replacements: dict[Any, Any], begun: list[tuple[Any, float]] = begun) -> None:
            if not begun or begun[-1][0] is not item:
                begun.append((item, time.perf_counter()))

        replacements = replay(items, feeds, reading=look)
        ends = [start for _, start in begun[1:]] + [time.perf_counter()]
        for (item, start), end in zip(begun, ends, strict=True):
            seconds[item] = min(seconds.get(item, np.inf), end - start)
    return seconds, {item: node.raw_value.nbytes for item, node in replacements.items() if isinstance(item, Value)}


def _crossing(items: list[Any], operations: list[Any], size: Mapping[Any, int]) -> Any:
    """For each place between operations, the seconds that values and adjoints take to cross it; infinite where no cut may be."""
    place = {item: k for k, item in enumerate(operations)}
    roots = roots_of(items)
    last: dict[Any, int] = {}
    kept: dict[Any, tuple[int, int]] = {}
    for k, item in enumerate(operations):
        for source in origins_of(item):
            if source in place:
                last[source] = k
        together = group_of(item, roots)
        first, _ = kept.get(together, (k, k))
        kept[together] = first, k
        origin = origin_of(item)
        if origin is not None:
            kept[item] = min([place[n] for n in between(origin.output, origin.wrt) if n in place], default=k), k
    steps = np.zeros(len(operations) + 1)
    closed = np.zeros(len(operations) + 1)
    for item, end in last.items():
        cost = 2 * (size.get(item, 0) / BYTES + WAY)
        steps[place[item] + 1] += cost
        steps[end + 1] -= cost
    for first, end in kept.values():
        closed[first + 1] += 1
        closed[end + 1] -= 1
    crossing = np.cumsum(steps)
    crossing[np.cumsum(closed) > 0] = np.inf
    crossing[0] = crossing[-1] = 0.0
    return crossing


def _best(before: NDArray[Any], crossing: NDArray[Any], count: int) -> list[int]:
    """The edges at which to cut into at most `count` runs, so that the slowest is fastest; of equals, the fewest runs."""
    n = len(before) - 1
    cost = before[None, :] - before[:, None] + crossing[None, :] + crossing[:, None]
    cost[np.tril_indices(n + 1)] = np.inf
    slowest = [np.where(np.arange(n + 1) == 0, 0.0, np.inf)]
    chosen = []
    for _ in range(count):
        with_next = np.maximum(slowest[-1][:, None], cost)
        chosen.append(np.argmin(with_next, axis=0))
        slowest.append(with_next.min(axis=0))
    runs = 1 + int(np.argmin([bottlenecks[n] for bottlenecks in slowest[1:]]))
    cuts = [n]
    for choice in reversed(chosen[:runs]):
        cuts.append(int(choice[cuts[-1]]))
    return cuts[::-1]
