"""From a recorded graph to a program: the passes, in their order, and the backends.

A pass is a function from a `Schedule` to a `Schedule`, entered in `PASSES`. If an `Executor` has an option of its name, it runs
only where that is chosen, else always. A backend is entered in `BACKENDS`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from .buffer_allocation import allocate
from .checks import check
from .codegen import NumPyBackend
from .cse import simplify_schedule
from .fusion import fuse
from .schedule import Backend, Family, Program, Schedule

PASSES: dict[str, Callable[[Schedule], Schedule]] = {
    "simplify": simplify_schedule,
    "fuse": fuse,
    "check": check,
    "allocate": allocate,  # last: how long a result is needed hangs on the final order of units
}
BACKENDS: dict[str, Backend] = {"numpy": NumPyBackend()}
# Backends that are imported when they are first asked for: where their class stands.
LAZY = {"llvm": ("compgraph.compiled.llvm.backend", "LLVMBackend")}


def backend_named(name: str) -> Backend:
    """The backend of a name; a KeyError if there is none, an ImportError if what it needs is not installed."""
    if name not in BACKENDS and name in LAZY:
        module, kind = LAZY[name]
        BACKENDS.setdefault(name, getattr(importlib.import_module(module), kind)())
    return BACKENDS[name]


@functools.cache
def fastest_backend() -> str:
    """The name of the backend that makes machine code, where that is there and says that it works; else ``"numpy"``."""
    try:
        works = getattr(backend_named("llvm"), "works", None)
    except (ImportError, KeyError):
        return "numpy"
    return "llvm" if works is not None and works() else "numpy"


def compiled(schedule: Schedule, options: Mapping[str, Any], backend: str) -> Program:
    """The program that a backend makes of a schedule, after the passes; `options` says by name which of them are left out."""
    chosen = backend_named(backend)
    return chosen.compile(_passed(schedule, options, chosen))


def compiled_family(family: Family, options: Mapping[str, Any], backend: str) -> Program:
    """As `compiled`, of the schedule with all turns, which is foretold by some with few; for backends that can do that."""
    chosen: Any = backend_named(backend)
    options = {**options, "fold": False}  # what is computed of constants differs from turn to turn, as 0.9 ** k in a sweep
    schedules = [_passed(schedule, options, chosen) for schedule in family.schedules]
    program: Program = chosen.compile_family(replace(family, schedules=schedules))
    return program


def compiles_families(backend: str) -> bool:
    """Whether `compiled_family` can be asked of a backend."""
    return hasattr(backend_named(backend), "compile_family")


def _passed(schedule: Schedule, options: Mapping[str, Any], chosen: Backend) -> Schedule:
    """A schedule after the passes."""
    left_out = getattr(chosen, "left_out", ())
    schedule = replace(schedule, options=options)
    for name, run in PASSES.items():
        if options.get(name, True) and name not in left_out:
            schedule = run(schedule)
    return replace(schedule, options=options)
