"""Detection of consecutive equal steps (layers, loop iterations); a text shows only the first and the last."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..storage import Write
from ..values import Value

MAX_PERIOD = 200  # steps in a part
MIN_PARTS = 4  # in a run; of three parts, folding would hide only one
MAX_STEPS = 20_000  # only the last steps are searched
SUFFICIENT_SHARE = 0.9  # of the steps: if a run hides this share, the search ends


class Run(NamedTuple):
    """Consecutive equal parts: the first, the middle ones, and the leaves that only the middle ones use."""

    first: list[Any]
    middle: list[list[Any]]
    leaves: list[Any]


def runs_of(items: list[Any]) -> list[Run]:
    """Return the runs of equal parts among the steps of a graph. Of overlapping runs, the one that hides most steps is chosen.

    Equal steps are the same operation, with results of the same shape and dtype. Each operand is the same node, or was computed
    the same number of steps before, or is a leaf of the same kind. Indices may differ.
    """
    steps = [item for item in items if item.args][-MAX_STEPS:]
    positions = {item: place for place, item in enumerate(steps)}
    codes: dict[Any, int] = {}
    keys = np.array([codes.setdefault(_equality_key(item), len(codes)) for item in steps], dtype=np.int64)
    is_covered = np.zeros(len(steps), bool)
    runs = []
    for _, period, start, count in sorted(
        _candidates(steps, positions, keys), key=lambda candidate: (-candidate[0], candidate[1])
    ):
        span = slice(start, start + period * count)
        if not is_covered[span].any():
            is_covered[span] = True
            parts = [steps[start + k * period : start + (k + 1) * period] for k in range(count)]
            runs.append(Run(parts[0], parts[1:-1], _only_used_in(parts[1:-1], items)))
    return runs


def _candidates(steps: list[Any], positions: dict[Any, int], keys: np.ndarray[Any, Any]) -> list[tuple[int, int, int, int]]:
    """Return the candidate runs, as tuples of the number of hidden steps, period, start, and number of parts."""
    candidates = []
    for period in range(1, min(MAX_PERIOD, len(steps) // MIN_PARTS) + 1):
        start = length = 0
        for place in [*np.flatnonzero(keys[period:] == keys[:-period]).tolist(), len(steps)]:
            if place < len(steps) and not _have_equal_operands(steps[place], steps[place + period], period, positions):
                continue
            if place != start + length:
                count = length // period + 1
                if count >= MIN_PARTS:
                    candidates.append(((count - 2) * period, period, start, count))
                start, length = place, 0
            length += 1
        if candidates and max(candidates)[0] >= SUFFICIENT_SHARE * len(steps):
            break
    return candidates


def _equality_key(item: Any) -> Any:
    """Return the properties that equal steps share, besides their operands."""
    numbers = [a if isinstance(a, (int, float)) else None for a in item.args] if isinstance(item, Value) else []
    if item.opname == "getitem":
        numbers = []
    return item.opname, len(item.args), *numbers, *_kind(item), len(getattr(item, "scope", ()))


def _kind(item: NDArray[Any] | Write) -> tuple[Any, ...]:
    return type(item), getattr(item, "shape", None), getattr(item, "dtype", None)


def _have_equal_operands(one: Any, other: Any, period: int, positions: dict[Any, int]) -> bool:
    """Whether two steps, one period apart, have equal operands."""
    if one.parent_argnums != other.parent_argnums or (isinstance(one, Write) and one.memory is not other.memory):
        return False
    for position in one.parent_argnums:
        a, b = one.args[position], other.args[position]
        if a is b:
            continue
        if a.args or b.args:
            if a not in positions or b not in positions or positions[b] - positions[a] != period:
                return False
        elif _kind(a) != _kind(b):
            return False
    return True


def _only_used_in(parts: list[list[Any]], items: list[Any]) -> list[Any]:
    """Return the leaves that only steps of the parts use."""
    inside = {item for part in parts for item in part}
    leaves = {item: None for item in items if not item.args and not getattr(item, "memory", None)}
    used = {item.args[position] for item in items if item not in inside for position in item.parent_argnums}
    reads = {item.args[position] for item in inside for position in item.parent_argnums}
    return [leaf for leaf in leaves if leaf in reads and leaf not in used]
