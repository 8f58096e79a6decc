"""What a function reaches outside itself: by names in its code (globals), and by what it holds (closures, default values)."""

from __future__ import annotations

import builtins
import functools
import sys
import weakref
from collections.abc import Iterable, Iterator
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..frames import is_internal
from ..storage import Opaque
from .libraries import is_library
from .making import MAKING

_BOUND = frozenset({MethodType, staticmethod, classmethod})
_SKIPPED = (FunctionType, MethodType, type, ModuleType, str)
_known: dict[int, tuple[weakref.ref[CodeType], Reach]] = {}  # by the id of the code, which may be garbage-collected
Home = str | None  # the name of a module; None for that of the function itself


class Reach:
    """What the code of a function reaches by names, and the code of users' functions that it calls by their names.

    Attributes
    ----------
    variables : list of (str or None, str)
        Names in the user's modules, whose values may be arrays.
    functions : list of (str or None, str, weakref)
        The functions whose code was read as well; weak, since they may be redefined.
    is_closed : bool
        Whether the code calls nothing but NumPy, builtins and these functions, and no NumPy function that makes an array.
    questions : bool
        Whether the code checks classes or attributes; see `questions`.
    values : list of (dict, str)
        Namespaces, and names that mean no function there, so that through their values nothing else can be called.
    """

    def __init__(self, function: FunctionType) -> None:
        self.variables: list[tuple[Home, str]] = []
        self.functions: list[tuple[Home, str, weakref.ref[Any]]] = []
        self.values: list[tuple[dict[str, Any], str]] = []
        self.questions = False
        self.is_closed = True
        self._own, self._seen = function.__globals__, set[int]()
        self._follow(function)
        del self._own, self._seen

    def is_current(self, own: dict[str, Any]) -> bool:
        """Whether the names of the functions still mean the same functions, and those of values no function."""
        for home, name, function in self.functions:
            if namespace_of(home, own).get(name) is not function():
                return False
        return not self.is_closed or all(_is_value(space.get(name)) for space, name in self.values)

    def _follow(self, function: Any) -> None:
        """Read the names in the code of a function, and of the functions that they mean."""
        code, namespace = function.__code__, function.__globals__
        if id(code) in self._seen:
            return
        self._seen.add(id(code))
        home = None if namespace is self._own else str(namespace.get("__name__"))
        if is_library(code.co_filename) or namespace_of(home, self._own) is not namespace:
            self.is_closed = False
            return
        names = names_in(code)
        self.questions = self.questions or not names.isdisjoint(QUESTIONS)
        self._look(home, namespace, names)
        self.is_closed = self.is_closed and all(_is_harmless(name, namespace) for name in names)
        self.values += [(namespace, name) for name in names if not _is_followed(namespace.get(name))]
        for module in map(namespace.get, names):
            if not isinstance(module, ModuleType) or is_library(module.__dict__.get("__file__") or ""):
                continue
            if sys.modules.get(module.__name__) is module:
                self._look(module.__name__, vars(module), names)

    def _look(self, home: Home, namespace: dict[str, Any], names: frozenset[str]) -> None:
        for name in sorted(names & namespace.keys()):
            value = namespace[name]
            if type(function_of(value)) is FunctionType:
                self.functions.append((home, name, weakref.ref(value)))
                self._meet(value)
            elif not issubclass(type(value), _SKIPPED) or (issubclass(type(value), type) and value.__module__ != "builtins"):
                self.variables.append((home, name))

    def _meet(self, value: Any) -> None:
        found = function_of(value)
        if isinstance(found, FunctionType):
            self._follow(found)


def namespace_of(home: Home, own: dict[str, Any]) -> dict[str, Any]:
    """The namespace of the module `home`; for None `own`, that of the function."""
    return own if home is None else getattr(sys.modules.get(home), "__dict__", {})


# Builtins by which something is reached that no name tells, but perhaps a text.
QUESTIONS = frozenset({"isinstance", "type", "hasattr", "getattr", "dir"})  # see the module `questions`
_REACHING = frozenset({"eval", "exec", "getattr", "globals", "locals", "vars", "__import__"})
# Attributes by which no new array is made: those of arrays, and NumPy's functions except the ones in MAKING.
_MAKERS = frozenset(MAKING) | {"ndenumerate", "fromiter", "frombuffer", "r_", "c_", "mgrid", "ogrid", "random"}
_HARMLESS = frozenset({*dir(np.ndarray), *dir(np), *dir(np.linalg)} - _MAKERS) | {"linalg"}


_FEW = 16  # so long a list is looked through
_DATA = (np.ndarray, Opaque, int, float, complex, str, type(None), np.generic)


def _is_value(value: Any, depth: int = 4) -> bool:
    """Whether nothing but NumPy can be called through a value: an array, a number, or few of them, nested as parameters are."""
    kind = type(value)
    if kind is list or kind is tuple or kind is dict:
        is_small = depth > 0 and len(value) <= _FEW
        if kind is dict:
            return is_small and all(type(key) is str and _is_value(part, depth - 1) for key, part in value.items())
        return is_small and all(_is_value(part, depth - 1) for part in value)
    return value is np or issubclass(kind, (*_DATA, np.ufunc))


def _is_followed(value: Any) -> bool:
    """Whether a value is a function whose code is read."""
    return type(function_of(value)) is FunctionType


def _is_harmless(name: str, namespace: dict[str, Any]) -> bool:
    """Whether a name in a function's code, of a global or an attribute, makes no array."""
    if name in namespace:
        return _is_value(namespace[name]) or _is_followed(namespace[name])
    return name in _HARMLESS or (name not in _REACHING and hasattr(builtins, name))


def reach_of(function: FunctionType) -> Reach:
    """The `Reach` of a function, remembered as long as its names mean the same functions."""
    code = function.__code__
    known = _known.get(id(code))
    if known is not None and known[0]() is code and known[1].is_current(function.__globals__):
        return known[1]
    found = Reach(function)
    _known[id(code)] = weakref.ref(code, functools.partial(_forget, id(code))), found
    return found


def _forget(number: int, _: Any) -> None:
    _known.pop(number, None)


class Held:
    """What a function holds besides its code: closure cells and default values, and the functions among these, likewise.

    Attributes
    ----------
    functions : list of function
        The function, and those that it holds.
    cells : list of cell
        The cells of their closures.
    is_known : bool
        Whether only NumPy and these functions can be called through what is held.
    """

    def __init__(self, function: FunctionType) -> None:
        self.functions, self.cells, self.is_known = [function], list[CellType](), True
        for known in self.functions:  # the list grows meanwhile
            for cell in known.__closure__ or ():
                self.cells.append(cell)
                self._meet(content_of(cell))
            for value in (*(known.__defaults__ or ()), *(known.__kwdefaults__ or {}).values()):
                self._meet(value)

    def _meet(self, value: Any) -> None:
        inner = function_of(value)
        if not isinstance(inner, FunctionType):
            self.is_known = self.is_known and _is_value(value)
        elif all(inner is not other for other in self.functions):
            self.functions.append(inner)


def is_closed(held: Held, reached: list[Reach], arguments: Iterable[Any]) -> bool:
    """Whether a call of the function runs nothing but NumPy, builtins and users' functions that make no array by a name."""
    return held.is_known and all(reach.is_closed for reach in reached) and all(map(_is_value, arguments))


def function_of(f: Any) -> Any:
    """The Python function behind partials, methods and wrappers of ours; another callable as it is."""
    while (inner := _behind(f)) is not None:
        f = inner
    return f


def _behind(f: Any) -> Any:
    """The callable behind a partial, a method or a wrapper of ours; None for other callables. No user code runs."""
    kind = type(f)
    if kind is FunctionType:
        return f.__dict__.get("__wrapped__") if is_internal(f.__code__.co_filename) else None
    if issubclass(kind, functools.partial):
        return f.func
    return f.__func__ if kind in _BOUND or kind.__module__ in _OURS else None


_OURS = frozenset({"compgraph.compiled.jitted", "autodiff.arguments.derived_functions"})  # modules of callables that hold another


def bound_with(f: Any) -> Iterator[Any]:
    """What partials and methods give a function besides the arguments of a call."""
    while (inner := _behind(f)) is not None:
        kind = type(f)
        if issubclass(kind, functools.partial):
            yield from (*f.args, *f.keywords.values())
        elif kind is MethodType or kind.__name__ == "Bound":
            yield f.__self__
        f = inner


_names: dict[int, tuple[weakref.ref[CodeType], frozenset[str]]] = {}  # by the id of the code


def names_in(code: CodeType) -> frozenset[str]:
    """The names, of globals and attributes, in a code object and in those of the functions that are defined in it."""
    known = _names.get(id(code))
    if known is not None and known[0]() is code:
        return known[1]
    parts = list(codes(code))
    found = frozenset([name for part in parts for name in part.co_names])
    if found & _REACHING:
        found |= {text for part in parts for text in part.co_consts if isinstance(text, str) and text.isidentifier()}
    _names[id(code)] = weakref.ref(code, functools.partial(_drop_names, id(code))), found
    return found


def _drop_names(number: int, _: Any) -> None:
    _names.pop(number, None)


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code object, and those of the functions that are defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def content_of(cell: CellType) -> Any:
    """What a closure cell holds; None if it is still empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
