"""From a recorded graph to a program: the passes, in their order, and the backends.

A pass is a function from a `Schedule` to a `Schedule`, entered in `PASSES`. If an `Executor` has an option of its name, it runs
only where that is chosen, else always. A backend is entered in `BACKENDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .buffer_allocation import allocate
from .checks import check
from .codegen import NumPyBackend
from .cse import simplify
from .fusion import fuse
from .schedule import Backend, Program, Schedule

PASSES: dict[str, Callable[[Schedule], Schedule]] = {
    "simplify": simplify,
    "fuse": fuse,
    "check": check,
    "allocate": allocate,  # last: how long a result is needed hangs on the final order of units
}
BACKENDS: dict[str, Backend] = {"numpy": NumPyBackend()}


def compiled(schedule: Schedule, options: Mapping[str, bool], backend: str) -> Program:
    """The program that a backend makes of a schedule, after the passes; `options` says by name which of them are left out."""
    for name, run in PASSES.items():
        if options.get(name, True):
            schedule = run(schedule)
    return BACKENDS[backend].compile(schedule)
