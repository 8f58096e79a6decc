"""Arguments that share memory. A write into one changes the other, so their derivatives cannot be separated.

Operators replace each differentiated array by a copy. If arrays share memory (one array passed twice, overlapping views), their
copies are read-only. Views of other arguments and of captured arrays in that memory are read-only too. A write raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.inplace import backing_array
from compgraph.storage import owner_of
from compgraph.values import ARGUMENTS, Value, has_history

from .labeled_arrays import is_labeled

_MAX_WORK = 10_000  # of `numpy.shares_memory`


def array_of(value: object) -> Any:
    """Return the array with the values of an argument; None for scalars and other objects."""
    if isinstance(value, Value):
        value = backing_array(value) if has_history(value) else None
    elif not isinstance(value, np.ndarray) and is_labeled(value):
        value = np.asarray(value)
    return value if isinstance(value, np.ndarray) and value.size else None


def overlap(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two arrays share memory; True if that takes too long to determine."""
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_MAX_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def find_shared_positions(leaves: Sequence[object], others: Iterable[object] = ()) -> frozenset[int]:
    """Return the positions of leaves that share memory with another leaf, or with an array in `others`."""
    arrays = [(position, memory) for position, leaf in enumerate(leaves) if (memory := array_of(leaf)) is not None]
    arrays += [(-1, memory) for value in others if (memory := array_of(value)) is not None]
    if len(arrays) < 2 or _have_separate_owners([memory for _, memory in arrays]):
        return frozenset()
    shared, open_intervals = set[int](), list[tuple[int, int, Any]]()
    bounds = [(*np.lib.array_utils.byte_bounds(memory), position, memory) for position, memory in arrays]
    for low, high, position, memory in sorted(bounds, key=lambda entry: entry[0]):
        open_intervals = [entry for entry in open_intervals if entry[0] > low]
        for _, other, array in open_intervals:
            if (position >= 0 or other >= 0) and overlap(memory, array):
                shared |= {position, other}
        open_intervals.append((high, position, memory))
    return frozenset(shared - {-1})


def _have_separate_owners(arrays: Sequence[NDArray[Any]]) -> bool:
    """Whether each array has a separate NumPy buffer, which is the most frequent case."""
    owners = [array if array.base is None else owner_of(array) for array in arrays]
    return len({id(owner) for owner in owners}) == len(owners) and all(isinstance(owner, np.ndarray) for owner in owners)


def make_read_only(tracer: Any) -> None:
    """Make an argument tracer read-only."""
    memory = array_of(tracer)
    if memory is not None:
        memory.flags.writeable = False
        if tracer.trace_kind == "batch":
            tracer.borrows_values = False


def is_read_only_tracer(value: object) -> bool:
    """Whether a value is a read-only argument tracer of an outer operator."""
    if not isinstance(value, Value) or not (value.level or type(value) in ARGUMENTS):
        return False
    memory = array_of(value)
    return memory is not None and memory.base is None and not memory.flags.writeable


def make_views_read_only(views: Iterable[NDArray[Any]], leaves: Iterable[object]) -> None:
    """Make views read-only that share memory with a leaf."""
    memories = [memory for leaf in leaves if (memory := array_of(leaf)) is not None]
    for view in views:
        if any(overlap(view, memory) for memory in memories):
            view.flags.writeable = False


def call_with_read_only(
    operator: str,
    shared: frozenset[int],
    leaves: Sequence[object],
    tracers: Sequence[object],
    captured: Sequence[Any],
    call: Callable[[], Any],
) -> Any:
    """Call a function on argument tracers, with those that share memory made read-only.

    Parameters
    ----------
    operator : str
        The name of the operator, for messages.
    shared : frozenset of int
        Positions of leaves that share memory with others.
    leaves, tracers : sequence
        The arguments of the caller, and their tracers.
    captured : sequence
        Arrays that the function captures. Leaves that share memory with them, and their views, become read-only too.
    call : callable
        Calls the function.

    Raises
    ------
    ValueError
        If the function writes into one of these arrays.
    """
    if captured and (also_shared := find_shared_positions(leaves, captured)):
        for position in also_shared:
            make_read_only(tracers[position])
        make_views_read_only(
            [view for view in captured if not isinstance(view, Value)], [leaves[position] for position in also_shared]
        )
        shared |= also_shared
    if not shared:
        return call()
    try:
        result = call()
    except ValueError as error:
        _explain_read_only(error, operator)
        raise
    for position in shared:
        _require_unchanged(operator, leaves[position], tracers[position])
    return result


def _explain_read_only(error: ValueError, operator: str) -> None:
    """Add to an error about a read-only array that arguments share memory."""
    if len(error.args) == 1 and "read-only" in str(error) and "memory" not in str(error):
        error.args = (
            f"{error}: {operator} got arrays that share memory (one array twice, overlapping views, or one that the function "
            "also captures), and a write into one would change the others. Pass copies (np.copy), or copy inside the function",
        )


def _require_unchanged(operator: str, leaf: object, tracer: object) -> None:
    """Raise if an array of the caller changed while the function ran on a read-only copy of it."""
    memory, copy = array_of(leaf), array_of(tracer)
    if memory is not None and memory.shape == copy.shape and not np.array_equal(memory, copy, equal_nan=True):
        raise ValueError(
            f"{operator}: the function wrote into an array that shares memory with an argument of shape {memory.shape}. Pass "
            "copies (np.copy), or copy inside the function"
        )
