"""Fusion: elementwise operations on large arrays run together, in blocks that stay in the cache."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..array_types import Operand
from ..guards import Guard
from ..storage import Write
from ..values import MultiOutput, Value
from .buffer_allocation import has_buffer, is_elementwise
from .schedule import Schedule, sources_of

BLOCK = 8192  # elements: a few operands of 64 kB fit a common L2 cache
MAX_MOVE = 2000  # items that an operation may be moved over


class Group(list[Any]):
    """Nodes of one shape that are computed together, block by block.

    Attributes
    ----------
    size : int
        The number of elements of each node.
    read : list of Node
        The operands of this shape from outside the group.
    kept : dict
        Its keys are the nodes of the group that are needed as a whole outside of it.
    scratch : list of dtype
        The dtypes of the scratch blocks of the other nodes.
    place : dict
        The position of each such node in `scratch`.
    """

    def __init__(self, nodes: list[Any], needed: set[Any], inputs: frozenset[Any]) -> None:
        super().__init__(nodes)
        own = set(nodes)
        self.size = nodes[0].size
        operands = dict.fromkeys(a for node in nodes for a in node.args if isinstance(a, Value) and a not in own)
        self.read = [a for a in operands if a.raw_value.shape == nodes[0].raw_value.shape and uniform_value(a, inputs) is None]
        self.kept = dict.fromkeys(node for node in nodes if node in needed)
        self.scratch: list[Any] = []
        self.place: dict[Any, int] = {}
        self._assign()

    def _assign(self) -> None:
        last = {a: k for k, node in enumerate(self) for a in node.args if isinstance(a, Value)}
        free: dict[Any, list[int]] = defaultdict(list)
        for k, node in enumerate(self):
            for a in {a for a in node.args if isinstance(a, Value) and a in self.place and last[a] == k}:
                free[a.dtype].append(self.place[a])
            if node not in self.kept:
                if not free[node.dtype]:
                    free[node.dtype].append(len(self.scratch))
                    self.scratch.append(node.dtype)
                self.place[node] = free[node.dtype].pop()


def uniform_value(operand: NDArray[Any], inputs: frozenset[Any]) -> Any:
    """Return the number that all elements of a constant equal, or None; an input of the schedule is not a constant."""
    plain = operand.raw_value if isinstance(operand, Value) else operand
    if isinstance(operand, Value) and (operand.args or operand in inputs):
        return None
    if type(plain) is np.ndarray and plain.ndim and plain.size and not any(plain.strides):
        return plain[(0,) * plain.ndim]
    return None


def fuse(schedule: Schedule) -> Schedule:
    """Group elementwise operations (a pass)."""
    inputs, ends = frozenset(schedule.inputs), frozenset(schedule.outputs)
    units = _group_items(schedule.items, inputs)
    users: dict[Any, set[int]] = defaultdict(set)
    for place, unit in enumerate(units):
        for item in unit:
            for source in sources_of(item):
                users[source].add(place)
    for place, unit in enumerate(units):
        if len(unit) > 1:
            units[place] = Group(unit, {node for node in unit if node in ends or users[node] - {place}}, inputs)
    return replace(schedule, units=units)


def _group_items(items: list[Any], inputs: frozenset[Any]) -> list[list[Any]]:
    """Return the items in units. An elementwise operation joins the first unit of its shape after its operands."""
    units: list[list[Any]] = []
    there: dict[Any, int] = {}  # the unit of each item
    opened: dict[Any, list[tuple[int, int]]] = defaultdict(list)  # by shape: units, and the positions of their first items
    for place, item in enumerate(items):
        if isinstance(item, (Write, Guard)):
            opened.clear()
        elif item not in inputs and _is_fusible(item, inputs):
            earliest = max([there.get(source, -1) for source in sources_of(item)], default=-1)
            together = opened[item.raw_value.shape]
            while together and place - together[0][1] > MAX_MOVE:
                del together[0]
            k = bisect_left(together, (earliest, -1))
            if k < len(together):
                there[item] = together[k][0]
                units[there[item]].append(item)
                continue
            together.append((len(units), place))
        there[item] = len(units)
        units.append([item])
    return units


def _is_fusible(item: Any, inputs: frozenset[Any]) -> bool:
    """Return whether an item can be fused: a large elementwise result of contiguous arrays of its own shape, or of numbers."""
    if isinstance(item, MultiOutput) or not item.args or not is_elementwise(item) or not has_buffer(item):
        return False
    shape = item.raw_value.shape
    return item.size >= 2 * BLOCK and item.raw_value.flags.c_contiguous and all(_is_simple(a, shape, inputs) for a in item.args)


def _is_simple(operand: Operand, shape: tuple[int, ...], inputs: frozenset[Any]) -> bool:
    if not isinstance(operand, Value):
        return np.ndim(operand) == 0
    plain = operand.raw_value
    return np.ndim(plain) == 0 or (
        plain.shape == shape and (plain.flags.c_contiguous or uniform_value(operand, inputs) is not None)
    )
