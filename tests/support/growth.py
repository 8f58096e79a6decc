"""How the work of a program grows with its size, counted and not timed.

The counts of a program's run:

steps
    Lines of Python that run, and calls of Python functions, anywhere: in this project, in NumPy, in the standard library.
    A loop steps through its line once per iteration.
bytes
    Memory allocated between two lines, calls or returns (also of C functions), as measured by `tracemalloc`: arrays, tuples and
    lists of any length. A single call that allocates n zeros or copies n arguments is therefore counted, although it is one
    step. Memory allocated and freed in between counts by its peak.

Work within one step on existing memory, such as the sum of a list, is not counted. Both counts are reproducible on one Python,
to a few steps; they do not depend on the machine or its load.
"""

from __future__ import annotations

import gc
import math
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple


class Work(NamedTuple):
    """The work of a program."""

    steps: int
    bytes: int


class Growth(NamedTuple):
    """The exponents with which the work of a program grows from 2n to 4n, and its work for n, 2n and 4n."""

    steps: float
    bytes: float
    counted: tuple[Work, ...]


def work_of(program: Callable[[], object]) -> Work:
    """Run a program, and count its work."""
    steps = total = 0
    before = 0
    traced, reset = tracemalloc.get_traced_memory, tracemalloc.reset_peak

    def line(frame: Any, event: str, argument: Any) -> Any:
        nonlocal steps
        steps += 1
        call(frame, event, argument)
        return line

    def call(frame: Any, event: str, argument: Any) -> None:
        nonlocal total, before
        now, peak = traced()
        if peak > before:
            total += peak - before
        reset()
        before = now

    enabled = gc.isenabled()
    tracing, profiling = sys.gettrace(), sys.getprofile()
    gc.disable()
    tracemalloc.start()
    try:
        before = traced()[0]
        reset()
        sys.setprofile(call)
        sys.settrace(line)
        program()
    finally:
        sys.settrace(tracing)
        sys.setprofile(profiling)
        tracemalloc.stop()
        if enabled:
            gc.enable()
    return Work(steps, total)


def growth_of(prepared: Callable[[int], Callable[[], object]], n: int, runs: int = 1) -> Growth:
    """How the work of a program grows.

    Parameters
    ----------
    prepared : callable
        Of a size, the program of that size.
    n : int
        The smallest of three sizes, n, 2n and 4n.
    runs : int
        Number of runs per size. The least work counts, because a hash table of the process may be resized during a run.
    """
    prepared(4 * n)()  # fill caches of the first use, and grow tables of the process
    a, b, c = counted = tuple([_least_work(prepared, k * n, runs) for k in (1, 2, 4)])
    return Growth(*[_exponent(x, y, z) for x, y, z in zip(a, b, c, strict=True)], counted)


def require_growth(
    prepared: Callable[[int], Callable[[], object]], n: int, exponent: float = 1, bytes_margin: float = 0.8
) -> None:
    """Raise unless steps and bytes grow at most as a power of the size.

    Each size runs once, and three times before a failure is reported.

    Parameters
    ----------
    prepared : callable
        Of a size, the program of that size.
    n : int
        The smallest of three sizes, n, 2n and 4n.
    exponent : float
        The power.
    bytes_margin : float
        Tolerance of the exponent of the bytes: growing lists and hash tables are reallocated in jumps, which matter in small
        programs.
    """
    for runs in (1, 3):
        growth = growth_of(prepared, n, runs)
        if growth.steps < exponent + 0.1 and growth.bytes < exponent + bytes_margin:
            return
    raise AssertionError(
        f"steps grow as n**{growth.steps:.2f} and bytes as n**{growth.bytes:.2f}, not n**{exponent}: {growth.counted}"
    )


def _least_work(prepared: Callable[[int], Callable[[], object]], n: int, runs: int) -> Work:
    """The least work of several runs of a program."""
    return Work(*map(min, zip(*[work_of(prepared(n)) for _ in range(runs)], strict=True)))


def _exponent(a: int, b: int, c: int) -> float:
    """The p of ``k + m * n**p``; the constant cancels in the differences. 0 if the differences vanish."""
    return math.log2((c - b) / max(b - a, 1)) if c - a > 0.1 * a else 0.0


def calls(run: Callable[[], object]) -> int:
    """Count the functions that a program calls, including C functions except ``id``."""
    count = 0

    def told(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call" or (event == "c_call" and argument is not id)

    before, was_collecting = sys.getprofile(), gc.isenabled()
    gc.disable()  # its callbacks, such as those of hypothesis, are not calls of the program
    sys.setprofile(told)
    try:
        run()
    finally:
        sys.setprofile(before)
        if was_collecting:
            gc.enable()
    return count
