"""What an array or a container held, to be compared with what it holds now."""

from __future__ import annotations

import collections
import decimal
import operator
from types import MappingProxyType
from typing import Any

import numpy as np

from ..interception import is_bound_here
from ..values import TRACEABLE
from .purity import is_exchanged

ndarray = np.ndarray
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
COPIED = 1 << 15  # bytes of the largest array that is kept as a string of bytes
VALUES = frozenset({int, float, complex, bool, str, bytes})


class Contents:
    """The contents of an array, a buffer or a container at one moment.

    Parameters
    ----------
    value : ndarray, list, dict, set, deque, bytearray ...
        Held by reference. It is read by methods of the class that `base_of` returns, so no user code runs.
    label : str
        What to call it in messages.

    Attributes
    ----------
    parts : list
        The elements of a container; the keys, then the values of a mapping.
    """

    __slots__ = ("_held", "_read", "is_same", "label", "parts", "value")

    def __init__(self, value: Any, label: str) -> None:
        self.value, self.label, self.parts = value, label, list[Any]()
        if issubclass(type(value), ndarray):
            self.value = np.asarray(value)
            if value.nbytes <= COPIED:
                self._held: Any = (value.shape, value.dtype, value.tobytes())
                self.is_same = self._has_bytes
            else:
                self._held = self.value.copy("K")
                self.is_same = self._has_numbers
        elif (base := base_of(value)) is None:
            self._held = memoryview(value).tobytes()
            self.is_same = self._has_octets
        else:
            self._read = base
            self.is_same = self._has_items if base in _MAPPINGS else self._has_parts
            self._held = self.parts = [*base.keys(value), *base.values(value)] if base in _MAPPINGS else [*base.__iter__(value)]

    def _has_bytes(self) -> bool:
        value = self.value
        shape, dtype, octets = self._held
        return bool(value.tobytes() == octets and value.shape == shape and value.dtype == dtype)

    def _has_numbers(self) -> bool:
        value, held = self.value, self._held
        if value.shape != held.shape or value.dtype != held.dtype:
            return False
        if value.itemsize in _WORDS:
            word = _WORDS[value.itemsize]
            return bool((value.view(word) == held.view(word)).all())
        return bool(value.tobytes() == held.tobytes())

    def _has_octets(self) -> bool:
        try:
            return bool(memoryview(self.value).tobytes() == self._held)
        except ValueError:  # it was released
            return False

    def _has_items(self) -> bool:
        return _are([*self._read.keys(self.value), *self._read.values(self.value)], self._held)

    def _has_parts(self) -> bool:
        return _are([*self._read.__iter__(self.value)], self._held)


class Keys(Contents):
    """The names of the attributes of an object at one moment."""

    __slots__ = ()

    def __init__(self, value: Any, label: str) -> None:
        self.value, self.label, self.parts = value, label, []
        self._held, self.is_same = list(value), self._has_keys

    def _has_keys(self) -> bool:
        return bool(list(self.value) == self._held)


class Answer(Contents):
    """The result of a function without arguments at one moment, such as a setting."""

    __slots__ = ()

    def __init__(self, value: Any, label: str) -> None:
        self.value, self.label, self.parts = value, label, []
        self._held, self.is_same = value(), self._is_given

    def _is_given(self) -> bool:
        return bool(self.value() == self._held)


def decimal_context() -> Any:
    """The settings of the `decimal` context, without its flags."""
    context = decimal.getcontext()
    return context.prec, context.rounding, context.Emin, context.Emax, context.clamp, context.traps


_MAPPINGS = (collections.OrderedDict, dict, MappingProxyType)
_CONTAINERS = (list, tuple, set, frozenset, collections.deque, *_MAPPINGS)


def base_of(value: Any) -> Any:
    """The builtin class whose methods read a container, or None."""
    kind = type(value)
    return next((base for base in _CONTAINERS if issubclass(kind, base)), None)


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
    kind = type(found)
    if kind is not type(before):
        return (kind in TRACEABLE or type(before) in TRACEABLE) and _lies_at(found, before)
    if kind in VALUES or issubclass(kind, np.generic):
        return bool(repr(found) == repr(before))
    if kind is tuple:
        return len(found) == len(before) and all(map(is_still, found, before))
    if kind is dict:  # in the same order, because a function may iterate over it
        return is_still((*found, *found.values()), (*before, *before.values()))
    return False


def lookup(value: Any) -> Any:
    """The bit generator of a generator, because a trace wraps it in another generator; other values by `original`."""
    value = original(value)
    return value.bit_generator if issubclass(type(value), np.random.Generator) else value


def original(value: Any) -> Any:
    """The library function that a value currently replaces (`MISSING` for a builtin), or the value itself."""
    if is_exchanged(value):
        return value.__wrapped__
    return MISSING if is_bound_here(value) else value


def _lies_at(one: Any, other: Any) -> bool:
    """Whether two arrays are the same memory, seen alike."""
    if not (isinstance(one, ndarray) and isinstance(other, ndarray)):
        return False
    return (one.__array_interface__["data"], one.shape, one.dtype, one.strides) == (
        other.__array_interface__["data"], other.shape, other.dtype, other.strides
    )  # fmt: skip
