"""Twins: buffers laid out as others, in which what an array held at some moment is put back, or adjoints are gathered."""

from __future__ import annotations

from typing import Any

import numpy as np

from .aliasing import place_of, root_of, window
from .write_log import Write


class BufferCopy:
    """A flat buffer laid out as that of an array, so that every view of the array has its like on the twin.

    Parameters
    ----------
    like : numpy.ndarray
        The array, of any shape, strides and dtype. Every view that is asked about must lie within its bounds.

    Attributes
    ----------
    buffer : numpy.ndarray
        One axis of `count` elements, zeros at first.
    low : int
        The lowest address of `with_operands`, which the buffer begins at.
    """

    __slots__ = ("_windows", "buffer", "count", "dtype", "low")

    def __init__(self, like: Any) -> None:
        self.low, high = np.lib.array_utils.byte_bounds(like) if like.size else (0, 0)
        self.dtype = like.dtype
        self.count = -(-(high - self.low) // like.itemsize)
        self.buffer: Any = np.zeros(self.count, like.dtype)
        self._windows: dict[int, tuple[Any, Any]] = {}

    @classmethod
    def copy_of(cls, array: Any) -> BufferCopy:
        """A twin that holds what the array holds."""
        twin = cls(array)
        twin.window(array)[...] = array
        return twin

    def place(self, plain: Any) -> dict[str, Any]:
        """Where a view of the array lies in the buffer: the arguments of `cut`, but for the shape."""
        return place_of(plain, self.low)

    def window(self, plain: Any) -> Any:
        """The part of the buffer that corresponds to `plain`, a view of the array."""
        kept = self._windows.get(id(plain))
        if kept is None:  # the view is kept alive, so that no other array gets its id
            kept = self._windows[id(plain)] = (plain, self.cut(plain.shape, **self.place(plain)))
        return kept[1]

    def cut(self, shape: tuple[int, ...], **place: Any) -> Any:
        """A view of the buffer, with the shape and place that are given."""
        return window(self.buffer, shape, **place)

    def undo(self, write: Write) -> None:
        """Put back what a write overwrote."""
        self.window(write.window)[write.index] = write.saved


def value_at(node: Any, sequence_number: float) -> Any:
    """The plain value of `node` as a reader at that sequence number saw it; a copy if it was written into since."""
    root = root_of(node)
    memory = root.memory
    if not memory or memory.before(sequence_number) == len(memory.log):
        return node.raw_value
    past = BufferCopy.copy_of(root.raw_value)
    for write in reversed(memory.log[memory.before(sequence_number) :]):
        past.undo(write)
    return past.window(node.raw_value).copy()
