"""Computation graphs of NumPy expressions: arrays that remember how they were computed.

Make a `variable`, go on writing NumPy, and the result knows its graph. Every NumPy function that can be recorded is also found
here under its own name, with one more argument ``name=``: ``cg.sin(x, name="s")``, ``cg.linalg.inv(x, name="i")``. The package
`autodiff` gives derivatives.
"""

from __future__ import annotations

from typing import Any

from . import emath, fft, linalg, operations
from .arrays import (
    array,
    as_strided,
    asanyarray,
    asarray,
    asarray_chkfinite,
    ascontiguousarray,
    asfortranarray,
    asmatrix,
    bmat,
    c_,
    constant,
    empty,
    full,
    ones,
    patched_numpy,
    placeholder,
    r_,
    require,
    variable,
    zeros,
)
from .compiled import jit
from .debugging import NonFiniteError, debug
from .drawing import GraphPicture, visualize_at
from .executor import Executor, GuardError, cut, simplified
from .graph import ConstantNode, DiffersError, Node, OperationalNode, PlaceholderNode, VariableNode, topological_order
from .graph.context import default_dtype, no_graph, scope
from .graph.hollow import EscapeError, strict
from .graph.interpreter import record_lines
from .guards import reset
from .interception import interception
from .nn import (
    conv,
    cross_correlate,
    log_softmax,
    logsumexp,
    max_pool,
    mean_pool,
    relu,
    sigmoid,
    sigmoid_cross_entropy,
    softmax,
    softmax_cross_entropy,
    softplus,
)
from .operations.compositions.pieces import kaiser
from .protocols import expand, named, primitive, stop_gradient
from .protocols import methods as methods  # importing it lets nodes record
from .scipy import families as families  # importing it lets SciPy's functions ask variables
from .serialization import graphs as graphs  # importing it lets nodes be pickled and copied

__all__ = [
    "ConstantNode", "DiffersError", "EscapeError", "Executor", "GraphPicture", "GuardError", "Node", "NonFiniteError",
    "OperationalNode", "PlaceholderNode", "VariableNode", "array", "as_strided", "asanyarray", "asarray", "asarray_chkfinite",
    "ascontiguousarray", "asfortranarray", "asmatrix", "bmat", "c_", "constant", "conv", "cross_correlate", "cut", "debug",
    "default_dtype", "emath", "empty", "expand", "fft", "full", "interception", "jit", "kaiser", "linalg", "log_softmax",
    "logsumexp", "max_pool", "mean_pool", "no_graph", "ones", "patched_numpy", "placeholder", "primitive", "r_", "record_lines",
    "relu", "require", "reset", "scope", "sigmoid", "sigmoid_cross_entropy", "simplified", "softmax", "softmax_cross_entropy",
    "softplus", "stop_gradient", "strict", "topological_order", "variable", "visualize_at", "zeros",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    function = operations.public_functions().get(name)
    if function is None:
        raise AttributeError(f"compgraph has no {name!r}")
    return globals().setdefault(name, named(function))


def __dir__() -> list[str]:
    return sorted({*__all__, *operations.public_functions()})
