"""Hollow bodies: the body, the array that a node is, refuses whoever takes its numbers without asking the node.

A node is an ``np.ndarray``, so code that knows nothing of graphs (C, most of SciPy, pandas) could take its numbers, and the
derivative would be lost without a word. Within a function that is differentiated a node's own memory therefore holds no
numbers. It is a read-only array of stride zero whose one element, a `Refusal`, raises when a number is asked of it; the value
stands in ``node.plain``, where all that comes through operators, methods and NumPy's protocols finds it.

Code that makes up strides (``as_strided(x, strides=x.strides)``) reads beside that element, and must find refusals there too. So
bodies point into the middle of a block full of them, which reaches as far as the largest array does. On Linux only two megabytes
of it are real, mapped again and again.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import weakref
from contextvars import ContextVar
from types import TracebackType
from typing import Any

import numpy as np

from ..context import Context, Setting, following, layered, settle
from .copies import has_copies
from .refusals import LOGS, MINE, REFUSAL, WORDS, Log, caught, explained, unused_copy

ndarray = np.ndarray


# --------------------------------------------------------------------------------------------- bodies

_CHUNK = 2**21  # bytes of real memory, full of references to the refusal
_FIXED, _NO_RESERVE = 0x10, 0x4000  # of Linux's mmap; Python's module has no names for them


class _Pool:
    """Two blocks, of references to the refusal and of zeros, into whose middles bodies point. They grow with the arrays."""

    def __init__(self) -> None:
        self.reach = 0
        self.grow(2**24)

    def grow(self, reach: int) -> None:
        """Make new blocks of `reach` bytes to each side of the middle. The old ones stay, since bodies point into them."""
        reach = -(-reach // _CHUNK) * _CHUNK
        try:
            zeros = np.zeros(2 * reach // 8, np.uint64)  # pages that nobody touches cost no memory
            start = _repeated(2 * reach)
        except (OSError, AttributeError):  # another system: memory of our own
            _kept.append(np.full(2 * reach // 8, id(REFUSAL), np.uint64))
            start = address_of(_kept[-1])
        except MemoryError:  # not even promised: the values can only be a number that was broadcast, so the old blocks do
            return
        _kept.append(zeros)
        self.reach, self._references, self._zeros = reach, start + reach, address_of(zeros) + reach

    def body(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A body of stride zero for values of a shape and dtype. Its elements are as wide as theirs, where that is possible.

        For real numbers of 8 bytes or more, and for all 0-d ones, it is an array of objects. For complex numbers it is one of
        records that hold an object: NumPy would say that the imaginary part of an array of objects is zero. Narrower numbers
        leave no room for a reference: their body is records of zeros with an empty field of objects, which NumPy does not cast.
        """
        width = dtype.itemsize
        if dtype.kind == "c":
            padding = [("", f"|V{width - 8}")] if width > 8 else []
            return np.asarray(_Place(self._references, shape, f"|V{width}", [(WORDS, "|O8"), *padding]))
        if width >= 8 or not shape:
            return np.asarray(_Place(self._references, shape, "|O8", [("", "|O8")]))
        return np.asarray(_Place(self._zeros, shape, f"|V{width}", [(WORDS, f"|V{width}"), ("", "|O8", (0,))]))


_kept: list[Any] = []


def address_of(array: Any) -> int:
    """Where an array's first element lies."""
    return int(array.__array_interface__["data"][0])


def _repeated(size: int) -> int:
    """The address of `size` bytes in which one chunk of references is mapped again and again; an OSError if that cannot be."""
    library = ctypes.CDLL(None, use_errno=True).mmap
    library.restype = ctypes.c_void_p
    library.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    file = os.memfd_create("compgraph refusals")
    try:
        os.write(file, id(REFUSAL).to_bytes(8, sys.byteorder) * (_CHUNK // 8))
        start = int(library(None, size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE, -1, 0) or -1)
        for place in range(start, start + size, _CHUNK):
            if start % 2**64 == 2**64 - 1 or library(place, _CHUNK, mmap.PROT_READ, mmap.MAP_SHARED | _FIXED, file, 0) != place:
                raise OSError("the system does not map memory twice")
    finally:
        os.close(file)
    return start


class _Place:
    """Hands NumPy a read-only piece of memory that is never freed, by ``__array_interface__``."""

    def __init__(self, address: int, shape: tuple[int, ...], typestr: str, descr: list[Any]) -> None:
        self.__array_interface__ = {
            "data": (address, True), "shape": shape, "typestr": typestr, "descr": descr, "strides": (0,) * len(shape),
            "version": 3,
        }  # fmt: skip


_pool = _Pool()
_KEPT = 4096  # shapes, for each dtype, of which bodies are remembered
Bodies = dict[Any, dict[tuple[int, ...], Any]]
BODIES: Bodies = {}  # by dtype and shape; looked up for every operation, so made once
# The same where arrays of integers and booleans are hollow too; and the bodies of these, apart: their nodes are of another kind.
BODIES_BESIDE_INTEGERS: Bodies = {}
_OF_INTEGERS: Bodies = {}


def hollow_body(value: Any) -> Any:
    """The body of a hollow node with this value; for integers, which have no derivative to lose, mostly the value itself."""
    known = bodies()
    known = BODIES if known is None else known
    if value.dtype.kind not in "fc":
        if known is not BODIES_BESIDE_INTEGERS or value.dtype.kind not in "biu":
            return value
        known = _OF_INTEGERS
    try:
        return known[value.dtype][value.shape]
    except KeyError:
        pass
    by_shape = known.setdefault(value.dtype, {})
    if len(by_shape) >= _KEPT:
        by_shape.clear()
    made = by_shape[value.shape] = refusing_body(value.shape, value.dtype)
    return made


def refusing_body(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array that refuses, for values of any dtype."""
    reach = dtype.itemsize
    for length in shape:
        reach *= max(length, 1)
    if reach > _pool.reach:
        _pool.grow(max(reach, 2 * _pool.reach))
    return _pool.body(shape, dtype)


# The bodies for new nodes; None where these are solid, that is, share the memory of their values.
_bodies: ContextVar[Bodies | None] = layered("bodies", None, is_read=True)
bodies = _bodies.get
OF_SCALARS: dict[Any, Any] = {kind: hollow_body(np.zeros((), kind)) for kind in (np.float64, np.float32, np.float16)}


def body_of(value: Any) -> Any:
    """The body of a new node with this value: a hollow one where new nodes are hollow, else the value itself."""
    settle()
    return value if bodies() is None else hollow_body(value)


def is_traced() -> bool:
    """Whether a function is traced to be compiled: what Python is told of values is asked again then, and needs no warning."""
    return bodies() is BODIES_BESIDE_INTEGERS


class Hollowing(Setting):
    """A context in which new nodes are hollow; `autodiff.grad` and kin call the user's function in one. Entered once.

    Parameters
    ----------
    integers : bool
        Whether arrays of integers and booleans are hollow too, by which plain arrays might be indexed (``table[i]``); they are
        so in the contexts within this one, too.
    """

    __slots__ = ("_log",)

    def __init__(self, integers: bool = False) -> None:
        self._log = Log()
        bodies = BODIES_BESIDE_INTEGERS if integers or is_traced() else BODIES
        super().__init__({_bodies: bodies, MINE: self._log, **({following: False} if integers else {})})

    def __enter__(self) -> None:
        LOGS.add(weakref.ref(self._log, LOGS.discard))
        super().__enter__()

    def __exit__(self, kind: Any = None, error: Any = None, trace: Any = None) -> None:  # type: ignore[override]
        super().__exit__(kind, error, trace)
        _close(self._log, error)


def _close(log: Log, error: BaseException | None) -> None:
    """Leave a context in which nodes were hollow: raise or warn, in our words, if numbers were refused or taken."""
    LOGS.discard(weakref.ref(log))
    if error is None and not log and not has_copies():
        return
    told = explained(error, log) if isinstance(error, Exception) else None
    if told is None and bodies() is None:
        told = unused_copy(is_an_error=error is not None)
    if told is not None:
        raise told from error
    if error is None and log:
        caught(log)


class Strict(Context):
    """`Hollowing` for users, which may be entered several times, and within itself. Made by `strict`."""

    __slots__ = ()

    def __enter__(self) -> Any:
        self._enter_hollow({})

    def _enter_hollow(self, others: dict[Any, Any]) -> None:
        """Called by ``__enter__``: new nodes are hollow, and `others` are set as well."""
        log = Log()
        LOGS.add(weakref.ref(log, LOGS.discard))
        self._enter({_bodies: BODIES, MINE: log, **others}, 3)

    def __exit__(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        _close(self._leave().changes[MINE], error)


def solidly() -> Setting:
    """A context in which new nodes are not hollow: they share the memory of their values, whatever context is around."""
    return Setting({_bodies: None})


def strict() -> Strict:
    """Let no code take the numbers of a node without asking it; a context manager.

    A node is a NumPy array, so code that knows nothing of graphs (C code, most of SciPy, pandas) takes it for one, and what
    it computes has lost its derivative. Inside a function that `autodiff.grad` and kin differentiate, that is refused anyway;
    inside this context it is refused for all nodes that are made, also at the top level. ``x.value`` and
    ``cg.stop_gradient(x)`` say that the numbers are meant.

    Returns
    -------
    Strict
        To be used in ``with cg.strict():``, for the current thread or asyncio task.

    Raises
    ------
    EscapeError
        Inside, where the numbers are taken. It names the node, the line of code and what to use instead.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> with cg.strict():
    ...     x = cg.variable([1.0, 2.0])
    ...     np.asarray(x).max()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    compgraph.EscapeError: ...
    >>> with cg.strict():
    ...     print(np.asarray(cg.variable([1.0, 2.0]).value).max())
    2.0
    """
    return Strict()
