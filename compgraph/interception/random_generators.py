"""Search for random generators that cannot be replaced; a `DrawMonitor` compares their states after a call."""

from __future__ import annotations

import collections
import functools
import itertools
import random
from collections.abc import Iterable
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

import numpy as np

from ..frames import is_internal
from ..storage import Opaque
from .borrowing import as_borrowed
from .callers import is_library, is_user_module
from .random_functions import Generator
from .reachability import cell_contents, names_in

_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, np.random.SeedSequence, random.Random)
_LEAF_CLASSES = frozenset({
    np.ndarray, np.ufunc, np.float64, np.float32, np.int64, np.bool_, int, float, complex, bool, str, bytes, type(None),
    object, GetSetDescriptorType, MemberDescriptorType, CodeType,
})  # fmt: skip
_METHODS = frozenset({
    BuiltinMethodType, MethodType, MethodWrapperType, type(np.random.normal), type(np.random.default_rng(0).normal)
})  # fmt: skip
_SEQUENCES = (list, tuple, set, frozenset, collections.deque)
_MAX_DEPTH, _MAX_ITEMS = 4, 64  # the depth to which attributes and containers are visited, and the items of each
_MAX_VALUES = 5000  # visited breadth-first


def reachable_generators(f: object, arguments: Iterable[Any] = ()) -> list[Any]:
    """Generators that a function may draw from, but that cannot be replaced while it runs.

    These are ``RandomState``, Python's ``Random``, and all generators in lists, dictionaries, attributes and classes. The search
    covers the arguments, the object that the function is bound to, and the values that the function, and the user's functions
    that it may call, capture or reach by name. Call it after names were patched, because replaced generators are skipped.
    """
    search = _Search()
    search.add(f, 1)
    for value in arguments:
        search.add(as_borrowed(value) if type(value) is np.random.Generator else value, 1)
    search.run()
    return list(search.generators.values())


def generator_state(generator: Any) -> Any:
    """The state of a generator, which every draw changes, in a form that can be compared."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return _freeze(generator.get_state(legacy=False))
    return _freeze(getattr(generator, "bit_generator", generator).state)


def _freeze(state: dict[str, Any] | int | str) -> Any:
    """A copy of a state, of immutable values."""
    if isinstance(state, dict):
        return tuple([(key, _freeze(value)) for key, value in state.items()])
    return state.tobytes() if isinstance(state, np.ndarray) else state


class _Search:
    """A breadth-first search for generators.

    Attributes
    ----------
    generators : dict
        The generators, by their ids.
    """

    def __init__(self) -> None:
        self.generators: dict[int, Any] = {}
        self._queue: list[tuple[Any, int]] = []
        self._visited_ids = set[int]()

    def add(self, value: object, depth: int) -> None:
        """Add a value to be visited, `depth` steps from a name."""
        if (
            type(value) not in _LEAF_CLASSES
            and not issubclass(type(value), (np.ndarray, Opaque))
            and len(self._queue) < _MAX_VALUES
        ):
            self._queue.append((value, depth))

    def run(self) -> None:
        """Visit all values, and those in them."""
        for value, depth in self._queue:  # extended by the loop; it keeps visited values alive, so ids stay unique
            if id(value) not in self._visited_ids:
                self._visited_ids.add(id(value))
                self._visit(value, type(value), depth)

    def _visit(self, value: Any, cls: Any, depth: int) -> None:
        if cls is FunctionType:
            self._visit_function(value)
        elif cls in _METHODS:  # a method of a generator draws from it
            self.add(getattr(value, "__self__", None), depth)
            self.add(getattr(value, "__func__", None), depth)
        elif issubclass(cls, type):
            self._visit_class(value, depth)
        elif issubclass(cls, _GENERATORS):
            if cls is Generator:  # it runs the draw handler, its bit generator does not
                self.add(value.bit_generator, depth)
            elif not issubclass(cls, random.SystemRandom):  # runs the draw handler
                self.generators[id(value)] = value
        elif depth <= _MAX_DEPTH and cls is not ModuleType:
            self._visit_parts(value, cls, depth + 1)

    def _visit_parts(self, value: Any, cls: Any, depth: int) -> None:
        """Add the values that a container or another object holds, and its class."""
        parts: list[Any] = []
        if issubclass(cls, _SEQUENCES):
            base: Any = next(b for b in _SEQUENCES if issubclass(cls, b))
            parts += itertools.islice(base.__iter__(value), _MAX_ITEMS)
        elif issubclass(cls, dict):
            parts += itertools.islice(dict.values(value), _MAX_ITEMS)
        elif cls is property:
            parts.append(value.fget)
        elif cls is staticmethod or cls is classmethod:
            parts.append(value.__func__)
        elif cls is functools.partial:
            parts += (value.func, *value.args, *value.keywords.values())
        elif cls is GeneratorType and value.gi_frame is not None:
            parts += value.gi_frame.f_locals.values()
            self._add_named(value.gi_frame.f_globals, names_in(value.gi_code))
        try:
            attributes: Any = object.__getattribute__(value, "__dict__")  # runs no user code
        except AttributeError:
            attributes = {}
        if type(attributes) is dict:
            parts += itertools.islice(attributes.values(), _MAX_ITEMS)
        for part in parts:
            self.add(part, depth)
        if cls.__module__ != "builtins":
            self.add(cls, depth - 1)
            if hasattr(cls, "__slots__"):
                self._visit_slots(value, cls, depth)

    def _visit_slots(self, value: object, cls: type, depth: int) -> None:
        for member in [part for base in cls.__mro__ for part in vars(base).values()]:
            if type(member) is MemberDescriptorType:
                try:
                    self.add(member.__get__(value), depth)
                except AttributeError:  # it is empty
                    continue

    def _visit_class(self, cls: type, depth: int) -> None:
        """Add the attributes of the user's classes, which their instances share."""
        if depth > _MAX_DEPTH:
            return
        for base in cls.__mro__:
            if type(base) is not type:
                self.add(type(base), depth)
            if is_user_module(base.__module__):
                for part in list(vars(base).values()):
                    if type(part) not in _LEAF_CLASSES:
                        self.add(part, depth + 1)

    def _visit_function(self, function: FunctionType) -> None:
        """Add the values that a function holds, and those that one of the user's functions reaches by name."""
        code, attributes = function.__code__, function.__dict__
        if attributes:
            if is_internal(code.co_filename) and type(attributes.get("__wrapped__")) in _METHODS:
                return  # it runs the draw handler
            for value in attributes.values():
                self.add(value, 1)
        for cell in function.__closure__ or ():
            self.add(cell_contents(cell), 1)
        if function.__defaults__ or function.__kwdefaults__:
            for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
                self.add(value, 1)
        if not is_library(code.co_filename):
            self._add_named(function.__globals__, names_in(code))

    def _add_named(self, namespace: dict[str, Any], names: Iterable[str]) -> None:
        """Add the values of names in a namespace, and in the user's modules that they refer to there."""
        namespaces = [namespace]
        for visited in namespaces:  # the loop extends the list
            for name in names:
                value = visited.get(name)
                if type(value) in _LEAF_CLASSES:
                    continue
                if type(value) is not ModuleType:
                    self.add(value, 1)
                elif is_user_module(value.__name__) and all(vars(value) is not other for other in namespaces):
                    namespaces.append(vars(value))
