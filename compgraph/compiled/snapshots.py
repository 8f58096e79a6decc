"""What an array or a container held, to be compared with what it holds now."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..graph import PROMOTABLE

ndarray = np.ndarray
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
COPIED = 1 << 15  # bytes of the largest array that is kept as a string of bytes
VALUES = frozenset({int, float, complex, bool, str, bytes})


class Contents:
    """What an array or a container held at one moment.

    Parameters
    ----------
    value : ndarray, list, dict, set, deque
        It is referred to.
    label : str
        What to call it in messages.
    """

    __slots__ = ("_held", "is_same", "label", "value")

    def __init__(self, value: Any, label: str) -> None:
        self.value, self.label = value, label
        if isinstance(value, ndarray):
            self.value = np.asarray(value)
            if value.nbytes <= COPIED:
                self._held: Any = (value.shape, value.dtype, value.tobytes())
                self.is_same = self._has_bytes
            else:
                self._held = self.value.copy("K")
                self.is_same = self._has_numbers
        elif isinstance(value, dict):
            self._held = [*value, *value.values()]
            self.is_same = self._has_items
        else:
            self._held = list(value)
            self.is_same = self._has_parts

    def _has_bytes(self) -> bool:
        value = self.value
        shape, dtype, octets = self._held
        return bool(value.tobytes() == octets and value.shape == shape and value.dtype == dtype)

    def _has_numbers(self) -> bool:
        value, held = self.value, self._held
        if value.shape != held.shape or value.dtype != held.dtype:
            return False
        if value.itemsize in _WORDS and value.flags.c_contiguous == held.flags.c_contiguous:
            word = _WORDS[value.itemsize]
            return bool((value.view(word) == held.view(word)).all())
        return bool(value.tobytes() == held.tobytes())

    def _has_items(self) -> bool:
        return _are([*self.value, *self.value.values()], self._held)

    def _has_parts(self) -> bool:
        return _are(list(self.value), self._held)


_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def _are(found: list[Any], held: list[Any]) -> bool:
    if len(found) != len(held):
        return False
    return all(map(operator.is_, found, held)) or all(map(is_still, found, held))


def is_still(found: Any, before: Any) -> bool:
    """Whether a value is the one before, or an equal number; or that as a function sees it that is traced elsewhere just now."""
    if found is before:
        return True
    found, before = lookup(found), lookup(before)
    if found is before:
        return True
    kind = found.__class__
    if kind is not before.__class__:
        return (kind in PROMOTABLE or before.__class__ in PROMOTABLE) and _lies_at(found, before)
    if kind in VALUES or isinstance(found, np.generic):
        return bool(repr(found) == repr(before))
    if kind is tuple:
        return len(found) == len(before) and all(map(is_still, found, before))
    if isinstance(found, dict) and kind is dict:  # of keyword defaults
        return found.keys() == before.keys() and all(is_still(found[key], before[key]) for key in before)
    return False


def lookup(value: Any) -> Any:
    """A generator as its bits, since one that is lent to a trace is another over the same; others as they are."""
    return value.bit_generator if isinstance(value, np.random.Generator) else value


def _lies_at(one: Any, other: Any) -> bool:
    """Whether two arrays are the same memory, seen alike."""
    if not (isinstance(one, ndarray) and isinstance(other, ndarray)):
        return False
    return (one.__array_interface__["data"], one.shape, one.dtype, one.strides) == (
        other.__array_interface__["data"], other.shape, other.dtype, other.strides
    )  # fmt: skip
