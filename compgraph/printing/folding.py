"""Detection of repeated parts of a graph (layers, loop iterations). A listing shows only the first and the last part."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import ops
from ..storage import Write
from ..values import Value

MAX_PERIOD = 200  # steps in a part
MIN_PARTS = 4  # in a run; of three parts, folding would hide only one
MAX_STEPS = 20_000  # only the last steps are searched
SUFFICIENT_SHARE = 0.9  # the search ends when a run hides this fraction of the steps


class Run(NamedTuple):
    """Consecutive equal parts: the first, the middle ones, and the leaves that only the middle ones use."""

    first: list[Any]
    middle: list[list[Any]]
    leaves: list[Any]


class _Candidate(NamedTuple):
    """A possible run: `num_parts` parts of `period` steps. The middle parts are hidden."""

    hidden_steps: int
    period: int
    start: int
    num_parts: int


def find_runs(items: list[Any]) -> list[Run]:
    """Return the runs of equal parts among the steps of a graph. Of overlapping runs, the one that hides most steps is chosen.

    Equal steps are the same operation, with results of the same shape and dtype. Each operand is the same node, or was computed
    the same number of steps before, or is a leaf of the same kind. Indices may differ.
    """
    steps = [item for item in items if item.args][-MAX_STEPS:]
    step_indices = {item: index for index, item in enumerate(steps)}
    codes: dict[Any, int] = {}
    keys = np.array([codes.setdefault(_equality_key(item), len(codes)) for item in steps], dtype=np.int64)
    is_covered = np.zeros(len(steps), bool)
    runs = []
    candidates = _find_candidates(steps, step_indices, keys)
    for _, period, start, count in sorted(candidates, key=lambda run: (-run.hidden_steps, run.period)):
        span = slice(start, start + period * count)
        if not is_covered[span].any():
            is_covered[span] = True
            parts = [steps[start + k * period : start + (k + 1) * period] for k in range(count)]
            runs.append(Run(parts[0], parts[1:-1], _find_leaves_used_only_in(parts[1:-1], items)))
    return runs


def _find_candidates(steps: list[Any], step_indices: dict[Any, int], keys: NDArray[Any]) -> list[_Candidate]:
    """Return the runs of each period; they may overlap."""
    candidates = []
    for period in range(1, min(MAX_PERIOD, len(steps) // MIN_PARTS) + 1):
        start = length = 0
        for index in [*np.flatnonzero(keys[period:] == keys[:-period]).tolist(), len(steps)]:
            if index < len(steps) and not _have_equal_operands(steps[index], steps[index + period], period, step_indices):
                continue
            if index != start + length:
                count = length // period + 1
                if count >= MIN_PARTS:
                    candidates.append(_Candidate((count - 2) * period, period, start, count))
                start, length = index, 0
            length += 1
        if candidates and max(candidates).hidden_steps >= SUFFICIENT_SHARE * len(steps):
            break
    return candidates


def _equality_key(item: Any) -> Any:
    """Return the properties that equal steps share, besides their operands."""
    numbers = [a if isinstance(a, (int, float)) else None for a in item.args] if isinstance(item, Value) else []
    if getattr(item, "function", None) is ops.getitem:
        numbers = []
    return item.opname, len(item.args), *numbers, *_kind(item), len(getattr(item, "scope", ()))


def _kind(item: NDArray[Any] | Write) -> tuple[Any, ...]:
    return type(item), getattr(item, "shape", None), getattr(item, "dtype", None)


def _have_equal_operands(one: Any, other: Any, period: int, step_indices: dict[Any, int]) -> bool:
    """Whether two steps, one period apart, have equal operands."""
    if one.parent_argnums != other.parent_argnums or (isinstance(one, Write) and one.memory is not other.memory):
        return False
    for argnum in one.parent_argnums:
        a, b = one.args[argnum], other.args[argnum]
        if a is b:
            continue
        if a.args or b.args:
            if a not in step_indices or b not in step_indices or step_indices[b] - step_indices[a] != period:
                return False
        elif _kind(a) != _kind(b):
            return False
    return True


def _find_leaves_used_only_in(parts: list[list[Any]], items: list[Any]) -> list[Any]:
    """Return the leaves that only steps of the parts use."""
    part_steps = {item for part in parts for item in part}
    leaves = [item for item in items if not item.args and not getattr(item, "memory", None)]
    operands_outside = {item.args[argnum] for item in items if item not in part_steps for argnum in item.parent_argnums}
    operands_inside = {item.args[argnum] for item in part_steps for argnum in item.parent_argnums}
    return [leaf for leaf in leaves if leaf in operands_inside and leaf not in operands_outside]
