"""Buffers that are written into: what they held, and when.

NumPy's arrays share buffers: after ``v = a[1:3]; v *= 2`` all views of ``a`` have changed, and what was computed before
has not. Nodes keep no versions of a buffer. They say when they read it (`tick`), and the node that first had it, its
*root*, keeps a log of the writes, each with what it overwrote. That is enough to put the buffer back to any moment, in
a private copy, and to tell which writes a reader saw. IN_PLACE.md beside this file explains the whole.
"""

from __future__ import annotations

import functools
import gc
import weakref
from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from .interpreter import described

ndarray = np.ndarray
by_tick = attrgetter("tick")


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
    saved : numpy.ndarray
        What stood there before.
    args : tuple
        The value that was stored: a node, or a plain array.
    edges : tuple of int
        ``(0,)`` if it is a node.
    tick : int
        When.
    code, instruction : code object, int
        The line of code that wrote.
    scope : tuple of str
        The names of the scopes around.
    whole : bool
        Whether it has been done. It is entered before, so that no signal can come between a write and its entry.
    """

    __slots__ = ("args", "code", "edges", "index", "instruction", "memory", "saved", "scope", "tick", "whole", "window")
    level = 0
    opname = "setitem"

    def __init__(
        self,
        memory: Memory,
        place: tuple[Any, Any, Any],
        value: Any,
        is_node: bool,
        tick: float,
        line: tuple[Any, int] = (None, 0),
        scope: tuple[str, ...] = (),
    ) -> None:
        self.memory = memory
        self.window, self.index, self.saved = place
        self.args, self.edges, self.tick = (value,), (0,) if is_node else (), tick
        (self.code, self.instruction), self.scope = line, scope
        self.whole = True

    def like(self, memory: Memory, value: Any, is_node: bool) -> Write:
        """The same, of another value, in the log of another buffer."""
        place, line = (self.window, self.index, self.saved), (self.code, self.instruction)
        return Write(memory, place, value, is_node, self.tick, line, self.scope)

    @property
    def line(self) -> str | None:
        """Where in the user's code it was written; None if lines were not recorded."""
        return described(self.code, self.instruction)


class Memory:
    """The writes into one buffer, oldest first. It belongs to the root, the node that first had the buffer."""

    __slots__ = ("log",)

    def __init__(self) -> None:
        self.log: list[Write] = []

    def before(self, tick: float) -> int:
        """How many of the writes a reader of that tick saw."""
        count = bisect_right(self.log, tick, key=by_tick)
        if count == len(self.log):
            self.require_whole()
        return count

    def require_whole(self) -> None:
        """Raise if the last write was cut off, and could not be taken back; nothing is written after such a one."""
        if self.log and not self.log[-1].whole:
            raise interrupted(self.log[-1].line)

    def enter(self, write: Write, do: Callable[[], None]) -> None:
        """Do a write, and enter it: one step, whatever interrupts. What is cut off is taken back."""
        write.whole = False
        try:
            self.log.append(write)
            do()
            write.whole = True
        except BaseException:
            self._take_back(write)
            raise

    def _take_back(self, write: Write) -> None:
        """Undo a write that failed, or was cut off; if this is cut off as well, the write stays there as not whole."""
        if not self.log or self.log[-1] is not write:
            return
        write.whole = False
        if write.window.flags.writeable:
            write.window[write.index] = write.saved
        self.log.pop()


def interrupted(line: str | None) -> RuntimeError:
    """What to raise for an array in which a write was cut off by a signal."""
    place = "" if line is None else f" ({line})"
    return RuntimeError(
        f"a write into an array was interrupted{place}: nobody can say what of it was done, so neither the array nor what was "
        "computed from it since can be used; compute the array again"
    )


def owner_of(array: Any) -> Any:
    """What a view is a view of, in the end: whatever holds the memory."""
    while True:
        base = getattr(array, "base", None)
        if base is None:
            return array
        array = base


def root_of(node: Any) -> Any:
    """The node that first had the buffer in which the value of `node` lies."""
    passed: list[Any] = []
    while True:
        viewed = viewed_by(node)
        if viewed is None:
            break
        known = _far.get(id(node))
        if known is not None and known[0]() is node:
            node = known[1]
            break
        passed.append(node)
        node = viewed
    for view in passed[:-STEPS:STEPS]:  # none where the root is near, as it mostly is
        _far[id(view)] = (weakref.ref(view, functools.partial(_forget, id(view))), node)
    return node


STEPS = 16
# For views of views of views the root, every so many steps: else n of them, each of the one before, would take n * n steps.
_far: dict[int, tuple[weakref.ref[Any], Any]] = {}


def _forget(number: int, _: Any) -> None:
    _far.pop(number, None)


def viewed_by(node: Any) -> Any:
    """The operand that `node` is a view of, or None."""
    plain = node.plain
    if plain.__class__ is not ndarray or plain.base is None:
        return None
    owner = owner_of(plain)
    for position in node.edges:
        operand = node.args[position]
        if operand.plain.__class__ is ndarray and owner_of(operand.plain) is owner:
            return operand
    return None


def window(buffer: Any, shape: tuple[int, ...], dtype: Any, offset: int, strides: tuple[int, ...]) -> Any:
    """The part of an array's buffer that begins at an offset from it, in bytes, and lies there in some strides."""
    if 0 in shape:
        return np.empty(shape, dtype)
    if buffer.flags.c_contiguous and offset >= 0:
        return ndarray(shape, dtype, buffer, offset, strides)
    return np.asarray(_Place(buffer, shape, dtype, offset, strides))


class _Place:
    """A part of an array that lies in any way, as NumPy takes it."""

    def __init__(self, base: Any, shape: tuple[int, ...], dtype: Any, offset: int, strides: tuple[int, ...]) -> None:
        start = base.__array_interface__["data"][0] + offset
        self.base = base
        self.__array_interface__ = {
            "data": (start, not base.flags.writeable), "shape": shape, "typestr": dtype.str, "strides": strides, "version": 3,
        }  # fmt: skip


def laid(values: Any, count: int, dtype: Any, offset: int, strides: tuple[int, ...]) -> Any:
    """A flat buffer in which `values` lie at an offset, in some strides, and zeros elsewhere."""
    buffer = np.zeros(count, dtype)
    window(buffer, values.shape, values.dtype, offset, strides)[...] = values
    return buffer


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
        offset = plain.__array_interface__["data"][0] - self.low if plain.size else 0
        return {"dtype": plain.dtype, "offset": offset, "strides": plain.strides}

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


def overlaps_itself(array: Any) -> bool:
    """Whether several elements of an array may lie at one place: repeated by broadcasting, or sliding windows."""
    reach = array.itemsize
    for step, length in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if length > 1:
            if step < reach:
                return True
            reach += step * (length - 1)
    return False


def memory_of(node: Any) -> Memory | None:
    """The log of the buffer in which a node lies, if it was ever written into."""
    return root_of(node).memory or None


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


def last_places(shape: tuple[int, ...], index: Any) -> tuple[Any, Any]:
    """For each element of an index, the last element that names the same place; and their numbers."""
    scratch = np.empty(shape, np.intp)  # only the places of the index are ever touched
    numbers = np.arange(scratch[index].size).reshape(np.shape(scratch[index]))
    scratch[index] = numbers
    return scratch[index], numbers


class Collector:
    """Calls Python's collector of cycles by the size of what was written into, not only by the number of objects.

    A buffer holds its log, the log what was stored, and that often what it was computed from, the buffer. Nothing but the
    collector frees such a graph, and for a few large arrays it would come much too late.

    Attributes
    ----------
    limit : int
        The bytes after which it is called; more for as long as nothing is found.
    """

    least = 2**28

    def __init__(self) -> None:
        self.limit = self.least
        self._weighed = 0

    def weigh(self, size: int) -> None:
        """Count some bytes of a graph with writes."""
        self._weighed += size
        if self._weighed > self.limit and gc.isenabled():
            self._weighed = 0
            self.limit = self.least if gc.collect() else 2 * self.limit


collector = Collector()
