"""A program that runs a schedule item by item, and needs no values of its nodes but of leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..guards import Guard, OtherProgramError
from ..storage import Write, place_in, value_at, window
from ..values import MultiOutput, Value
from .schedule import Schedule

_GONE = np.empty(0)  # in place of a value that was given up


class Interpreted:
    """What runs the items of a schedule one after the other; a `Program`.

    It is slower than what `NumPyBackend` writes, but there is nothing to write, and nothing of the trace to keep but what arrays
    that are written into held before.

    Parameters
    ----------
    schedule : Schedule
        What is to be run.
    """

    source = ""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._roots = {id(item.memory): item for item in schedule.items if isinstance(item, Value) and item.memory}
        leaves = (root for root in self._roots.values() if not root.args and root not in frozenset(schedule.inputs))
        self._first = {root: _brief(value_at(root, root.sequence_number)) for root in leaves}
        self._strides = {root: root.raw_value.strides for root in self._roots.values()}
        self._windows: dict[Write, Any] = {}  # where each store goes: nothing for the whole array, else the arguments of `window`
        for item in schedule.items:
            if isinstance(item, Write):
                root = self._roots[id(item.memory)]
                self._windows[item] = {} if item.window is root.raw_value else place_in(root.raw_value, item.window)

    def give_up_values(self) -> None:
        """Forget the values of all nodes but of constants, and what writes overwrote: for graphs that nobody else has."""
        inputs = frozenset(self._schedule.inputs)
        for item in (*self._schedule.items, *inputs):
            if isinstance(item, (Value, MultiOutput)) and (item.args or item in inputs or item in self._first):
                item.raw_value = _GONE if isinstance(item, Value) else ()
        for write in self._windows:
            write.window = write.saved = _GONE

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The values of the outputs, from those of the inputs."""
        schedule = self._schedule
        known: dict[Any, Any] = dict(zip(schedule.inputs, values, strict=True))

        def value(operand: Any) -> Any:
            return known[operand] if isinstance(operand, (Value, MultiOutput)) else operand

        for item in schedule.items:
            if isinstance(item, Write):
                self._write(item, known, value(item.args[0]))
                continue
            if isinstance(item, Guard):
                item.check(*map(value, item.args))
                continue
            if item in known:
                found = known[item].copy("K") if item.memory else known[item]
            elif not item.args:
                found = self._first[item].copy("K") if item in self._first else item.raw_value
            elif isinstance(item.function, ops.Output):
                found = known[item.args[0]][item.function.index]
            else:
                found = item.function(*map(value, item.args), **item.options)
            for require, expected in schedule.checks.get(item, ()):
                require(found, expected)
            known[item] = found
        return tuple([np.array(known[node])[()] for node in schedule.outputs])

    def _write(self, item: Write, known: dict[Any, Any], stored: Any) -> None:
        root = self._roots[id(item.memory)]
        place, target = self._windows[item], known[root]
        if place and target.strides != self._strides[root]:
            raise OtherProgramError("an array that is written into lies otherwise in memory than the one that was recorded")
        target = window(target, **place) if place else target
        target[item.index] = stored


def _brief(array: Any) -> Any:
    """An array; one whose elements are all the same number, as zeros are, takes the memory of that number."""
    if not array.size or not array.flags.c_contiguous:
        return array
    number = np.array(array.flat[0])
    return np.broadcast_to(number, array.shape) if array.tobytes() == array.size * number.tobytes() else array
