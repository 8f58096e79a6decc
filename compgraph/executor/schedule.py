"""`Schedule`: the intermediate representation that passes transform and backends compile, and its interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import ops
from ..array_types import Operand
from ..graph import walk
from ..guards import Guard, ProgramMismatchError
from ..storage import Write, layout_in, value_at, window
from ..values import MultiOutput, Origin, Value


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
    is_node, args = isinstance(item, Value), item.args
    if not is_node and isinstance(item, Guard):
        return tuple([a for a in args if isinstance(a, Value)])
    operands = tuple([args[position] for position in item.parent_argnums])
    if not is_node or not item.memory:
        return operands
    item.memory.require_complete()
    return (*operands, *item.memory.log)


def origin_of(node: object) -> Origin | None:
    """Return the origin of a node: the pass through a graph that computed it; None for the result of an operation."""
    return getattr(node, "origin", None)


def retrace_sources_of(item: object) -> tuple[Any, ...]:
    """Return the dependencies of an item that is retraced: for a node with an origin, the dependencies of the origin."""
    origin = origin_of(item)
    return sources_of(item) if origin is None else (origin.output, origin.wrt[origin.position])


def collect_dependencies(
    ends: Iterable[Any], sources: Callable[[Any], tuple[Any, ...]] = sources_of, stop: Iterable[Any] = ()
) -> list[Any]:
    """Return some items and all their dependencies, leaves first, in the order of recording; the search ends at `stop`."""
    stop_items = frozenset(map(id, stop))
    return sorted(walk(ends, lambda item: () if id(item) in stop_items else sources(item)), key=_recording_order)


def _recording_order(item: Any) -> float:
    return item.sequence_number if item.args else -inf


def check_threads(caller: str, threads: object) -> int | None:
    """Check the option `threads` of a function or class, and return it; None means all processors."""
    if threads is None:
        return None
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)):
        raise TypeError(f"{caller}: threads must be a positive integer or None, not {threads!r}")
    if threads < 1:
        raise ValueError(f"{caller}: threads must be at least 1, not {threads}")
    return int(threads)


_RELEASED = np.empty(0)  # replaces a released value


class ScheduleInterpreter:
    """Runs the items of a schedule in order; a `Program`.

    It is slower than the code of `NumPyBackend`, but needs no code generation. It retains only the initial contents of arrays
    with writes.

    Parameters
    ----------
    schedule : Schedule
        The schedule to run.
    """

    source = ""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._roots = {id(item.memory): item for item in schedule.items if isinstance(item, Value) and item.memory}
        leaves = (root for root in self._roots.values() if not root.args and root not in frozenset(schedule.inputs))
        self._initial_values = {root: _compress_uniform(value_at(root, root.sequence_number)) for root in leaves}
        self._strides = {root: root.raw_value.strides for root in self._roots.values()}
        self._windows: dict[Write, Any] = {}  # the arguments of `window` for each write; empty for the whole array
        for item in schedule.items:
            if isinstance(item, Write):
                root = self._roots[id(item.memory)]
                self._windows[item] = {} if item.window is root.raw_value else layout_in(root.raw_value, item.window)

    def release_values(self) -> None:
        """Release the values of all nodes except constants, and the contents that writes saved.

        The graph must have no other owner.
        """
        inputs = frozenset(self._schedule.inputs)
        for item in (*self._schedule.items, *inputs):
            if isinstance(item, (Value, MultiOutput)) and (item.args or item in inputs or item in self._initial_values):
                item.raw_value = _RELEASED if isinstance(item, Value) else ()
        for write in self._windows:
            write.window = write.saved = _RELEASED

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the outputs from the inputs."""
        schedule = self._schedule
        environment: dict[Any, Any] = dict(zip(schedule.inputs, values, strict=True))

        def value(operand: object) -> Any:
            return environment[operand] if isinstance(operand, (Value, MultiOutput)) else operand

        for item in schedule.items:
            if isinstance(item, Write):
                self._write(item, environment, value(item.args[0]))
                continue
            if isinstance(item, Guard):
                item.check(*map(value, item.args))
                continue
            if item in environment:
                result = environment[item].copy("K") if item.memory else environment[item]
            elif not item.args:
                result = self._initial_values[item].copy("K") if item in self._initial_values else item.raw_value
            elif isinstance(item.function, ops.Output):
                result = environment[item.args[0]][item.function.index]
            else:
                result = item.function(*map(value, item.args), **item.options)
            for require, expected in schedule.checks.get(item, ()):
                require(result, expected)
            environment[item] = result
        return tuple([np.array(environment[node])[()] for node in schedule.outputs])

    def _write(self, item: Write, environment: dict[Any, Any], stored: Operand) -> None:
        root = self._roots[id(item.memory)]
        layout, target = self._windows[item], environment[root]
        if layout and target.strides != self._strides[root]:
            raise ProgramMismatchError("the memory layout of an array with writes differs from the recorded one")
        target = window(target, **layout) if layout else target
        target[item.index] = stored


def _compress_uniform(array: NDArray[Any]) -> Any:
    """Return an array; if all its elements have equal bits, broadcast from a single number to save memory."""
    if not array.size or not array.flags.c_contiguous:
        return array
    number = np.array(array.flat[0])
    return np.broadcast_to(number, array.shape) if array.tobytes() == array.size * number.tobytes() else array
