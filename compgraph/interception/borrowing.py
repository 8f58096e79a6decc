"""Borrowed values: replacements of the caller's arrays and random generators within a differentiated function.

A borrowed array is a view of the caller's memory whose copies are buffers. While a function runs, borrowed values replace the
caller's in the globals, closure cells, default values, attributes and items that the function reaches.
"""

from __future__ import annotations

import weakref
from types import CellType, FunctionType
from typing import Any

import numpy as np

from ..tracing import is_tracing
from ..values import Borrowed, Value, borrow, unwrap_buffer
from .captured_arrays import Place, PlaceSearch, Replacement
from .numpy_substitute import NUMPY_SUBSTITUTE
from .random_functions import traceable_generator
from .reachability import Closure, cell_contents, namespace_of, numpy_names
from .undispatched_functions import interception_switch, open_interceptions

ndarray = np.ndarray
_BORROWED_CLASSES = frozenset({np.random.Generator, tuple})
_views: dict[int, tuple[Any, Any]] = {}  # by the id of an array: the array, and the view that replaces it for the function
# Rebound variables: namespace, cell or function; name, or None for a cell; the caller's value; its replacement.
_rebindings: list[tuple[Any, str | None, Any, Any]] = []
_replacements: dict[Any, Replacement] = {}  # of attributes and items, by the key of their place
_replacements_of: dict[weakref.ref[Any], list[Replacement]] = {}  # by open context


def as_borrowed(value: Any) -> Any:
    """Convert a value of the caller for a function that is differentiated.

    An array becomes a borrowed one, a random generator one that accepts nodes (`random_functions.Generator`), a tuple one of
    borrowed parts. A list or another mutable object is returned unchanged, because the function may mutate it for the caller.
    """
    cls = type(value)
    if cls is ndarray:
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


def rebind_variables(closure: Closure, search: PlaceSearch, captured: list[Any], rebinds_generators: bool = True) -> None:
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
    reference: weakref.ref[Any], closure: Closure, search: PlaceSearch, captured: list[Any], replaces_generators: bool
) -> None:
    """Replace values in attributes, lists and dictionaries by borrowed ones, for an open context.

    Without `replaces_generators`, random generators are skipped; they are replaced later if the caller records draws.
    """
    context_replacements = _replacements_of[reference] = []
    visited = 0
    search.run()
    while visited < len(search.functions):  # the loop extends the list
        function = search.functions[visited]
        visited += 1
        if all(function is not other for other in closure.functions):
            rebind_variables(Closure(function), search, captured, replaces_generators)
            search.run()
    for place, value in search.places:
        if replaces_generators or not isinstance(value, np.random.Generator):
            _replace_at(place, value, context_replacements, captured)


def clear_views() -> None:
    """Clear the cache of views, because an inner function may need views of another kind."""
    _views.clear()


def _borrow_cached(value: object) -> Any:
    """The replacement of a value: the same object wherever a function reaches the value."""
    if type(value) is not ndarray:
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


def _replace_at(place: Place, value: object, context_replacements: list[Replacement], captured: list[Any]) -> None:
    key = place.key
    existing = _replacements.get(key)
    if existing is not None and existing.borrowed is value:  # replaced by another thread, which may return first
        existing.users += 1
        context_replacements.append(existing)
        return
    replacement = _capture(value, captured)
    if replacement is not value:
        existing = _replacements[key] = Replacement(place, value, replacement)
        context_replacements.append(existing)
        place.write(replacement)


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


def restore_places(reference: weakref.ref[Any]) -> None:
    """Restore the caller's values in attributes and items, including places to which the function copied a view.

    When the last operator returns, buffers in the same objects become plain arrays, because no operator writes into them anymore.
    """
    finished = []
    for replacement in _replacements_of.pop(reference, []):
        replacement.users -= 1
        if not replacement.users:
            del _replacements[replacement.place.key]
            replacement.restore()
            finished.append(replacement)
    originals = {id(replacement.borrowed): replacement.original for replacement in finished}
    holders = {replacement.place.key[0]: replacement.place for replacement in finished}
    for place, array in [sibling for holder in holders.values() for sibling in holder.traceable_siblings()]:
        if (array.is_borrowed or len(open_interceptions) <= 1) and place.key not in _replacements:
            place.write(originals.get(id(array), unwrap_buffer(array)))
