"""Patches of ``isinstance``, ``type``, ``hasattr``, ``getattr`` and ``dir`` in the user's modules.

A node is an ndarray with further attributes. User functions that check a class or an attribute get the result for the value that
the node represents: a NumPy or Python number, or an array. While a function is differentiated, the patches are bound in the
namespaces of modules whose code uses these names.
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
from .borrowing import attributes_of
from .callers import is_library
from .reachability import iterate_code_objects, names_in

_ABSENT = object()
_MAX_DEPTH = 4  # the depth to which objects in containers and attributes are visited
_MAX_ITEMS = 64  # of a container, which are visited
_MAX_VALUES = 256  # that are visited


def _represented_value(node: object) -> Any:
    """A plain value of the class that a node represents."""
    if isinstance(node, Value) and hasattr(node, "raw_value"):
        if is_number(node):
            return represented_class(node)(0)
        return node.raw_value if type(node.raw_value) is np.ndarray else np.asarray(node.raw_value)
    return unwrap_buffer(node)


def _is_traced(value: object) -> bool:
    """Whether a value is a node or a buffer, which represents a number or an array."""
    return isinstance(value, Value) or type(value) in TRACEABLE


def _includes_nodes(classes: tuple[Any, ...] | type) -> bool:
    """Whether some classes include a class of nodes."""
    if isinstance(classes, tuple):
        return any(map(_includes_nodes, classes))
    return isinstance(classes, builtins.type) and issubclass(classes, Value)


def _unpatched_classes(classes: tuple[Any, ...] | type) -> Any:
    """Classes, with Python's ``type`` in place of its patch."""
    if isinstance(classes, tuple):
        return tuple(map(_unpatched_classes, classes))
    return builtins.type if classes is _Type else classes


def _isinstance(value: object, classes: tuple[Any, ...] | type, /) -> bool:
    classes = _unpatched_classes(classes)
    if not _is_traced(value):
        return isinstance(value, classes)
    if _includes_nodes(classes):
        return isinstance(value, classes) or issubclass(node_class(value), classes)
    return isinstance(_represented_value(value), classes)


class _TypeOfType(type):
    """The class of `_Type`, which is called as ``type`` is."""

    def __call__(cls, *args: object, **options: object) -> Any:
        if cls is not _Type:  # a metaclass that the user derives from `type`
            return super().__call__(*args, **options)
        if len(args) == 1 and not options and _is_traced(args[0]):
            return builtins.type(_represented_value(args[0]))
        return builtins.type(*args, **options)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, builtins.type) if cls is _Type else super().__instancecheck__(value)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, builtins.type) if cls is _Type else super().__subclasscheck__(subclass)

    def __eq__(cls, other: object) -> bool:
        return other is cls or (cls is _Type and other is builtins.type)

    def __hash__(cls) -> int:
        return hash(builtins.type) if cls is _Type else super().__hash__()


class _Type(type, metaclass=_TypeOfType):
    """``type``, for which a node has the class of the value that it represents."""


def _hasattr(value: object, name: str, /) -> bool:
    return hasattr(_represented_value(value) if _is_traced(value) else value, name)


def _getattr(value: object, name: str, /, *default: object) -> Any:
    if _is_traced(value):
        if name == "__class__":
            return builtins.type(_represented_value(value))
        if default and not hasattr(_represented_value(value), name):
            return default[0]
    return getattr(value, name, *default)


def _dir(*value: object) -> list[str]:
    if not value:
        return sorted(sys._getframe(1).f_locals)
    return dir(_represented_value(value[0]) if _is_traced(value[0]) else value[0])


PATCHES: dict[str, Any] = {"isinstance": _isinstance, "type": _Type, "hasattr": _hasattr, "getattr": _getattr, "dir": _dir}
# By the id of a namespace: its length, and the patched names that its code uses.
_names_by_namespace: dict[int, tuple[int, frozenset[str]]] = {}
_bindings: list[tuple[dict[str, Any], str]] = []


def bind_introspection(functions: Iterable[FunctionType], values: Iterable[Any]) -> None:
    """Bind the patches in the namespaces of functions, and of the classes of values, whose code uses the patched names."""
    namespaces: dict[int, dict[str, Any]] = {}
    for function in (*functions, *_functions_in(values, namespaces)):
        if not is_library(function.__code__.co_filename):
            namespace = function.__globals__
            namespaces[id(namespace)] = namespace
            _bind(namespace, _patched_names_in([function]))
    for namespace in namespaces.values():
        _bind(namespace, _patched_names_in_module(namespace))


def unbind_introspection() -> None:
    """Undo `bind_introspection`."""
    while _bindings:
        namespace, name = _bindings[-1]
        if namespace.get(name, _ABSENT) is PATCHES[name]:
            del namespace[name]
        _bindings.pop()


def _bind(namespace: dict[str, Any], names: frozenset[str]) -> None:
    for name in names:
        if name not in namespace:
            _bindings.append((namespace, name))
            namespace[name] = PATCHES[name]


def _patched_names_in(functions: Iterable[Any]) -> frozenset[str]:
    """The patched names that the code of some functions uses."""
    codes = [function.__code__ for function in functions if not names_in(function.__code__).isdisjoint(PATCHES)]
    names = {name for code in codes for part in iterate_code_objects(code) for name in part.co_names}
    return frozenset(PATCHES.keys() & names)


def _patched_names_in_module(namespace: dict[str, Any]) -> frozenset[str]:
    """The patched names that functions and classes of a module use."""
    cached = _names_by_namespace.get(id(namespace))
    if cached is not None and cached[0] == len(namespace):
        return cached[1]
    name = namespace.get("__name__")
    functions = [f for value in list(namespace.values()) for f in _functions_of(value, name)]
    names = _patched_names_in(functions)
    _names_by_namespace[id(namespace)] = len(namespace), names
    return names


def _functions_of(value: object, module: object) -> Iterator[FunctionType]:
    """The Python functions of a global variable, and the methods of a class of the module."""
    parts: Iterable[Any] = (value,)
    if isinstance(value, builtins.type):
        parts = vars(value).values() if value.__module__ == module else ()
    for part in list(parts):
        names = _INNER_FUNCTIONS.get(type(part), ())
        registered = part.__dict__.get("registry") if type(part) is FunctionType else None  # of `functools.singledispatch`
        others = registered.values() if isinstance(registered, MappingProxyType) else ()
        for function in (part, *others, *[getattr(part, name, None) for name in names]):
            if isinstance(function, FunctionType):
                yield function


def is_introspection_patch(value: object) -> bool:
    """Whether a value is one of the patches of this module, bound in the user's modules while an operator runs."""
    return builtins.type(value) in (FunctionType, _TypeOfType) and any(value is patch for patch in PATCHES.values())


# Classes whose instances hold functions, and the attributes that hold them; of other objects no attribute is read by name.
_INNER_FUNCTIONS: dict[type, tuple[str, ...]] = {
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


def _functions_in(values: Iterable[Any], namespaces: dict[int, Any]) -> list[FunctionType]:
    """The functions in values; the namespaces of user modules that define the values' classes are added to `namespaces`."""
    functions, visited_ids, classes = list[FunctionType](), set[int](), set[type]()
    level = [values]
    for _ in range(_MAX_DEPTH):
        next_level: list[Any] = []
        for group in level:
            if _DATA_CLASSES.issuperset(map(type, group)):
                continue
            for value in group:
                cls = type(value)
                if (
                    cls in _DATA_CLASSES
                    or id(value) in visited_ids
                    or (cls is list and _DATA_CLASSES.issuperset(map(type, value[:_MAX_ITEMS])))
                ):
                    continue
                if len(visited_ids) >= _MAX_VALUES:
                    return functions
                visited_ids.add(id(value))
                if cls is FunctionType:
                    functions.append(value)
                elif cls is list or cls is tuple or cls is set:
                    next_level.append(list(value)[:_MAX_ITEMS])
                elif cls is dict:
                    next_level.append(list(value.values())[:_MAX_ITEMS])
                elif cls in _INNER_FUNCTIONS:
                    next_level.append([getattr(value, name, None) for name in (*_INNER_FUNCTIONS[cls], "__self__")])
                elif isinstance(value, builtins.type):
                    classes.add(value)
                elif not _is_traced(value):
                    classes.add(cls)
                    next_level.append(list((attributes_of(value) or {}).values())[:_MAX_ITEMS])
        level = next_level
    for namespace in {id(namespace): namespace for cls in classes for namespace in _namespaces_of(cls)}.values():
        namespaces[id(namespace)] = namespace
    return functions


@functools.lru_cache(256)
def _namespaces_of(cls: type) -> tuple[dict[str, Any], ...]:
    """The namespaces of the user's modules that define a class and its bases."""
    modules = [sys.modules.get(base.__module__) for base in cls.__mro__]
    return tuple([vars(module) for module in modules if module is not None and _is_user_module(module)])


def _is_user_module(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return module.__name__ == "__main__" or (file is not None and not is_library(file))


# Classes of values that hold no function and no object of a user's class.
_DATA_CLASSES = frozenset({
    np.ndarray, np.float64, np.int64, np.ufunc, int, float, complex, bool, str, bytes, type(None), ModuleType,
    BuiltinFunctionType,
})  # fmt: skip
