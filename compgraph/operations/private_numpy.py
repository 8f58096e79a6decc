"""What of NumPy is private and used here all the same; nothing else of that kind is used anywhere in the package."""

from __future__ import annotations

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
