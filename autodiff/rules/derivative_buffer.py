"""Derivatives laid out as the buffer they belong to, so that writing and views mean the same to both."""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.graph import Node, OperationalNode, Twin, laid, leaf, record, window


class Shadow(Twin):
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
            self.buffer = leaf(self.buffer, OperationalNode, None)

    def holding(self, like: Any, values: Any) -> Shadow:
        """The shadow itself, with `values`, an array or node, in the place of `like`."""
        if isinstance(values, Node):
            place = self.place(like)
            self.hold(record(laid, (values,), {"count": self.count, **place}))
        else:
            self.window(like)[...] = values
        return self

    def hold(self, buffer: Any) -> None:
        """Let another array or node, over the same memory, be the buffer."""
        self.buffer = buffer
        self._windows.clear()

    def cut(self, shape: tuple[int, ...], **place: Any) -> Any:
        """A part of the buffer."""
        if self.buffer.__class__ is np.ndarray:
            return super().cut(shape, **place)
        return record(window, (self.buffer,), {"shape": shape, **place})
