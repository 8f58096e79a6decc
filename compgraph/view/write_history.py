"""The steps behind a result, with writes in place as steps of their own.

A node has no versions: readers before and after a write refer to the same node. In a picture, a write leads from the array before
it to the array after it, and the arrow of a reader starts at the last write before the read. A loop that fills an array is thus
drawn as the chain of its iterations, without cycles.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np

from ..graph import GraphNode, operands_of, walk
from ..storage import Memory, Write, by_sequence_number, root_of, value_at, viewed_operand
from ..values import MultiOutput, Value


@dataclass(frozen=True, eq=False)
class ViewAfterWrite:
    """A view after a later write into its memory."""

    view: Value
    sequence_number: float

    def __getattr__(self, name: str) -> Any:
        """Return `opname`, `scope`, `line`, `shape` or `dtype` of the view."""
        return getattr(self.view, name)


Item: TypeAlias = GraphNode | ViewAfterWrite
Uses: TypeAlias = dict[Item, tuple[Item, ...]]  # the operands of each step, the step nearest to the result first


@dataclass
class Steps:
    """The steps behind a result: `uses`, and in `roots` the node that owns each written memory."""

    uses: Uses
    roots: dict[Memory, Value]

    def root(self, write: Write) -> Value:
        """Return the node whose buffer was written."""
        return self.roots[write.memory]


def steps_behind(output: GraphNode) -> Steps:
    """Return the steps behind `output`, including all writes into it so far."""
    history = _History()
    # Operands are looked up once, because each lookup wraps a written plain value in a new constant.
    uses: Uses = {}
    list(walk([history.state_at(output, math.inf)], lambda item: uses.setdefault(item, history.operands(item))))
    return Steps(uses, history.roots)


class _History:
    """Finds the state of a written array as of each of its readers."""

    def __init__(self) -> None:
        self.roots: dict[Memory, Value] = {}
        self._later: dict[tuple[Value, Write], ViewAfterWrite] = {}

    def operands(self, item: Item) -> tuple[Item, ...]:
        """Return the operands of a step; those of a write are the array before it and the stored value."""
        if isinstance(item, Write):
            log = item.memory.log
            index = bisect_left(log, item.sequence_number, key=by_sequence_number)
            before: Item = log[index - 1] if index else self.roots[item.memory]
            return (before, *(self.state_at(each, item.sequence_number) for each in operands_of(item)))
        if isinstance(item, ViewAfterWrite):
            viewed = viewed_operand(item.view)
            return tuple(
                self.state_at(each, item.sequence_number) if each is viewed else each
                for each in _operands_except_writes(item.view)
            )
        return tuple(self.state_at(each, item.sequence_number) for each in _operands_except_writes(item))

    def state_at(self, item: GraphNode, sequence_number: float) -> Item:
        """Return the item for an operand as of a sequence number: itself, the last write into it, or a view after a write."""
        if not isinstance(item, Value):
            return item
        root: Value = root_of(item)
        if root.memory is None or not root.memory.log:
            return item
        self.roots[root.memory] = root
        log: list[Write] = root.memory.log
        for index in range(bisect_left(log, sequence_number, key=by_sequence_number) - 1, -1, -1):
            write = log[index]
            if write.sequence_number < item.sequence_number:
                break
            if item is root:
                return write
            if _overlap(write, item.raw_value):
                return self._later.setdefault((item, write), ViewAfterWrite(item, write.sequence_number + 0.5))
        return item


def _operands_except_writes(item: Value | MultiOutput) -> list[GraphNode]:
    """Return the operands of a node, without the writes into its buffer."""
    return [each for each in operands_of(item) if not isinstance(each, Write)]


def _overlap(write: Write, plain: object) -> bool:
    """Whether a write may have changed a view."""
    part = part_of(write.window, write.index)
    return np.may_share_memory(write.window if part is None else part, plain)


def value_at_creation(item: Item) -> Any:
    """Return the value of an item at its creation: the stored value of a write, None for a multi-output operation."""
    if isinstance(item, MultiOutput):
        return None
    if isinstance(item, ViewAfterWrite):
        return np.asarray(value_at(item.view, item.sequence_number))
    if isinstance(item, Write):
        (stored,) = item.args
        return np.asarray(value_at(stored, item.sequence_number - 0.25)) if isinstance(stored, Value) else stored
    return np.asarray(value_at(item, item.sequence_number))


def part_of(window: np.ndarray[Any, Any], index: object) -> np.ndarray[Any, Any] | None:
    """Return ``window[index]`` as a view; None if NumPy would copy."""
    parts = index if isinstance(index, tuple) else (index,)
    if not all(part is None or isinstance(part, (int, np.integer, slice, EllipsisType)) for part in parts):
        return None
    if any(isinstance(part, bool) for part in parts):
        return None
    view: np.ndarray[Any, Any] = window[parts if ... in parts else (*parts, ...)]
    return view
