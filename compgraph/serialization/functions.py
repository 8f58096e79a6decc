"""Recorded functions in a pickle: by what each is found again."""

from __future__ import annotations

import copyreg
import importlib
from typing import Any

import numpy as np

from .. import operations
from ..graph import beginnings


def name_of(function: Any) -> Any:
    """By what a recorded function is found again: its opname, or its place in a module; adapters pickle themselves.

    Raises
    ------
    TypeError
        If it is in no module: a lambda, or a function within a function.
    """
    if function is None or isinstance(function, _ADAPTERS):
        return function
    if isinstance(function, np.ufunc):
        for module in ("numpy", "scipy.special", "scipy.special._ufuncs"):
            if _found(module, function.__name__) is function:
                break
        else:
            module = "numpy"
    else:
        module = getattr(function, "__module__", None) or ""
    opname = operations.OPNAMES.get(function)
    if opname is not None and operations.function_named(opname) is function and module.split(".")[0] in ("numpy", "compgraph"):
        return opname
    path = str(getattr(function, "__qualname__", None) or getattr(function, "__name__", ""))
    if _found(module, path) is not function:
        raise TypeError(
            f"{operations.opname_of(function)} cannot be pickled: its function is not found as {path!r} in the module "
            f"{module!r}. Define the function (cg.primitive) at the top level of a module, under its own name"
        )
    return f"{module}:{path}"


def _found(module: str, path: str) -> Any:
    """The function of plain arrays at a place, or None."""
    try:
        found: Any = importlib.import_module(module)
    except (ImportError, ValueError):
        return None
    for name in path.split("."):
        found = getattr(found, name, None)
    return getattr(found, "function", found)  # a primitive stands for its function


def function_called(name: Any) -> Any:
    """The function that `name_of` gave a name."""
    if not isinstance(name, str):
        return name
    module, is_place, path = name.rpartition(":")
    found = _found(module, path) if is_place else operations.function_named(path)
    if found is None:
        raise TypeError(f"the pickled graph uses the operation {path!r}, which is not found here; import or define it first")
    for begin in beginnings:  # it may have been imported just now
        begin()
    return found


_MAKERS: dict[Any, Any] = {
    operations.Keyworded: operations.keyworded,
    operations.Configured: operations.configured,
    operations.OnAxes: operations.on_axes,
    operations.UfuncMethod: operations.ufunc_method,
    operations.Packed: lambda function, _: operations.PACKED_FUNCTIONS[function],
    operations.Output: lambda _, index: operations.output(index),
}
_ADAPTERS = tuple(_MAKERS)


def _adapter(kind: Any, name: Any, setting: Any) -> Any:
    return _MAKERS[kind](function_called(name), setting)


def _reduced_adapter(adapter: Any) -> Any:
    kind: Any = type(adapter)
    function = getattr(adapter, "function", None)
    if kind is operations.UfuncMethod:
        function, setting = adapter.ufunc, adapter.method
    elif kind is operations.Output:
        setting = adapter.index
    elif kind is operations.Keyworded:
        setting = adapter.names
    else:
        setting = None if kind is operations.Packed else tuple(adapter.options.items())
    return _adapter, (kind, name_of(function), setting)


for _kind in _MAKERS:
    copyreg.pickle(_kind, _reduced_adapter)
