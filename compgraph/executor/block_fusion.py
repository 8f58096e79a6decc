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
MAX_REORDER_DISTANCE = 2000  # items that an operation may skip to join a group


class Group(list[Any]):
    """A fused group: nodes of one shape that are computed together, block by block.

    Attributes
    ----------
    size : int
        The number of elements of each node.
    operands : list of Node
        The operands of this shape from outside the group.
    outputs : dict
        Its keys are the nodes of the group that are read outside of it, and need a whole array.
    scratch_dtypes : list of dtype
        The dtypes of the scratch blocks of the other nodes.
    scratch_index : dict
        The position of the scratch block of each such node.
    """

    def __init__(self, nodes: list[Any], outputs: set[Any], inputs: frozenset[Any]) -> None:
        super().__init__(nodes)
        group_nodes = set(nodes)
        self.size = nodes[0].size
        operands = dict.fromkeys(a for node in nodes for a in node.args if isinstance(a, Value) and a not in group_nodes)
        shape = nodes[0].raw_value.shape
        self.operands = [a for a in operands if a.raw_value.shape == shape and uniform_value(a, inputs) is None]
        self.outputs = dict.fromkeys(node for node in nodes if node in outputs)
        self.scratch_dtypes: list[Any] = []
        self.scratch_index: dict[Any, int] = {}
        self._assign_scratch()

    def _assign_scratch(self) -> None:
        last_use = {a: k for k, node in enumerate(self) for a in node.args if isinstance(a, Value)}
        free: dict[Any, list[int]] = defaultdict(list)
        for k, node in enumerate(self):
            for a in {a for a in node.args if isinstance(a, Value) and a in self.scratch_index and last_use[a] == k}:
                free[a.dtype].append(self.scratch_index[a])
            if node not in self.outputs:
                if not free[node.dtype]:
                    free[node.dtype].append(len(self.scratch_dtypes))
                    self.scratch_dtypes.append(node.dtype)
                self.scratch_index[node] = free[node.dtype].pop()


def uniform_value(operand: NDArray[Any], inputs: frozenset[Any]) -> Any:
    """Return the common value of all elements of a constant, or None. Inputs of the schedule are not constants."""
    value = operand.raw_value if isinstance(operand, Value) else operand
    if isinstance(operand, Value) and (operand.args or operand in inputs):
        return None
    if type(value) is np.ndarray and value.ndim and value.size and not any(value.strides):
        return value[(0,) * value.ndim]
    return None


def fuse(schedule: Schedule) -> Schedule:
    """Group elementwise operations (a pass)."""
    inputs, ends = frozenset(schedule.inputs), frozenset(schedule.outputs)
    units = _group_items(schedule.items, inputs)
    users: dict[Any, set[int]] = defaultdict(set)
    for position, unit in enumerate(units):
        for item in unit:
            for source in sources_of(item):
                users[source].add(position)
    for position, unit in enumerate(units):
        if len(unit) > 1:
            units[position] = Group(unit, {node for node in unit if node in ends or users[node] - {position}}, inputs)
    return replace(schedule, units=units)


def _group_items(items: list[Any], inputs: frozenset[Any]) -> list[list[Any]]:
    """Group the items into units. An elementwise operation joins the first unit of its shape after its operands."""
    units: list[list[Any]] = []
    unit_of: dict[Any, int] = {}
    open_units: dict[Any, list[tuple[int, int]]] = defaultdict(list)  # by shape: units, and the positions of their first items
    for position, item in enumerate(items):
        if isinstance(item, (Write, Guard)):
            open_units.clear()
        elif item not in inputs and _is_fusible(item, inputs):
            earliest = max([unit_of.get(source, -1) for source in sources_of(item)], default=-1)
            candidates = open_units[item.raw_value.shape]
            while candidates and position - candidates[0][1] > MAX_REORDER_DISTANCE:
                del candidates[0]
            k = bisect_left(candidates, (earliest, -1))
            if k < len(candidates):
                unit_of[item] = candidates[k][0]
                units[unit_of[item]].append(item)
                continue
            candidates.append((len(units), position))
        unit_of[item] = len(units)
        units.append([item])
    return units


def _is_fusible(item: Any, inputs: frozenset[Any]) -> bool:
    """Return whether an item is a large elementwise result whose operands are numbers or contiguous arrays of its shape."""
    if isinstance(item, MultiOutput) or not item.args or not is_elementwise(item) or not has_buffer(item):
        return False
    shape = item.raw_value.shape
    return (
        item.size >= 2 * BLOCK
        and item.raw_value.flags.c_contiguous
        and all(_is_fusible_operand(a, shape, inputs) for a in item.args)
    )


def _is_fusible_operand(operand: Operand, shape: tuple[int, ...], inputs: frozenset[Any]) -> bool:
    if not isinstance(operand, Value):
        return np.ndim(operand) == 0
    value = operand.raw_value
    return np.ndim(value) == 0 or (
        value.shape == shape and (value.flags.c_contiguous or uniform_value(operand, inputs) is not None)
    )
