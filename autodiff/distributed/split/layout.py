"""The assignment of operations to parts, by scopes, and to the stages of each part.

A part is on one machine, with its parameters. Values may leave a part and return, so a part has stages. The operations of a stage
run without waiting for another part. A buffer, its views and all writes into it are in one stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compgraph.executor import retrace_sources_of
from compgraph.guards import Guard
from compgraph.ops import Output, getitem
from compgraph.storage import Write, root_of
from compgraph.values import ACTIVE, MultiOutput, Value, describe

Stage = tuple[int, int]  # the number of earlier transfers between parts, and the part


def is_operation(item: Any) -> bool:
    """Whether an item belongs to one part: an operation, or a leaf that is written into. Others may be copied to each part."""
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
    """Return the part of each operation in a scope with a place.

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
    used: set[str] = set()
    for item in items:
        inner = None if isinstance(item, Guard) else _find_placed_scope(item.scope, place)
        if inner is not None and is_operation(item):
            used.add(inner)
            placement[item] = place[inner]
    unknown = [name for name in place if name not in used]
    if unknown:
        scopes = sorted({"/".join(i.scope) for i in items if not isinstance(i, Guard) and i.scope})
        raise ValueError(
            f"place: no operation of the graph is in a scope {', '.join(map(repr, unknown))}. The scopes of the graph are "
            f"{', '.join(map(repr, scopes)) or 'none. Record the parts within `with cg.scope(name):`'}."
        )
    return placement


def _find_placed_scope(scope: tuple[str, ...], place: Mapping[str, int]) -> str | None:
    """Return the innermost scope with a place, by name or path."""
    for depth in range(len(scope), 0, -1):
        for name in ("/".join(scope[:depth]), scope[depth - 1]):
            if name in place:
                return name
    return None


def complete_placement(items: list[Any], placement: Mapping[Any, int]) -> dict[Any, int]:
    """Return the part of each operation. Without a place, it is that of the youngest operand, or else of the last reader."""
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


def is_element_access(item: Any) -> bool:
    """Whether an item is ``x[index]`` of an active x.

    It belongs to the part of x, so that only elements are sent, and their cotangents are summed before those of x.
    """
    return isinstance(item, Value) and item.function is getitem and type(item.args[0]) in ACTIVE


def _sequence_number(item: Any) -> float:
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
    changed = True
    while changed:
        changed = False
        for item in order:
            group = group_of(item, roots)
            earliest = phase.get(group, 0)
            for source in retrace_sources_of(item):
                if source in part:
                    other = group_of(source, roots)
                    earliest = max(earliest, phase.get(other, 0) + (other is not group and part[source] != part[item]))
            if earliest > max_phase:
                _raise_cyclic_writes(group)
            if earliest != phase.get(group):
                phase[group] = earliest
                changed = changed or bool(roots)
    return {item: (phase[group_of(item, roots)], part[item]) for item in order}


def _raise_cyclic_writes(group: Any) -> None:
    subject = "a result" if isinstance(group, (MultiOutput, Guard)) else f"the {describe(group)}"
    raise ValueError(
        f"the parts cannot run sequentially: {subject} is written into, read in another part, and written into again with "
        "the result. Write into a copy (np.copy) instead, or place both in one part."
    )
