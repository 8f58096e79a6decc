"""Sweeps that are active_profiler: their adjoints are told, node by node, to a profiler; see `compgraph.profiling`.

The sweeps themselves know nothing of it. A mapping that tells what is put into it stands in the place of a plain one, and where a
sweep goes back through writes, methods that tell of their calls in the place of two of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from compgraph.profiling import BACKWARD, TANGENT
from compgraph.values import Value

from ..rules import DEFERRED, Parts, Scatter

ndarray = np.ndarray
_put = dict.__setitem__


def parts_of(adjoint: Any) -> list[Any]:
    """The arrays of an adjoint, also of one that waits to be put together."""
    if type(adjoint) is Scatter:
        parts = [adjoint.dense, *adjoint.pieces[-1:]]  # those before were told already
    else:
        parts = list(adjoint.found.values()) if type(adjoint) is Parts else [adjoint]
    return [part.raw_value if isinstance(part, Value) else part for part in parts]


class Adjoints(dict[Any, Any]):
    """The adjoints of a sweep. What passes until one is put in is the time of the node that the sweep is at.

    Parameters
    ----------
    adjoints : dict
        Those it starts from.
    errors : RuleErrors
        Whose `at` is the node that the sweep is at.
    profiler : Recorder
        What is told.
    """

    __slots__ = ("around", "entry", "errors", "node", "profiler", "since", "start")

    def __init__(self, adjoints: dict[Any, Any], errors: Any, profiler: Any) -> None:
        super().__init__(adjoints)
        self.errors, self.profiler, self.node = errors, profiler, None
        self.entry: Any = None
        self.around, profiler.top = profiler.top, None  # the steps of rules are told before their node is known
        self.start = self.since = perf_counter()

    def __setitem__(self, node: Any, adjoint: Any) -> None:
        _put(self, node, adjoint)
        profiler, at = self.profiler, self.errors.at
        steps = profiler.top
        if steps is not None or at is not self.node:
            self._reach(at, steps)
        entry = self.entry
        if type(adjoint) is ndarray:
            profiler.hold(entry, adjoint)
        elif type(adjoint) in DEFERRED or isinstance(adjoint, Value):
            for part in parts_of(adjoint):
                profiler.hold(entry, part)
        now = perf_counter()
        entry.seconds += now - self.since
        self.since = now

    def _reach(self, at: Any, steps: Any) -> None:
        """Find the entry of the node that the sweep has come to, and give it its steps."""
        profiler = self.profiler
        profiler.top = self.around
        if at is not self.node:
            self.node, self.entry = at, profiler.entry_of(BACKWARD, at)
            self.entry.calls += 1
        if steps is not None:
            self.entry.take(steps)
        self.around, profiler.top = profiler.top, None

    def close(self, found: dict[Any, Any]) -> None:
        """End the sweep, which has found these adjoints."""
        profiler = self.profiler
        steps, profiler.top = profiler.top, self.around
        profiler.adopt(steps)
        if self.entry is not None:
            for adjoint in found.values():  # what was put together last
                for part in parts_of(adjoint):
                    profiler.hold(self.entry, part)
        profiler.swept(self.start)
        self.node = self.errors = None


class Told(dict[Any, Any]):
    """What a sweep through time keeps: adjoints, or buffers, whose memory a profiler is told."""

    __slots__ = ("profiler",)

    def __init__(self, profiler: Any) -> None:
        super().__init__()
        self.profiler = profiler

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.profiler.held(parts_of(getattr(value, "buffer", value)))


def told_pass(
    profiler: Any, output: Any, adjoints: dict[Any, Any], errors: Any, sweep: Callable[[Any], dict[Any, Any]]
) -> dict[Any, Any]:
    """One pass, ``sweep(adjoints)``, over a graph without writes."""
    _tell_seed(profiler, output, adjoints)
    told = Adjoints(adjoints, errors, profiler)
    found: dict[Any, Any] = {}
    log = errors.log
    errors.log = [] if log is None else log  # a sweep with a log puts in each piece of an adjoint by itself
    try:
        found = sweep(told)
    finally:
        errors.log = log
        told.close(found)
    return found


def told_past(profiler: Any, past: Any, output: Any, seed: Any, sweep: Callable[[], dict[Any, Any]]) -> dict[Any, Any]:
    """One pass, ``sweep()``, over a graph with writes, or of many adjoints, by a `Past`."""
    start = perf_counter()
    past.adjoints, past.shadows, past.values = Told(profiler), Told(profiler), Told(profiler)
    pass_on, undo = past.pass_on, past.undo

    def told_pass_on(node: Any, *args: Any) -> None:
        opened = profiler.begin_at(BACKWARD, node)
        try:
            pass_on(node, *args)
        finally:
            profiler.end(opened)

    def told_undo(write: Any, needed: Any) -> None:
        opened = profiler.begin(BACKWARD, write.opname, write.code, write.instruction, write.scope)
        try:
            undo(write, needed)
        finally:
            profiler.end(opened)

    past.pass_on, past.undo = told_pass_on, told_undo
    _tell_seed(profiler, output, {output: seed})
    try:
        return sweep()
    finally:
        del past.pass_on, past.undo  # they refer to it, and no graph should wait for the garbage collector
        profiler.swept(start)


def told_step(profiler: Any, step: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A step of a pass forward, ``step(node, tangents)``, that is told."""

    def told(node: Any, given: Any) -> Any:
        opened = profiler.begin_at(TANGENT, node)
        try:
            tangent = step(node, given)
            profiler.held(tangent)
            return tangent
        finally:
            profiler.end(opened)

    return told


def _tell_seed(profiler: Any, output: Any, adjoints: dict[Any, Any]) -> None:
    """Tell the adjoints that a sweep starts from, which belong to the output."""
    for adjoint in adjoints.values():
        for part in parts_of(adjoint):
            profiler.hold(profiler.entry_of(BACKWARD, output), part)
