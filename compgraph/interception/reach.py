"""Which variables outside a function its code reaches by their names: globals, and cells of the functions around."""

from __future__ import annotations

import builtins
import functools
import sys
import sysconfig
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..graph.interpreter import is_internal
from .making import MAKING

_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_SKIPPED = (FunctionType, MethodType, type, ModuleType, str)
_KEPT = 1024
_known: dict[int, tuple[CodeType, Any, Reach]] = {}


class Reach:
    """What a function, and those of the same program that it calls by their names, reach.

    Attributes
    ----------
    variables : list of (dict, str)
        Names in namespaces of the user's, whose values may be arrays.
    cells : list of cell
        Variables of functions around.
    functions : list of (dict, str, function)
        The functions that were followed; they may be defined anew.
    namespaces : list of dict
        Those of the user's modules.
    is_closed : bool
        Whether all that is called is NumPy, Python's own and these functions, and NumPy makes no array by a name.
    """

    def __init__(self, function: FunctionType) -> None:
        self.variables: list[tuple[dict[str, Any], str]] = []
        self.cells: list[CellType] = []
        self.functions: list[tuple[dict[str, Any], str, Any]] = []
        self.namespaces: list[dict[str, Any]] = []
        self.is_closed = True
        self._seen: set[int] = set()
        self._follow(function)

    def is_current(self) -> bool:
        """Whether the names of functions still mean what they did."""
        for namespace, name, function in self.functions:  # noqa: SIM110 (for every derivative)
            if namespace.get(name) is not function:
                return False
        return True

    def _follow(self, function: Any) -> None:
        """Look at the names in the code of a function."""
        code = function.__code__
        if id(code) in self._seen:
            return
        if is_library(code.co_filename):
            self.is_closed = False
            return
        self._seen.add(id(code))
        self.cells += function.__closure__ or ()
        for cell in function.__closure__ or ():
            self._meet(_content(cell))
            self.is_closed = self.is_closed and _is_known(_content(cell))
        namespace = function.__globals__
        if not any(namespace is known for known in self.namespaces):
            self.namespaces.append(namespace)
        names = {name for inner in codes(code) for name in inner.co_names}
        self._look(namespace, names)
        self.is_closed = self.is_closed and all(_is_harmless(name, namespace) for name in names)
        for value in [namespace[name] for name in names if isinstance(namespace.get(name), ModuleType)]:
            if not is_library(getattr(value, "__file__", None) or ""):
                self._look(vars(value), names)

    def _look(self, namespace: dict[str, Any], names: set[str]) -> None:
        for name in sorted(names & namespace.keys()):
            value = namespace[name]
            if hasattr(function_of(value), "__code__"):
                self.functions.append((namespace, name, value))
                self._meet(value)
            elif not isinstance(value, _SKIPPED):
                self.variables.append((namespace, name))

    def _meet(self, value: Any) -> None:
        found = function_of(value)
        if isinstance(found, FunctionType):
            self._follow(found)


# Attributes by which no array is made: of arrays, and NumPy's functions but those that make one.
_MAKERS = frozenset(MAKING) | {"ndenumerate", "fromiter", "r_", "c_", "random"}
_HARMLESS = frozenset({*dir(np.ndarray), *dir(np), *dir(np.linalg)} - _MAKERS) | {"linalg"}


def _is_known(value: Any) -> bool:
    """Whether nothing can be called through a value but NumPy and functions that are followed."""
    return isinstance(value, (np.ndarray, int, float, complex, str, type(None), FunctionType, np.generic, np.ufunc))


def _is_harmless(name: str, namespace: dict[str, Any]) -> bool:
    """Whether a name in a code, of a global or an attribute, makes no array."""
    if name in namespace:
        value = namespace[name]
        return value is np or _is_known(value)
    return name in _HARMLESS or hasattr(builtins, name)


def reach_of(f: Any) -> Reach | None:
    """What a callable reaches; None of one that is not written in Python, or not the user's."""
    function = function_of(f)
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    known = _known.get(id(code))
    if known is not None and known[0] is code and known[1] is function.__closure__ and known[2].is_current():
        return known[2]
    if len(_known) >= _KEPT:
        _known.clear()
    found = Reach(function)
    _known[id(code)] = code, function.__closure__, found
    return found


def function_of(f: Any) -> Any:
    """The Python function behind a callable."""
    while f.__class__ is not FunctionType:
        if isinstance(f, functools.partial):
            f = f.func
        elif hasattr(f, "__func__"):
            f = f.__func__
        else:
            return f
    return f.__wrapped__ if hasattr(f, "__wrapped__") and is_internal(f.__code__.co_filename) else f


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code and those within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


@functools.cache
def is_library(filename: str) -> bool:
    """Whether a file belongs to Python or to what is installed."""
    return is_internal(filename) or filename.startswith((*_LIBRARIES, "<frozen")) or filename in sys.builtin_module_names


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
