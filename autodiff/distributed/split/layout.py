"""The assignment of operations to parts, by scopes or automatically, and to the stages of each part.

A part is on one machine, with its parameters. Values may leave a part and return, so a part has stages. The operations of a stage
run without waiting for another part. A buffer, its views and all writes into it are in one stage.

Automatic assignment uses measured times and bytes. Each part is a range of the order of recording, so parts never wait for each
other in a cycle. Dynamic programming finds the division whose slowest part is fastest; it is exact for the measured costs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from compgraph.executor import items_between, origin_of, retrace_graph, retrace_sources_of
from compgraph.graph import GraphNode
from compgraph.guards import Guard
from compgraph.ops import Output, getitem
from compgraph.storage import Write, root_of
from compgraph.values import ACTIVE, MultiOutput, Value, describe

Stage = tuple[int, int]  # the number of earlier transfers between parts, and the part


def is_operation(item: GraphNode) -> bool:
    """Whether an item belongs to one part, as operations and written leaves do. Other leaves may be copied to each part."""
    return bool(item.args) or bool(getattr(item, "memory", None))


def group_of(item: Any, roots: Mapping[int, Any]) -> Any:
    """Return the key of an item's stage: the root of a written or viewed buffer, a multi-output operation, or the item itself."""
    if isinstance(item, Write):
        return roots[id(item.memory)]
    if not isinstance(item, Value):
        return item
    root = root_of(item)
    if root.memory and id(root.memory) in roots:
        return roots[id(root.memory)]
    return item.args[0] if isinstance(item.function, Output) else item


def roots_of(items: Iterable[Any]) -> dict[int, Any]:
    """Return the nodes with written buffers, by the id of the write log."""
    return {id(item.memory): item for item in items if isinstance(item, Value) and item.memory}


def place_by_scope(items: list[Any], place: Mapping[str, int]) -> dict[Any, int]:
    """Return the part of each operation in a scope that `place` names.

    Raises
    ------
    TypeError, ValueError
        If a part is not an integer, or a scope has no operation.
    """
    if not isinstance(place, Mapping) or not place:
        raise TypeError(
            f'place must be "auto" or a mapping from scopes to parts, such as {{"first": 0, "second": 1}}, not {place!r}.'
        )
    for name, part in place.items():
        if isinstance(part, bool) or not isinstance(part, int) or part < 0:
            raise TypeError(f"place: the part of scope {name!r} must be a non-negative integer, not {part!r}.")
    placement: dict[Any, int] = {}
    used_scopes: set[str] = set()
    for item in items:
        placed_scope = None if isinstance(item, Guard) else _find_placed_scope(item.scope, place)
        if placed_scope is not None and is_operation(item):
            used_scopes.add(placed_scope)
            placement[item] = place[placed_scope]
    unknown_scopes = [name for name in place if name not in used_scopes]
    if unknown_scopes:
        scopes = sorted({"/".join(i.scope) for i in items if not isinstance(i, Guard) and i.scope})
        raise ValueError(
            f"place: no operation of the graph is in a scope {', '.join(map(repr, unknown_scopes))}. The scopes of the graph are "
            f"{', '.join(map(repr, scopes)) or 'none. Record the parts within `with cg.scope(name):`'}."
        )
    return placement


def _find_placed_scope(scope: tuple[str, ...], place: Mapping[str, int]) -> str | None:
    """Return the innermost scope that `place` names, by its name or path."""
    for depth in range(len(scope), 0, -1):
        for name in ("/".join(scope[:depth]), scope[depth - 1]):
            if name in place:
                return name
    return None


def complete_placement(items: list[Any], placement: Mapping[Any, int]) -> dict[Any, int]:
    """Return the part of each operation; by default that of its youngest operand, or else of its last reader."""
    roots = roots_of(items)
    parts: dict[Any, int] = {}
    for item, part in placement.items():
        parts.setdefault(group_of(item, roots), part)
    operations = [item for item in items if is_operation(item)]
    for item in operations:
        group = group_of(item, roots)
        if group not in parts:
            operands = [group_of(source, roots) for source in sorted(retrace_sources_of(item), key=_sequence_number)]
            operand_parts = [parts[operand] for operand in operands if operand in parts]
            if operand_parts:
                parts[group] = operand_parts[-1]
    for item in reversed(operations):
        part = parts.setdefault(group_of(item, roots), 0)
        for source in retrace_sources_of(item):
            parts.setdefault(group_of(source, roots), part)
    part_of_first_read: dict[Any, int] = {}  # by the parameter or placeholder
    for item in operations:
        if is_element_access(item) and group_of(item, roots) is item:
            operand = item.args[0]
            if is_operation(operand):
                parts[item] = parts[group_of(operand, roots)]
            else:
                parts[item] = part_of_first_read.setdefault(operand, parts[item])
    return {item: parts[group_of(item, roots)] for item in operations}


def is_element_access(item: GraphNode) -> bool:
    """Whether an item is ``x[index]`` of an active x.

    It belongs to the part of x, so that only elements are sent, and their cotangents are summed before those of x.
    """
    return isinstance(item, Value) and item.function is getitem and type(item.args[0]) in ACTIVE


def _sequence_number(item: GraphNode) -> float:
    return float(item.sequence_number)


def compute_stages(items: list[Any], part: Mapping[Any, int]) -> dict[Any, Stage]:
    """Return the stage of each operation.

    Raises
    ------
    ValueError
        If an array is written, read by another part, and written again with a result of that part.
    """
    roots = roots_of(items)
    phase: dict[Any, int] = {}
    order = [item for item in items if item in part]
    max_phase = len({group_of(item, roots) for item in order})
    has_changed = True
    while has_changed:
        has_changed = False
        for item in order:
            group = group_of(item, roots)
            earliest = phase.get(group, 0)
            for source in retrace_sources_of(item):
                if source in part:
                    source_group = group_of(source, roots)
                    is_transferred = source_group is not group and part[source] != part[item]
                    earliest = max(earliest, phase.get(source_group, 0) + is_transferred)
            if earliest > max_phase:
                _raise_cyclic_writes(group)
            if earliest != phase.get(group):
                phase[group] = earliest
                has_changed = has_changed or bool(roots)  # without writes, one pass in the order of recording suffices
    return {item: (phase[group_of(item, roots)], part[item]) for item in order}


def _raise_cyclic_writes(group: object) -> None:
    subject = "a result" if isinstance(group, (MultiOutput, Guard)) else f"the {describe(group)}"
    raise ValueError(
        f"the parts cannot run sequentially: {subject} is written into, read in another part, and written into again with "
        "the result. Write into a copy (np.copy) instead, or place both in one part."
    )


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

        def record_start(item: GraphNode, position: int, replacements: object, starts: list[tuple[Any, float]] = starts) -> None:
            if not starts or starts[-1][0] is not item:
                starts.append((item, time.perf_counter()))

        replacements = retrace_graph(items, feeds, read_operand=record_start)
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
    """Return the edges of at most `count` ranges, with the fastest slowest range; of equal divisions, the fewest ranges."""
    n = len(elapsed) - 1
    cost = elapsed[None, :] - elapsed[:, None] + crossing_costs[None, :] + crossing_costs[:, None]
    cost[np.tril_indices(n + 1)] = np.inf
    slowest_part = [np.where(np.arange(n + 1) == 0, 0.0, np.inf)]
    choices = []
    for _ in range(count):
        slowest_with_next = np.maximum(slowest_part[-1][:, None], cost)
        choices.append(np.argmin(slowest_with_next, axis=0))
        slowest_part.append(slowest_with_next.min(axis=0))
    range_count = 1 + int(np.argmin([durations[n] for durations in slowest_part[1:]]))
    cuts = [n]
    for choice in reversed(choices[:range_count]):
        cuts.append(int(choice[cuts[-1]]))
    return cuts[::-1]
