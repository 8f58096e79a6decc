"""The operations and writes behind some nodes, in the order in which they were recorded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from ..graph import GraphNode, walk
from ..storage import Write, memory_of
from ..values import MultiOutput, Value, require_history

LISTS = (list, tuple)


def results_of(operator: str, results: object) -> list[Any]:
    """Return the nodes in nested lists, tuples and dictionaries; raise a TypeError for other objects and batched values."""
    if isinstance(results, dict):
        return [node for part in results.values() for node in results_of(operator, part)]
    if isinstance(results, LISTS):
        return [node for part in results for node in results_of(operator, part)]
    require_history(results)
    if not isinstance(results, Value):
        raise TypeError(f"{operator} takes nodes, alone or in lists, tuples and dictionaries, not a {type(results).__name__}")
    if results.level:
        raise TypeError(
            f"{operator}: this value carries a batch or tangents of a function under vmap or jvp, so it has no separate program; "
            "use the node outside of the function"
        )
    return [results]


def steps_of(results: Iterable[Any]) -> list[Any]:
    """Return the leaves, operations and writes that some nodes depend on: leaves first, then in the order of recording.

    A write is included if its memory is read after it.
    """
    needed: dict[Any, None] = {}
    read_logs: set[int] = set()  # the logs, by id, of values that are read later

    def mark_needed(item: NDArray[Any] | MultiOutput) -> None:
        needed[item] = None
        memory = memory_of(item) if isinstance(item, Value) else None
        if memory is not None:
            memory.require_complete()
            read_logs.add(id(memory))

    for node in results:
        mark_needed(node)
    steps = []
    for item in sorted(walk(needed.copy(), _sources), key=_recording_order, reverse=True):
        if item in needed or (id(item.memory) in read_logs if isinstance(item, Write) else _is_read(item, read_logs)):
            steps.append(item)
            for position in item.parent_argnums:
                mark_needed(item.args[position])
    return steps[::-1]


def _sources(item: GraphNode) -> tuple[Any, ...]:
    read = tuple([item.args[position] for position in item.parent_argnums])
    return (*read, *item.memory.log) if isinstance(item, Value) and item.memory else read


def _is_read(item: GraphNode, read_logs: set[int]) -> bool:
    return not isinstance(item, MultiOutput) and item.memory is not None and id(item.memory) in read_logs


def _recording_order(item: GraphNode) -> tuple[bool, float]:
    """Return a sort key: leaves first, because an updated variable has a higher sequence number than its readers."""
    return bool(item.args) or isinstance(item, Write), float(item.sequence_number)
