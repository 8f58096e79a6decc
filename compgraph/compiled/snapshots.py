"""Snapshots of captured state: contents of arrays, containers and settings, and locations (names, cells and attributes)."""

from __future__ import annotations

import collections
import decimal
import functools
import operator
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..interception import is_introspection_patch
from ..values import TRACEABLE
from .pure_functions import is_patch

ndarray = np.ndarray
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
MAX_BYTES_KEY = 1 << 15  # size of the largest array whose snapshot is a byte string
VALUES = frozenset({int, float, complex, bool, str, bytes})


class ContentSnapshot:
    """The contents of an array, a buffer or a container at one moment.

    Parameters
    ----------
    value : ndarray, list, dict, set, deque, bytearray ...
        The object, by reference. It is read by methods of the class that `container_base` returns, so no user code runs.
    label : str
        Its name in messages.

    Attributes
    ----------
    parts : list
        The elements of a container; the keys, then the values of a mapping.
    """

    __slots__ = ("_base", "_recorded", "is_current", "label", "parts", "value")

    def __init__(self, value: Any, label: str) -> None:
        self.value, self.label, self.parts = value, label, list[Any]()
        if issubclass(type(value), ndarray):
            self.value = np.asarray(value)
            if value.nbytes <= MAX_BYTES_KEY:
                self._recorded: Any = (value.shape, value.dtype, value.tobytes())
                self.is_current = self._equals_bytes
            else:
                self._recorded = self.value.copy("K")
                self.is_current = self._equals_array
        elif (base := container_base(value)) is None:
            self._recorded = memoryview(value).tobytes()
            self.is_current = self._equals_buffer
        else:
            self._base = base
            self.is_current = self._equals_items if base in _MAPPINGS else self._equals_elements
            self._recorded = self.parts = (
                [*base.keys(value), *base.values(value)] if base in _MAPPINGS else [*base.__iter__(value)]
            )

    def _equals_bytes(self) -> bool:
        value = self.value
        shape, dtype, contents = self._recorded
        return bool(value.tobytes() == contents and value.shape == shape and value.dtype == dtype)

    def _equals_array(self) -> bool:
        value, recorded = self.value, self._recorded
        if value.shape != recorded.shape or value.dtype != recorded.dtype:
            return False
        if value.itemsize in _UNSIGNED_DTYPES:
            unsigned = _UNSIGNED_DTYPES[value.itemsize]
            return bool((value.view(unsigned) == recorded.view(unsigned)).all())
        return bool(value.tobytes() == recorded.tobytes())

    def _equals_buffer(self) -> bool:
        try:
            return bool(memoryview(self.value).tobytes() == self._recorded)
        except ValueError:  # it was released
            return False

    def _equals_items(self) -> bool:
        return _all_unchanged([*self._base.keys(self.value), *self._base.values(self.value)], self._recorded)

    def _equals_elements(self) -> bool:
        return _all_unchanged([*self._base.__iter__(self.value)], self._recorded)


class KeySnapshot(ContentSnapshot):
    """The names of the attributes of an object at one moment."""

    __slots__ = ()

    def __init__(self, value: dict[str, Any], label: str) -> None:
        self.value, self.label, self.parts = value, label, []
        self._recorded, self.is_current = list(value), self._equals_keys

    def _equals_keys(self) -> bool:
        return bool(list(self.value) == self._recorded)


class SettingSnapshot(ContentSnapshot):
    """The result of a function without arguments at one moment, such as a setting."""

    __slots__ = ()

    def __init__(self, value: Any, label: str) -> None:
        self.value, self.label, self.parts = value, label, []
        self._recorded, self.is_current = value(), self._equals_result

    def _equals_result(self) -> bool:
        return bool(self.value() == self._recorded)


def decimal_context() -> Any:
    """Return the settings of the `decimal` context, without its flags."""
    context = decimal.getcontext()
    return context.prec, context.rounding, context.Emin, context.Emax, context.clamp, context.traps


_MAPPINGS = (collections.OrderedDict, dict, MappingProxyType)
_CONTAINERS = (list, tuple, set, frozenset, collections.deque, *_MAPPINGS)


def container_base(value: object) -> Any:
    """Return the builtin class whose methods read a container, or None."""
    cls = type(value)
    return next((base for base in _CONTAINERS if issubclass(cls, base)), None)


_UNSIGNED_DTYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def _all_unchanged(current_values: list[Any], recorded_values: list[Any]) -> bool:
    if len(current_values) != len(recorded_values):
        return False
    return all(map(operator.is_, current_values, recorded_values)) or all(map(is_unchanged, current_values, recorded_values))


def is_unchanged(current: Any, before: Any) -> bool:
    """Return whether a value is identical to the recorded one, or an equal number, or currently a tracer of it."""
    if current is before:
        return True
    current, before = _comparable(current), _comparable(before)
    if current is before:
        return True
    cls = type(current)
    if cls is not type(before):
        return (cls in TRACEABLE or type(before) in TRACEABLE) and _is_same_memory(current, before)
    if cls in VALUES or issubclass(cls, np.generic):
        return bool(repr(current) == repr(before))
    if cls is tuple:
        return len(current) == len(before) and all(map(is_unchanged, current, before))
    if cls is dict:  # in the same order, because a function may iterate over it
        return is_unchanged((*current, *current.values()), (*before, *before.values()))
    return False


def _comparable(value: Any) -> Any:
    """Return the value to compare: for a generator its bit generator, because a trace wraps it; else `unwrap_patch`."""
    value = unwrap_patch(value)
    return value.bit_generator if issubclass(type(value), np.random.Generator) else value


def unwrap_patch(value: Any) -> Any:
    """Return the library function that a patch replaces, `MISSING` for a patched builtin, or any other value unchanged."""
    if is_patch(value):
        return value.__wrapped__
    return MISSING if is_introspection_patch(value) else value


def _is_same_memory(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return whether two arrays are the same memory with the same layout."""
    if not (isinstance(one, ndarray) and isinstance(other, ndarray)):
        return False
    return (one.__array_interface__["data"], one.shape, one.dtype, one.strides) == (
        other.__array_interface__["data"], other.shape, other.dtype, other.strides
    )  # fmt: skip


class Location:
    """A location whose value is compared: a name in a mapping, a cell, or an attribute.

    Parameters
    ----------
    key : tuple
        The identity of the location.
    read : callable
        Returns the present value, or `MISSING`.
    expression : str
        Python source that reads the value. It has ``{0}`` in place of the owner.
    owner : object
        The mapping or object with the location.
    label : str
        Its name in messages.
    """

    __slots__ = ("expression", "key", "label", "owner", "read", "value")

    def __init__(self, key: Any, read: Callable[[], Any], expression: str, owner: Any, label: str) -> None:
        self.key, self.read, self.expression, self.owner, self.label = key, read, expression, owner, label
        self.value = unwrap_patch(read())

    @classmethod
    def in_mapping(cls, namespace: Any, name: Any, label: str) -> Location:
        """Return the location of a name in a mapping."""
        read = functools.partial(namespace.get, name, MISSING)
        return cls((id(namespace), name), read, f"{{0}}[{name!r}]", namespace, label)

    @classmethod
    def attribute(cls, owner: Any, name: str, label: str) -> Location:
        """Return the location of an attribute that is read without running user code."""
        return cls((id(owner), name, "attribute"), functools.partial(_attribute_of, owner, name), f"{{0}}.{name}", owner, label)

    @classmethod
    def slot(cls, owner: Any, member: Any, label: str) -> Location:
        """Return the location of a slot of an object."""
        read = functools.partial(_slot_of, member, owner)
        return cls((id(owner), id(member), "slot"), read, "{0}()", functools.partial(member.__get__, owner), label)

    def is_unchanged(self) -> bool:
        """Return whether the value is the recorded one, or an equal number."""
        return is_unchanged(self.read(), self.value)


def _attribute_of(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except (AttributeError, ValueError):  # of an empty cell
        return MISSING


def _slot_of(member: Any, owner: Any) -> Any:
    try:
        return member.__get__(owner)
    except AttributeError:
        return MISSING


def compile_comparison(locations: list[Location]) -> Callable[[], bool]:
    """Return a function that compares the values of locations by identity in one expression, three times as fast as a loop."""
    namespace: dict[str, Any] = {"attribute": object.__getattribute__}
    owners: dict[int, str] = {}
    terms = []
    for number, location in enumerate(locations):
        owner = owners.setdefault(id(location.owner), f"o{number}")
        namespace[owner] = location.owner
        if location.value is MISSING:
            terms.append(f"{location.key[1]!r} not in {owner}" if len(location.key) == 2 else "False")
        else:
            namespace[f"v{number}"] = location.value
            terms.append(f"{location.expression.replace('{0}', owner)} is v{number}")
    return eval(f"lambda: {' and '.join(terms) or 'True'}", namespace)  # type: ignore[no-any-return]
