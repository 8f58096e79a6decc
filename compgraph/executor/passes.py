"""Pass pipeline: from a recorded graph to a program, through the passes and a backend.

A pass is a function from a `Schedule` to a `Schedule`, registered in `PASSES`. If an `Executor` has an option of the same name,
the pass runs only if that is set. Backends are registered in `BACKENDS`. The pass `add_result_checks` adds runtime checks of
results whose shape, dtype or integer values may differ from the recorded ones.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import ops
from ..guards import Guard, ProgramMismatchError, UntrackedGuard
from ..storage import value_at
from ..values import MultiOutput, Value
from .block_fusion import fuse
from .buffer_allocation import allocate
from .codegen import NumPyBackend
from .cse import simplify_schedule
from .schedule import Backend, Program, Schedule, TripCountFamily, collect_dependencies


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
        checked_items = frozenset(collect_dependencies(ends, stop=inputs) if untracked_guards else results)
        for item in results:
            if isinstance(item, Value) and item.raw_value.dtype.kind in "biu" and item in checked_items:
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


PASSES: dict[str, Callable[[Schedule], Schedule]] = {
    "simplify": simplify_schedule,
    "fuse": fuse,
    "check": add_result_checks,
    "allocate": allocate,  # last: live ranges depend on the final order of units
}
BACKENDS: dict[str, Backend] = {"numpy": NumPyBackend()}
# Backends that are imported on first use: module and class.
LAZY_BACKENDS = {"llvm": ("compgraph.compiled.llvm.backend", "LLVMBackend")}


def find_backend(name: str | Backend) -> Backend:
    """Return a backend by name; raise a KeyError if it is unknown, an ImportError if a dependency is missing."""
    if not isinstance(name, str):
        return name
    if name not in BACKENDS and name in LAZY_BACKENDS:
        module, class_name = LAZY_BACKENDS[name]
        BACKENDS.setdefault(name, getattr(importlib.import_module(module), class_name)())
    return BACKENDS[name]


@functools.cache
def fastest_backend() -> str:
    """Return the name of the machine-code backend if it is available and works, else ``"numpy"``."""
    try:
        works = getattr(find_backend("llvm"), "works", None)
    except (ImportError, KeyError):
        return "numpy"
    return "llvm" if works is not None and works() else "numpy"


def compile_schedule(schedule: Schedule, options: Mapping[str, Any], backend: str | Backend) -> Program:
    """Run the passes on a schedule and compile it with a backend; a false value in `options` disables the pass of that name."""
    compiler = find_backend(backend)
    return compiler.compile(_run_passes(schedule, options, compiler))


def compile_family(family: TripCountFamily, options: Mapping[str, Any], backend: str | Backend) -> Program:
    """Compile the program of a family's target trip counts, extrapolated from a few iterations, as `compile_schedule` does."""
    compiler: Any = find_backend(backend)
    options = {**options, "fold": False}  # expressions of constants differ between iterations, as 0.9 ** k in a sweep
    schedules = [_run_passes(schedule, options, compiler) for schedule in family.schedules]
    program: Program = compiler.compile_family(replace(family, schedules=schedules))
    return program


def supports_families(backend: str | Backend) -> bool:
    """Return whether a backend has `compile_family`."""
    return hasattr(find_backend(backend), "compile_family")


def _run_passes(schedule: Schedule, options: Mapping[str, Any], backend: Backend) -> Schedule:
    """Run the enabled passes on a schedule."""
    skipped_passes = getattr(backend, "skipped_passes", ())
    for name, apply_pass in PASSES.items():
        if options.get(name, True) and name not in skipped_passes:
            schedule = apply_pass(replace(schedule, options=options))
    return replace(schedule, options=options)
