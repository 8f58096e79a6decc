"""What of NumPy is private and used here all the same; nothing else of that kind is used anywhere in the package."""

from __future__ import annotations

import inspect
import sys
from types import FunctionType
from typing import Any

import numpy as np

NO_VALUE: Any = np._NoValue  # stands for an argument that was not given
CLIP: Any = np._core.umath.clip  # type: ignore[attr-defined]  # what the method of a plain array calls
JOINING_MODULE: str = np.lib._index_tricks_impl.__name__  # of np.r_ and np.c_
METHODS_MODULE = "numpy._core._methods"  # of what the methods of a plain array call


def implementation(function: Any) -> Any:
    """NumPy's own code of a function, which asks no array; a function that never asks is its own."""
    return getattr(function, "_implementation", function)


def copies(copy: Any) -> bool | None:
    """Whether ``copy=`` asks for a copy; None where one is made if needed."""
    if isinstance(copy, np._CopyMode):
        return None if copy is np._CopyMode.IF_NEEDED else copy is np._CopyMode.ALWAYS
    return None if copy is None else bool(copy)


def dispatchers() -> list[FunctionType]:
    """The functions of NumPy's that say which arguments of a call are arrays, so that these are asked."""
    modules = [
        m for name, m in list(sys.modules.items()) if name.partition(".")[0] == "numpy" and not name.startswith("numpy.ma")
    ]
    return [
        value
        for module in modules
        for name, value in list(vars(module).items())
        if isinstance(value, FunctionType)
        and name.endswith("_dispatcher")
        and value.__module__ == module.__name__
        and not inspect.isgeneratorfunction(value)
    ]
