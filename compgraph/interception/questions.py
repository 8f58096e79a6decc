"""``isinstance``, ``type``, ``hasattr``, ``getattr`` and ``dir`` in the user's modules while a function is differentiated.

A node is an ndarray with attributes of its own. User functions that check a class or an attribute get the result for the value
that the node represents: a NumPy or Python number, or an array. The functions here are bound in the namespaces of the modules
whose code uses these names, and removed when the last operator returns.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..values import TRACEABLE, Value, is_number, node_class, represented_class, unwrap_buffer
from .holders import dictionary_of
from .libraries import is_library
from .reach import codes, names_in

_missing = object()
_DEPTH = 4  # the depth to which objects in containers and attributes are visited
_MOST = 64  # the most elements of a container that are visited
_VISITED = 256  # the most objects that are visited


def _value_of(node: Any) -> Any:
    """A plain value of the class of the value that a node represents."""
    if isinstance(node, Value) and hasattr(node, "raw_value"):
        if is_number(node):
            return represented_class(node)(0)
        return node.raw_value if type(node.raw_value) is np.ndarray else np.asarray(node.raw_value)
    return unwrap_buffer(node)


def _represents(value: Any) -> bool:
    """Whether a value is a node or a buffer, which represents a number or an array."""
    return isinstance(value, Value) or type(value) in TRACEABLE


def _of_nodes(kinds: Any) -> bool:
    """Whether some classes include a class of nodes."""
    if isinstance(kinds, tuple):
        return any(map(_of_nodes, kinds))
    return isinstance(kinds, builtins.type) and issubclass(kinds, Value)


def _plain_kinds(kinds: Any) -> Any:
    """Classes with Python's ``type`` in place of ours."""
    if isinstance(kinds, tuple):
        return tuple(map(_plain_kinds, kinds))
    return builtins.type if kinds is _Type else kinds


def _isinstance(value: Any, kinds: Any, /) -> bool:
    kinds = _plain_kinds(kinds)
    if not _represents(value):
        return isinstance(value, kinds)
    if _of_nodes(kinds):
        return isinstance(value, kinds) or issubclass(node_class(value), kinds)
    return isinstance(_value_of(value), kinds)


class _TypeOfType(type):
    """The class of `_Type`, which is called as ``type`` is."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if cls is not _Type:  # a metaclass that the user derives from `type`
            return super().__call__(*args, **options)
        if len(args) == 1 and not options and _represents(args[0]):
            return builtins.type(_value_of(args[0]))
        return builtins.type(*args, **options)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, builtins.type) if cls is _Type else super().__instancecheck__(value)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return issubclass(kind, builtins.type) if cls is _Type else super().__subclasscheck__(kind)

    def __eq__(cls, other: object) -> bool:
        return other is cls or (cls is _Type and other is builtins.type)

    def __hash__(cls) -> int:
        return hash(builtins.type) if cls is _Type else super().__hash__()


class _Type(type, metaclass=_TypeOfType):
    """``type``, for which a node has the class of the value that it represents."""


def _hasattr(value: Any, name: str, /) -> bool:
    return hasattr(_value_of(value) if _represents(value) else value, name)


def _getattr(value: Any, name: str, /, *default: Any) -> Any:
    if _represents(value):
        if name == "__class__":
            return builtins.type(_value_of(value))
        if default and not hasattr(_value_of(value), name):
            return default[0]
    return getattr(value, name, *default)


def _dir(*value: Any) -> list[str]:
    if not value:
        return sorted(sys._getframe(1).f_locals)
    return dir(_value_of(value[0]) if _represents(value[0]) else value[0])


OURS: dict[str, Any] = {"isinstance": _isinstance, "type": _Type, "hasattr": _hasattr, "getattr": _getattr, "dir": _dir}
# By the id of a namespace: its length, and the names that its code uses.
_names_by_space: dict[int, tuple[int, frozenset[str]]] = {}
_bound: list[tuple[dict[str, Any], str]] = []


def bind_questions(functions: Iterable[FunctionType], values: Iterable[Any]) -> None:
    """Bind the functions in the namespaces of functions, and of the classes of values, where code uses their names."""
    spaces: dict[int, dict[str, Any]] = {}
    for function in (*functions, *_functions_in(values, spaces)):
        if not is_library(function.__code__.co_filename):
            space = function.__globals__
            spaces[id(space)] = space
            _bind(space, _names_used([function]))
    for space in spaces.values():
        _bind(space, _names_used_in(space))


def restore() -> None:
    """Remove what `bind_questions` has bound."""
    while _bound:
        space, name = _bound[-1]
        if space.get(name, _missing) is OURS[name]:
            del space[name]
        _bound.pop()


def _bind(space: dict[str, Any], names: frozenset[str]) -> None:
    for name in names:
        if name not in space:
            _bound.append((space, name))
            space[name] = OURS[name]


def _names_used(functions: Iterable[Any]) -> frozenset[str]:
    """The names among ours that the code of some functions uses."""
    asking = [function.__code__ for function in functions if not names_in(function.__code__).isdisjoint(OURS)]
    found = {name for code in asking for part in codes(code) for name in part.co_names}
    return frozenset(OURS.keys() & found)


def _names_used_in(space: dict[str, Any]) -> frozenset[str]:
    """The names among ours that functions and classes of a module use."""
    known = _names_by_space.get(id(space))
    if known is not None and known[0] == len(space):
        return known[1]
    name = space.get("__name__")
    functions = [f for value in list(space.values()) for f in _functions_of(value, name)]
    found = _names_used(functions)
    _names_by_space[id(space)] = len(space), found
    return found


def _functions_of(value: Any, module: Any) -> Iterator[FunctionType]:
    """The Python functions of a global variable, and the methods of a class of the module."""
    parts: Iterable[Any] = (value,)
    if isinstance(value, builtins.type):
        parts = vars(value).values() if value.__module__ == module else ()
    for part in list(parts):
        names = _BEHIND.get(type(part), ())
        registered = part.__dict__.get("registry") if type(part) is FunctionType else None  # of `functools.singledispatch`
        others = registered.values() if isinstance(registered, MappingProxyType) else ()
        for found in (part, *others, *[getattr(part, name, None) for name in names]):
            if isinstance(found, FunctionType):
                yield found


def is_bound_here(value: Any) -> bool:
    """Whether a value is one of the functions that are bound in the user's modules for as long as an operator runs."""
    return builtins.type(value) in (FunctionType, _TypeOfType) and any(value is ours for ours in OURS.values())


# Classes whose instances hold functions, and the attributes that hold them; of other objects no attribute is read by name.
_BEHIND: dict[type, tuple[str, ...]] = {
    FunctionType: ("__wrapped__",),
    type(functools.lru_cache(abs)): ("__wrapped__",),
    functools.partial: ("func",),
    functools.cached_property: ("func",),
    functools.singledispatchmethod: ("func",),
    MethodType: ("__func__",),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset"),
}


def _functions_in(values: Iterable[Any], spaces: dict[int, Any]) -> list[FunctionType]:
    """The functions that values hold; the namespaces of users' modules that define their classes go to `spaces`."""
    functions, seen, kinds = list[FunctionType](), set[int](), set[type]()
    rows = [values]
    for _ in range(_DEPTH):
        found: list[Any] = []
        for row in rows:
            if _DATA.issuperset(map(type, row)):
                continue
            for value in row:
                kind = type(value)
                if kind in _DATA or id(value) in seen or (kind is list and _DATA.issuperset(map(type, value[:_MOST]))):
                    continue
                if len(seen) >= _VISITED:
                    return functions
                seen.add(id(value))
                if kind is FunctionType:
                    functions.append(value)
                elif kind is list or kind is tuple or kind is set:
                    found.append(list(value)[:_MOST])
                elif kind is dict:
                    found.append(list(value.values())[:_MOST])
                elif kind in _BEHIND:
                    found.append([getattr(value, name, None) for name in (*_BEHIND[kind], "__self__")])
                elif isinstance(value, builtins.type):
                    kinds.add(value)
                elif not _represents(value):
                    kinds.add(kind)
                    found.append(list((dictionary_of(value) or {}).values())[:_MOST])
        rows = found
    for space in {id(space): space for kind in kinds for space in _homes(kind)}.values():
        spaces[id(space)] = space
    return functions


@functools.lru_cache(256)
def _homes(kind: type) -> tuple[dict[str, Any], ...]:
    """The namespaces of the users' modules that define a class and its bases."""
    modules = [sys.modules.get(base.__module__) for base in kind.__mro__]
    return tuple([vars(module) for module in modules if module is not None and _is_users(module)])


def _is_users(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return module.__name__ == "__main__" or (file is not None and not is_library(file))


# Classes of values that hold no function and no object of a user's class.
_DATA = frozenset({
    np.ndarray, np.float64, np.int64, np.ufunc, int, float, complex, bool, str, bytes, type(None), ModuleType,
    BuiltinFunctionType,
})  # fmt: skip
