"""Run NumPy's own Python functions on nodes: the same code, with other globals.

Much of NumPy is Python that begins with ``asanyarray(x)``, which is written in C and does not dispatch. `rebind` copies a
function: its code is the same, and its globals bind such names to functions that accept nodes. NumPy itself is not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from .. import arrays
from ..ops import ARRAY_CONVERTER, NUMPY, UNDISPATCHED, ensure_array


class _Converter:
    """Replaces NumPy's private ``_array_converter``; it does not convert nodes."""

    def __init__(self, *values: Any) -> None:
        self._values = tuple(map(ensure_array, values))
        self._converter = ARRAY_CONVERTER(*[getattr(value, "raw_value", value) for value in self._values])

    def as_arrays(self, subok: bool = True, pyscalars: object = "convert_if_no_array") -> tuple[Any, ...]:
        return self._values

    def wrap(self, array: object, to_scalar: bool | None = None) -> Any:
        return array

    def __getattr__(self, name: str) -> Any:
        return getattr(self._converter, name)

    def __getitem__(self, position: int) -> Any:
        return self._values[position]


_REPLACEMENTS: dict[Any, Any] = {
    ARRAY_CONVERTER: _Converter,
    **{
        spec.function: getattr(arrays, spec.function.__name__)
        for spec in UNDISPATCHED
        if spec.converts == "lists" and hasattr(arrays, spec.function.__name__)
    },
}
_rebound_globals: dict[int, dict[str, Any]] = {}  # by the id of a module's own globals, which live as long as NumPy


class _Module(ModuleType):
    """Replaces a module of NumPy: its functions that convert to arrays accept nodes."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        original = getattr(NUMPY, name, None) if self._module is np else None
        return _replacement(getattr(self._module, name) if original is None else original)


def _replacement(value: object) -> Any:
    try:
        return _REPLACEMENTS.get(value, value)
    except TypeError:  # not hashable
        return value


def rebind(function: Callable[..., Any]) -> Any:
    """Copy a Python function of NumPy with globals that accept nodes; other callables are returned unchanged."""
    if not isinstance(function, FunctionType) or not function.__module__.startswith("numpy"):
        return function
    own_globals = function.__globals__
    namespace = _rebound_globals.get(id(own_globals))
    if namespace is None:
        namespace = _rebound_globals[id(own_globals)] = dict(own_globals)
        for name, value in own_globals.items():
            if isinstance(value, ModuleType) and value.__name__.startswith("numpy"):
                namespace[name] = _Module(value)
            elif isinstance(value, FunctionType) and value.__module__ == own_globals["__name__"]:
                namespace[name] = _with_globals(value, namespace)
            else:
                namespace[name] = _replacement(value)
    return _with_globals(function, namespace)


def _with_globals(function: FunctionType, namespace: dict[str, Any]) -> FunctionType:
    new_function = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__)
    new_function.__kwdefaults__ = function.__kwdefaults__
    return new_function
