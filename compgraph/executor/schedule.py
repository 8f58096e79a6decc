"""The `Schedule`, which passes hand to each other and to a backend: what is run, in which order, where the results go."""

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
    """How some nodes are computed from the values of others.

    Attributes
    ----------
    units : list of list
        What is run, in order: nodes, joints, writes and guards. Each item stands alone in its unit, unless `fusion` put several
        into one, a `Group`, to be run together.
    inputs : list of Node
        What is given from outside, in the order of the values. Those that are needed are among the items; what lies behind
        them is not.
    outputs : list of Node
        What is computed, in the order of the results.
    buffers : dict
        For a node whose result is written into an array made beforehand, the array. One array serves several nodes, so only one
        run of a program can be under way.
    frees : dict
        For the position of a unit, the nodes without a buffer that nothing needs after it.
    checks : dict
        For a node or joint, what its result must be like for the rest of the schedule to hold: functions of the result and
        of what is expected, which raise an OtherProgramError, each with what it expects.
    options : mapping
        What the user chose, by name; for backends, and each knows some of them.
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
        """All that is needed for some nodes and guards, each item in a unit of its own, in the order of recording."""
        items = needed((*outputs, *guards), stop=inputs)
        return cls([[item] for item in items], list(inputs), list(outputs))

    @property
    def items(self) -> list[Any]:
        """The items of all units, in order."""
        return [item for unit in self.units for item in unit]


@dataclass
class Family:
    """Schedules of one function, of which only the turns of loops differ; the one that is wanted has many more.

    Attributes
    ----------
    turns : list of tuple of int
        For each schedule, how many turns each loop has.
    schedules : list of Schedule
        The first is the one that others are compared with; in the next ones, one after the other, one loop has some turns
        more; those that are left over must be as these foretell.
    wanted : tuple of int
        The turns of the program.
    given : list
        Arrays that are handed to a program after the values of a call.
    plain : callable
        ``plain(values)`` gives what the program gives of the values of a call, and `given`, by NumPy.
    """

    turns: list[tuple[int, ...]]
    schedules: list[Schedule]
    wanted: tuple[int, ...]
    given: list[Any]
    plain: Callable[[Sequence[Any]], tuple[Any, ...]]


class Program(Protocol):
    """What a backend makes of a schedule.

    Attributes
    ----------
    source : str
        What is run, for people to read.
    """

    source: str

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The values of the outputs, from those of the inputs; no two share memory with each other or with anything.

        Raises a GuardError where a guard gives another answer, and an OtherProgramError where a check finds another result.
        Threads may call it at the same time.
        """


class Backend(Protocol):
    """Makes a program of a schedule. One that has no use for some passes names them in an attribute ``left_out``."""

    def compile(self, schedule: Schedule) -> Program:
        """A program for values of the shapes, dtypes and layouts that the inputs have."""


def sources_of(item: Any) -> tuple[Any, ...]:
    """What must have been computed, or done, before a node, joint, write or guard: operands, and of a root all its writes."""
    if isinstance(item, Guard):
        return tuple([a for a in item.args if isinstance(a, Value)])
    read = tuple([item.args[position] for position in item.parent_argnums])
    if not isinstance(item, Value) or not item.memory:
        return read
    item.memory.require_whole()
    return (*read, *item.memory.log)


def origin_of(node: Any) -> Origin | None:
    """The pass through a graph that computed a node; None for the result of an operation."""
    return getattr(node, "origin", None)


def origins_of(item: Any) -> tuple[Any, ...]:
    """As `sources_of`, for an item that is to be recorded again: a node with an origin is computed from that."""
    origin = origin_of(item)
    return sources_of(item) if origin is None else (origin.output, origin.wrt[origin.place])


def needed(ends: Iterable[Any], sources: Callable[[Any], tuple[Any, ...]] = sources_of, stop: Iterable[Any] = ()) -> list[Any]:
    """All items that some items need, leaves first, in the order of recording; what lies behind those in `stop` is left out."""
    given = frozenset(stop)
    return sorted(walk(ends, lambda item: () if item in given else sources(item)), key=_moment)


def _moment(item: Any) -> float:
    return float(item.sequence_number) if item.args else -inf


def checked_threads(who: str, threads: Any) -> int | None:
    """How many threads a program may use, as given to a function or class; None, for as many as there are processors, stays."""
    if threads is None:
        return None
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)):
        raise TypeError(f"{who}: threads is how many threads a program may use, or None, not {threads!r}")
    if threads < 1:
        raise ValueError(f"{who}: threads is at least 1, not {threads}")
    return int(threads)
