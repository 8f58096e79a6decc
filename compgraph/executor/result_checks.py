"""Runtime checks of results whose shape, dtype or integer values may differ from those a program was written for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import ops
from ..guards import Guard, ProgramMismatchError, UntrackedGuard
from ..storage import value_at
from ..values import MultiOutput, Value
from .schedule import Schedule, collect_dependencies


def require_shape(result: NDArray[Any] | np.generic, shape: tuple[int, ...]) -> None:
    """Raise a ProgramMismatchError unless a result has the expected shape."""
    if np.shape(result) != shape:
        raise ProgramMismatchError


def require_dtype(result: NDArray[Any], dtype: np.dtype[Any]) -> None:
    """Raise a ProgramMismatchError unless a result has the expected dtype."""
    if result.dtype != dtype:
        raise ProgramMismatchError


def require_same(result: NDArray[Any], expected: NDArray[Any]) -> None:
    """Raise a ProgramMismatchError unless a result equals the recorded one."""
    if not np.array_equal(result, expected):
        raise ProgramMismatchError(
            "integers or booleans differ from those the graph was recorded with. The graph writes into arrays, and its "
            "derivatives hold only for the recorded indices. Record it again with these values"
        )


def add_result_checks(schedule: Schedule) -> Schedule:
    """Add the runtime checks of results to a schedule (a pass).

    A recorded derivative holds only for the recorded indices of writes, and any integer or boolean may be such an index. A trace
    has guards on these indices (the option ``has_index_guards``). A recorded graph has none, so all its integers and booleans
    are checked.
    """
    inputs = frozenset(schedule.inputs)
    results = [item for item in schedule.items if (item in inputs or item.args) and isinstance(item, (Value, MultiOutput))]
    is_guarded = schedule.options.get("has_index_guards", False)
    if not is_guarded and any(isinstance(item, Value) and item.memory for item in schedule.items):
        untracked_guards = [item for item in schedule.items if isinstance(item, UntrackedGuard)]
        ends = [*schedule.outputs, *(item for item in schedule.items if isinstance(item, Guard) and item not in untracked_guards)]
        needed = frozenset(collect_dependencies(ends, stop=inputs) if untracked_guards else results)
        for item in results:
            if isinstance(item, Value) and item.raw_value.dtype.kind in "biu" and item in needed:
                initial_value = value_at(item, item.sequence_number) if item.memory else item.raw_value
                schedule.checks.setdefault(item, []).append((require_same, np.array(initial_value)))
    for item in results:
        if item not in inputs and isinstance(item, Value):
            _add_type_checks(item, schedule.checks)
    return schedule


def _add_type_checks(item: Any, checks: dict[Any, list[Any]]) -> None:
    """Add checks of a result's dtype and shape, which may depend on values."""
    operation = item.args[0] if isinstance(item.function, ops.Output) else item
    function = operation.function
    if isinstance(function, np.ufunc):
        return
    if function in ops.VALUE_DEPENDENT_DTYPES or getattr(function, "function", None) in ops.VALUE_DEPENDENT_DTYPES:
        checks.setdefault(item, []).append((require_dtype, item.dtype))
    reads_integers = any(
        a.raw_value.dtype.kind in "biu" for p in operation.parent_argnums if isinstance(a := operation.args[p], Value)
    )
    if reads_integers or ops.has_value_dependent_shape(function, operation.args, operation.parent_argnums):
        checks.setdefault(item, []).append((require_shape, item.raw_value.shape))
