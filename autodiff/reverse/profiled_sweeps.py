"""Sweeps under a profiler, which records time and memory node by node; see `compgraph.profiling`.

The sweeps contain no profiling code. A mapping that reports its assignments replaces the plain dictionary of cotangents. In a
replay, two methods are replaced by ones that report their calls.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from compgraph.array_types import Array
from compgraph.profiling import BACKWARD, TANGENT
from compgraph.values import Value

from ..rules import LAZY_COTANGENTS, OutputCotangents, ScatteredCotangent

ndarray = np.ndarray
_dict_setitem = dict.__setitem__


def arrays_of(cotangent: Array | OutputCotangents | ScatteredCotangent) -> list[Any]:
    """Return the arrays of a cotangent, also of a lazy one."""
    if type(cotangent) is ScatteredCotangent:
        parts = [cotangent.dense, *cotangent.updates[-1:]]  # the others were recorded before
    else:
        parts = list(cotangent.cotangents.values()) if type(cotangent) is OutputCotangents else [cotangent]
    return [part.raw_value if isinstance(part, Value) else part for part in parts]


class ProfiledCotangents(dict[Any, Any]):
    """The cotangents of a sweep. The time between two assignments is attributed to the current node of the sweep.

    Parameters
    ----------
    cotangents : dict
        The cotangents that the sweep starts from.
    errors : RuleErrors
        Its `current_node` is that of the sweep.
    profiler : Recorder
        Receives the measurements.
    """

    __slots__ = ("entry", "errors", "node", "outer_top", "profiler", "since", "start")

    def __init__(self, cotangents: dict[Any, Any], errors: Any, profiler: Any) -> None:
        super().__init__(cotangents)
        self.errors, self.profiler, self.node = errors, profiler, None
        self.entry: Any = None
        self.outer_top, profiler.top = (
            profiler.top,
            None,
        )  # a rule's steps are collected first, because their node is not known yet
        self.start = self.since = perf_counter()

    def __setitem__(self, node: Any, cotangent: Any) -> None:
        _dict_setitem(self, node, cotangent)
        profiler, node_of_rule = self.profiler, self.errors.current_node
        steps = profiler.top
        if steps is not None or node_of_rule is not self.node:
            self._enter_node(node_of_rule, steps)
        entry = self.entry
        if type(cotangent) is ndarray:
            profiler.track(entry, cotangent)
        elif type(cotangent) in LAZY_COTANGENTS or isinstance(cotangent, Value):
            for part in arrays_of(cotangent):
                profiler.track(entry, part)
        now = perf_counter()
        entry.seconds += now - self.since
        self.since = now

    def _enter_node(self, node: Any, steps: Any) -> None:
        """Select the profile entry of the current node, and add to it the steps that its rule recorded."""
        profiler = self.profiler
        profiler.top = self.outer_top
        if node is not self.node:
            self.node, self.entry = node, profiler.entry_of(BACKWARD, node)
            self.entry.calls += 1
        if steps is not None:
            self.entry.merge(steps)
        self.outer_top, profiler.top = profiler.top, None

    def close(self, wrt_cotangents: dict[Any, Any]) -> None:
        """End the sweep with its results."""
        profiler = self.profiler
        steps, profiler.top = profiler.top, self.outer_top
        profiler.merge_steps(steps)
        if self.entry is not None:
            for cotangent in wrt_cotangents.values():  # lazy cotangents are materialized at the end
                for part in arrays_of(cotangent):
                    profiler.track(self.entry, part)
        profiler.record_sweep(self.start)
        self.node = self.errors = None


class ProfiledBuffers(dict[Any, Any]):
    """The cotangents or buffers of a replay; the profiler records their memory."""

    __slots__ = ("profiler",)

    def __init__(self, profiler: Any) -> None:
        super().__init__()
        self.profiler = profiler

    def __setitem__(self, key: object, value: Any) -> None:
        super().__setitem__(key, value)
        self.profiler.track_all(arrays_of(getattr(value, "buffer", value)))


def profile_pass(
    profiler: object, output: object, cotangents: dict[Any, Any], errors: Any, sweep: Callable[[Any], dict[Any, Any]]
) -> dict[Any, Any]:
    """Profile one pass, ``sweep(cotangents)``, over a graph without writes."""
    _record_seed(profiler, output, cotangents)
    profiled_cotangents = ProfiledCotangents(cotangents, errors, profiler)
    wrt_cotangents: dict[Any, Any] = {}
    log = errors.log
    errors.log = [] if log is None else log  # a sweep with a log assigns each update of a cotangent
    try:
        wrt_cotangents = sweep(profiled_cotangents)
    finally:
        errors.log = log
        profiled_cotangents.close(wrt_cotangents)
    return wrt_cotangents


def profile_replay(
    profiler: Any, replay: Any, output: object, seed: Array, sweep: Callable[[], dict[Any, Any]]
) -> dict[Any, Any]:
    """Profile one pass, ``sweep()``, by a `Replay`."""
    start = perf_counter()
    replay.cotangents = ProfiledBuffers(profiler)
    replay.cotangent_buffers = ProfiledBuffers(profiler)
    replay.value_buffers = ProfiledBuffers(profiler)
    propagate, undo = replay.propagate, replay.undo

    def profiled_propagate(node: Any, *args: object) -> None:
        entry = profiler.begin_at(BACKWARD, node)
        try:
            propagate(node, *args)
        finally:
            profiler.end(entry)

    def profiled_undo(write: Any, needed_ids: object) -> None:
        entry = profiler.begin(BACKWARD, write.opname, write.code, write.instruction, write.scope)
        try:
            undo(write, needed_ids)
        finally:
            profiler.end(entry)

    replay.propagate, replay.undo = profiled_propagate, profiled_undo
    _record_seed(profiler, output, {output: seed})
    try:
        return sweep()
    finally:
        del replay.propagate, replay.undo  # they form a reference cycle, which would delay freeing the graph
        profiler.record_sweep(start)


def profile_step(profiler: Any, step: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Profile a step of a forward pass, ``step(node, tangents)``."""

    def profiled_step(node: Any, operand_tangents: object) -> Any:
        entry = profiler.begin_at(TANGENT, node)
        try:
            tangent = step(node, operand_tangents)
            profiler.track_all(tangent)
            return tangent
        finally:
            profiler.end(entry)

    return profiled_step


def _record_seed(profiler: Any, output: Any, cotangents: dict[Any, Any]) -> None:
    """Record the cotangents that a sweep starts from, at the output."""
    for cotangent in cotangents.values():
        for part in arrays_of(cotangent):
            profiler.track(profiler.entry_of(BACKWARD, output), part)
