"""Recorded functions in a pickle: the name by which each is found again."""

from __future__ import annotations

import copyreg
from typing import Any

import numpy as np

from .. import ops
from ..values import before_variables
from .carried import Carried, import_function, is_shared, place_of


def name_of(function: Any) -> Any:
    """What a pickle holds for a recorded function.

    For a function of NumPy's or ours its opname; for another that can be imported ``"module:name"``; for an adapter,
    which pickles itself, the adapter; for a function that no program can import (of ``__main__``, or nested) a `Carried`.
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
    if opname is not None and ops.function_named(opname) is function and module.split(".")[0] in ("numpy", "compgraph"):
        return opname
    _, path = place_of(function)
    if is_shared(module) and import_function(module, path) is function:
        return f"{module}:{path}"
    return Carried(function)


def function_called(name: Any) -> Any:
    """The function that `name_of` named; what is not a str is the function itself."""
    if not isinstance(name, str):
        return name
    module, is_place, path = name.rpartition(":")
    found = import_function(module, path) if is_place else ops.function_named(path)
    if found is None:
        raise TypeError(f"the pickled graph uses the operation {path!r}, which is not found here; import or define it first")
    for begin in before_variables:  # a module that was imported just now may have functions to prepare
        begin()
    return found


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
