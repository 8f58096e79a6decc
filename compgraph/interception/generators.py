"""Generators of random numbers that a function reaches, and that cannot be seen as `lent`: draws are noticed afterwards."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Iterable, Iterator
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .draws import Generator
from .reach import Held, content_of, function_of, namespace_of, reach_of

_LEGACY = (np.random.RandomState, random.Random)
_PLAIN = frozenset({np.ndarray, np.float64, np.int64, int, float, complex, bool, str, bytes, type(None), type, FunctionType})
_METHODS = frozenset({BuiltinMethodType, MethodType, type(np.random.normal), type(np.random.default_rng(0).normal)})
_DEPTH, _MOST = 3, 64  # how deep attributes and containers are looked into, and how many items of each


def generators_behind(f: Any, arguments: Iterable[Any] = ()) -> list[Any]:
    """Generators that a function may draw from, but that cannot be replaced while it runs.

    Those of NumPy's older kind and of Python's; and all that stand in lists, dictionaries and attributes: of the arguments, of
    what the function reaches by name, and of the object that it belongs to.
    """
    found: dict[int, Any] = {}
    if "scipy.stats" in sys.modules:  # which draws from the one that all code shares
        shared: Any = np.random.mtrand._rand
        found[id(shared)] = shared
    for value in _reached(f):
        _look(value, found, 1)
    for value in arguments:
        _look(value, found, 1)
    return list(found.values())


def _reached(f: Any) -> Iterator[Any]:
    """What a function reaches by name, holds, and belongs to."""
    yield getattr(f, "__self__", None)
    function = function_of(f)
    if not isinstance(function, FunctionType):
        yield function
        return
    held = Held(function)
    for known in held.functions:
        for home, name in reach_of(known).variables:
            yield namespace_of(home, known.__globals__).get(name)
        yield from (*(known.__defaults__ or ()), *(known.__kwdefaults__ or {}).values())
    for cell in held.cells:
        yield content_of(cell)


def _look(value: Any, found: dict[int, Any], depth: int) -> None:
    """Add the generators in a value."""
    kind = value.__class__
    if kind in _METHODS:  # of which one cannot see that it draws
        owner = value.__self__
        if isinstance(owner, np.random.Generator) and not isinstance(owner, Generator):
            found[id(owner)] = owner
        else:
            _look(owner, found, depth)
        return
    if isinstance(value, functools.partial):
        value, kind = [value.func, *value.args, *value.keywords.values()], list
    if kind in _PLAIN or isinstance(value, (np.ndarray, type, ModuleType, FunctionType)):
        return
    if isinstance(value, _LEGACY) or (isinstance(value, np.random.Generator) and depth > 1 and not isinstance(value, Generator)):
        found[id(value)] = value
    elif depth <= _DEPTH and not isinstance(value, np.random.Generator):
        if kind in (list, tuple):
            parts: Iterable[Any] = value[:_MOST]
        else:
            parts = list((value if kind is dict else getattr(value, "__dict__", {})).values())[:_MOST]
        for part in parts:
            _look(part, found, depth + 1)
