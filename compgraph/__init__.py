"""Computation graphs of NumPy expressions: arrays that remember how they were computed.

Make a `variable`, go on writing NumPy, and the result knows its graph. Every NumPy function that can be recorded is
also found here under its own name, with one more argument ``name=``: ``cg.sin(x, name="s")``,
``cg.linalg.inv(x, name="i")``. The package `autodiff`
gives derivatives.
"""

from __future__ import annotations

from typing import Any

from . import emath, fft, linalg, operations
from .arrays.allocation import empty, ones, zeros
from .arrays.creation import (
    array,
    as_strided,
    asanyarray,
    asarray,
    asarray_chkfinite,
    ascontiguousarray,
    asfortranarray,
    full,
    require,
)
from .arrays.joining import asmatrix, bmat, c_, r_
from .arrays.leaves import constant, placeholder, variable
from .arrays.patched_numpy import patched_numpy
from .debugging import NonFiniteError, debug
from .drawing.visualize import GraphPicture, visualize_at
from .executor.cse import simplified
from .executor.executor import Executor
from .executor.retrace import GuardError
from .graph.context.modes import default_dtype, no_graph
from .graph.context.scopes import scope
from .graph.hollow.bodies import strict
from .graph.hollow.refusals import EscapeError
from .graph.interpreter.source_lines import record_lines
from .graph.node import ConstantNode, Node, OperationalNode, PlaceholderNode, VariableNode
from .graph.walk import topological_order
from .guards.decisions import reset
from .nn.convolutions import conv, cross_correlate
from .nn.functions import (
    expand,
    log_softmax,
    logsumexp,
    relu,
    sigmoid,
    sigmoid_cross_entropy,
    softmax,
    softmax_cross_entropy,
    softplus,
    stop_gradient,
)
from .nn.pooling import max_pool, mean_pool
from .operations.compositions.pieces import kaiser
from .protocols import methods as methods  # importing it lets nodes record
from .protocols.primitives import named, primitive
from .serialization import graphs as graphs  # importing it lets nodes be pickled and copied

__all__ = [
    "ConstantNode",
    "EscapeError",
    "Executor",
    "GraphPicture",
    "GuardError",
    "Node",
    "NonFiniteError",
    "OperationalNode",
    "PlaceholderNode",
    "VariableNode",
    "array",
    "as_strided",
    "asanyarray",
    "asarray",
    "asarray_chkfinite",
    "ascontiguousarray",
    "asfortranarray",
    "asmatrix",
    "bmat",
    "c_",
    "constant",
    "conv",
    "cross_correlate",
    "debug",
    "default_dtype",
    "emath",
    "empty",
    "expand",
    "fft",
    "full",
    "kaiser",
    "linalg",
    "log_softmax",
    "logsumexp",
    "max_pool",
    "mean_pool",
    "no_graph",
    "ones",
    "patched_numpy",
    "placeholder",
    "primitive",
    "r_",
    "record_lines",
    "relu",
    "require",
    "reset",
    "scope",
    "sigmoid",
    "sigmoid_cross_entropy",
    "simplified",
    "softmax",
    "softmax_cross_entropy",
    "softplus",
    "stop_gradient",
    "strict",
    "topological_order",
    "variable",
    "visualize_at",
    "zeros",
]


def __getattr__(name: str) -> Any:
    function = operations.public_functions().get(name)
    if function is None:
        raise AttributeError(f"compgraph has no {name!r}")
    return globals().setdefault(name, named(function))


def __dir__() -> list[str]:
    return sorted({*__all__, *operations.public_functions()})
