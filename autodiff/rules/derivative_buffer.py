"""Derivatives laid out as the buffer they belong to, so that writing and views mean the same to both."""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.bind import bind
from compgraph.storage import BufferCopy, scatter_to_buffer, window
from compgraph.values import OperationalNode, Value, new_leaf


class Shadow(BufferCopy):
    """A twin that holds adjoints or tangents, which may be nodes.

    Parameters
    ----------
    like : numpy.ndarray
        The array that first had the buffer.
    recorded : bool
        Whether what is written into the shadow is recorded.
    """

    __slots__ = ()

    def __init__(self, like: Any, recorded: bool = False) -> None:
        super().__init__(like)
        if recorded:
            self.buffer = new_leaf(self.buffer, OperationalNode, None)

    def holding(self, like: Any, values: Any) -> Shadow:
        """The shadow itself, with `values`, an array or node, in the place of `like`."""
        if isinstance(values, Value):
            place = self.place(like)
            self.hold(bind(scatter_to_buffer, (values,), {"count": self.count, **place}))
        else:
            self.window(like)[...] = values
        return self

    def hold(self, buffer: Any) -> None:
        """Let another array or node, over the same memory, be the buffer."""
        self.buffer = buffer
        self._windows.clear()

    def cut(self, shape: tuple[int, ...], **place: Any) -> Any:
        """A part of the buffer."""
        if type(self.buffer) is np.ndarray:
            return super().cut(shape, **place)
        return bind(window, (self.buffer,), {"shape": shape, **place})


class BatchedShadow(Shadow):
    """A shadow with a batch of adjoints or tangents, one behind the other in the buffer; its windows have the batch axis first.

    Parameters
    ----------
    like : numpy.ndarray
        The array that first had the buffer.
    length : int
        How long the batch is.
    recorded : bool
        Whether what is written into the shadow is recorded.
    """

    __slots__ = ("_length", "_step")

    def __init__(self, like: Any, length: int, recorded: bool = False) -> None:
        BufferCopy.__init__(self, like)
        self._length, self._step = length, self.count * self.dtype.itemsize
        self.count *= length
        self.buffer = np.zeros(self.count, self.dtype)
        if recorded:
            self.buffer = new_leaf(self.buffer, OperationalNode, None)

    def place(self, plain: Any) -> dict[str, Any]:
        """Where the adjoints or tangents of a view lie."""
        place = super().place(plain)
        return {**place, "strides": (self._step, *place["strides"])}

    def cut(self, shape: tuple[int, ...], **place: Any) -> Any:
        """A part of the buffer."""
        return super().cut((self._length, *shape), **place)
