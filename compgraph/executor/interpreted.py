"""A program that runs a schedule item by item, and needs no values of its nodes but of leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import operations
from ..graph import Joint, Node, Write
from ..guards import Guard
from .schedule import Schedule

_GONE = np.empty(0)  # in place of a value that was given up


class Interpreted:
    """What runs the items of a schedule one after the other; a `Program`.

    It is slower than what `NumPyBackend` writes, but there is nothing to write, and nothing of the trace to keep.

    Parameters
    ----------
    schedule : Schedule
        Without writes into arrays.

    Raises
    ------
    NotImplementedError
        If an array is written into.
    """

    source = ""

    def __init__(self, schedule: Schedule) -> None:
        if any(isinstance(item, Write) or (isinstance(item, Node) and item.memory) for item in schedule.items):
            raise NotImplementedError("an array is written into, whose history is in the values of the nodes")
        self._schedule = schedule

    def give_up_values(self) -> None:
        """Forget the values of all nodes but of constants: for graphs that nobody else has."""
        inputs = frozenset(self._schedule.inputs)
        for item in (*self._schedule.items, *inputs):
            if isinstance(item, (Node, Joint)) and (item.args or item in inputs):
                item.plain = _GONE if isinstance(item, Node) else ()

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The values of the outputs, from those of the inputs."""
        schedule = self._schedule
        known: dict[Any, Any] = dict(zip(schedule.inputs, values, strict=True))

        def value(operand: Any) -> Any:
            return known[operand] if isinstance(operand, (Node, Joint)) else operand

        for item in schedule.items:
            if item in known:
                found = known[item]
            elif isinstance(item, Guard):
                item.check(*map(value, item.args))
                continue
            elif not item.args:
                found = item.plain
            elif isinstance(item.function, operations.Output):
                found = known[item.args[0]][item.function.index]
            else:
                found = item.function(*map(value, item.args), **item.options)
            for require, expected in schedule.checks.get(item, ()):
                require(found, expected)
            known[item] = found
        return tuple([np.array(known[node])[()] for node in schedule.outputs])
