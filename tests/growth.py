"""How the work of a program grows with its size, counted and not timed.

What is counted, while the program runs:

steps
    Lines of Python that run, calls of Python functions and calls of functions in C, anywhere: in this project, in NumPy, in
    the standard library. A loop steps through its line once a turn.
bytes
    Memory asked for, as `tracemalloc` sees it between two steps: arrays, tuples and lists of any length, whoever makes
    them. So a single call that makes an array of n zeros, or copies n arguments, is seen although it is one step.

Not seen is what works on memory that is there already within one step, such as the sum of a list of numbers. Both numbers
are the same in every run on one Python, to a few steps: nothing depends on the machine, nor on what else it does.
"""

from __future__ import annotations

import gc
import math
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple


class Work(NamedTuple):
    """What a program did."""

    steps: int
    bytes: int


class Growth(NamedTuple):
    """The exponents with which the work of a program grows from 2n to 4n, and what it was for n, 2n and 4n."""

    steps: float
    bytes: float
    counted: tuple[Work, ...]


def work_of(program: Callable[[], object]) -> Work:
    """Run a program, and count what it does."""
    steps = total = 0
    before = 0
    traced, reset = tracemalloc.get_traced_memory, tracemalloc.reset_peak

    def step(frame: Any, event: str, argument: Any) -> Any:
        nonlocal steps, total, before
        now, peak = traced()
        steps += 1
        if peak > before:
            total += peak - before
        reset()
        before = now
        return step

    enabled = gc.isenabled()
    tracing, profiling = sys.gettrace(), sys.getprofile()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        before = traced()[0]
        reset()
        sys.setprofile(step)
        sys.settrace(step)
        program()
    finally:
        sys.settrace(tracing)
        sys.setprofile(profiling)
        tracemalloc.stop()
        if enabled:
            gc.enable()
    return Work(steps, total)


def growth_of(prepared: Callable[[int], Callable[[], object]], n: int) -> Growth:
    """How the work of a program grows.

    Parameters
    ----------
    prepared : callable
        Of a size, the program of that size.
    n : int
        The smallest of three sizes, n, 2n and 4n.
    """
    for _ in range(2):
        prepared(max(n // 8, 2))()  # what is found, or compiled, at first use
    a, b, c = counted = tuple([work_of(prepared(k * n)) for k in (1, 2, 4)])
    return Growth(*[_exponent(x, y, z) for x, y, z in zip(a, b, c, strict=True)], counted)


def _exponent(a: int, b: int, c: int) -> float:
    """The p of ``k + m * n**p``: what does not depend on the size drops out of the differences."""
    return math.log2(max(c - b, 1) / max(b - a, 1)) if c > b else 0.0
