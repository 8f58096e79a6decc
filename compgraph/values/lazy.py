"""Lazy arrays: their numbers are not computed yet, and an error is raised before a conversion would load them."""

from __future__ import annotations

from typing import Any

import numpy as np

_PRESENT: frozenset[Any] = frozenset({np.ndarray, float, int, bool, complex, np.float64, np.float32, np.int64, type(None), str})


BLOCKS = (
    "A loss that is the mean over the rows of such arrays is differentiated block by block by autodiff.distributed.value_and_grad"
)


def require_computed(value: Any, what: str) -> None:
    """Raise a TypeError for a lazy array, which a conversion to NumPy's would compute and load whole.

    Parameters
    ----------
    value : object
        What is to become an array; lists and tuples are searched.
    what : str
        How the message calls it: ``"an operand"``.
    """
    kind = type(value)
    if kind in _PRESENT or isinstance(value, (np.ndarray, np.generic)):
        return
    if isinstance(value, (list, tuple)):
        for part in value:
            if type(part) not in _PRESENT:
                require_computed(part, what)
    elif _is_lazy(value):
        raise TypeError(
            f"{what} is a {kind.__module__.partition('.')[0]} {kind.__name__}, which is not computed yet and would be loaded "
            f"whole; give value.compute(), or that of the part that is needed. {BLOCKS}"
        )


def _is_lazy(value: Any) -> bool:
    """Whether a value is a collection with a graph of tasks, or another array in chunks with a method `compute`."""
    kind = type(value)
    if hasattr(kind, "__dask_graph__"):
        return value.__dask_graph__() is not None  # of xarray's arrays, only some are lazy
    return hasattr(kind, "compute") and hasattr(value, "chunks")
