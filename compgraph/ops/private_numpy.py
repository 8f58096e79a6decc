"""Private names of NumPy that this project depends on."""

from __future__ import annotations

import gc
import sys
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

NO_VALUE: Any = np._NoValue  # marks a missing argument
# NumPy's own functions, for tables of modules that may be imported while np.zeros and other names are patched.
NUMPY: Any = SimpleNamespace(**vars(np))
ARRAY_CONVERTER: Any = np._core._multiarray_umath._array_converter  # type: ignore[attr-defined]  # converts arguments in NumPy's Python functions
CLIP: Any = np._core.umath.clip  # type: ignore[attr-defined]  # the ufunc that the method `clip` of a plain array calls
ARRAY_API: Any = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]  # the functions of NumPy's C API
METHODS_MODULE = "numpy._core._methods"  # where the Python functions behind the methods of a plain array are defined


# Called by the dispatchers of ``np.stack``, ``np.vstack`` and others; it raises for iterators.
sequence_of_arrays: FunctionType = np._core.shape_base._arrays_for_stack_dispatcher  # type: ignore[attr-defined]


# Checks the shapes of the arguments of an ``np.vectorize`` with a signature, and broadcasts their other axes.
parse_input_dimensions: FunctionType = np.lib._function_base_impl._parse_input_dimensions  # type: ignore[attr-defined]


def implementation(function: object) -> Any:
    """NumPy's code of a function without the dispatch to ``__array_function__``; the function itself if it never dispatches."""
    return getattr(function, "_implementation", function)


def resolve_copy_option(copy: object) -> bool | None:
    """Convert the option ``copy=`` to True (always), False (never) or None (if needed)."""
    if isinstance(copy, np._CopyMode):
        return None if copy is np._CopyMode.IF_NEEDED else copy is np._CopyMode.ALWAYS
    return None if copy is None else bool(copy)


def dispatchers() -> list[FunctionType]:
    """Return NumPy's dispatchers: functions that return the arguments relevant for ``__array_function__``, one per function."""
    modules = [
        m for name, m in list(sys.modules.items()) if name.partition(".")[0] == "numpy" and not name.startswith("numpy.ma")
    ]
    python_dispatchers = [
        value
        for module in modules
        for name, value in list(vars(module).items())
        if isinstance(value, FunctionType) and name.endswith("_dispatcher") and value.__module__ == module.__name__
    ]
    return python_dispatchers + _C_DISPATCHERS


def _dispatchers_in_c() -> list[FunctionType]:
    """Find the dispatchers of C functions such as ``np.dot`` and ``np.concatenate``, which no module contains."""
    module = sys.modules[np._core.multiarray.__name__]  # type: ignore[attr-defined]
    names = {name for name, value in vars(module).items() if isinstance(value, DISPATCHED_FUNCTION_TYPE)}
    return [
        value
        for value in gc.get_objects()
        if type(value) is FunctionType and value.__module__ == module.__name__ and value.__qualname__ in names
    ]


DISPATCHED_FUNCTION_TYPE = type(np.dot)  # the class of functions that call ``__array_function__``
_C_DISPATCHERS = _dispatchers_in_c()  # on import: objects are not found after `gc.freeze`
