"""Search for the caller's arrays in attributes, lists and dictionaries, to replace them by borrowed arrays."""

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
from .callers import is_user_module

_USER_DATA_MODULES = frozenset({"types", "argparse", "collections"})  # Python modules whose objects hold the user's attributes

# Classes of values that contain no other values, and are the most frequent.
_LEAF_CLASSES = frozenset({
    np.ndarray, np.float64, np.float32, np.int64, np.bool_, np.ufunc, int, float, complex, bool, str, bytes, type(None),
    ModuleType, FunctionType, GetSetDescriptorType, MemberDescriptorType, type(len),
})  # fmt: skip
SKIPPED_CLASSES = _LEAF_CLASSES - {FunctionType}  # classes that a search skips
_DATA_CLASSES = SKIPPED_CLASSES - {np.ndarray}  # classes that are neither visited nor replaced
_PLAIN_CONTAINERS = frozenset({list, dict})
_REPLACED_CLASSES = (np.ndarray, tuple, np.random.Generator)
_SEQUENCES = (list, tuple, collections.deque)
_MAX_DEPTH, _MAX_ITEMS = 5, 1000  # limits of a search: steps from a name, items per container
_MAX_VALUES = 4000  # limit of visited values, breadth-first
_ABSENT = object()


class Place:
    """An attribute, or an item of a container, whose value can be replaced.

    Parameters
    ----------
    holder : object
        A list, a dictionary (of a container, or of an object's attributes), a class, a partial, or an object with slots.
    name : object
        The index, the key, or the name of the attribute.
    """

    __slots__ = ("_holder", "_name")

    def __init__(self, holder: Any, name: Any) -> None:
        self._holder, self._name = holder, name

    def read(self) -> Any:
        """The current value, or a private marker if the place no longer exists."""
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

    def write(self, value: object) -> None:
        """Replace the value; no user code, such as ``__setattr__``, runs."""
        holder, name = self._holder, self._name
        if isinstance(holder, dict):
            dict.__setitem__(holder, name, value)
        elif isinstance(holder, (list, collections.deque)):
            holder[name] = value
        elif isinstance(holder, type):
            type.__setattr__(holder, name, value)
        elif isinstance(holder, functools.partial):
            holder.__setstate__((holder.func, value, holder.keywords, holder.__dict__))  # type: ignore[attr-defined]
        else:
            object.__setattr__(holder, name, value)

    @property
    def key(self) -> tuple[int, Any]:
        """The identity of the place."""
        return id(self._holder), self._name

    def traceable_siblings(self) -> list[tuple[Place, Any]]:
        """The places of the same holder that hold buffers or borrowed arrays, and these arrays."""
        holder = self._holder
        items: Iterable[tuple[Any, Any]]
        if isinstance(holder, dict):
            items = dict.items(holder)
        elif isinstance(holder, (list, collections.deque)):
            items = enumerate(holder)
        else:
            items = _attributes(holder)
        return [(Place(holder, name), value) for name, value in list(items) if type(value) in TRACEABLE]


class Replacement:
    """A value of the caller, and the borrowed value that replaces it for a function.

    Attributes
    ----------
    users : int
        The number of open contexts that use it.
    """

    __slots__ = ("borrowed", "original", "place", "users")

    def __init__(self, place: Place, original: object, borrowed: Any) -> None:
        self.place, self.original, self.borrowed, self.users = place, original, borrowed, 1

    def restore(self) -> None:
        """Restore the caller's value, unless the function has assigned another."""
        if self.place.read() is self.borrowed:
            self.place.write(self.original)


class PlaceSearch:
    """A breadth-first search through attributes, items and methods.

    Attributes
    ----------
    places : list of (Place, object)
        The arrays, random generators and tuples, and their places.
    functions : list of function
        The functions that are reached, including those of the user's classes.
    """

    def __init__(self) -> None:
        self.places: list[tuple[Place, Any]] = []
        self.functions: list[FunctionType] = []
        self._queue: list[tuple[Any, int]] = []
        self._visited_ids, self._visited = set[int](), 0

    def add(self, values: Iterable[Any], depth: int = 0) -> None:
        """Add values to be visited, `depth` steps from a name."""
        for value in values:
            cls = type(value)
            if (
                (cls not in _LEAF_CLASSES or cls is FunctionType)
                and id(value) not in self._visited_ids
                and len(self._queue) < _MAX_VALUES
            ):
                self._visited_ids.add(id(value))
                self._queue.append((value, depth))

    def run(self) -> None:
        """Visit all values, and those in them."""
        # The loop extends the queue, which keeps visited values alive, so that ids stay unique.
        while self._visited < len(self._queue):
            value, depth = self._queue[self._visited]
            self._visited += 1
            self._visit(value, depth)

    def _visit(self, value: Any, depth: int) -> None:
        cls = type(value)
        if cls is FunctionType:
            if not is_internal(value.__code__.co_filename):
                self.functions.append(value)
                self._visit_items(value.__dict__, value.__dict__.items(), depth)
            elif hasattr(value, "__wrapped__"):
                self.add([value.__wrapped__], depth)
        elif cls is MethodType:
            self.add([value.__self__, value.__func__], depth)
        elif cls is functools.partial:
            self.places.append((Place(value, "args"), value.args))
            self._visit_items(value.keywords, value.keywords.items(), depth)
            self.add([value.func, *value.args], depth)
        elif cls is property:
            self.add([value.fget, value.fset], depth)
        elif cls is staticmethod or cls is classmethod:
            self.add([value.__func__], depth)
        elif depth >= _MAX_DEPTH:
            return
        elif issubclass(cls, _SEQUENCES):
            if issubclass(cls, tuple) and cls is not tuple:
                self.add(value, depth + 1)
            else:
                self._visit_items(value, enumerate(value), depth)
        elif issubclass(cls, dict):
            self._visit_items(value, dict.items(value), depth)
        elif issubclass(cls, type):
            self._visit_class(value, depth)
        elif _is_user_class(cls) or cls.__module__ in _USER_DATA_MODULES:
            self._visit_items(value, _attributes(value), depth)
            self.add([cls], depth)

    def _visit_class(self, cls: type, depth: int) -> None:
        for base in cls.__mro__:
            if _is_user_class(base):
                self._visit_items(base, vars(base).items(), depth)

    def _visit_items(self, holder: object, items: Iterable[tuple[Any, Any]], depth: int) -> None:
        """Record the arrays in an object, and queue its other values."""
        others = []
        can_change = not isinstance(holder, tuple)
        for name, value in itertools.islice(items, _MAX_ITEMS):
            cls = type(value)
            if cls in _DATA_CLASSES or (cls in _PLAIN_CONTAINERS and _holds_data(value, cls)):
                continue
            if can_change and issubclass(cls, _REPLACED_CLASSES):
                self.places.append((_place_of(holder, name), value))
            if cls is not np.ndarray:
                others.append(value)
        self.add(others, depth + 1)


def _holds_data(value: Any, cls: type) -> bool:
    """Whether the visited items of a list or dictionary are all of `_DATA_CLASSES`."""
    return _DATA_CLASSES.issuperset(map(type, itertools.islice(value if cls is list else value.values(), _MAX_ITEMS)))


def _is_user_class(cls: type) -> bool:
    """Whether a class is the user's. A class defined in a namespace without ``__name__`` has the module ``builtins``."""
    return is_user_module(cls.__module__) or (cls.__module__ == "builtins" and is_heap_type(cls))


def _place_of(holder: Any, name: Any) -> Place:
    """The place of an item or attribute. The place of an attribute is that of its item in ``__dict__``, if it is there."""
    attributes = None if isinstance(holder, (dict, list, collections.deque, type)) else attributes_of(holder)
    return Place(holder if attributes is None or name not in attributes else attributes, name)


def attributes_of(value: object) -> dict[str, Any] | None:
    """The dictionary of an object's attributes, without running user code; None if it has none."""
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        return None
    return attributes if type(attributes) is dict else None


def _attributes(value: object) -> Iterator[tuple[str, Any]]:
    """Names and values of an object's attributes, without running user code."""
    if isinstance(value, type):
        yield from list(vars(value).items())
        return
    yield from list((attributes_of(value) or {}).items())
    for base in type(value).__mro__:
        if "__slots__" in vars(base):
            for name, member in vars(base).items():
                if type(member) is MemberDescriptorType:
                    try:
                        yield name, member.__get__(value)
                    except AttributeError:  # the slot is empty
                        continue
