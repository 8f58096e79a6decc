"""Borrowed values: the caller's arrays and random generators as a differentiated function sees them.

A borrowed array is a view of the caller's memory whose copies are buffers. While a function runs, borrowed values replace the
caller's in the globals, closure cells, default values, attributes and items that the function reaches.
"""

from __future__ import annotations

import weakref
from types import CellType, FunctionType
from typing import Any

import numpy as np

from ..tracing import is_compiling, is_tracing
from ..values import Borrowed, Value, borrow, unwrap_buffer
from .captured_arrays import Place, PlaceSearch, Replacement
from .node_sequences import GATHERING_NUMPY, active_contexts, interception_switch
from .random_functions import traceable_generator
from .reachability import Held, Reach, cell_contents, function_of, namespace_of, numpy_names, reach_of

ndarray = np.ndarray
_LENDABLE = frozenset({np.random.Generator, tuple})
_views: dict[int, tuple[Any, Any]] = {}  # by the id of an array: the array, and the view that replaces it for the function
# Rebound variables: namespace, cell or function; name, or None for a cell; the caller's value; its replacement.
_rebound: list[tuple[Any, str | None, Any, Any]] = []
_replacements: dict[Any, Replacement] = {}  # of attributes and items, by the key of their place
_replacements_of: dict[weakref.ref[Any], list[Replacement]] = {}  # by open context


def as_borrowed(value: Any) -> Any:
    """A value of the caller as a function that is differentiated sees it.

    An array becomes a borrowed one, a random generator one that takes nodes (`random_functions.Generator`), a tuple one of
    borrowed parts. A list or another mutable object is returned unchanged, since the function may change it for the caller.
    """
    cls = type(value)
    if cls is ndarray:
        return borrow(value) if value.dtype.kind in "biufc" and interception_switch.is_on and is_tracing() else value
    is_named = cls not in _LENDABLE and issubclass(cls, tuple) and hasattr(cls, "_make")
    if is_named and any(isinstance(part, np.random.Generator) for part in value):  # generators are replaced afterwards
        return value
    if (cls not in _LENDABLE and not is_named) or not interception_switch.is_on or not is_tracing():
        return value
    if cls is tuple or is_named:
        parts = tuple(map(as_borrowed, value))
        if all(a is b for a, b in zip(value, parts, strict=True)):
            return value
        return cls._make(parts) if is_named else parts
    return traceable_generator(value)


# ------------------------------------------------------------------------------------------------------- rebinding


def rebind_reached(
    held: Held, reached: list[Reach], search: PlaceSearch, captured: list[Any], rebinds_generators: bool = True
) -> None:
    """Rebind the globals, default values and cells that some functions reach to borrowed values; add them to `search`."""
    for function, reach in zip(held.functions, reached, strict=True):
        for user in (function, *[f for _, _, reference in reach.functions if (f := function_of(reference())) is not None]):
            if isinstance(user, FunctionType) and not is_compiling():
                for name in numpy_names(user):
                    _rebound.append((user.__globals__, name, np, GATHERING_NUMPY))
                    user.__globals__[name] = GATHERING_NUMPY
        for home, name in reach.variables:
            namespace = namespace_of(home, function.__globals__)
            value = namespace.get(name)
            if rebinds_generators or not isinstance(value, np.random.Generator):
                _rebind_global(namespace, name, value, captured)
            search.add((value,))
        if function.__defaults__ or function.__kwdefaults__:
            _rebind_defaults(function, captured)
            search.add((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()))
    for cell in held.cells:
        search.add((cell_contents(cell),))
        _rebind_cell(cell, captured)


def replace_held(
    reference: weakref.ref[Any], held: Held, search: PlaceSearch, captured: list[Any], replaces_generators: bool
) -> None:
    """Replace values in attributes, lists and dictionaries by borrowed ones, for an open context.

    Without `replaces_generators` random generators are left: they are replaced afterwards, if the caller records draws.
    """
    own = _replacements_of[reference] = []
    visited = 0
    search.run()
    while visited < len(search.functions):  # it grows meanwhile
        function = search.functions[visited]
        visited += 1
        if all(function is not other for other in held.functions):
            inner = Held(function)
            rebind_reached(inner, [reach_of(f) for f in inner.functions], search, captured, replaces_generators)
            search.run()
    for place, value in search.places:
        if replaces_generators or not isinstance(value, np.random.Generator):
            _replace(place, value, own, captured)


def clear_views() -> None:
    """Drop the cached views: an inner function may need views of another kind."""
    _views.clear()


def _borrowed_once(value: Any) -> Any:
    """The replacement of a value, the same object in all places where a function reaches it."""
    if type(value) is not ndarray:
        return as_borrowed(value)
    cached = _views.get(id(value))
    if cached is None:
        cached = _views[id(value)] = value, as_borrowed(value)
    return cached[1]


def _capture(value: Any, captured: list[Any]) -> Any:
    """The replacement of a value that a function captures; an array or node is added to `captured`."""
    replacement = _borrowed_once(value)
    if isinstance(replacement, Value) or type(replacement) is Borrowed:
        captured.append(replacement)
    return replacement


def _rebind_global(namespace: dict[str, Any], name: str, value: Any, captured: list[Any]) -> None:
    replacement = _capture(value, captured)
    if replacement is not value:
        _rebound.append((namespace, name, value, replacement))
        namespace[name] = replacement


def _rebind_defaults(function: FunctionType, captured: list[Any]) -> None:
    before = function.__defaults__
    after = tuple([_capture(value, captured) for value in before]) if before else None
    if before is not None and after is not None and any(a is not b for a, b in zip(before, after, strict=True)):
        _rebound.append((function, "__defaults__", before, after))
        function.__defaults__ = after


def _rebind_cell(cell: CellType, captured: list[Any]) -> None:
    value = cell_contents(cell)
    replacement = _capture(value, captured)
    if replacement is not value:
        _rebound.append((cell, None, value, replacement))
        cell.cell_contents = replacement


def _replace(place: Place, value: Any, own: list[Replacement], captured: list[Any]) -> None:
    key = place.key
    existing = _replacements.get(key)
    if existing is not None and existing.borrowed is value:  # replaced by another thread, which may return first
        existing.users += 1
        own.append(existing)
        return
    replacement = _capture(value, captured)
    if replacement is not value:
        existing = _replacements[key] = Replacement(place, value, replacement)
        own.append(existing)
        place.write(replacement)


# ------------------------------------------------------------------------------------------------------- restoring


def restore_variables() -> None:
    """Bind globals, cells and default values to the caller's values again, except where the function has set others."""
    while _rebound:
        owner, name, before, replacement = _rebound[-1]
        if name is None:
            if cell_contents(owner) is replacement:
                owner.cell_contents = before
        elif isinstance(owner, FunctionType):
            if owner.__defaults__ is replacement:
                owner.__defaults__ = before
        elif owner.get(name) is replacement:
            owner[name] = before
        _rebound.pop()


def restore_places(reference: weakref.ref[Any]) -> None:
    """Restore the caller's values in attributes and items, including places into which the function copied a view.

    When the last operator returns, buffers beside them become plain arrays, since no operator writes into them any more.
    """
    ended = []
    for replacement in _replacements_of.pop(reference, []):
        replacement.users -= 1
        if not replacement.users:
            del _replacements[replacement.place.key]
            replacement.restore()
            ended.append(replacement)
    originals = {id(replacement.borrowed): replacement.original for replacement in ended}
    holders = {replacement.place.key[0]: replacement.place for replacement in ended}
    for place, array in [sibling for held in holders.values() for sibling in held.traceable_siblings()]:
        if (array.is_borrowed or len(active_contexts) <= 1) and place.key not in _replacements:
            place.write(originals.get(id(array), unwrap_buffer(array)))
