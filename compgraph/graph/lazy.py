"""Arrays whose numbers are not computed yet, of Dask and its like: they are not taken without a word."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

_PRESENT: frozenset[Any] = frozenset({np.ndarray, float, int, bool, complex, np.float64, np.float32, np.int64, type(None), str})


_BLOCKS = (
    "A loss that is the mean over the rows of such arrays is differentiated block by block by autodiff.distributed.value_and_grad"
)


def require_computed(value: Any, what: str) -> None:
    """Raise a TypeError for an array that would be computed, and loaded whole, if it were converted to NumPy's.

    Parameters
    ----------
    value : object
        What is to become an array; lists and tuples are looked into.
    what : str
        What it is given as, for the message.
    """
    kind = value.__class__
    if kind in _PRESENT or isinstance(value, (np.ndarray, np.generic)):
        return
    if isinstance(value, (list, tuple)):
        for part in value:
            if part.__class__ not in _PRESENT:
                require_computed(part, what)
    elif _is_lazy(value):
        raise TypeError(
            f"{what} is a {kind.__module__.partition('.')[0]} {kind.__name__}, which is not computed yet and would be loaded "
            f"whole; give value.compute(), or that of the part that is needed. {_BLOCKS}"
        )


def _is_lazy(value: Any) -> bool:
    """Whether a value is a collection of Dask, or one in chunks that it must be asked to compute."""
    kind = type(value)
    if hasattr(kind, "__dask_graph__"):
        return value.__dask_graph__() is not None  # of xarray's arrays, only some are lazy
    return hasattr(kind, "compute") and hasattr(value, "chunks")


def token_for_dask(frame: Any, what: str) -> str | None:
    """A name for a node in Dask's graphs, if a frame is where Dask asks for numbers to have one; else None.

    Of nodes with the same numbers each has a name of its own, since their histories differ.

    Raises
    ------
    TypeError
        If it is for an array of Dask's: where that stands on the left of an operator, or with functions of Dask's own, no
        node is asked before.
    """
    if _module(frame) != "dask.tokenize":
        return None
    while _module(frame) in ("dask.tokenize", "dask.utils"):
        frame = frame.f_back
    if _module(frame).startswith("dask.array"):
        raise TypeError(
            f"{what} meets an array of Dask's, whose operations leave the graph; give value.compute() for that array, or "
            f"node.value where plain numbers are meant. {_BLOCKS}"
        )
    return os.urandom(16).hex()


class _ToBePickledError(NotImplementedError, TypeError):
    """What Dask takes as: this is to be pickled; its own way to send an array asks for one, its pickler for the other."""


def require_graph_sent(frame: Any) -> None:
    """Raise for Dask to pickle a node, if a frame is where it is about to send the numbers alone to another machine."""
    while _module(frame).startswith("compgraph."):
        frame = frame.f_back
    if _module(frame) == "distributed.protocol.numpy":
        raise _ToBePickledError("a node is sent with its graph, pickled")


def _module(frame: Any) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))
