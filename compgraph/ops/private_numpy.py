"""All that the packages use of NumPy's private names."""

from __future__ import annotations

import gc
import sys
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

NO_VALUE: Any = np._NoValue  # marks a missing argument
# NumPy's functions, for tables of modules that are imported late: while a function is traced,
# names such as np.zeros mean functions of ours.
NUMPY: Any = SimpleNamespace(**vars(np))
ARRAY_CONVERTER: Any = np._core._multiarray_umath._array_converter  # type: ignore[attr-defined]  # by which functions convert
CLIP: Any = np._core.umath.clip  # type: ignore[attr-defined]  # the ufunc that the method `clip` of a plain array calls
METHODS_MODULE = "numpy._core._methods"  # where the Python functions behind the methods of a plain array are defined


# The dispatcher of ``np.stack``, ``np.vstack`` and others calls it; it raises for iterators.
sequence_of_arrays: FunctionType = np._core.shape_base._arrays_for_stack_dispatcher  # type: ignore[attr-defined]


def implementation(function: Any) -> Any:
    """NumPy's code of a function without the dispatch to ``__array_function__``; the function itself if it never dispatches."""
    return getattr(function, "_implementation", function)


def copies(copy: Any) -> bool | None:
    """Return the meaning of ``copy=``: True always, False never, None only if needed."""
    if isinstance(copy, np._CopyMode):
        return None if copy is np._CopyMode.IF_NEEDED else copy is np._CopyMode.ALWAYS
    return None if copy is None else bool(copy)


def dispatchers() -> list[FunctionType]:
    """Return NumPy's dispatchers: for each function the one that returns the arguments relevant for ``__array_function__``."""
    modules = [
        m for name, m in list(sys.modules.items()) if name.partition(".")[0] == "numpy" and not name.startswith("numpy.ma")
    ]
    named = [
        value
        for module in modules
        for name, value in list(vars(module).items())
        if isinstance(value, FunctionType) and name.endswith("_dispatcher") and value.__module__ == module.__name__
    ]
    return named + _IN_C


def _dispatchers_in_c() -> list[FunctionType]:
    """The dispatchers of functions defined in C, ``np.dot`` and ``np.concatenate`` among them. They are in no module."""
    home = sys.modules[np._core.multiarray.__name__]  # type: ignore[attr-defined]
    wanted = {name for name, value in vars(home).items() if isinstance(value, DISPATCHING)}
    return [
        value
        for value in gc.get_objects()
        if type(value) is FunctionType and value.__module__ == home.__name__ and value.__qualname__ in wanted
    ]


DISPATCHING = type(np.dot)  # the class of functions that call ``__array_function__``
_IN_C = _dispatchers_in_c()  # on import: objects are not found after `gc.freeze`
