"""Lazy arrays, of Dask and its like: their numbers are not computed yet, and they are refused rather than loaded unasked."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

_PRESENT: frozenset[Any] = frozenset({np.ndarray, float, int, bool, complex, np.float64, np.float32, np.int64, type(None), str})


_BLOCKS = (
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
    """Whether a value is a collection of Dask's, or another array in chunks with a method `compute`."""
    kind = type(value)
    if hasattr(kind, "__dask_graph__"):
        return value.__dask_graph__() is not None  # of xarray's arrays, only some are lazy
    return hasattr(kind, "compute") and hasattr(value, "chunks")


def token_for_dask(frame: Any, what: str) -> str | None:
    """A name for a node in Dask's graphs, if the frame is Dask's, asking for the numbers to make one of; else None.

    Dask names a value by its numbers. A node gets a name of its own each time, since nodes with equal numbers differ in history.

    Parameters
    ----------
    frame : frame
        The one that asks the node for its numbers.
    what : str
        The node in words, for the message.

    Raises
    ------
    TypeError
        If Dask asks in order to combine the node with an array of its own. With that array on the left of an operator, and in
        Dask's own functions, the node is asked here first.
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
    """Makes Dask pickle a node: its serializer of arrays gives up on a NotImplementedError, its pickler on a TypeError."""


def require_graph_sent(frame: Any) -> None:
    """Raise, so that Dask pickles the node, if the frame is Dask's and about to send the numbers without their graph."""
    while _module(frame).startswith("compgraph."):
        frame = frame.f_back
    if _module(frame) == "distributed.protocol.numpy":
        raise _ToBePickledError("a node is sent with its graph, pickled")


def _module(frame: Any) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))
