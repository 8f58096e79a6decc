"""The log of writes into shared buffers, and copies of buffers as of an earlier write.

NumPy's arrays share buffers: after ``v = a[1:3]; v *= 2`` all views of ``a`` have changed, and results computed before have not.
Nodes keep no versions of a buffer. A node's `sequence_number` is the moment at which it read the buffer. The node that first had
the buffer, its *root*, keeps a log of the writes, each with the overwritten values. So a private copy of the buffer can be
restored to any moment. `compgraph/inplace/IN_PLACE.md` explains the design.

A root, its log and the stored values form a reference cycle, which may hold much memory; see `CycleCollector`.
"""

from __future__ import annotations

import gc
from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..frames import format_line
from .aliasing import layout_of, root_of, window

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
    is_complete : bool
        Whether the write is complete. The log contains a write before it is executed, so that a signal cannot leave an unlogged
        write.
    """

    __slots__ = (
        "args",
        "code",
        "index",
        "instruction",
        "is_complete",
        "memory",
        "parent_argnums",
        "saved",
        "scope",
        "sequence_number",
        "window",
    )
    level = 0
    opname = "setitem"

    def __init__(
        self,
        memory: Memory,
        region: tuple[Any, Any, Any],
        value: Any,
        is_node: bool,
        sequence_number: float,
        line: tuple[Any, int] = (None, 0),
        scope: tuple[str, ...] = (),
    ) -> None:
        self.memory = memory
        self.window, self.index, self.saved = region
        self.args, self.parent_argnums, self.sequence_number = (value,), (0,) if is_node else (), sequence_number
        (self.code, self.instruction), self.scope = line, scope
        self.is_complete = True

    def with_value(self, memory: Memory, value: object, is_node: bool) -> Write:
        """Return the same write with another value, for the log of another buffer."""
        region, line = (self.window, self.index, self.saved), (self.code, self.instruction)
        return Write(memory, region, value, is_node, self.sequence_number, line, self.scope)

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
    is_root_active : bool
        Whether the root is active, so that later writes need not change its class.
    """

    __slots__ = ("is_root_active", "log")

    def __init__(self) -> None:
        self.log: list[Write] = []
        self.is_root_active = False

    def count_before(self, sequence_number: float) -> int:
        """Count the writes before a sequence number; raise if the last write was interrupted."""
        count = bisect_right(self.log, sequence_number, key=by_sequence_number)
        if count == len(self.log):
            self.require_complete()
        return count

    def require_complete(self) -> None:
        """Raise if the last write was interrupted and could not be undone."""
        if self.log and not self.log[-1].is_complete:
            raise interrupted_write_error(self.log[-1].line)

    def append(self, write: Write, function: Callable[..., object], *args: object) -> None:
        """Append a write to the log and execute it by ``function(*args)``; undo both if that fails or is interrupted."""
        write.is_complete = False
        try:
            self.log.append(write)
            function(*args)
            write.is_complete = True
        except BaseException:
            self._roll_back(write)
            raise

    def _roll_back(self, write: Write) -> None:
        """Undo a write that failed or was interrupted; if this is interrupted as well, the entry stays incomplete."""
        if not self.log or self.log[-1] is not write:
            return
        write.is_complete = False
        if write.window.flags.writeable:
            write.window[write.index] = write.saved
        self.log.pop()


def memory_of(node: object) -> Memory | None:
    """The log of the buffer of a node; None if the buffer was never written into."""
    return root_of(node).memory or None


def interrupted_write_error(line: str | None) -> RuntimeError:
    """Make the error for an array in which a write was interrupted by a signal."""
    location = "" if line is None else f" ({line})"
    return RuntimeError(
        f"a write into an array was interrupted{location}, perhaps halfway, so neither the array nor later results "
        "computed from it can be used; compute the array again"
    )


class CycleCollector:
    """Runs the garbage collector after a number of bytes written, because Python counts objects only.

    A root refers to its log, the log to the stored values, and these often to the root. Only the garbage collector frees such a
    cycle, and by the number of objects it runs too late for a few large arrays.

    Attributes
    ----------
    limit : int
        The bytes between two collections. It doubles after a collection without effect, and returns to `min_limit` otherwise.
    """

    min_limit = 2**28

    def __init__(self) -> None:
        self.limit = self.min_limit
        self._bytes = 0

    def add_bytes(self, size: int) -> None:
        """Add the bytes that a write keeps alive, and collect garbage above the limit."""
        self._bytes += size
        if self._bytes > self.limit and gc.isenabled():
            self._bytes = 0
            self.limit = self.min_limit if gc.collect() else 2 * self.limit


cycle_collector = CycleCollector()


class BufferCopy:
    """A flat buffer with the layout of an array, so that every view of the array has a corresponding window.

    It restores earlier values of a buffer, or gathers cotangents.

    Parameters
    ----------
    template : numpy.ndarray
        The array, of any shape, strides and dtype. Views passed to `window` must lie within its bounds.

    Attributes
    ----------
    buffer : numpy.ndarray
        One axis of `count` elements, initially zeros.
    low : int
        The lowest address of `template`, at which the buffer begins.
    """

    __slots__ = ("_windows", "buffer", "count", "dtype", "low")

    def __init__(self, template: NDArray[Any]) -> None:
        self.low, high = np.lib.array_utils.byte_bounds(template) if template.size else (0, 0)
        self.dtype = template.dtype
        self.count = -(-(high - self.low) // template.itemsize)
        self.buffer: Any = np.zeros(self.count, template.dtype)
        self._windows: dict[int, tuple[Any, Any]] = {}

    @classmethod
    def copy_of(cls, array: NDArray[Any]) -> BufferCopy:
        """A buffer copy with the values of an array."""
        buffer_copy = cls(array)
        buffer_copy.window(array)[...] = array
        return buffer_copy

    def layout(self, plain: NDArray[Any]) -> dict[str, Any]:
        """The layout of a view of the array in the buffer: the arguments of `view_at` without the shape."""
        return layout_of(plain, self.low)

    def window(self, plain: NDArray[Any]) -> Any:
        """The window of the buffer that corresponds to `plain`, a view of the array."""
        entry = self._windows.get(id(plain))
        if entry is None:  # the entry keeps the view alive, so its id stays unique
            entry = self._windows[id(plain)] = (plain, self.view_at(plain.shape, **self.layout(plain)))
        return entry[1]

    def view_at(self, shape: tuple[int, ...], **layout: Any) -> Any:
        """A view of the buffer with a shape and a layout."""
        return window(self.buffer, shape, **layout)

    def undo(self, write: Write) -> None:
        """Restore the values that a write overwrote."""
        self.window(write.window)[write.index] = write.saved


def value_at(node: Any, sequence_number: float) -> Any:
    """The plain value of `node` as of a sequence number; a copy if later writes changed it."""
    root = root_of(node)
    memory = root.memory
    if not memory or memory.count_before(sequence_number) == len(memory.log):
        return node.raw_value
    restored = BufferCopy.copy_of(root.raw_value)
    for write in reversed(memory.log[memory.count_before(sequence_number) :]):
        restored.undo(write)
    return restored.window(node.raw_value).copy()
