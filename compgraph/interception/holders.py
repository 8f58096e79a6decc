"""Arrays of the caller in attributes, lists and dictionaries. `lent` values replace them for a differentiated function."""

from __future__ import annotations

import collections
import functools
import itertools
from collections.abc import Iterable, Iterator
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..frames import is_heap_type, is_internal
from ..values import TRACEABLE
from .libraries import is_users_module

_OF_PYTHON = frozenset({"types", "argparse", "collections"})  # Python modules whose objects hold attributes of the user

# Values that hold no other value, which are the most common.
_PLAIN = frozenset({
    np.ndarray, np.float64, np.float32, np.int64, np.bool_, np.ufunc, int, float, complex, bool, str, bytes, type(None),
    ModuleType, FunctionType, GetSetDescriptorType, MemberDescriptorType, type(len),
})  # fmt: skip
SINGLE = _PLAIN - {FunctionType}  # those that a search does not visit
_DATA = SINGLE - {np.ndarray}  # and that it leaves in their places
_PARTS = frozenset({list, dict})
_EXCHANGED = (np.ndarray, tuple, np.random.Generator)
_SEQUENCES = (list, tuple, collections.deque)
_DEPTH, _MOST = 5, 1000  # the most steps from a name, and the most items of each container, that are visited
_ALL = 4000  # the most values that are visited, the nearest first
_ABSENT = object()


class Place:
    """An attribute, or an item of a container, whose value can be replaced.

    Parameters
    ----------
    holder : object
        A list, a dictionary (of a container, or of an object's attributes), a class, or an object with slots.
    name : object
        The index, the key, or the name of the attribute.
    """

    __slots__ = ("_holder", "_name")

    def __init__(self, holder: Any, name: Any) -> None:
        self._holder, self._name = holder, name

    def read(self) -> Any:
        """The present value, or a private marker if the place is gone."""
        holder, name = self._holder, self._name
        if isinstance(holder, dict):
            return dict.get(holder, name, _ABSENT)
        if isinstance(holder, (list, collections.deque)):
            return holder[name] if name < len(holder) else _ABSENT
        if isinstance(holder, type):
            return vars(holder).get(name, _ABSENT)
        try:
            return object.__getattribute__(holder, name)
        except AttributeError:
            return _ABSENT

    def write(self, value: Any) -> None:
        """Replace the value without running user code, such as ``__setattr__``."""
        holder, name = self._holder, self._name
        if isinstance(holder, dict):
            dict.__setitem__(holder, name, value)
        elif isinstance(holder, (list, collections.deque)):
            holder[name] = value
        elif isinstance(holder, type):
            type.__setattr__(holder, name, value)
        else:
            object.__setattr__(holder, name, value)

    @property
    def key(self) -> tuple[int, Any]:
        """The identity of the place."""
        return id(self._holder), self._name

    def promotable_siblings(self) -> list[tuple[Place, Any]]:
        """The places of the same holder that hold promotable arrays, `given` ones included, and these arrays."""
        holder = self._holder
        items: Iterable[tuple[Any, Any]]
        if isinstance(holder, dict):
            items = dict.items(holder)
        elif isinstance(holder, (list, collections.deque)):
            items = enumerate(holder)
        else:
            items = _attributes(holder)
        return [(Place(holder, name), value) for name, value in list(items) if type(value) in TRACEABLE]


class Exchange:
    """A value of the caller, and the value that replaces it for a function.

    Attributes
    ----------
    users : int
        The number of open contexts that use it.
    """

    __slots__ = ("before", "place", "seen", "users")

    def __init__(self, place: Place, before: Any, seen: Any) -> None:
        self.place, self.before, self.seen, self.users = place, before, seen, 1

    def restore(self) -> None:
        """Put the caller's value back, unless the function has set another."""
        if self.place.read() is self.seen:
            self.place.write(self.before)


class Search:
    """A search through attributes, items and methods.

    Attributes
    ----------
    places : list of (Place, object)
        The arrays, random generators and tuples that are held, and their places.
    functions : list of function
        The functions that are reached, including those of the user's classes.
    """

    def __init__(self) -> None:
        self.places: list[tuple[Place, Any]] = []
        self.functions: list[FunctionType] = []
        self._queue: list[tuple[Any, int]] = []
        self._seen, self._begun = set[int](), 0

    def look(self, values: Iterable[Any], depth: int = 0) -> None:
        """Add values to be visited, `depth` steps from a name."""
        for value in values:
            kind = type(value)
            if (kind not in _PLAIN or kind is FunctionType) and id(value) not in self._seen and len(self._queue) < _ALL:
                self._seen.add(id(value))
                self._queue.append((value, depth))

    def run(self) -> None:
        """Visit all values, and those in them."""
        while self._begun < len(self._queue):  # it grows meanwhile, and keeps the visited values alive, so ids stay unique
            value, depth = self._queue[self._begun]
            self._begun += 1
            self._visit(value, depth)

    def _visit(self, value: Any, depth: int) -> None:
        kind = type(value)
        if kind is FunctionType:
            if not is_internal(value.__code__.co_filename):
                self.functions.append(value)
                for held in (value.__dict__, value.__kwdefaults__):
                    if held:
                        self._hold(held, held.items(), depth)
            elif hasattr(value, "__wrapped__"):
                self.look([value.__wrapped__], depth)
        elif kind is MethodType:
            self.look([value.__self__, value.__func__], depth)
        elif kind is functools.partial:
            self.look([value.func, *value.args, *value.keywords.values()], depth)
        elif kind is property:
            self.look([value.fget, value.fset], depth)
        elif kind is staticmethod or kind is classmethod:
            self.look([value.__func__], depth)
        elif depth >= _DEPTH:
            return
        elif issubclass(kind, _SEQUENCES):
            if issubclass(kind, tuple) and kind is not tuple:
                self.look(value, depth + 1)
            else:
                self._hold(value, enumerate(value), depth)
        elif issubclass(kind, dict):
            self._hold(value, dict.items(value), depth)
        elif issubclass(kind, type):
            self._class(value, depth)
        elif _is_users(kind) or kind.__module__ in _OF_PYTHON:
            self._hold(value, _attributes(value), depth)
            self.look([kind], depth)

    def _class(self, kind: type, depth: int) -> None:
        for base in kind.__mro__:
            if _is_users(base):
                self._hold(base, vars(base).items(), depth)

    def _hold(self, holder: Any, items: Iterable[tuple[Any, Any]], depth: int) -> None:
        """Note the arrays that an object holds, and add its other values to be visited."""
        others = []
        can_change = not isinstance(holder, tuple)
        for name, value in itertools.islice(items, _MOST):
            kind = type(value)
            if kind in _DATA or (kind in _PARTS and _holds_data(value, kind)):
                continue
            if can_change and issubclass(kind, _EXCHANGED):
                self.places.append((_place(holder, name), value))
            if kind is not np.ndarray:
                others.append(value)
        self.look(others, depth + 1)


def _holds_data(value: Any, kind: type) -> bool:
    """Whether the items of a list or dictionary, as far as they are visited, are numbers and other values of `_DATA`."""
    return _DATA.issuperset(map(type, itertools.islice(value if kind is list else value.values(), _MOST)))


def _is_users(kind: type) -> bool:
    """Whether a class is a user's. A class defined in a namespace without ``__name__`` has the module ``builtins``."""
    return is_users_module(kind.__module__) or (kind.__module__ == "builtins" and is_heap_type(kind))


def _place(holder: Any, name: Any) -> Place:
    """The place of a value: an attribute in the object's dictionary, if it has one."""
    held = None if isinstance(holder, (dict, list, collections.deque, type)) else dictionary_of(holder)
    return Place(holder if held is None or name not in held else held, name)


def dictionary_of(value: Any) -> Any:
    """The dictionary of an object's attributes, without running user code; None if it has none."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        return None
    return held if type(held) is dict else None


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object, and their values, without running user code."""
    if isinstance(value, type):
        yield from list(vars(value).items())
        return
    yield from list((dictionary_of(value) or {}).items())
    for base in type(value).__mro__:
        if "__slots__" in vars(base):
            for name, member in vars(base).items():
                if type(member) is MemberDescriptorType:
                    try:
                        yield name, member.__get__(value)
                    except AttributeError:  # it is empty
                        continue
