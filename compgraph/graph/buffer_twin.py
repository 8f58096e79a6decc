"""Buffers laid out as others: what an array held at any moment is put back there, and adjoints are gathered."""

from __future__ import annotations

from typing import Any

import numpy as np

from .aliasing import place_of, root_of, window
from .write_log import Write


class Twin:
    """A flat buffer laid out as that of an array, so that every view of the one has its like on the other.

    Parameters
    ----------
    like : numpy.ndarray
        The array, in which all views lie.
    """

    __slots__ = ("_windows", "buffer", "count", "dtype", "low")

    def __init__(self, like: Any) -> None:
        self.low, high = np.lib.array_utils.byte_bounds(like) if like.size else (0, 0)
        self.dtype = like.dtype
        self.count = -(-(high - self.low) // like.itemsize)
        self.buffer: Any = np.zeros(self.count, like.dtype)
        self._windows: dict[int, tuple[Any, Any]] = {}

    @classmethod
    def copy_of(cls, array: Any) -> Twin:
        """A twin that holds what the array holds."""
        twin = cls(array)
        twin.window(array)[...] = array
        return twin

    def place(self, plain: Any) -> dict[str, Any]:
        """Where a view lies."""
        return place_of(plain, self.low)

    def window(self, plain: Any) -> Any:
        """Where `plain`, a view of the one array, has its like."""
        kept = self._windows.get(id(plain))
        if kept is None:  # the view is kept too, so that nothing else can get its id
            kept = self._windows[id(plain)] = (plain, self.cut(plain.shape, **self.place(plain)))
        return kept[1]

    def cut(self, shape: tuple[int, ...], **place: Any) -> Any:
        """A part of the buffer."""
        return window(self.buffer, shape, **place)

    def undo(self, write: Write) -> None:
        """Put back what a write overwrote."""
        self.window(write.window)[write.index] = write.saved


def value_at(node: Any, tick: float) -> Any:
    """The plain value of `node` as a reader of that tick saw it."""
    root = root_of(node)
    memory = root.memory
    if not memory or memory.before(tick) == len(memory.log):
        return node.plain
    past = Twin.copy_of(root.plain)
    for write in reversed(memory.log[memory.before(tick) :]):
        past.undo(write)
    return past.window(node.plain).copy()
