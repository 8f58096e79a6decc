"""Pass pipeline: from a recorded graph to a program, through the passes and a backend.

A pass is a function from a `Schedule` to a `Schedule`, registered in `PASSES`. If an `Executor` has an option of the same name,
the pass runs only if that is set. Backends are registered in `BACKENDS`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from .block_fusion import fuse
from .buffer_allocation import allocate
from .codegen import NumPyBackend
from .cse import simplify_schedule
from .result_checks import add_result_checks
from .schedule import Backend, Program, Schedule, TripCountFamily

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
