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
        The units to run, in order: nodes, joints, writes and guards. Each item is a unit of its own, unless fusion made a
        `Group` of several.
    inputs : list of Node
        The nodes with values from outside, in order. Inputs that are needed are among the items; their
        operands are not.
    outputs : list of Node
        The results, in order.
    buffers : dict
        The preallocated array of each node that has one. Several nodes share an array, so a program supports one run at a
        time.
    frees : dict
        By unit position, the nodes without a buffer that are dead after it.
    checks : dict
        By node or joint, the requirements of the rest of the schedule: functions of the result and an expected value, which
        raise a ProgramMismatchError, each with its expected value.
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
        items = needed((*outputs, *guards), stop=inputs)
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
    plain : callable
        ``plain(values)`` computes by NumPy what the program computes from the values of a call and `tables`.
    """

    trip_counts: list[tuple[int, ...]]
    schedules: list[Schedule]
    target: tuple[int, ...]
    tables: list[Any]
    plain: Callable[[Sequence[Any]], tuple[Any, ...]]


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

        Raises a GuardError if a guard has another value than recorded, and a ProgramMismatchError if a check fails. Threads may
        call it concurrently.
        """


class Backend(Protocol):
    """Compiles schedules. The attribute ``left_out`` names passes that a backend does not use."""

    def compile(self, schedule: Schedule) -> Program:
        """Compile a program for values of the shapes, dtypes and layouts of the inputs."""


def sources_of(item: Any) -> tuple[Any, ...]:
    """Return what must be computed or done before an item: its operands and, for a root, all its writes."""
    if isinstance(item, Guard):
        return tuple([a for a in item.args if isinstance(a, Value)])
    read = tuple([item.args[position] for position in item.parent_argnums])
    if not isinstance(item, Value) or not item.memory:
        return read
    item.memory.require_complete()
    return (*read, *item.memory.log)


def origin_of(node: object) -> Origin | None:
    """Return the pass through a graph that computed a node; None for the result of an operation."""
    return getattr(node, "origin", None)


def origins_of(item: object) -> tuple[Any, ...]:
    """Return `sources_of` for an item to be retraced: a node with an origin depends on that."""
    origin = origin_of(item)
    return sources_of(item) if origin is None else (origin.output, origin.wrt[origin.place])


def needed(ends: Iterable[Any], sources: Callable[[Any], tuple[Any, ...]] = sources_of, stop: Iterable[Any] = ()) -> list[Any]:
    """Return all items that some items depend on, leaves first, in the order of recording; the search ends at `stop`."""
    stop_items = frozenset(stop)
    return sorted(walk(ends, lambda item: () if item in stop_items else sources(item)), key=_recording_order)


def _recording_order(item: Any) -> float:
    return float(item.sequence_number) if item.args else -inf


def checked_threads(who: str, threads: object) -> int | None:
    """Return the number of threads passed to a function or class, checked; None means all processors."""
    if threads is None:
        return None
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)):
        raise TypeError(f"{who}: threads must be a positive integer or None, not {threads!r}")
    if threads < 1:
        raise ValueError(f"{who}: threads must be at least 1, not {threads}")
    return int(threads)
