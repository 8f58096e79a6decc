"""Arguments that share memory: a write into one changes the other, so their derivatives cannot be separated.

Operators replace each differentiated array by a copy. Where arrays share memory (one array given twice, overlapping views), the
copies are read-only, as are the views of other arguments and captured arrays that share it, so a write raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from compgraph.inplace import memory_behind
from compgraph.storage import owner_of
from compgraph.values import ARGUMENTS, Value, has_history

from .labels import is_labelled

_EXACT = 10_000  # the most work of `numpy.shares_memory`


def memory_of(value: Any) -> Any:
    """The array that holds the numbers of an argument; None for a scalar or a value of another kind."""
    if isinstance(value, Value):
        value = memory_behind(value) if has_history(value) else None
    elif not isinstance(value, np.ndarray) and is_labelled(value):
        value = np.asarray(value)
    return value if isinstance(value, np.ndarray) and value.size else None


def overlap(one: Any, other: Any) -> bool:
    """Whether two arrays share memory; True where the search takes too long."""
    if not np.may_share_memory(one, other):
        return False
    try:
        return np.shares_memory(one, other, max_work=_EXACT)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def find_shared(leaves: Sequence[Any], others: Iterable[Any] = ()) -> frozenset[int]:
    """The positions of the arguments that share memory with another one, or with an array among `others`."""
    arrays = [(position, memory) for position, leaf in enumerate(leaves) if (memory := memory_of(leaf)) is not None]
    arrays += [(-1, memory) for value in others if (memory := memory_of(value)) is not None]
    if len(arrays) < 2 or _are_apart([memory for _, memory in arrays]):
        return frozenset()
    found, around = set[int](), list[tuple[int, int, Any]]()
    bounds = [(*np.lib.array_utils.byte_bounds(memory), position, memory) for position, memory in arrays]
    for low, high, position, memory in sorted(bounds, key=lambda entry: entry[0]):
        around = [entry for entry in around if entry[0] > low]
        for _, before, array in around:
            if (position >= 0 or before >= 0) and overlap(memory, array):
                found |= {position, before}
        around.append((high, position, memory))
    return frozenset(found - {-1})


def _are_apart(arrays: list[Any]) -> bool:
    """Whether each array has a NumPy buffer of its own, the commonest case."""
    owners = [array if array.base is None else owner_of(array) for array in arrays]
    return len({id(owner) for owner in owners}) == len(owners) and all(isinstance(owner, np.ndarray) for owner in owners)


def lock(tracer: Any) -> None:
    """Make an argument tracer read-only."""
    memory = memory_of(tracer)
    if memory is not None:
        memory.flags.writeable = False
        if tracer.trace_kind == "batch":
            tracer.borrows_values = False


def is_locked(value: Any) -> bool:
    """Whether a value is a read-only argument tracer of an outer operator."""
    if not isinstance(value, Value) or not (value.level or type(value) in ARGUMENTS):
        return False
    memory = memory_of(value)
    return memory is not None and memory.base is None and not memory.flags.writeable


def lock_views(views: Iterable[Any], leaves: Iterable[Any]) -> None:
    """Make the views of the caller's arrays that share memory with a leaf read-only."""
    memories = [memory for leaf in leaves if (memory := memory_of(leaf)) is not None]
    for view in views:
        if any(overlap(view, memory) for memory in memories):
            view.flags.writeable = False


def run_locked(
    operator: str,
    shared: frozenset[int],
    leaves: Sequence[Any],
    tracers: Sequence[Any],
    captured: Sequence[Any],
    call: Callable[[], Any],
) -> Any:
    """Call a function on argument tracers; those at the positions `shared` are locked.

    Arguments that share memory with arrays among `captured` are locked as well, with these.
    """
    if captured and (met := find_shared(leaves, captured)):
        for position in met:
            lock(tracers[position])
        lock_views([view for view in captured if not isinstance(view, Value)], [leaves[position] for position in met])
        shared |= met
    if not shared:
        return call()
    try:
        result = call()
    except ValueError as error:
        _explain(error, operator)
        raise
    for position in shared:
        _require_untouched(operator, leaves[position], tracers[position])
    return result


def _explain(error: ValueError, operator: str) -> None:
    """Add to an error about a read-only array that arguments share memory."""
    if len(error.args) == 1 and "read-only" in str(error) and "memory" not in str(error):
        error.args = (
            f"{error}: {operator} was given arrays that share memory (one array twice, overlapping views, or one that the "
            "function also captures), and a write into one would change the others. Give copies (np.copy), or copy inside the "
            "function",
        )


def _require_untouched(operator: str, leaf: Any, tracer: Any) -> None:
    """Raise if an array of the caller changed while the function ran on a read-only copy of it."""
    memory, copy = memory_of(leaf), memory_of(tracer)
    if memory is not None and memory.shape == copy.shape and not np.array_equal(memory, copy, equal_nan=True):
        raise ValueError(
            f"{operator}: the function wrote into an array that shares memory with an argument (shape {memory.shape}); give "
            "copies (np.copy), or copy inside the function"
        )
