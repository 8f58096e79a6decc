"""The steps behind a result, in the order in which they were done, where arrays were written into.

A node keeps no versions of what it holds: whoever reads it refers to it, before a write and after. In a picture a write is a step
of its own, which leads from the array as it was to the array as it is from then on; a reader gets its arrow from the last write
that it saw. So a loop that fills an array is drawn as the chain of its turns, and has no circles.
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
class Later:
    """A view, taken again after a write into its memory."""

    view: Value
    sequence_number: float

    @property
    def opname(self) -> str:
        """The operation that made the view."""
        return self.view.opname or ""

    @property
    def scope(self) -> tuple[str, ...]:
        """The scope of the view."""
        return self.view.scope

    @property
    def line(self) -> str | None:
        """The line of the view."""
        return self.view.line

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the view."""
        return self.view.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the view."""
        return self.view.dtype


Item: TypeAlias = GraphNode | Later
Uses: TypeAlias = dict[Item, tuple[Item, ...]]  # each step behind a result, the nearest first, and what it uses


@dataclass
class Steps:
    """What is behind a result: `uses`, and `roots`, for each memory that was written into the node that first had it."""

    uses: Uses
    roots: dict[Memory, Value]

    def root(self, write: Write) -> Value:
        """The node whose buffer was written into."""
        return self.roots[write.memory]


def steps_behind(output: GraphNode) -> Steps:
    """The steps behind `output`, which is taken with all that was written into it so far."""
    history = _History()
    # Operands are looked up once: a raw value that was written becomes a new constant each time.
    uses: Uses = {}
    list(walk([history.seen(output, math.inf)], lambda item: uses.setdefault(item, history.operands(item))))
    return Steps(uses, history.roots)


class _History:
    """What readers saw of arrays that were written into."""

    def __init__(self) -> None:
        self.roots: dict[Memory, Value] = {}
        self._later: dict[tuple[Value, Write], Later] = {}

    def operands(self, item: Item) -> tuple[Item, ...]:
        """What a step uses. A write uses the array as it was, and what is stored."""
        if isinstance(item, Write):
            log = item.memory.log
            place = bisect_left(log, item.sequence_number, key=by_sequence_number)
            before: Item = log[place - 1] if place else self.roots[item.memory]
            return (before, *(self.seen(each, item.sequence_number) for each in operands_of(item)))
        if isinstance(item, Later):
            viewed = viewed_operand(item.view)
            return tuple(self.seen(each, item.sequence_number) if each is viewed else each for each in _read(item.view))
        return tuple(self.seen(each, item.sequence_number) for each in _read(item))

    def seen(self, item: GraphNode, sequence_number: float) -> Item:
        """What stands for an operand that was read at some tick: itself, or the last write into it, or the view taken again."""
        if not isinstance(item, Value):
            return item
        root: Value = root_of(item)
        if root.memory is None or not root.memory.log:
            return item
        self.roots[root.memory] = root
        log: list[Write] = root.memory.log
        for place in range(bisect_left(log, sequence_number, key=by_sequence_number) - 1, -1, -1):
            write = log[place]
            if write.sequence_number < item.sequence_number:
                break
            if item is root:
                return write
            if _overlap(write, item.raw_value):
                return self._later.setdefault((item, write), Later(item, write.sequence_number + 0.5))
        return item


def _read(item: Value | MultiOutput) -> list[GraphNode]:
    """The operands of a node, without the writes into its buffer."""
    return [each for each in operands_of(item) if not isinstance(each, Write)]


def _overlap(write: Write, plain: Any) -> bool:
    """Whether a write may have changed what a view shows."""
    part = part_of(write.window, write.index)
    return np.may_share_memory(write.window if part is None else part, plain)


def value_then(item: Item) -> Any:
    """The value of an item when it was made; of a write what was stored; of an operation with several outputs None."""
    if isinstance(item, MultiOutput):
        return None
    if isinstance(item, Later):
        return np.asarray(value_at(item.view, item.sequence_number))
    if isinstance(item, Write):
        (stored,) = item.args
        return np.asarray(value_at(stored, item.sequence_number - 0.25)) if isinstance(stored, Value) else stored
    return np.asarray(value_at(item, item.sequence_number))


def part_of(window: np.ndarray[Any, Any], index: Any) -> np.ndarray[Any, Any] | None:
    """``window[index]`` as a view; None if NumPy would copy."""
    parts = index if isinstance(index, tuple) else (index,)
    if not all(part is None or isinstance(part, (int, np.integer, slice, EllipsisType)) for part in parts):
        return None
    if any(isinstance(part, bool) for part in parts):
        return None
    view: np.ndarray[Any, Any] = window[parts if ... in parts else (*parts, ...)]
    return view
