"""`Schedule`: the intermediate representation that passes transform and backends compile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol

import numpy as np

from ..graph import walk
from ..guards import Guard
from ..values import Origin, Value


@dataclass
class Schedule:
    """The computation of some nodes from others, as a sequence of units.

    Attributes
    ----------
    units : list of list
        The units to run, in order. Each holds one item (a node, multi-output operation, write or guard), or is a fused `Group`.
    inputs : list of Node
        The nodes whose values are passed to a program, in order. Inputs that outputs depend on are among the items; their
        operands are not.
    outputs : list of Node
        The results, in order.
    buffers : dict
        Preallocated arrays by node. Several nodes share an array, so a program supports one run at a time.
    frees : dict
        By position of a unit, the nodes without a buffer that are dead after it.
    checks : dict
        Runtime checks by node or multi-output operation: pairs of a function and an expected value. The function takes the
        result and the expected value, and raises a ProgramMismatchError.
    options : mapping
        The user's options by name; each backend reads those it supports.
    """

    units: list[list[Any]]
    inputs: list[Any]
    outputs: list[Any]
    buffers: dict[Any, Any] = field(default_factory=dict)
    frees: dict[int, list[Any]] = field(default_factory=dict)
    checks: dict[Any, list[tuple[Callable[[Any, Any], None], Any]]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, outputs: Sequence[Any], guards: Iterable[Any], inputs: Sequence[Any]) -> Schedule:
        """Return the schedule of some nodes and guards, one item per unit, in the order of recording."""
        items = collect_dependencies((*outputs, *guards), stop=inputs)
        return cls([[item] for item in items], list(inputs), list(outputs))

    @property
    def items(self) -> list[Any]:
        """The items of all units, in order."""
        return [item for unit in self.units for item in unit]


@dataclass
class TripCountFamily:
    """Schedules of one function that differ in the trip counts of its loops; the target has many more iterations.

    Attributes
    ----------
    trip_counts : list of tuple of int
        The trip count of each loop, for each schedule.
    schedules : list of Schedule
        The first is the reference. In each of the next ones, one loop has more iterations. The remaining ones must match
        the extrapolation.
    target : tuple of int
        The trip counts of the compiled program.
    tables : list
        Arrays passed to the program after the values of a call: constants that differ between iterations.
    numpy_fallback : callable
        ``numpy_fallback(values)`` computes the outputs of the program with NumPy, from the values of a call and `tables`.
    """

    trip_counts: list[tuple[int, ...]]
    schedules: list[Schedule]
    target: tuple[int, ...]
    tables: list[Any]
    numpy_fallback: Callable[[Sequence[Any]], tuple[Any, ...]]


class Program(Protocol):
    """A compiled schedule.

    Attributes
    ----------
    source : str
        Readable source of the program.
    """

    source: str

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the outputs from the inputs. No two outputs share memory with each other or with anything else.

        Raises a GuardError if the value of a guard differs from the recorded one, and a ProgramMismatchError if a check fails.
        Threads may call it concurrently.
        """


class Backend(Protocol):
    """Compiles schedules. The optional attribute ``skipped_passes`` names passes that a backend does not use."""

    def compile(self, schedule: Schedule) -> Program:
        """Compile a program for values of the shapes, dtypes and layouts of the inputs."""


def sources_of(item: Any) -> tuple[Any, ...]:
    """Return the dependencies of an item: its operands and, for the root of a buffer, all its writes."""
    if not isinstance(item, Value) and isinstance(item, Guard):
        return tuple([a for a in item.args if isinstance(a, Value)])
    read = tuple([item.args[position] for position in item.parent_argnums])
    if not isinstance(item, Value) or not item.memory:
        return read
    item.memory.require_complete()
    return (*read, *item.memory.log)


def origin_of(node: object) -> Origin | None:
    """Return the origin of a node: the pass through a graph that computed it; None for the result of an operation."""
    return getattr(node, "origin", None)


def retrace_sources_of(item: object) -> tuple[Any, ...]:
    """Return the dependencies of an item that is retraced: for a node with an origin, those of the origin."""
    origin = origin_of(item)
    return sources_of(item) if origin is None else (origin.output, origin.wrt[origin.position])


def collect_dependencies(
    ends: Iterable[Any], sources: Callable[[Any], tuple[Any, ...]] = sources_of, stop: Iterable[Any] = ()
) -> list[Any]:
    """Return some items and all their dependencies, leaves first, in the order of recording; the search ends at `stop`."""
    stop_items = frozenset(stop)
    return sorted(walk(ends, lambda item: () if item in stop_items else sources(item)), key=_recording_order)


def _recording_order(item: Any) -> float:
    return float(item.sequence_number) if item.args else -inf


def check_threads(caller: str, threads: object) -> int | None:
    """Check the option `threads` of a function or class, and return it; None means all processors."""
    if threads is None:
        return None
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)):
        raise TypeError(f"{caller}: threads must be a positive integer or None, not {threads!r}")
    if threads < 1:
        raise ValueError(f"{caller}: threads must be at least 1, not {threads}")
    return int(threads)
