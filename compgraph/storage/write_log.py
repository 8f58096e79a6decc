"""Buffers that are written into: what they held, and when.

NumPy's arrays share buffers: after ``v = a[1:3]; v *= 2`` all views of ``a`` have changed, and what was computed before
has not. Nodes keep no versions of a buffer. They say when they read it (`sequence_number`), and the node that first had it, its
*root*, keeps a log of the writes, each with what it overwrote. That is enough to put the buffer back to any moment, in
a private copy, and to tell which writes a reader saw. `compgraph/inplace/IN_PLACE.md` explains the whole.

A root, its log and what was stored are a cycle of references, which may hold much memory: see `Collector`.
"""

from __future__ import annotations

import gc
from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from ..frames import format_line
from .aliasing import place_of, root_of, window

by_sequence_number = attrgetter("sequence_number")


class Write:
    """One store into a buffer. It refers to no node but the one whose value was stored.

    Attributes
    ----------
    memory : Memory
        The log the write belongs to.
    window : numpy.ndarray
        The array that was written through.
    index : index
        Where in it.
    saved : numpy.ndarray or numpy.generic
        What stood there before: a copy of ``window[index]``.
    args : tuple
        The value that was stored: a node, or a plain array.
    edges : tuple of int
        ``(0,)`` if it is a node.
    tick : int
        When it was stored.
    code, instruction : code object, int
        The user's line that wrote.
    scope : tuple of str
        The names of the scopes around, the outermost first.
    whole : bool
        Whether it is done. It is entered into the log before it is done, so that no signal can come between the two.
    """

    __slots__ = (
        "args",
        "code",
        "index",
        "instruction",
        "memory",
        "parent_argnums",
        "saved",
        "scope",
        "sequence_number",
        "whole",
        "window",
    )
    level = 0
    opname = "setitem"

    def __init__(
        self,
        memory: Memory,
        place: tuple[Any, Any, Any],
        value: Any,
        is_node: bool,
        sequence_number: float,
        line: tuple[Any, int] = (None, 0),
        scope: tuple[str, ...] = (),
    ) -> None:
        self.memory = memory
        self.window, self.index, self.saved = place
        self.args, self.parent_argnums, self.sequence_number = (value,), (0,) if is_node else (), sequence_number
        (self.code, self.instruction), self.scope = line, scope
        self.whole = True

    def like(self, memory: Memory, value: Any, is_node: bool) -> Write:
        """The same write with another value, for the log of another buffer."""
        place, line = (self.window, self.index, self.saved), (self.code, self.instruction)
        return Write(memory, place, value, is_node, self.sequence_number, line, self.scope)

    @property
    def line(self) -> str | None:
        """Where in the user's code it was written; None if lines were not recorded."""
        return format_line(self.code, self.instruction)


class Memory:
    """The writes into one buffer, oldest first. It belongs to the root, the node that first had the buffer.

    Attributes
    ----------
    log : list of Write
        The writes.
    is_ready : bool
        Whether the root is known to be active, so that no later write has to change its class.
    """

    __slots__ = ("is_ready", "log")

    def __init__(self) -> None:
        self.log: list[Write] = []
        self.is_ready = False

    def before(self, sequence_number: float) -> int:
        """How many of the writes a reader at that sequence number saw; it raises if the last of them was interrupted."""
        count = bisect_right(self.log, sequence_number, key=by_sequence_number)
        if count == len(self.log):
            self.require_whole()
        return count

    def require_whole(self) -> None:
        """Raise if the last write was interrupted and could not be taken back; no write can follow such a one."""
        if self.log and not self.log[-1].whole:
            raise interrupted_write(self.log[-1].line)

    def enter(self, write: Write, do: Callable[..., object], *args: Any) -> None:
        """Enter a write into the log and do it by ``do(*args)``; if that fails or is interrupted, both are taken back."""
        write.whole = False
        try:
            self.log.append(write)
            do(*args)
            write.whole = True
        except BaseException:
            self._take_back(write)
            raise

    def _take_back(self, write: Write) -> None:
        """Undo a write that failed or was interrupted; if this is interrupted as well, the entry stays, not whole."""
        if not self.log or self.log[-1] is not write:
            return
        write.whole = False
        if write.window.flags.writeable:
            write.window[write.index] = write.saved
        self.log.pop()


def memory_of(node: Any) -> Memory | None:
    """The log of the buffer in which a node lies; None if it was never written into."""
    return root_of(node).memory or None


def interrupted_write(line: str | None) -> RuntimeError:
    """What to raise for an array in which a write was interrupted by a signal."""
    place = "" if line is None else f" ({line})"
    return RuntimeError(
        f"a write into an array was interrupted{place}: nobody can say what of it was done, so neither the array nor what was "
        "computed from it since can be used; compute the array again"
    )


class Collector:
    """Calls Python's collector of cycles by the bytes that were written, where Python itself only counts objects.

    A root refers to its log, the log to the values stored, and these often to what they were computed from, the root. Only the
    collector frees such a cycle, and by the number of objects it would come much too late for a few large arrays.

    Attributes
    ----------
    limit : int
        The bytes after which it is called; doubled each time that it finds nothing, `least` again once it finds something.
    """

    least = 2**28

    def __init__(self) -> None:
        self.limit = self.least
        self._weighed = 0

    def weigh(self, size: int) -> None:
        """Count bytes that a write keeps alive, and collect if they are more than the limit."""
        self._weighed += size
        if self._weighed > self.limit and gc.isenabled():
            self._weighed = 0
            self.limit = self.least if gc.collect() else 2 * self.limit


collector = Collector()


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
