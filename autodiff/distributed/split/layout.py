"""The layout of a graph: the parts named by scopes, and the stages of each part.

A part is on one machine, with its parameters. Values may leave a part and return, so it has stages: the operations of one can run
without waiting for another part in between. A buffer, its views and all writes into it are in one stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import NDArray

from compgraph.executor import origins_of
from compgraph.guards import Guard
from compgraph.ops import Output, getitem
from compgraph.storage import Write, root_of
from compgraph.values import ACTIVE, MultiOutput, Value, describe

Stage = tuple[int, int]  # how often values changed parts before it, and the part


def is_operation(item: Any) -> bool:
    """Whether an item belongs to one part: an operation, or a leaf that is written into. Others may be copied to each part."""
    return bool(item.args) or bool(getattr(item, "memory", None))


def group_of(item: object, roots: Mapping[int, Any]) -> Any:
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
    """The nodes whose buffers are written into, by the identity of the log."""
    return {id(item.memory): item for item in items if isinstance(item, Value) and item.memory}


def by_scope(items: list[Any], place: Mapping[str, int]) -> dict[Any, int]:
    """The part of each operation whose scope is placed.

    Raises
    ------
    TypeError, ValueError
        If a part is not a number, or no operation is in a scope.
    """
    if not isinstance(place, Mapping) or not place:
        raise TypeError(
            f'place is "auto", or a mapping from names of scopes to parts, such as {{"first": 0, "second": 1}}, not {place!r}'
        )
    for name, part in place.items():
        if isinstance(part, bool) or not isinstance(part, int) or part < 0:
            raise TypeError(f"place: the part of scope {name!r} is a number from 0 on, not {part!r}")
    placement: dict[Any, int] = {}
    used: set[str] = set()
    for item in items:
        inner = None if isinstance(item, Guard) else _innermost(item.scope, place)
        if inner is not None and is_operation(item):
            used.add(inner)
            placement[item] = place[inner]
    unknown = [name for name in place if name not in used]
    if unknown:
        scopes = sorted({"/".join(i.scope) for i in items if not isinstance(i, Guard) and i.scope})
        raise ValueError(
            f"place: no operation of the graph is in a scope {', '.join(map(repr, unknown))}; its scopes are "
            f"{', '.join(map(repr, scopes)) or 'none: record its parts within `with cg.scope(name):`'}"
        )
    return placement


def _innermost(scope: tuple[str, ...], place: Mapping[str, int]) -> str | None:
    """The innermost scope that is placed, by its own name or by its path."""
    for depth in range(len(scope), 0, -1):
        for name in ("/".join(scope[:depth]), scope[depth - 1]):
            if name in place:
                return name
    return None


def completed(items: list[Any], placement: Mapping[Any, int]) -> dict[Any, int]:
    """The part of every operation: for one that was not placed, that of its youngest operand, else of its last reader."""
    roots = roots_of(items)
    parts: dict[Any, int] = {}
    for item, part in placement.items():
        parts.setdefault(group_of(item, roots), part)
    operations = [item for item in items if is_operation(item)]
    for item in operations:
        group = group_of(item, roots)
        if group not in parts:
            operands = [group_of(source, roots) for source in sorted(origins_of(item), key=_tick)]
            known = [parts[operand] for operand in operands if operand in parts]
            if known:
                parts[group] = known[-1]
    for item in reversed(operations):
        part = parts.setdefault(group_of(item, roots), 0)
        for source in origins_of(item):
            parts.setdefault(group_of(source, roots), part)
    first: dict[Any, int] = {}
    for item in operations:
        if looks_in(item) and group_of(item, roots) is item:
            operand = item.args[0]
            parts[item] = parts[group_of(operand, roots)] if is_operation(operand) else first.setdefault(operand, parts[item])
    return {item: parts[group_of(item, roots)] for item in operations}


def looks_in(item: NDArray[Any]) -> bool:
    """Whether an item is ``x[index]`` of an active x.

    It stays with x: so less travels, and adjoints of elements are joined before they are added to those of the whole x.
    """
    return isinstance(item, Value) and item.function is getitem and type(item.args[0]) in ACTIVE


def _tick(item: Any) -> float:
    return float(item.sequence_number)


def stages(items: list[Any], part: Mapping[Any, int]) -> dict[Any, Stage]:
    """The stage of each operation.

    Raises
    ------
    ValueError
        If an array is written into before and after values from it went to another part and came back.
    """
    roots = roots_of(items)
    phase: dict[Any, int] = {}
    order = [item for item in items if item in part]
    most = len({group_of(item, roots) for item in order})
    changed = True
    while changed:
        changed = False
        for item in order:
            group = group_of(item, roots)
            before = phase.get(group, 0)
            for source in origins_of(item):
                if source in part:
                    other = group_of(source, roots)
                    before = max(before, phase.get(other, 0) + (other is not group and part[source] != part[item]))
            if before > most:
                _refuse(group)
            if before != phase.get(group):
                phase[group] = before
                changed = changed or bool(roots)
    return {item: (phase[group_of(item, roots)], part[item]) for item in order}


def _refuse(group: NDArray[Any]) -> None:
    what = "a result" if isinstance(group, (MultiOutput, Guard)) else f"the {describe(group)}"
    raise ValueError(
        f"the parts cannot run sequentially: {what} is written into, read in another part, and written into again with "
        "what comes back. Write into a copy of it (np.copy) there, or place both in one part"
    )
