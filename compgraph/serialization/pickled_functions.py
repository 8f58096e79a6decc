"""Users' functions that no other program can import, such as those of a notebook: they are pickled with the graph.

Pickle writes functions by name. cloudpickle writes those of ``__main__``, and functions within functions, by their code, and
with them their attributes: opname and rule. Where such a function is loaded, it is entered under its opname; if a different
function has that opname there, loading raises a ValueError.
"""

from __future__ import annotations

import copyreg
import importlib
import pickle
import sys
from types import FunctionType
from typing import Any

import numpy as np

from .. import ops
from ..frames import frame_up
from ..protocols import Primitive
from ..values import variable_hooks

_others: dict[str, Any] = {}  # by opname: callables that came with a pickle, and that `ops.attach` rejects


class Carried:
    """A function in a pickle: cloudpickle writes its code, others its module and name, or raise if it is not found there."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __reduce__(self) -> Any:
        place, opname = place_of(self.function), ops.opname_of(self.function)
        if "cloudpickle" in str(frame_up(1).f_globals.get("__name__")).split("."):  # joblib has a copy of cloudpickle
            return _arrived, (self.function, opname, place, ops.external_data(self.function))
        if import_function(*place) is not self.function:
            raise TypeError(
                f"{opname} cannot be pickled: its function is not found as {place[1]!r} in the "
                f"module {place[0]!r}. Define the function (cg.primitive) at the top level of a module, under its own name, or "
                "pickle with cloudpickle, which takes functions as they are"
            )
        return _there, (*place, opname)


def place_of(function: Any) -> tuple[str, str]:
    """The module of a function, and its name there."""
    path = getattr(function, "__qualname__", None) or getattr(function, "__name__", "")
    return str(getattr(function, "__module__", None) or ""), str(path)


def is_shared(module: str) -> bool:
    """Whether other programs can import a module of that name: not ``__main__``, nor one registered to be pickled by value."""
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
    """The function that a module has under a dotted name, or None; for a primitive, the function it was made from."""
    value = import_object(module, path)
    return getattr(value, "function", value)  # of a primitive, its function


def _there(module: str, path: str, opname: str) -> Any:
    function = import_function(module, path)
    if function is None:
        raise TypeError(
            f"the pickled graph uses the operation {opname!r}, whose function {path!r} is not found in {module!r} here; define "
            "it first, or pickle with cloudpickle, which takes functions as they are"
        )
    return function


def _arrived(function: Any, opname: str, place: tuple[str, str], known: dict[str, Any]) -> Any:
    """Return a function from a pickle, registered here unless the same function is there already.

    The function may be incomplete, because objects that it refers to may refer back to it; only its code is complete.
    """
    here = ops.function_by_opname(opname)
    if here is None or (_has_arrived(here, opname) and place_of(here)[0] == place[0]):
        _enter(function, opname, known)
        return function
    if here is function or _is_same(here, function, place):
        return here
    if _has_code_of(here, function, place):  # closure and defaults may differ, so each node keeps its own function
        return function
    raise ValueError(
        f"a pickle brings the operation {opname!r} of {place[0]}, and another of that name is defined here, in "
        f"{place_of(here)[0]}; give one of them another name (cg.primitive(opname=...))"
    )


def _enter(function: Any, opname: str, known: dict[str, Any]) -> None:
    ops.register_user_function(function, opname)
    if not ops.attach(function, "arrived", True):
        _others[opname] = function
    for what, value in known.items():
        ops.EXTERNAL_REGISTRIES[what][1](function, value)


def _has_arrived(here: Any, opname: str) -> bool:
    """Whether a function came with an earlier pickle, and was not defined here: a newer one of its opname may replace it."""
    return ops.get_attached(here, "arrived") is not None or _others.get(opname) is here


def _is_same(here: Any, function: Any, place: tuple[str, str]) -> bool:
    """Whether a function defined here equals that of the program that pickled it."""
    if type(here) is FunctionType:
        return _has_code_of(here, function, place) and not (here.__closure__ or here.__defaults__ or here.__kwdefaults__)
    try:
        return pickle.dumps(here) == pickle.dumps(function)
    except Exception:  # what cannot be pickled cannot be compared
        return False


def _has_code_of(here: Any, function: Any, place: tuple[str, str]) -> bool:
    both = type(here) is FunctionType and type(function) is FunctionType
    return both and place_of(here) == place and here.__code__ == function.__code__


def name_of(function: Any) -> Any:
    """Return the pickled form of a recorded function.

    For a function of NumPy's or ours it is its opname; for another importable function ``"module:name"``; for an adapter, which
    pickles itself, the adapter; for a function that no program can import (of ``__main__``, or nested) a `Carried`.
    """
    kind = type(function)
    if function is None or kind in _MAKERS or kind in PICKLED_WHOLE:
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
    _, path = place_of(function)
    if is_shared(module) and import_function(module, path) is function:
        return f"{module}:{path}"
    return Carried(function)


def function_called(name: Any) -> Any:
    """Return the function of a name from `name_of`; a function itself is returned unchanged."""
    if not isinstance(name, str):
        return name
    module, is_place, path = name.rpartition(":")
    function = import_function(module, path) if is_place else ops.function_by_opname(path)
    if function is None:
        raise TypeError(f"the pickled graph uses the operation {path!r}, which is not found here; import or define it first")
    for begin in variable_hooks:  # a module that was imported just now may have functions to prepare
        begin()
    return function


PICKLED_WHOLE: set[type] = set()  # classes of callables that pickle themselves: other packages add theirs
_MAKERS: dict[Any, Any] = {
    ops.Keyworded: ops.keyworded,
    ops.Configured: ops.configured,
    ops.OnAxes: ops.on_axes,
    ops.UfuncMethod: ops.ufunc_method,
    ops.Packed: lambda function, _: ops.PACKED_FUNCTIONS[function],
    ops.Output: lambda _, index: ops.output(index),
}


def _adapter(kind: Any, name: Any, setting: Any) -> Any:
    return _MAKERS[kind](function_called(name), setting)


def _reduced_adapter(adapter: Any) -> Any:
    kind: Any = type(adapter)
    function = getattr(adapter, "function", None)
    if kind is ops.UfuncMethod:
        function, setting = adapter.ufunc, adapter.method
    elif kind is ops.Output:
        setting = adapter.index
    elif kind is ops.Keyworded:
        setting = adapter.names
    else:
        setting = None if kind is ops.Packed else tuple(adapter.options.items())
    return _adapter, (kind, name_of(function), setting)


for _kind in _MAKERS:
    copyreg.pickle(_kind, _reduced_adapter)


_OF_FUNCTION = ("function", "__wrapped__", "_signature")


def _reduce_primitive(primitive: Primitive) -> Any:
    module, path = place_of(primitive)
    if is_shared(module) and import_object(module, path) is primitive:
        return path
    others = {name: value for name, value in vars(primitive).items() if name not in _OF_FUNCTION}
    return object.__new__, (Primitive,), (name_of(primitive.function), others)


def _set_primitive_state(primitive: Primitive, state: Any) -> None:
    name, others = state
    function = function_called(name)
    vars(primitive).update(others, function=function, __wrapped__=function)


for _name, _method in (("__reduce__", _reduce_primitive), ("__setstate__", _set_primitive_state)):
    setattr(Primitive, _name, _method)
