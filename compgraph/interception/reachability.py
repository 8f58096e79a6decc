"""Names and values that a function can reach: globals, closures, default values, and their methods."""

from __future__ import annotations

import builtins
import functools
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..frames import is_internal
from ..storage import Opaque
from .callers import is_library
from .constructors import CONSTRUCTOR_NAMES
from .undispatched_functions import needs_substitute

_METHOD_WRAPPERS = frozenset({MethodType, staticmethod, classmethod})
_NON_ARRAY_TYPES = (FunctionType, MethodType, type, ModuleType, str)
ModuleName = str | None  # None for the module of the function itself


class _CodeCache:
    """Results by code object, which are dropped with it. The keys are ids, because hashing a code object is slow."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[CodeType], Any]] = {}

    def get(self, code: CodeType) -> Any:
        """Return the result for a code object, or None."""
        entry = self._entries.get(id(code))
        return entry[1] if entry is not None and entry[0]() is code else None

    def add(self, code: CodeType, result: object) -> None:
        """Store the result for a code object."""
        key = id(code)
        self._entries[key] = weakref.ref(code, lambda _: self._entries.pop(key, None)), result


_reachable_names_cache, _names_cache = _CodeCache(), _CodeCache()  # the results of `reachable_names` and of `names_in`


class ReachableNames:
    """Globals that the code of a function names, directly or through the user's functions that it calls.

    Attributes
    ----------
    variables : list of (str or None, str)
        Names in the user's modules, whose values may be arrays.
    functions : list of (str or None, str, weakref)
        The functions whose code was read as well; weak, since they may be redefined.
    calls_only_numpy : bool
        Whether the code calls nothing but NumPy, builtins and these functions, and no NumPy function that creates an array.
    has_introspection : bool
        Whether the code checks classes or attributes; see `introspection`.
    values : list of (dict, str)
        Namespaces, and names in them that refer to no function. `is_current` checks that their values are still data.
    """

    def __init__(self, function: FunctionType) -> None:
        self.variables: list[tuple[ModuleName, str]] = []
        self.functions: list[tuple[ModuleName, str, weakref.ref[Any]]] = []
        self.values: list[tuple[dict[str, Any], str]] = []
        self.has_introspection = False
        self.calls_only_numpy = True
        self._globals, self._visited_codes = function.__globals__, set[int]()
        self._follow(function)
        del self._globals, self._visited_codes

    def is_current(self, function_globals: dict[str, Any]) -> bool:
        """Whether the names still refer to the same functions, and the names in `values` to data."""
        for module_name, name, reference in self.functions:
            if namespace_of(module_name, function_globals).get(name) is not reference():
                return False
        return not self.calls_only_numpy or all(_is_data(namespace.get(name)) for namespace, name in self.values)

    def user_functions(self) -> Iterator[tuple[Any, FunctionType]]:
        """Yield the values of `functions` that are the user's: functions, partials or methods; and the functions behind them."""
        for _, _, reference in self.functions:
            value = reference()
            function = function_of(value)
            if isinstance(function, FunctionType) and not is_library(function.__code__.co_filename):
                yield value, function

    def _follow(self, function: Callable[..., Any]) -> None:
        """Read the names in the code of a function, and in the code of the functions that they refer to."""
        code, namespace = function.__code__, function.__globals__
        if id(code) in self._visited_codes:
            return
        self._visited_codes.add(id(code))
        module_name = None if namespace is self._globals else str(namespace.get("__name__"))
        if is_library(code.co_filename) or namespace_of(module_name, self._globals) is not namespace:
            self.calls_only_numpy = False
            return
        names = names_in(code)
        self.has_introspection = self.has_introspection or not names.isdisjoint(INTROSPECTION_NAMES)
        self._add_names(module_name, namespace, names)
        self.calls_only_numpy = self.calls_only_numpy and all(_creates_no_array(name, namespace) for name in names)
        self.values += [(namespace, name) for name in names if not _is_followed(namespace.get(name))]
        for module in map(namespace.get, names):
            if not isinstance(module, ModuleType) or is_library(module.__dict__.get("__file__") or ""):
                continue
            if sys.modules.get(module.__name__) is module:
                self._add_names(module.__name__, vars(module), names)

    def _add_names(self, module_name: ModuleName, namespace: dict[str, Any], names: frozenset[str]) -> None:
        for name in sorted(names & namespace.keys()):
            value = namespace[name]
            if type(function_of(value)) is FunctionType:
                self.functions.append((module_name, name, weakref.ref(value)))
                self._follow(function_of(value))
            elif not issubclass(type(value), _NON_ARRAY_TYPES) or (
                issubclass(type(value), type) and value.__module__ != "builtins"
            ):
                self.variables.append((module_name, name))


def namespace_of(module_name: ModuleName, function_globals: dict[str, Any]) -> dict[str, Any]:
    """Return the namespace of the module `module_name`; for None, `function_globals`."""
    return function_globals if module_name is None else getattr(sys.modules.get(module_name), "__dict__", {})


INTROSPECTION_NAMES = frozenset({"isinstance", "type", "hasattr", "getattr", "dir"})  # see the module `introspection`
# Builtins that access a name that the code does not contain, or only as a string.
_INDIRECT_BUILTINS = frozenset({"eval", "exec", "getattr", "globals", "locals", "vars", "__import__"})
_ARRAY_CONSTRUCTORS = CONSTRUCTOR_NAMES | {"ndenumerate", "fromiter", "frombuffer", "r_", "c_", "mgrid", "ogrid", "random"}
# Attributes of arrays, and NumPy's functions except those that create arrays.
_NON_CONSTRUCTOR_NAMES = frozenset({*dir(np.ndarray), *dir(np), *dir(np.linalg)} - _ARRAY_CONSTRUCTORS) | {"linalg"}


_MAX_ITEMS = 16  # of a list whose items are checked
_DATA_CLASSES = (np.ndarray, Opaque, int, float, complex, str, type(None), np.generic)


def _is_data(value: Any, depth: int = 4) -> bool:
    """Whether a value is NumPy, a ufunc, an array, a number, a string, None, or a small nested list or dict of these."""
    cls = type(value)
    if cls is list or cls is tuple or cls is dict:
        is_small = depth > 0 and len(value) <= _MAX_ITEMS
        if cls is dict:
            return is_small and all(type(key) is str and _is_data(part, depth - 1) for key, part in value.items())
        return is_small and all(_is_data(part, depth - 1) for part in value)
    return value is np or issubclass(cls, (*_DATA_CLASSES, np.ufunc))


def _is_followed(value: object) -> bool:
    """Whether a value is a function whose code is read."""
    return type(function_of(value)) is FunctionType


def _creates_no_array(name: str, namespace: dict[str, Any]) -> bool:
    """Whether a name in a function's code, of a global or an attribute, creates no array."""
    if name in namespace:
        return _is_data(namespace[name]) or _is_followed(namespace[name])
    return name in _NON_CONSTRUCTOR_NAMES or (name not in _INDIRECT_BUILTINS and hasattr(builtins, name))


def reachable_names(function: FunctionType) -> ReachableNames:
    """Return the `ReachableNames` of a function, cached as long as its names refer to the same functions."""
    reachable: ReachableNames | None = _reachable_names_cache.get(function.__code__)
    if reachable is None or not reachable.is_current(function.__globals__):
        reachable = ReachableNames(function)
        _reachable_names_cache.add(function.__code__, reachable)
    return reachable


class Closure:
    """Closure cells and default values of a function, and of the user's functions that it reaches.

    Attributes
    ----------
    functions : list of function
        The function, those in cells and default values, and those with cells or default values that are called by a global name.
    function_names : list of ReachableNames
        The names in the code of each function.
    cells : list of cell
        The cells of their closures.
    calls_only_numpy : bool
        Whether these values are data or these functions, so that nothing else can be called through them.
    """

    def __init__(self, function: FunctionType) -> None:
        self.functions, self.function_names, self.cells = [function], list[ReachableNames](), list[CellType]()
        self.calls_only_numpy = True
        for captured in self.functions:  # the loop extends the list
            self.function_names.append(reachable_names(captured))
            for cell in captured.__closure__ or ():
                self.cells.append(cell)
                self._add(cell_contents(cell))
            for value in (*(captured.__defaults__ or ()), *(captured.__kwdefaults__ or {}).values()):
                self._add(value)
            for _, named in self.function_names[-1].user_functions():
                if named.__closure__ or named.__defaults__ or named.__kwdefaults__:
                    self._add(named)

    def _add(self, value: object) -> None:
        inner = function_of(value)
        if not isinstance(inner, FunctionType):
            self.calls_only_numpy = self.calls_only_numpy and _is_data(value)
        elif all(inner is not other for other in self.functions):
            self.functions.append(inner)


def calls_only_numpy(closure: Closure, arguments: Iterable[object]) -> bool:
    """Whether a call runs only NumPy, builtins and user functions, none of which calls an array constructor."""
    if not closure.calls_only_numpy or not all(names.calls_only_numpy for names in closure.function_names):
        return False
    return all(map(_is_data, arguments))


def function_of(f: object) -> Any:
    """Return the Python function behind partials, methods and this package's wrappers. Other callables are returned unchanged."""
    while (inner := _wrapped_by(f)) is not None:
        f = inner
    return f


def _wrapped_by(f: Any) -> Any:
    """Return the callable behind a partial, a method or this package's wrapper; None for other callables. No user code runs."""
    cls = type(f)
    if cls is FunctionType:
        return f.__dict__.get("__wrapped__") if is_internal(f.__code__.co_filename) else None
    if issubclass(cls, functools.partial):
        return f.func
    return f.__func__ if cls in _METHOD_WRAPPERS or cls.__module__ in _WRAPPER_MODULES else None


# Modules of callables that contain another callable.
_WRAPPER_MODULES = frozenset({"compgraph.compiled.jitted", "autodiff.arguments.derived_functions"})


def bound_arguments(f: Any) -> Iterator[Any]:
    """Yield the arguments that partials and methods bind."""
    while (inner := _wrapped_by(f)) is not None:
        cls = type(f)
        if issubclass(cls, functools.partial):
            yield from (*f.args, *f.keywords.values())
        elif cls is MethodType or cls.__name__ == "Bound":
            yield f.__self__
        f = inner


def names_in(code: CodeType) -> frozenset[str]:
    """Return the names of globals and attributes in a code object, and in those of the functions that are defined in it."""
    names: frozenset[str] | None = _names_cache.get(code)
    if names is None:
        parts = list(iterate_code_objects(code))
        names = frozenset([name for part in parts for name in part.co_names])
        if names & _INDIRECT_BUILTINS:
            names |= {text for part in parts for text in part.co_consts if isinstance(text, str) and text.isidentifier()}
        _names_cache.add(code, names)
    return names


def numpy_names(function: FunctionType) -> list[str]:
    """Return the names of NumPy in the globals of a function, if it needs a substitute; see `NUMPY_SUBSTITUTE`."""
    names = names_in(function.__code__)
    numpy_aliases = [name for name in names if function.__globals__.get(name) is np]
    return numpy_aliases if numpy_aliases and needs_substitute(function, names, iterate_code_objects(function.__code__)) else []


def iterate_code_objects(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object, and those of the functions that are defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from iterate_code_objects(constant)


def cell_contents(cell: CellType) -> Any:
    """Return the value in a closure cell; None if the cell is still empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
