"""The log of writes into shared buffers, and copies of buffers as of an earlier write.

NumPy's arrays share buffers: after ``v = a[1:3]; v *= 2`` all views of ``a`` have changed, and results computed before have not.
Nodes keep no versions of a buffer. A node's `sequence_number` is the moment at which it read the buffer. The node that first had
the buffer, its *root*, keeps a log of the writes, each with the overwritten values. So a private copy of the buffer can be
restored to any moment. `compgraph/inplace/IN_PLACE.md` explains the design.

A root, its log and the stored values form a reference cycle, which may hold much memory; see `Collector`.
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
    """One store into a buffer. It refers to no node except the stored value.

    Attributes
    ----------
    memory : Memory
        The log of the write.
    window : numpy.ndarray
        The array that was written through.
    index : index
        The index into it.
    saved : numpy.ndarray or numpy.generic
        The overwritten values: a copy of ``window[index]``.
    args : tuple
        The stored value: a node or a plain array.
    parent_argnums : tuple of int
        ``(0,)`` if the value is a node.
    sequence_number : int
        The moment of the write.
    code, instruction : code object, int
        The user's line of the write.
    scope : tuple of str
        The names of the open scopes, outermost first.
    whole : bool
        Whether the write is complete. It enters the log before it is done, so that no signal can separate the two.
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
        """The user's line of the write; None if lines were not recorded."""
        return format_line(self.code, self.instruction)


class Memory:
    """The writes into one buffer, oldest first. It belongs to the root, the node that first had the buffer.

    Attributes
    ----------
    log : list of Write
        The writes.
    is_ready : bool
        Whether the root is active, so that no later write has to change its class.
    """

    __slots__ = ("is_ready", "log")

    def __init__(self) -> None:
        self.log: list[Write] = []
        self.is_ready = False

    def before(self, sequence_number: float) -> int:
        """The number of writes before a sequence number; raises if the last write was interrupted."""
        count = bisect_right(self.log, sequence_number, key=by_sequence_number)
        if count == len(self.log):
            self.require_whole()
        return count

    def require_whole(self) -> None:
        """Raise if the last write was interrupted and could not be undone; no write can follow it."""
        if self.log and not self.log[-1].whole:
            raise interrupted_write(self.log[-1].line)

    def enter(self, write: Write, do: Callable[..., object], *args: Any) -> None:
        """Append a write to the log and do it by ``do(*args)``; undo both if that fails or is interrupted."""
        write.whole = False
        try:
            self.log.append(write)
            do(*args)
            write.whole = True
        except BaseException:
            self._take_back(write)
            raise

    def _take_back(self, write: Write) -> None:
        """Undo a write that failed or was interrupted; if this is interrupted as well, the entry stays incomplete."""
        if not self.log or self.log[-1] is not write:
            return
        write.whole = False
        if write.window.flags.writeable:
            write.window[write.index] = write.saved
        self.log.pop()


def memory_of(node: Any) -> Memory | None:
    """The log of the buffer of a node; None if the buffer was never written into."""
    return root_of(node).memory or None


def interrupted_write(line: str | None) -> RuntimeError:
    """The error for an array in which a write was interrupted by a signal."""
    place = "" if line is None else f" ({line})"
    return RuntimeError(
        f"a write into an array was interrupted{place}, perhaps halfway, so neither the array nor what was "
        "computed from it since can be used; compute the array again"
    )


class Collector:
    """Runs the garbage collector by the number of bytes written, where Python itself counts only objects.

    A root refers to its log, the log to the stored values, and these often to the root. Only the garbage collector frees such a
    cycle, and by the number of objects it runs too late for a few large arrays.

    Attributes
    ----------
    limit : int
        The bytes between two collections. It doubles after a collection without effect, and returns to `least` otherwise.
    """

    least = 2**28

    def __init__(self) -> None:
        self.limit = self.least
        self._weighed = 0

    def weigh(self, size: int) -> None:
        """Count bytes that a write keeps alive, and collect garbage above the limit."""
        self._weighed += size
        if self._weighed > self.limit and gc.isenabled():
            self._weighed = 0
            self.limit = self.least if gc.collect() else 2 * self.limit


collector = Collector()


class BufferCopy:
    """A flat buffer with the layout of an array, so that every view of the array has a corresponding window.

    It restores earlier values of a buffer, or gathers cotangents.

    Parameters
    ----------
    like : numpy.ndarray
        The array, of any shape, strides and dtype. Views passed to `window` must lie within its bounds.

    Attributes
    ----------
    buffer : numpy.ndarray
        One axis of `count` elements, initially zeros.
    low : int
        The lowest address of `like`, at which the buffer begins.
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
        """A buffer copy with the values of an array."""
        twin = cls(array)
        twin.window(array)[...] = array
        return twin

    def place(self, plain: Any) -> dict[str, Any]:
        """The position of a view of the array in the buffer: the arguments of `cut` without the shape."""
        return place_of(plain, self.low)

    def window(self, plain: Any) -> Any:
        """The window of the buffer that corresponds to `plain`, a view of the array."""
        kept = self._windows.get(id(plain))
        if kept is None:  # the entry keeps the view alive, so its id stays unique
            kept = self._windows[id(plain)] = (plain, self.cut(plain.shape, **self.place(plain)))
        return kept[1]

    def cut(self, shape: tuple[int, ...], **place: Any) -> Any:
        """A view of the buffer with a shape and a position."""
        return window(self.buffer, shape, **place)

    def undo(self, write: Write) -> None:
        """Restore the values that a write overwrote."""
        self.window(write.window)[write.index] = write.saved


def value_at(node: Any, sequence_number: float) -> Any:
    """The plain value of `node` as of a sequence number; a copy if it was written into since."""
    root = root_of(node)
    memory = root.memory
    if not memory or memory.before(sequence_number) == len(memory.log):
        return node.raw_value
    past = BufferCopy.copy_of(root.raw_value)
    for write in reversed(memory.log[memory.before(sequence_number) :]):
        past.undo(write)
    return past.window(node.raw_value).copy()
