"""Copies that NumPy's own casts make of hollow nodes: ``np.asanyarray(x, dtype=float)``, as ``np.r_`` and SciPy write it.

NumPy allocates such a copy in C, as an array of the node's class, and asks each element of the body for its number. It gets
a NaN whose payload (its unused bits) says which node is copied. So the copy is a node without history, which reads the payload
from its memory when it is first used; then it is made hollow. A copy that was never used as a node was used as an array of NaNs:
leaving the context around raises.
"""

from __future__ import annotations

import itertools
import struct
import threading
from types import FrameType
from typing import Any

import numpy as np

from ...operations import JOINING_MODULE
from ..interpreter import callee, first_argument

_KEYS = 2**21  # as many copies can be told apart
_QUIET, _MARK, _SHIFT = 0x7FF8 << 48, 1 << 50, 29  # a NaN, our mark, and where the key begins: bits that float32 keeps as well
_REQUIRING = np.require.__globals__["__name__"]
_ARRAY, _ASANYARRAY = np.array, np.asanyarray  # NumPy's own: the names may mean wrappers later
_WRAPPERS = "compgraph.interception.making"  # the module of the wrappers, whose callers make the copies


class _Copy:
    """A copy that NumPy makes: of which node, at which instruction, how many of its elements have been asked for, by whom."""

    __slots__ = ("asked", "code", "instruction", "owner", "source")

    def __init__(self, source: Any, frame: FrameType, owner: int | None) -> None:
        self.source, self.asked, self.owner = source, 0, owner
        self.code, self.instruction = frame.f_code, frame.f_lasti


class _Last(threading.local):
    """The key of the copy that this thread made last: others may copy at the same time."""

    key = -1


_made: dict[int, _Copy] = {}  # copies by key, those alone that have not been used as nodes yet
_keys = itertools.count()
_last = _Last()


def number_for(frame: FrameType, is_owned: bool) -> float | None:
    """The NaN for the next element, if a frame is at a call by which NumPy copies a node; else None.

    The copy is owned by this thread if that is within a context of its own, which then sees to it that the copy was used.
    """
    maker = callee(frame)
    while frame.f_globals.get("__name__") == _WRAPPERS and frame.f_back is not None:
        frame = frame.f_back
    is_cast = maker in (np.float64, np.float32, np.complex128, np.complex64)  # of an array alone: of a number it makes no array
    if not is_cast and maker is not _ASANYARRAY and not (maker is _ARRAY and _lets_nodes_pass(frame)):
        return None
    source = first_argument(frame)
    if not isinstance(source, np.ndarray) or not hasattr(type(source), "opname") or (is_cast and not source.ndim):
        return None
    current = _made.get(_last.key)
    if current is None or current.source is not source or current.asked >= source.size:
        _last.key = next(_keys) % _KEYS
        current = _made[_last.key] = _Copy(source, frame, threading.get_ident() if is_owned else None)
    current.asked += 1
    number: float = struct.unpack("<d", struct.pack("<Q", _QUIET | _MARK | _last.key << _SHIFT))[0]
    return number


def _lets_nodes_pass(frame: FrameType) -> bool:
    """Whether the frame is NumPy's own, calling ``np.array(..., subok=True)``: for ``np.r_``, ``np.c_`` or ``np.require``."""
    module = frame.f_globals.get("__name__")
    return module == JOINING_MODULE or (module == _REQUIRING and frame.f_locals.get("subok") is True)


def source_of(copied: np.ndarray[Any, Any]) -> Any:
    """The node whose key stands in an array of such NaNs; None for other arrays. The copy then counts as used."""
    if not copied.size or copied.dtype not in (np.float64, np.float32, np.complex128, np.complex64):
        return None
    number = np.real(copied.ravel()[:1])
    if number.dtype == np.float32:  # its exponent has fewer bits
        bits = int(number.view(np.uint32)[0]) << _SHIFT & (_MARK | (_KEYS - 1) << _SHIFT) | _QUIET * bool(np.isnan(number[0]))
    else:
        bits = int(number.view(np.uint64)[0])
    if bits & (_QUIET | _MARK) != _QUIET | _MARK:
        return None
    found = _made.pop((bits >> _SHIFT) % _KEYS, None)
    return None if found is None else found.source


def has_copies() -> bool:
    """Whether copies were made, by any thread, that have not been used as nodes."""
    return bool(_made)


def unused(is_alone: bool) -> tuple[Any, int] | None:
    """Where this thread made a copy that was not used as a node, or None; its copies are forgotten.

    If it `is_alone` in having a context, copies made by threads that have none count as well.
    """
    mine = (threading.get_ident(), None) if is_alone else (threading.get_ident(),)
    found = [_made.pop(key, None) for key, copy in list(_made.items()) if copy.owner in mine]
    return next(((copy.code, copy.instruction) for copy in found if copy is not None), None)
