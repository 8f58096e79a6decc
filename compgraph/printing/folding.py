"""Detection of consecutive equal steps (layers, loop iterations); a text shows only the first and the last."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..storage import Write
from ..values import Value

LONGEST = 200  # at most so many steps in a part
FEWEST = 4  # at least so many parts in a run: with three, one would be left out
CONSIDERED = 20_000  # at most so many steps are searched, the last ones
NEARLY_ALL = 0.9  # of the steps: a run that hides so many is taken, and no longer parts are tried


class Run(NamedTuple):
    """Consecutive equal parts: the steps of the first, those of each in the middle, and the leaves that only these use."""

    first: list[Any]
    middle: list[list[Any]]
    leaves: list[Any]


def runs_of(items: list[Any]) -> list[Run]:
    """The runs of equal parts among the steps of a graph; of overlapping ones the one that hides most.

    Two steps are equal if they are the same operation, with results of the same shape and dtype, on operands that are the same
    nodes, or are computed equally many steps before, or are leaves of the same kind. Indices may differ.
    """
    steps = [item for item in items if item.args][-CONSIDERED:]
    order = {item: place for place, item in enumerate(steps)}
    codes: dict[Any, int] = {}
    marks = np.array([codes.setdefault(_mark(item), len(codes)) for item in steps], dtype=np.int64)
    is_covered = np.zeros(len(steps), bool)
    runs = []
    for _, period, start, count in sorted(_candidates(steps, order, marks), key=lambda candidate: (-candidate[0], candidate[1])):
        span = slice(start, start + period * count)
        if not is_covered[span].any():
            is_covered[span] = True
            parts = [steps[start + k * period : start + (k + 1) * period] for k in range(count)]
            runs.append(Run(parts[0], parts[1:-1], _only_used_in(parts[1:-1], items)))
    return runs


def _candidates(steps: list[Any], order: dict[Any, int], marks: np.ndarray[Any, Any]) -> list[tuple[int, int, int, int]]:
    """How many steps a run hides, its period, its start, and how many parts it has."""
    candidates = []
    for period in range(1, min(LONGEST, len(steps) // FEWEST) + 1):
        start = length = 0
        for place in [*np.flatnonzero(marks[period:] == marks[:-period]).tolist(), len(steps)]:
            if place < len(steps) and not _alike(steps[place], steps[place + period], period, order):
                continue
            if place != start + length:
                count = length // period + 1
                if count >= FEWEST:
                    candidates.append(((count - 2) * period, period, start, count))
                start, length = place, 0
            length += 1
        if candidates and max(candidates)[0] >= NEARLY_ALL * len(steps):
            break
    return candidates


def _mark(item: Any) -> Any:
    """Return the properties that equal steps share, besides their operands."""
    numbers = [a if isinstance(a, (int, float)) else None for a in item.args] if isinstance(item, Value) else []
    if item.opname == "getitem":
        numbers = []
    return item.opname, len(item.args), *numbers, *_kind(item), len(getattr(item, "scope", ()))


def _kind(item: Any) -> tuple[Any, ...]:
    return type(item), getattr(item, "shape", None), getattr(item, "dtype", None)


def _alike(one: Any, other: Any, period: int, order: dict[Any, int]) -> bool:
    """Whether the operands of two steps that lie a period apart are equal."""
    if one.parent_argnums != other.parent_argnums or (isinstance(one, Write) and one.memory is not other.memory):
        return False
    for position in one.parent_argnums:
        a, b = one.args[position], other.args[position]
        if a is b:
            continue
        if a.args or b.args:
            if a not in order or b not in order or order[b] - order[a] != period:
                return False
        elif _kind(a) != _kind(b):
            return False
    return True


def _only_used_in(parts: list[list[Any]], items: list[Any]) -> list[Any]:
    """The leaves that only steps of the parts use."""
    inside = {item for part in parts for item in part}
    leaves = {item: None for item in items if not item.args and not getattr(item, "memory", None)}
    used = {item.args[position] for item in items if item not in inside for position in item.parent_argnums}
    reads = {item.args[position] for item in inside for position in item.parent_argnums}
    return [leaf for leaf in leaves if leaf in reads and leaf not in used]
