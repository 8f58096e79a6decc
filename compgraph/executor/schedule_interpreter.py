"""Interpreter of schedules: runs item by item and retains no values except those of leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import ops
from ..array_types import Operand
from ..guards import Guard, ProgramMismatchError
from ..storage import Write, layout_in, value_at, window
from ..values import MultiOutput, Value
from .schedule import Schedule

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
