"""Hollow values: the array that a node is refuses whoever takes its numbers without asking the node.

A node is an ``np.ndarray``, so code that knows nothing of graphs (C, most of SciPy, pandas) could take its numbers, and the
derivative would be lost without a word. Within a function that is differentiated a node's own memory therefore holds no
numbers. It is a read-only array of stride zero of one object, a `Refusal`, that raises whatever is done with it; the value
stands in ``node.plain``, where all that comes through operators, methods and NumPy's protocols finds it.

Whoever makes up strides (``as_strided(x, strides=x.strides)``) must not read foreign memory: all bodies point into the
middle of a large block of zeros, and an element is as wide as those of the value, or is a pointer behind which only zeros,
which are no pointers, can be read.
"""

from __future__ import annotations

import math
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any

import numpy as np

from .refusals import REFUSAL, WORDS, explained, unused_copy, watching

ndarray = np.ndarray


# --------------------------------------------------------------------------------------------- bodies


class _Pool:
    """A block of zeros, but for one pointer in its middle; it grows with the arrays, whose strides must stay within."""

    def __init__(self) -> None:
        self.reach = 0
        self.grow(2**24)

    def grow(self, reach: int) -> None:
        """Make the block reach as many bytes in both directions; pages nobody touches cost no memory."""
        self.reach = reach
        try:
            zeros = np.zeros(2 * reach // 8 + 1, np.uint64)
        except MemoryError:  # so much is not even promised, so the values do not lie in memory either: they are broadcast
            return
        middle = reach // 8
        zeros[middle] = id(REFUSAL)
        self._zeros, self._address = zeros, zeros.__array_interface__["data"][0] + 8 * middle

    def body(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An array of stride zero in the middle, for values of a dtype.

        Of real numbers it holds objects. NumPy says of an array of objects that its imaginary part is zero, so those of
        complex numbers stand in records, of which it says nothing. Narrow numbers leave no room for a pointer: theirs are
        records of zero bytes beside it, and of no objects, by which NumPy refuses to cast; but for a number alone, which has
        no strides that could lead astray.
        """
        width = dtype.itemsize
        if dtype.kind == "c":
            padding = [("", f"|V{width - 8}")] if width > 8 else []
            one = self._element(0, f"|V{width}", [(WORDS, "|O8"), *padding])[[WORDS]]
        elif width >= 8 or not shape:
            one = self._element(0, "|O8")
        else:
            one = self._element(64, f"|V{width}", [(WORDS, f"|V{width}"), ("", "|O8", (0,))])
        return np.broadcast_to(one, shape)

    def _element(self, offset: int, typestr: str, descr: list[Any] | None = None) -> Any:
        return np.asarray(_Place(self._zeros, self._address + offset, typestr, descr))


class _Place:
    """An element of a block, as NumPy takes it."""

    def __init__(self, base: Any, address: int, typestr: str, descr: list[Any] | None) -> None:
        self.base = base
        self.__array_interface__ = {"data": (address, True), "shape": (), "typestr": typestr, "version": 3}
        if descr is not None:
            self.__array_interface__["descr"] = descr


_pool = _Pool()
_KEPT = 4096  # shapes of which bodies are remembered


class _ByShape(dict[tuple[int, ...], Any]):
    """The bodies for values of one dtype, by shape; looked up for every operation, so made once."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype

    def __missing__(self, shape: tuple[int, ...]) -> Any:
        reach = 4 * self._dtype.itemsize * math.prod(max(length, 1) for length in shape)
        if reach > _pool.reach:
            _pool.grow(max(reach, 2 * _pool.reach))
        if len(self) > _KEPT:
            self.clear()
        made = self[shape] = _pool.body(shape, self._dtype)
        return made


class _ByDtype(dict[Any, Any]):
    """The bodies of floating and complex dtypes, by dtype and shape."""

    def __missing__(self, dtype: np.dtype[Any]) -> Any:
        if dtype.kind not in "fc":
            raise NotNumbersError(dtype)
        made = self[dtype] = _ByShape(dtype)
        return made


class NotNumbersError(Exception):
    """A body was asked for of values that have none: of integers, which stay as they are, or of objects."""


BODIES = _ByDtype()
OF_SCALARS: dict[Any, Any] = {kind: BODIES[np.dtype(kind)][()] for kind in (np.float64, np.float32)}
# The bodies for new nodes; None where these are solid, that is, share the memory of their values.
_bodies: ContextVar[_ByDtype | None] = ContextVar("bodies", default=None)
bodies = _bodies.get


def body_of(value: Any) -> Any:
    """The array that a node over an array shall be, here."""
    return value if bodies() is None else hollow_body(value)


def hollow_body(value: Any) -> Any:
    """The array that a node over an array shall be where it is hollow; integers and booleans have no derivative to lose."""
    return BODIES[value.dtype][value.shape] if value.dtype.kind in "fc" else value


class Hollowing:
    """A context in which new nodes are hollow. Made by `strict`; operators open one around the function they are given."""

    __slots__ = ("_entered", "_tells")

    def __init__(self, tells: bool = True) -> None:
        self._tells = tells  # of refusals that were caught
        self._entered: list[tuple[Token[_ByDtype | None], watching]] = []

    def __enter__(self) -> None:
        watch = watching(self._tells)
        watch.__enter__()
        self._entered.append((_bodies.set(BODIES), watch))

    def __exit__(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        token, watch = self._entered.pop()
        _bodies.reset(token)
        watch.__exit__(kind, error, trace)
        told = explained(error) if isinstance(error, Exception) else None
        if told is None and bodies() is None:
            told = unused_copy(is_an_error=error is not None)
        if told is not None:
            raise told from error


class solidly:  # noqa: N801  (a context, used as a function is)
    """A context in which new nodes share the memory of their values, whatever is around."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _bodies.set(None)

    def __exit__(self, *exception: object) -> None:
        _bodies.reset(self._token)


def strict() -> Hollowing:
    """Let no code take the numbers of a node without asking it; a context manager.

    A node is a NumPy array, so code that knows nothing of graphs (C code, most of SciPy, pandas) takes it for one, and what
    it computes has lost its derivative. The functions that `autodiff.grad` and kin differentiate refuse that by themselves;
    inside this context it is refused for all nodes that are made, also at the top level. ``x.value`` and
    ``cg.stop_gradient(x)`` say that the numbers are meant.

    Returns
    -------
    Hollowing
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
    compgraph.refusals.EscapeError: ...
    >>> with cg.strict():
    ...     print(np.asarray(cg.variable([1.0, 2.0]).value).max())
    2.0
    """
    return Hollowing(tells=False)
