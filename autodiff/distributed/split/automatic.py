"""Automatic division of a graph into parts, by measured times and bytes.

Each part is a range of the order of recording, so parts never wait for each other in a cycle. Dynamic programming finds the
division whose slowest part is fastest; it is exact for the measured costs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from compgraph.executor import items_between, origin_of, replay, retrace_sources_of
from compgraph.values import Value

from .layout import group_of, is_operation, roots_of

BANDWIDTH = 3e8  # bytes per second between parts
LATENCY = 2e-3  # seconds per transfer of a value, of any size
BACKWARD_FACTOR = 2.0  # approximate duration of a backward pass, in forward passes
MAX_CUTS = 400  # number of cuts to consider: those with the smallest costs of transfer


def partition_linearly(items: list[Any], count: int, feeds: Mapping[Any, Any]) -> dict[Any, int]:
    """Return the part of each operation.

    Parameters
    ----------
    items : list
        The graph, in the order of recording.
    count : int
        The greatest number of parts.
    feeds : mapping
        Values of the placeholders, of typical size.
    """
    operations = [item for item in items if is_operation(item)]
    seconds, sizes = _measure(items, feeds)
    crossing_costs = _crossing_costs(items, operations, sizes)
    candidates = [k for k in range(1, len(operations)) if np.isfinite(crossing_costs[k])]
    candidates = sorted(sorted(candidates, key=lambda k: crossing_costs[k])[:MAX_CUTS])
    edges = [0, *candidates, len(operations)]
    elapsed = np.concatenate([[0.0], np.cumsum([seconds.get(item, 0.0) for item in operations])]) * (1 + BACKWARD_FACTOR)
    cuts = _best_cuts(elapsed[edges], crossing_costs[edges], min(count, len(edges) - 1))
    placement = {}
    for part, (a, b) in enumerate(pairwise(cuts)):
        placement.update(dict.fromkeys(operations[edges[a] : edges[b]], part))
    return placement


def _measure(items: list[Any], feeds: Mapping[Any, Any]) -> tuple[dict[Any, float], dict[Any, int]]:
    """Return the seconds of each operation (the minimum of two recordings), and the bytes of its value."""
    seconds: dict[Any, float] = {}
    replacements: Mapping[Any, Any] = {}
    for _ in range(2):
        starts: list[tuple[Any, float]] = []

        def record_start(item: Any, position: int, replacements: Any, starts: list[tuple[Any, float]] = starts) -> None:
            if not starts or starts[-1][0] is not item:
                starts.append((item, time.perf_counter()))

        replacements = replay(items, feeds, read_operand=record_start)
        ends = [start for _, start in starts[1:]] + [time.perf_counter()]
        for (item, start), end in zip(starts, ends, strict=True):
            seconds[item] = min(seconds.get(item, np.inf), end - start)
    return seconds, {item: node.raw_value.nbytes for item, node in replacements.items() if isinstance(item, Value)}


def _crossing_costs(items: list[Any], operations: list[Any], sizes: Mapping[Any, int]) -> Any:
    """Return the seconds in which values and cotangents cross each cut between operations; infinite if a cut is not allowed."""
    positions = {item: k for k, item in enumerate(operations)}
    roots = roots_of(items)
    last_readers: dict[Any, int] = {}
    spans: dict[Any, tuple[int, int]] = {}
    for k, item in enumerate(operations):
        for source in retrace_sources_of(item):
            if source in positions:
                last_readers[source] = k
        group = group_of(item, roots)
        first, _ = spans.get(group, (k, k))
        spans[group] = first, k
        origin = origin_of(item)
        if origin is not None:
            spans[item] = min([positions[n] for n in items_between(origin.output, origin.wrt) if n in positions], default=k), k
    cost_changes = np.zeros(len(operations) + 1)
    span_changes = np.zeros(len(operations) + 1)
    for item, end in last_readers.items():
        cost = 2 * (sizes.get(item, 0) / BANDWIDTH + LATENCY)
        cost_changes[positions[item] + 1] += cost
        cost_changes[end + 1] -= cost
    for first, end in spans.values():
        span_changes[first + 1] += 1
        span_changes[end + 1] -= 1
    crossing_costs = np.cumsum(cost_changes)
    crossing_costs[np.cumsum(span_changes) > 0] = np.inf
    crossing_costs[0] = crossing_costs[-1] = 0.0
    return crossing_costs


def _best_cuts(elapsed: Any, crossing_costs: Any, count: int) -> list[int]:
    """Return the edges of at most `count` ranges whose slowest is fastest; of equal divisions, the one with the fewest ranges."""
    n = len(elapsed) - 1
    cost = elapsed[None, :] - elapsed[:, None] + crossing_costs[None, :] + crossing_costs[:, None]
    cost[np.tril_indices(n + 1)] = np.inf
    slowest_part = [np.where(np.arange(n + 1) == 0, 0.0, np.inf)]
    choices = []
    for _ in range(count):
        with_next = np.maximum(slowest_part[-1][:, None], cost)
        choices.append(np.argmin(with_next, axis=0))
        slowest_part.append(with_next.min(axis=0))
    range_count = 1 + int(np.argmin([durations[n] for durations in slowest_part[1:]]))
    cuts = [n]
    for choice in reversed(choices[:range_count]):
        cuts.append(int(choice[cuts[-1]]))
    return cuts[::-1]
