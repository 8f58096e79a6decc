"""Copies that NumPy's own casts make of hollow nodes: ``np.asanyarray(x, dtype=float)``, as ``np.r_`` and SciPy write it.

NumPy allocates such a copy in C, as an array of the node's class, and asks each element of the body for its number. It gets
a NaN whose payload (its unused bits) says which node is copied. So the copy is a node without history, which reads the payload
from its memory when it is first used; then it is made hollow. A copy that was never used as a node was used as an array of NaNs:
leaving the context around raises.
"""

from __future__ import annotations

import struct
from types import FrameType
from typing import Any

import numpy as np

from ...operations import JOINING_MODULE
from ..interpreter import callee, first_argument

_KEYS = 2**21  # as many copies can be told apart
_QUIET, _MARK, _SHIFT = 0x7FF8 << 48, 1 << 50, 29  # a NaN, our mark, and where the key begins: bits that float32 keeps as well
_REQUIRING = np.require.__globals__["__name__"]


class _Copy:
    """A copy that NumPy makes: of which node, at which instruction, and how many of its elements have been asked for."""

    __slots__ = ("asked", "code", "instruction", "source")

    def __init__(self, source: Any, frame: FrameType) -> None:
        self.source, self.asked = source, 0
        self.code, self.instruction = frame.f_code, frame.f_lasti


_made: dict[int, _Copy] = {}  # copies by key, those alone that have not been used as nodes yet
_last = -1


def number_for(frame: FrameType) -> float | None:
    """The NaN for the next element, if a frame is at a call by which NumPy copies a node; else None."""
    global _last
    maker = callee(frame)
    is_cast = maker in (np.float64, np.float32, np.complex128, np.complex64)  # of an array alone: of a number it makes no array
    if not is_cast and maker is not np.asanyarray and not (maker is np.array and _lets_nodes_pass(frame)):
        return None
    source = first_argument(frame)
    if not isinstance(source, np.ndarray) or not hasattr(type(source), "opname") or (is_cast and not source.ndim):
        return None
    current = _made.get(_last)
    if current is None or current.source is not source or current.asked >= source.size:
        _last = (_last + 1) % _KEYS
        current = _made[_last] = _Copy(source, frame)
    current.asked += 1
    number: float = struct.unpack("<d", struct.pack("<Q", _QUIET | _MARK | _last << _SHIFT))[0]
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
    """Whether copies were made that have not been used as nodes."""
    return bool(_made)


def unused() -> tuple[Any, int] | None:
    """Where a copy was made that was not used as a node, or None. All copies are forgotten."""
    copy = next(iter(_made.values()), None)
    _made.clear()
    return None if copy is None else (copy.code, copy.instruction)
