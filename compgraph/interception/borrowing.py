"""Borrowed values: replacements of the caller's arrays and random generators within a differentiated function.

A borrowed array is a view of the caller's memory whose copies are buffers. While a function runs, borrowed values replace the
caller's in the globals, closure cells, default values, attributes and items that the function reaches. A search finds the
caller's arrays in attributes, lists and dictionaries.
"""

from __future__ import annotations

import collections
import functools
import itertools
import weakref
from collections.abc import Iterable, Iterator
from types import CellType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..frames import is_heap_type, is_internal
from ..tracing import is_tracing
from ..values import TRACEABLE, Borrowed, Value, borrow, unwrap_buffer
from .callers import is_user_module
from .random_functions import traceable_generator
from .reachability import Closure, cell_contents, namespace_of, numpy_names
from .undispatched_functions import NUMPY_SUBSTITUTE, interception_switch, open_interceptions

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

_BORROWED_CLASSES = frozenset({np.random.Generator, tuple})
_views: dict[int, tuple[Any, Any]] = {}  # by the id of an array: the array, and the view that replaces it for the function
# Rebound variables: namespace, cell or function; name, or None for a cell; the caller's value; its replacement.
_rebindings: list[tuple[Any, str | None, Any, Any]] = []
_replacements: dict[Any, Replacement] = {}  # of attributes and items, by the key of their location
_replacements_of: dict[weakref.ref[Any], list[Replacement]] = {}  # by open context


# ---------------------------------------------------------------------------------------------------- search


class Location:
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
        """The current value, or a private marker if the location no longer exists."""
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
        """The identity of the location."""
        return id(self._holder), self._name

    def traceable_siblings(self) -> list[tuple[Location, Any]]:
        """The locations of the same holder that hold buffers or borrowed arrays, and these arrays."""
        holder = self._holder
        items: Iterable[tuple[Any, Any]]
        if isinstance(holder, dict):
            items = dict.items(holder)
        elif isinstance(holder, (list, collections.deque)):
            items = enumerate(holder)
        else:
            items = _attributes(holder)
        return [(Location(holder, name), value) for name, value in list(items) if type(value) in TRACEABLE]


class Replacement:
    """A value of the caller, and the borrowed value that replaces it for a function.

    Attributes
    ----------
    users : set of weakref
        The open contexts that use it.
    """

    __slots__ = ("borrowed", "location", "original", "users")

    def __init__(self, location: Location, original: object, borrowed: Any, user: weakref.ref[Any]) -> None:
        self.location, self.original, self.borrowed, self.users = location, original, borrowed, {user}

    def restore(self) -> None:
        """Restore the caller's value, unless the function has assigned another."""
        if self.location.read() is self.borrowed:
            self.location.write(self.original)


class LocationSearch:
    """A breadth-first search for the locations of arrays, through attributes, items and methods.

    Attributes
    ----------
    locations : list of (Location, object)
        The arrays, random generators and tuples, and their locations.
    functions : list of function
        The functions that are reached, including those of the user's classes.
    """

    def __init__(self) -> None:
        self.locations: list[tuple[Location, Any]] = []
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
            self.locations.append((Location(value, "args"), value.args))
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
                self.locations.append((_location_of(holder, name), value))
            if cls is not np.ndarray:
                others.append(value)
        self.add(others, depth + 1)


def _holds_data(value: Any, cls: type) -> bool:
    """Whether the visited items of a list or dictionary are all of `_DATA_CLASSES`."""
    return _DATA_CLASSES.issuperset(map(type, itertools.islice(value if cls is list else value.values(), _MAX_ITEMS)))


def _is_user_class(cls: type) -> bool:
    """Whether a class is the user's. A class defined in a namespace without ``__name__`` has the module ``builtins``."""
    return is_user_module(cls.__module__) or (cls.__module__ == "builtins" and is_heap_type(cls))


def _location_of(holder: Any, name: Any) -> Location:
    """The location of an item or attribute; an attribute in ``__dict__`` is an item of this dictionary."""
    attributes = None if isinstance(holder, (dict, list, collections.deque, type)) else attributes_of(holder)
    return Location(holder if attributes is None or name not in attributes else attributes, name)


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


# ---------------------------------------------------------------------------------------------------- replacement


def as_borrowed(value: Any) -> Any:
    """Convert a value of the caller for a function that is differentiated.

    An array becomes a borrowed one, a random generator one that accepts nodes (`random_functions.Generator`), a tuple one of
    borrowed parts. A list or another mutable object is returned unchanged, because the function may mutate it for the caller.
    """
    cls = type(value)
    if cls is np.ndarray:
        return borrow(value) if value.dtype.kind in "biufc" and interception_switch.is_on and is_tracing() else value
    is_named = cls not in _BORROWED_CLASSES and issubclass(cls, tuple) and hasattr(cls, "_make")
    if is_named and any(isinstance(part, np.random.Generator) for part in value):  # generators are replaced later
        return value
    if (cls not in _BORROWED_CLASSES and not is_named) or not interception_switch.is_on or not is_tracing():
        return value
    if cls is tuple or is_named:
        parts = tuple(map(as_borrowed, value))
        if all(a is b for a, b in zip(value, parts, strict=True)):
            return value
        return cls._make(parts) if is_named else parts
    return traceable_generator(value)


# ------------------------------------------------------------------------------------------------------- rebinding


def rebind_variables(closure: Closure, search: LocationSearch, captured: list[Any], rebinds_generators: bool = True) -> None:
    """Rebind the globals, default values and cells that some functions reach to borrowed values; add them to `search`."""
    for function, reachable in zip(closure.functions, closure.function_names, strict=True):
        for value, user in ((function, function), *reachable.user_functions()):
            for name in numpy_names(user):
                _rebindings.append((user.__globals__, name, np, NUMPY_SUBSTITUTE))
                user.__globals__[name] = NUMPY_SUBSTITUTE
            if value is not user or user.__dict__:
                search.add((value,))
        for module_name, name in reachable.variables:
            namespace = namespace_of(module_name, function.__globals__)
            value = namespace.get(name)
            if rebinds_generators or not isinstance(value, np.random.Generator):
                _rebind_name(namespace, name, value, captured)
            search.add((value,))
        if function.__defaults__:
            _rebind_defaults(function, function.__defaults__, captured)
            search.add(function.__defaults__)
        keyword_defaults = function.__kwdefaults__ or {}
        for name, value in keyword_defaults.items():
            _rebind_name(keyword_defaults, name, value, captured)
            search.add((value,))
    for cell in closure.cells:
        search.add((cell_contents(cell),))
        _rebind_cell(cell, captured)


def replace_in_objects(
    reference: weakref.ref[Any], closure: Closure, search: LocationSearch, captured: list[Any], replaces_generators: bool
) -> None:
    """Replace values in attributes, lists and dictionaries by borrowed ones, for an open context.

    Without `replaces_generators`, random generators are skipped; they are replaced later if the caller records draws.
    """
    _replacements_of[reference] = []
    visited = 0
    search.run()
    while visited < len(search.functions):  # the loop extends the list
        function = search.functions[visited]
        visited += 1
        if all(function is not other for other in closure.functions):
            rebind_variables(Closure(function), search, captured, replaces_generators)
            search.run()
    for location, value in search.locations:
        if replaces_generators or not isinstance(value, np.random.Generator):
            _replace_at(location, value, reference, captured)


def clear_views() -> None:
    """Clear the cache of views, because an inner function may need views of another kind."""
    _views.clear()


def _borrow_cached(value: object) -> Any:
    """The replacement of a value: the same object wherever a function reaches the value."""
    if type(value) is not np.ndarray:
        return as_borrowed(value)
    cached = _views.get(id(value))
    if cached is None:
        cached = _views[id(value)] = value, as_borrowed(value)
    return cached[1]


def _capture(value: object, captured: list[Any]) -> Any:
    """The replacement of a value that a function captures; an array or node is added to `captured`."""
    replacement = _borrow_cached(value)
    if isinstance(replacement, Value) or type(replacement) is Borrowed:
        captured.append(replacement)
    return replacement


def _rebind_name(namespace: dict[str, Any], name: str, value: object, captured: list[Any]) -> None:
    replacement = _capture(value, captured)
    if replacement is not value:
        _rebindings.append((namespace, name, value, replacement))
        namespace[name] = replacement


def _rebind_defaults(function: FunctionType, before: tuple[Any, ...], captured: list[Any]) -> None:
    after = tuple([_capture(value, captured) for value in before])
    if any(a is not b for a, b in zip(before, after, strict=True)):
        _rebindings.append((function, "__defaults__", before, after))
        function.__defaults__ = after


def _rebind_cell(cell: CellType, captured: list[Any]) -> None:
    value = cell_contents(cell)
    replacement = _capture(value, captured)
    if replacement is not value:
        _rebindings.append((cell, None, value, replacement))
        cell.cell_contents = replacement


def _replace_at(location: Location, value: object, reference: weakref.ref[Any], captured: list[Any]) -> None:
    key = location.key
    existing = _replacements.get(key)
    if existing is not None and existing.borrowed is value:  # replaced by another thread, which may return first
        existing.users.add(reference)
        _replacements_of[reference].append(existing)
        return
    replacement = _capture(value, captured)
    if replacement is not value:
        existing = _replacements[key] = Replacement(location, value, replacement, reference)
        _replacements_of[reference].append(existing)
        location.write(replacement)


# ------------------------------------------------------------------------------------------------------- restoring


def restore_variables() -> None:
    """Rebind globals, cells and default values to the caller's values, unless the function has assigned other values."""
    while _rebindings:
        owner, name, before, replacement = _rebindings[-1]
        if name is None:
            if cell_contents(owner) is replacement:
                owner.cell_contents = before
        elif isinstance(owner, FunctionType):
            if owner.__defaults__ is replacement:
                owner.__defaults__ = before
        elif owner.get(name) is replacement:
            owner[name] = before
        _rebindings.pop()


def restore_locations(reference: weakref.ref[Any]) -> None:
    """Restore the caller's values in attributes and items, including locations to which the function copied a view.

    When the last operator returns, buffers in the same objects become plain arrays, because no operator writes into them anymore.
    After an interrupt, a repeated call completes the work.
    """
    replacements = _replacements_of.get(reference, [])
    for replacement in replacements:
        replacement.users.discard(reference)
        key = replacement.location.key
        if not replacement.users:
            replacement.restore()
            if _replacements.get(key) is replacement:
                del _replacements[key]
    finished = [replacement for replacement in replacements if not replacement.users]
    originals = {id(replacement.borrowed): replacement.original for replacement in finished}
    holders = {replacement.location.key[0]: replacement.location for replacement in finished}
    for location, array in [sibling for holder in holders.values() for sibling in holder.traceable_siblings()]:
        if (array.is_borrowed or len(open_interceptions) <= 1) and location.key not in _replacements:
            location.write(originals.get(id(array), unwrap_buffer(array)))
    _replacements_of.pop(reference, None)
