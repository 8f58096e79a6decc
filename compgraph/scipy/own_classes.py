"""Objects of SciPy's classes that are created from nodes; their methods run SciPy's Python code on nodes.

An object created from nodes becomes an instance of a subclass of the same name, whose methods are rebound (see `own_code`). A
method of a plain object that is called with nodes runs on a copy with such a class.
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from types import FunctionType, ModuleType
from typing import Any

from .. import ops
from ..interception import unpatched
from ..protocols import HANDLERS
from ..tracing import Tracing, is_tracing
from ..values import TRACEABLE
from .own_code import contains_node, is_from_scipy, rebind, rebind_value, replace_module, replaced_methods, to_caller


def own_class(module: str, name: str, *methods: str) -> Mapping[str, Callable[..., Any]]:
    """Return policy entries of a class: for the creation of an object from nodes, and for methods of plain objects.

    Parameters
    ----------
    module, name : str
        The module of SciPy, and the class.
    *methods : str
        The public methods that take arrays. Methods of objects created from nodes need no entries.
    """
    get_class = functools.cache(lambda: getattr(importlib.import_module(module), name))

    def create(self: Any, *args: object, **kwargs: object) -> None:
        function = unpatched(inspect.getattr_static(get_class(), "__init__"))
        if not holds_nodes(self) and not any(map(contains_node, (*args, *kwargs.values()))):
            function(self, *args, **kwargs)
            return
        self.__class__ = class_of_nodes(type(self))
        _call_traced(rebind(function), self, *args, **kwargs)
        for attribute, value in _attributes(self):
            setattr(self, attribute, to_caller(value))

    def call(method: str, self: Any, *args: object, **kwargs: object) -> Any:
        return _rebind_method(inspect.getattr_static(get_class(), method))(copy_for_nodes(self), *args, **kwargs)

    return {name: create, **{f"{name}.{method}": functools.partial(call, method) for method in methods}}


def _call_traced(function: Callable[..., Any], *args: object, **kwargs: object) -> Any:
    """Call a function within a tracing context, so that arrays become tracers when nodes are written into them."""
    with nullcontext() if is_tracing() else Tracing():
        return function(*args, **kwargs)


def holds_nodes(instance: object) -> bool:
    """Whether an object was created from nodes."""
    return getattr(type(instance), "_holds_node", False)


def copy_for_nodes(instance: object) -> Any:
    """Return a shallow copy of a plain object, with methods that run on nodes; private objects in it are copied likewise."""
    if holds_nodes(instance):
        return instance
    new_instance = copy.copy(instance)
    new_instance.__class__ = class_of_nodes(type(instance))
    for name, value in _attributes(new_instance):
        if is_from_scipy(type(value)) and type(value).__name__.startswith("_"):
            setattr(new_instance, name, copy_for_nodes(value))
        else:
            setattr(new_instance, name, rebind_value("", value))  # the object may store NumPy, or one of its functions
    return new_instance


def _attributes(instance: object) -> Iterator[tuple[str, Any]]:
    """The attributes in the ``__dict__`` and the slots of an object."""
    slots = [name for cls in type(instance).__mro__ for name in getattr(cls, "__slots__", ())]
    for name in [*getattr(instance, "__dict__", ()), *slots]:
        if hasattr(instance, name):
            yield name, getattr(instance, name)


def class_of_nodes(cls: type) -> Any:
    """The subclass of a SciPy class, of the same name, whose methods run on nodes."""
    return cls if getattr(cls, "_holds_node", False) else _class_of_nodes(cls)


@functools.cache
def _class_of_nodes(cls: type) -> Any:
    methods: dict[str, Any] = {}
    for name in dir(cls):
        attribute = inspect.getattr_static(cls, name)
        rebound = _rebind_attribute(attribute)
        if rebound is not attribute:
            methods[name] = rebound
    for base in reversed(cls.__mro__):
        methods |= replaced_methods(base)
    return type(cls.__name__, (cls,), {**methods, "__module__": cls.__module__, "__slots__": (), "_holds_node": True})


def _rebind_attribute(attribute: object) -> Any:
    """Return an attribute of a class with SciPy's functions in it rebound."""
    if isinstance(attribute, FunctionType):
        is_unsupported = attribute in ops.PUBLIC_NAMES and attribute not in HANDLERS
        return attribute if is_unsupported or not is_from_scipy(attribute) else _rebind_method(attribute)
    if isinstance(attribute, (staticmethod, classmethod)):
        rebound = _rebind_attribute(attribute.__func__)
        return attribute if rebound is attribute.__func__ else type(attribute)(rebound)
    if isinstance(attribute, property):
        return property(*[f and _rebind_attribute(f) for f in (attribute.fget, attribute.fset, attribute.fdel)])
    return attribute


@functools.cache
def _rebind_method(function: FunctionType) -> Callable[..., Any]:
    get_rebound = functools.cache(lambda: rebind(unpatched(function)))

    @functools.wraps(function)
    def method(*args: object, **kwargs: object) -> Any:
        result = to_caller(_call_traced(get_rebound(), *args, **kwargs))
        if is_from_scipy(type(result)) and not holds_nodes(result) and contains_node(result):
            result.__class__ = class_of_nodes(type(result))
        return result

    return method


class _ReplacedModule(ModuleType):
    """The replacement of a compiled module in rebound code; for plain arguments it calls the original functions."""

    def __init__(self, name: str, functions: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(name)
        vars(self).update({key: self._for_nodes(key, function) for key, function in functions.items()})

    def __getattr__(self, name: str) -> Any:
        return rebind_value(name, self._original(name))

    def _original(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)

    def _for_nodes(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> Any:
            is_plain = not any(type(v) in TRACEABLE or contains_node(v) for v in (*args, *kwargs.values()))
            return self._original(name)(*args, **kwargs) if is_plain else function(*args, **kwargs)

        return call


def replace_compiled_functions(module: str, functions: Mapping[str, Callable[..., Any]]) -> None:
    """Replace functions of a compiled module in rebound code, for calls with nodes or buffers."""
    replace_module(module, _ReplacedModule(module, functions))
