"""Pickling of users' functions with a graph, including functions that no other program can import, as in a notebook.

Pickle writes functions by name. cloudpickle writes functions of ``__main__`` and nested functions by their code, with their
attributes (opname and rule). Loading registers such a function under its opname. If a different function has that opname,
loading raises a ValueError.
"""

from __future__ import annotations

import copyreg
import importlib
import pickle
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from .. import ops
from ..frames import frame_up
from ..protocols import Primitive
from ..values import variable_hooks
from .moved import RENAMED_OPERATIONS

_unpickled_callables: dict[str, Any] = {}  # by opname: unpickled callables that take no attributes


class PickledFunction:
    """A function in a pickle: cloudpickle writes its code; pickle writes module and name, or raises if they do not resolve."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __reduce__(self) -> Any:
        import_path, opname = module_and_name(self.function), ops.opname_of(self.function)
        if "cloudpickle" in str(frame_up(1).f_globals.get("__name__")).split("."):  # joblib has a copy of cloudpickle
            return _register_pickled_function, (self.function, opname, import_path, ops.external_data(self.function))
        if import_function(*import_path) is not self.function:
            raise TypeError(
                f"{opname} cannot be pickled: its function is not found as {import_path[1]!r} in the module "
                f"{import_path[0]!r}. Define the function (cg.primitive) at the top level of a module, under its own name, or "
                "pickle with cloudpickle, which stores the code of functions"
            )
        return _import_pickled_function, (*import_path, opname)


def module_and_name(function: object) -> tuple[str, str]:
    """Return the module and the qualified name of a function."""
    path = getattr(function, "__qualname__", None) or getattr(function, "__name__", "")
    return str(getattr(function, "__module__", None) or ""), str(path)


def is_importable(module: str) -> bool:
    """Whether other programs can import a module. They cannot import ``__main__``, or modules pickled by value."""
    cloudpickle = sys.modules.get("cloudpickle")
    return module != "__main__" and (cloudpickle is None or module not in cloudpickle.list_registry_pickle_by_value())


def import_object(module: str, path: str) -> Any:
    """Return the attribute of a module under a dotted name, or None."""
    try:
        value: Any = importlib.import_module(module)
    except (ImportError, ValueError):
        return None
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def import_function(module: str, path: str) -> Any:
    """Return the function of a module under a dotted name, or None; for a primitive, its wrapped function."""
    value = import_object(module, path)
    return getattr(value, "function", value)


def _import_pickled_function(module: str, path: str, opname: str) -> Any:
    function = import_function(module, path)
    if function is None:
        raise TypeError(
            f"the pickled graph uses the operation {opname!r}, whose function {path!r} is not found in {module!r} here; define "
            "it first, or pickle with cloudpickle, which stores the code of functions"
        )
    return function


def _register_pickled_function(
    function: Callable[..., Any], opname: str, import_path: tuple[str, str], attributes: dict[str, Any]
) -> Any:
    """Return a function from a pickle, and register it unless an equal one is registered.

    The globals and the closure of the function may still be incomplete, because they may refer back to it.
    """
    existing = ops.function_by_opname(opname)
    if existing is None or (_came_from_pickle(existing, opname) and module_and_name(existing)[0] == import_path[0]):
        _register(function, opname, attributes)
        return function
    if existing is function or _is_equal(existing, function, import_path):
        return existing
    if _has_same_code(existing, function, import_path):  # closure and defaults may differ, so each node keeps its own function
        return function
    raise ValueError(
        f"a pickle contains the operation {opname!r} of {import_path[0]}, and a different one of that name is defined here, in "
        f"{module_and_name(existing)[0]}. Rename one of them (cg.primitive(opname=...))"
    )


def _register(function: Callable[..., Any], opname: str, attributes: dict[str, Any]) -> None:
    ops.register_user_function(function, opname)
    if not ops.set_attached(function, "came_from_pickle", True):
        _unpickled_callables[opname] = function
    for registry, value in attributes.items():
        ops.EXTERNAL_REGISTRIES[registry][1](function, value)


def _came_from_pickle(existing: Callable[..., Any], opname: str) -> bool:
    """Whether a function came from an earlier pickle; a newer one with its opname may replace it."""
    return ops.get_attached(existing, "came_from_pickle") is not None or _unpickled_callables.get(opname) is existing


def _is_equal(existing: Callable[..., Any], function: Callable[..., Any], import_path: tuple[str, str]) -> bool:
    """Whether a function defined in this program equals the pickled one."""
    if type(existing) is FunctionType:
        return _has_same_code(existing, function, import_path) and not (
            existing.__closure__ or existing.__defaults__ or existing.__kwdefaults__
        )
    try:
        return pickle.dumps(existing) == pickle.dumps(function)
    except Exception:  # what cannot be pickled cannot be compared
        return False


def _has_same_code(existing: Callable[..., Any], function: Callable[..., Any], import_path: tuple[str, str]) -> bool:
    are_functions = type(existing) is FunctionType and type(function) is FunctionType
    return are_functions and module_and_name(existing) == import_path and existing.__code__ == function.__code__


def pickled_form(function: Any) -> Any:
    """Return the pickled form of a recorded function.

    It is the opname for a function of NumPy or this package, ``"module:name"`` for another importable function, the adapter
    itself for an adapter, and a `PickledFunction` for a function that no program can import (of ``__main__``, or nested).
    """
    cls = type(function)
    if function is None or cls in _MAKERS or cls in SELF_PICKLING:
        return function
    if isinstance(function, np.ufunc):
        for module in ("numpy", "scipy.special", "scipy.special._ufuncs"):
            if import_function(module, function.__name__) is function:
                break
        else:
            module = "numpy"
    else:
        module = getattr(function, "__module__", None) or ""
    opname = ops.OPNAMES.get(function)
    if opname is not None and ops.function_by_opname(opname) is function and module.split(".")[0] in ("numpy", "compgraph"):
        return opname
    _, path = module_and_name(function)
    if is_importable(module) and import_function(module, path) is function:
        return f"{module}:{path}"
    return PickledFunction(function)


def resolve_function(name: object) -> Any:
    """Return the function of a `pickled_form`; return a function unchanged."""
    if not isinstance(name, str):
        return name
    module, separator, path = name.rpartition(":")
    function = import_function(module, path) if separator else ops.function_by_opname(RENAMED_OPERATIONS.get(path, path))
    if function is None:
        raise TypeError(f"the pickled graph uses the operation {path!r}, which is not found here; import or define it first")
    for hook in variable_hooks:  # registers the functions of SciPy modules that the import has loaded
        hook()
    return function


SELF_PICKLING: set[type] = set()  # classes of callables that pickle themselves; other packages add classes
_MAKERS: dict[Any, Any] = {
    ops.Keyworded: ops.keyworded,
    ops.Configured: ops.configured,
    ops.OnAxes: ops.on_axes,
    ops.UfuncMethod: ops.ufunc_method,
    ops.Packed: lambda function, _: ops.PACKED_FUNCTIONS[function],
    ops.Output: lambda _, index: ops.output(index),
}


def _make_adapter(cls: type, name: str | None, setting: tuple[Any, ...] | int | None) -> Any:
    return _MAKERS[cls](resolve_function(name), setting)


def _reduce_adapter(adapter: Any) -> Any:
    cls: Any = type(adapter)
    function = getattr(adapter, "function", None)
    if cls is ops.UfuncMethod:
        function, setting = adapter.ufunc, adapter.method
    elif cls is ops.Output:
        setting = adapter.index
    elif cls is ops.Keyworded:
        setting = adapter.names
    else:
        setting = None if cls is ops.Packed else tuple(adapter.options.items())
    return _make_adapter, (cls, pickled_form(function), setting)


# Names in pickles of earlier versions.
_adapter, _arrived, _there = _make_adapter, _register_pickled_function, _import_pickled_function

for _kind in _MAKERS:
    copyreg.pickle(_kind, _reduce_adapter)


_DERIVED_ATTRIBUTES = ("function", "__wrapped__", "_signature")


def _reduce_primitive(primitive: Primitive) -> Any:
    module, path = module_and_name(primitive)
    if is_importable(module) and import_object(module, path) is primitive:
        return path
    others = {name: value for name, value in vars(primitive).items() if name not in _DERIVED_ATTRIBUTES}
    return object.__new__, (Primitive,), (pickled_form(primitive.function), others)


def _set_primitive_state(primitive: Primitive, state: tuple[Any, ...]) -> None:
    name, others = state
    function = resolve_function(name)
    vars(primitive).update(others, function=function, __wrapped__=function)


for _name, _method in (("__reduce__", _reduce_primitive), ("__setstate__", _set_primitive_state)):
    setattr(Primitive, _name, _method)
