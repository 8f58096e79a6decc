"""Buffer allocation: preallocated memory for the results of a program, shared by results with disjoint live ranges.

The results of a program have known shapes, so the arrays that ufuncs write into (``out=``) are allocated once. A buffer is
reused as soon as its previous result is dead. An elementwise operation may overwrite its own operand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..storage import by_sequence_number, owner_of
from ..values import MultiOutput, Value
from .schedule import Schedule, sources_of

MIN_BUFFER_BYTES = 4096  # size of the smallest result with a buffer


def has_buffer(node: Any) -> bool:
    """Return whether a node is a large array that owns its memory, computed by a ufunc without options."""
    value = node.raw_value
    return (
        isinstance(node, Value)
        and isinstance(node.function, np.ufunc)
        and node.function.nout == 1
        and type(value) is np.ndarray
        and value.base is None
        and value.nbytes >= MIN_BUFFER_BYTES
        and not node.options
        and not node.memory
    )


def is_elementwise(node: Any) -> bool:
    """Return whether a node is the result of an elementwise operation: a ufunc that is not a gufunc."""
    return isinstance(node.function, np.ufunc) and node.function.signature is None


def allocate(schedule: Schedule) -> Schedule:
    """Assign buffers to results, and determine when results without a buffer are freed (a pass)."""
    allocation = _Allocation(schedule)
    return replace(schedule, buffers=allocation.buffers, frees=allocation.frees)


class _Allocation:
    """Computes `buffers` and `frees` of a schedule; see `Schedule`."""

    def __init__(self, schedule: Schedule) -> None:
        units = schedule.units
        self.buffers: dict[Any, Any] = {}
        self.frees: dict[int, list[Any]] = defaultdict(list)
        self._inputs = frozenset(schedule.inputs)
        self._owners: dict[int, Any] = {}
        for item in schedule.items:
            if isinstance(item, Value):
                self._owners.setdefault(id(owner_of(item.raw_value)), item)
        self._last_use = self._last_uses(units, schedule.outputs)
        self._free_buffers: dict[Any, list[Any]] = defaultdict(list)
        dying: dict[float, set[Any]] = defaultdict(set)
        for root, position in self._last_use.items():
            dying[position].add(root)
        for position, unit in enumerate(units):
            self._allocate_unit(unit, position, dying[position])

    def _allocate_unit(self, unit: list[Any], position: int, dying: set[Any]) -> None:
        overwritable = dying if len(unit) == 1 and self._may_overwrite(unit[0], dying) else set()
        self._release(overwritable, position)
        for node in unit:
            if (
                isinstance(node, Value)
                and node not in self._inputs
                and has_buffer(node)
                and position < self._last_use.get(node, -1) < inf
            ):
                free = self._free_buffers[_layout(node.raw_value)]
                self.buffers[node] = free.pop() if free else np.empty_like(node.raw_value)
        self._release(dying - overwritable, position)

    def _may_overwrite(self, node: object, dying: set[Any]) -> bool:
        """Return whether `node` may overwrite operands that die here: no operand is a view of one."""
        if not isinstance(node, Value) or not is_elementwise(node):
            return False
        return all(
            source in dying or self._memory_owner(source) not in dying for source in sources_of(node) if isinstance(source, Value)
        )

    def _release(self, dying: set[Any], position: int) -> None:
        for root in sorted(dying, key=by_sequence_number):
            buffer = self.buffers.get(root)
            if buffer is not None:
                self._free_buffers[_layout(buffer)].append(buffer)
            elif root.args and root not in self._inputs and not root.memory:
                self.frees[position].append(root)

    def _memory_owner(self, source: object) -> Any:
        """Return the first node of the schedule that owns the memory of `source`.

        A multi-output operation or a scalar owns its own memory.
        """
        return self._owners.get(id(owner_of(source.raw_value)), source) if isinstance(source, Value) else source

    def _last_uses(self, units: list[list[Any]], outputs: Iterable[Any]) -> dict[Any, float]:
        last: dict[Any, float] = {}
        for position, unit in enumerate(units):
            for item in unit:
                for source in sources_of(item):
                    if isinstance(source, (Value, MultiOutput)):
                        last[self._memory_owner(source)] = position
        last.update((self._memory_owner(node), inf) for node in outputs)
        return last


def _layout(array: NDArray[Any]) -> Any:
    return array.shape, array.dtype, array.strides
