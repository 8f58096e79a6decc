"""Computation graphs of NumPy expressions.

Make a `variable` and use it like an array: results are nodes, which refer to the operation and operands that computed them. Every
NumPy function that can be recorded is also here under its own name, with the further argument ``name=``: ``cg.sin(x, name="s")``,
``cg.linalg.inv(x, name="i")``. The package `autodiff` computes derivatives.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from . import emath, fft, linalg, ops
from . import scipy as scipy  # importing it lets SciPy's functions dispatch to nodes
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
    kaiser,
    ones,
    patched_numpy,
    placeholder,
    r_,
    require,
    variable,
    zeros,
)
from .compiled import from_jax, from_torch, jit
from .context import default_dtype, import_lazily, no_graph, scope
from .frames import record_lines
from .graph import topological_order
from .guards import GuardError, reset
from .interception import interception, patch_list_functions
from .nn import (
    conv,
    cross_correlate,
    dropout,
    huber,
    log_softmax,
    logsumexp,
    max_pool,
    mean_pool,
    mse,
    one_hot,
    relu,
    sigmoid,
    sigmoid_cross_entropy,
    softmax,
    softmax_cross_entropy,
    softplus,
)
from .protocols import FOREIGN_NAMES, accept_name, expand, primitive, stop_gradient, with_gradient_hint
from .protocols import methods as methods  # importing it lets nodes record
from .serialization import graphs as graphs  # importing it lets nodes be pickled and copied
from .tracing import LeakError, strict
from .values import BatchedValueError, ConstantNode, Node, OperationalNode, PlaceholderNode, VariableNode

__all__ = [
    "BatchedValueError", "ConstantNode", "Executor", "Formula", "GraphPicture", "GuardError", "LeakError", "Listing", "Node",
    "NonFiniteError", "OperationalNode", "PlaceholderNode", "Profile", "VariableNode", "array", "as_strided", "asanyarray",
    "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "asmatrix", "bmat", "c_", "constant", "conv",
    "cross_correlate", "debug", "default_dtype", "dropout", "emath", "empty", "errors", "expand", "fft", "from_jax",
    "from_torch", "full", "huber", "interception", "jit", "kaiser", "latex", "linalg", "load", "log_softmax", "logsumexp",
    "max_pool", "mean_pool", "mse", "no_graph", "one_hot", "ones", "patched_numpy", "placeholder", "primitive", "profile",
    "program", "r_", "record_lines", "relu", "require", "reset", "save", "scope", "show_versions", "sigmoid",
    "sigmoid_cross_entropy", "simplify", "softmax", "softmax_cross_entropy", "softplus", "stop_gradient", "strict", "subgraph",
    "to_jax", "to_sympy", "to_torch", "topological_order", "variable", "visualize_at", "zeros",
]  # fmt: skip

# Names that are imported on first use, so that `import compgraph` is fast.
_NAMES_OF_LAZY_MODULES = {
    "debugging": ["NonFiniteError", "debug"],
    "view": ["GraphPicture", "visualize_at"],
    "compiled": ["to_jax", "to_torch"],
    "errors": [],
    "executor": ["Executor", "simplify", "subgraph"],
    "printing": ["Formula", "Listing", "latex", "program", "to_sympy"],
    "profiling": ["Profile", "profile"],
    "versions": ["__version__", "show_versions"],
    "serialization.parameters": ["load", "save"],
}
_LAZY_MODULE_OF = {name: module for module, names in _NAMES_OF_LAZY_MODULES.items() for name in names}
sys.meta_path.append(ops.AdviceFinder(__name__, FOREIGN_NAMES))
patch_list_functions()


# Deprecated names, accepted until the next release.
_RENAMED = {"DiffersError": "BatchedValueError", "EscapeError": "LeakError", "cut": "subgraph", "simplified": "simplify"}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        warnings.warn(f"compgraph.{name} is now compgraph.{_RENAMED[name]}", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[__name__], _RENAMED[name])
    if name in _NAMES_OF_LAZY_MODULES:
        return import_lazily(f"{__name__}.{name}")
    if name in _LAZY_MODULE_OF:
        return globals().setdefault(name, getattr(import_lazily(f"{__name__}.{_LAZY_MODULE_OF[name]}"), name))
    function = ops.public_functions().get(name)
    if function is None:
        raise ops.make_missing_name_error("compgraph", name, FOREIGN_NAMES)
    return globals().setdefault(name, with_gradient_hint(name, accept_name(function)))


def __dir__() -> list[str]:
    return sorted({*__all__, *ops.public_functions(), "__version__"})
