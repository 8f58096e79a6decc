"""How other libraries that dispatch by class treat nodes: registered with each of them when it is imported.

=============  ============================================================================================================
matplotlib     draws the numbers of a node
Dask           names a node, in its graphs of tasks, by a name of its own: nodes with equal numbers differ in history
distributed    pickles a node, with its graph; arrays it would send as numbers
=============  ============================================================================================================

An array of Dask's that meets a node would be loaded whole, or take the numbers without their graph: that raises a TypeError.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import numpy as np

from ..graph import to_values
from ..values import BLOCKS, Value


def enter_matplotlib() -> None:
    """Let axes draw the numbers of nodes."""
    units = importlib.import_module("matplotlib.units")

    class Plain(units.ConversionInterface):  # type: ignore[misc, name-defined]
        @staticmethod
        def convert(value: Any, unit: Any, axis: Any) -> Any:
            return np.asarray(to_values(value))

    units.registry[Value] = Plain()


def enter_dask() -> None:
    """Let Dask name nodes, and look for its collections among them in vain."""
    importlib.import_module("dask.tokenize").normalize_token.register(Value, _token)
    Value.__dask_graph__ = property(_no_collection)  # type: ignore[attr-defined]


def enter_distributed() -> None:
    """Let messages between machines pickle nodes."""
    importlib.import_module("distributed.protocol.serialize").dask_serialize.register(Value, _not_as_numbers)


def _token(node: Value) -> str:
    frame: Any = sys._getframe(1)
    while _module(frame) in ("dask.tokenize", "dask.utils"):
        frame = frame.f_back
    if _module(frame).startswith("dask.array"):  # with its own array on the left of an operator, or in a function of its own
        raise TypeError(
            f"a node of shape {node.shape} meets an array of Dask's, whose operations leave the graph; give value.compute() for "
            f"that array, or node.value where plain numbers are meant. {BLOCKS}"
        )
    return os.urandom(16).hex()


def _no_collection(node: Value) -> Any:
    """``__dask_graph__`` of nodes, which only collections of Dask's have.

    Dask looks for it in the arguments of a NumPy function that it does not have, to load its own arrays and to call the function
    with the node.
    """
    frame: Any = sys._getframe(1)
    while _module(frame) == "dask.base":
        frame = frame.f_back
    if _module(frame) == "dask.array.core" and frame.f_code.co_name == "handle_nonmatching_names":
        function = frame.f_locals.get("func")
        raise TypeError(
            f"a node of shape {node.shape} meets an array of Dask's in np.{getattr(function, '__name__', 'a function')}, which "
            f"would load that array whole; give value.compute(), or that of the part that is needed. {BLOCKS}"
        )
    raise AttributeError("__dask_graph__")


class _ToBePickledError(NotImplementedError, TypeError):
    """Makes Dask pickle a node: its serializer of arrays gives up on a NotImplementedError, its pickler on a TypeError."""


def _not_as_numbers(node: Value) -> Any:
    raise _ToBePickledError("a node is sent with its graph, pickled")


def _module(frame: Any) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))
