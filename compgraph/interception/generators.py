"""Generators of random numbers that a function reaches, and that cannot be seen as `lent`: draws are noticed afterwards."""

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
from .draws import Generator
from .libraries import is_library, is_users_module
from .names import lent
from .reach import content_of, names_in

_KINDS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, np.random.SeedSequence, random.Random)
_PLAIN = frozenset({
    np.ndarray, np.ufunc, np.float64, np.float32, np.int64, np.bool_, int, float, complex, bool, str, bytes, type(None),
    object, GetSetDescriptorType, MemberDescriptorType, CodeType,
})  # fmt: skip
_METHODS = frozenset({
    BuiltinMethodType, MethodType, MethodWrapperType, type(np.random.normal), type(np.random.default_rng(0).normal)
})  # fmt: skip
_SEQUENCES = (list, tuple, set, frozenset, collections.deque)
_DEPTH, _MOST = 4, 64  # how deep attributes and containers are looked into, and how many items of each
_ALL = 5000  # so many values are looked at, the nearest first


def generators_behind(f: Any, arguments: Iterable[Any] = ()) -> list[Any]:
    """Generators that a function may draw from, but that cannot be replaced while it runs.

    Those of NumPy's older kind and of Python's; and all that stand in lists, dictionaries, attributes and classes: of the
    arguments, of the object that the function belongs to, and of what it and the users' functions that it may call reach by name,
    or hold. To be called where names are exchanged: what can be replaced is replaced then, and is not looked for.
    """
    search = _Search()
    search.look(f, 1)
    for value in arguments:
        search.look(lent(value) if type(value) is np.random.Generator else value, 1)
    search.run()
    return list(search.found.values())


def state_of(generator: Any) -> Any:
    """What is another after a draw."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return _frozen(generator.get_state(legacy=False))
    return _frozen(getattr(generator, "bit_generator", generator).state)


def _frozen(state: Any) -> Any:
    """A state that stays as it is, and can be compared."""
    if isinstance(state, dict):
        return tuple([(key, _frozen(value)) for key, value in state.items()])
    return state.tobytes() if isinstance(state, np.ndarray) else state


class _Search:
    """A walk through values, the nearest first.

    Attributes
    ----------
    found : dict
        The generators that were met, by their ids.
    """

    def __init__(self) -> None:
        self.found: dict[int, Any] = {}
        self._queue: list[tuple[Any, int]] = []
        self._seen = set[int]()

    def look(self, value: Any, depth: int) -> None:
        """Have a value looked into, so many steps from a name."""
        if type(value) not in _PLAIN and not issubclass(type(value), (np.ndarray, Opaque)) and len(self._queue) < _ALL:
            self._queue.append((value, depth))

    def run(self) -> None:
        """Look into all values, and those in them."""
        for value, depth in self._queue:  # the list grows meanwhile, and keeps alive what ids are of
            if id(value) not in self._seen:
                self._seen.add(id(value))
                self._open(value, type(value), depth)

    def _open(self, value: Any, kind: Any, depth: int) -> None:
        if kind is FunctionType:
            self._function(value)
        elif kind in _METHODS:  # of which one cannot see that it draws
            self.look(getattr(value, "__self__", None), depth)
            self.look(getattr(value, "__func__", None), depth)
        elif issubclass(kind, type):
            self._class(value, depth)
        elif issubclass(kind, _KINDS):
            if kind is Generator:  # it asks itself, its bits do not
                self.look(value.bit_generator, depth)
            elif not issubclass(kind, random.SystemRandom):  # it asks
                self.found[id(value)] = value
        elif depth <= _DEPTH and kind is not ModuleType:
            self._parts(value, kind, depth + 1)

    def _parts(self, value: Any, kind: Any, depth: int) -> None:
        """What a container or another object holds, and its class."""
        parts: list[Any] = []
        if issubclass(kind, _SEQUENCES):
            base: Any = next(b for b in _SEQUENCES if issubclass(kind, b))
            parts += itertools.islice(base.__iter__(value), _MOST)
        elif issubclass(kind, dict):
            parts += itertools.islice(dict.values(value), _MOST)
        elif kind is property:
            parts.append(value.fget)
        elif kind is staticmethod or kind is classmethod:
            parts.append(value.__func__)
        elif kind is functools.partial:
            parts += (value.func, *value.args, *value.keywords.values())
        elif kind is GeneratorType and value.gi_frame is not None:
            parts += value.gi_frame.f_locals.values()
            self._named(value.gi_frame.f_globals, names_in(value.gi_code))
        try:
            held: Any = object.__getattribute__(value, "__dict__")  # no code of the user's runs
        except AttributeError:
            held = {}
        if type(held) is dict:
            parts += itertools.islice(held.values(), _MOST)
        for part in parts:
            self.look(part, depth)
        if kind.__module__ != "builtins":
            self.look(kind, depth - 1)
            if hasattr(kind, "__slots__"):
                self._slots(value, kind, depth)

    def _slots(self, value: Any, kind: type, depth: int) -> None:
        for member in [part for base in kind.__mro__ for part in vars(base).values()]:
            if type(member) is MemberDescriptorType:
                try:
                    self.look(member.__get__(value), depth)
                except AttributeError:  # it is empty
                    continue

    def _class(self, value: type, depth: int) -> None:
        """What the class bodies of users hold, which their instances share."""
        if depth > _DEPTH:
            return
        for base in value.__mro__:
            if type(base) is not type:
                self.look(type(base), depth)
            if is_users_module(base.__module__):
                for part in list(vars(base).values()):
                    if type(part) not in _PLAIN:
                        self.look(part, depth + 1)

    def _function(self, function: FunctionType) -> None:
        """What a function holds, and what one of the user's reaches by name."""
        code, held = function.__code__, function.__dict__
        if held:
            if is_internal(code.co_filename) and type(held.get("__wrapped__")) in _METHODS:
                return  # it asks
            for value in held.values():
                self.look(value, 1)
        for cell in function.__closure__ or ():
            self.look(content_of(cell), 1)
        if function.__defaults__ or function.__kwdefaults__:
            for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
                self.look(value, 1)
        if not is_library(code.co_filename):
            self._named(function.__globals__, names_in(code))

    def _named(self, space: dict[str, Any], names: Iterable[str]) -> None:
        """What names mean in a namespace, and in the users' modules that they mean there."""
        spaces = [space]
        for known in spaces:  # the list grows meanwhile
            for name in names:
                value = known.get(name)
                if type(value) in _PLAIN:
                    continue
                if type(value) is not ModuleType:
                    self.look(value, 1)
                elif is_users_module(value.__name__) and all(vars(value) is not other for other in spaces):
                    spaces.append(vars(value))
