"""Attributes of other packages' arrays, which raise on nodes with the equivalent here."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import ops
from ..values import Node, Value

_ATTRIBUTES = {
    "backward": "autodiff.gradient(loss) gives the derivatives with respect to all variables, and stores nothing in them",
    "grad": "derivatives are not stored in variables; gradients = autodiff.gradient(loss), then gradients[x]",
    **dict.fromkeys(
        ("null_grad", "null_gradients", "zero_grad"), "derivatives are not stored in variables, so there is nothing to clear"
    ),
    **dict.fromkeys(("requires_grad", "requires_grad_"), "a cg.variable has derivatives, a cg.constant has none"),
    **dict.fromkeys(
        ("retain_grad", "register_hook"),
        "autodiff.gradient(loss, [x]) gives the derivatives by any node of the graph",
    ),
    "creator": "x.function and x.operands are the operation that computed it and its operands",
    "is_leaf": "a node without x.operands is a leaf",
    "detach": "cg.stop_gradient(x) lets no derivative through; x.value is the plain array",
    "numpy": "a node is an np.ndarray already; x.value is the plain array",
    "clone": "np.copy(x) is recorded",
    "at": "write in place, x[i] = value or np.add.at(x, i, value); derivatives go through it",
    "unsqueeze": "np.expand_dims(x, axis), or x[:, None]",
    "permute": "np.transpose(x, axes)",
    "t": "x.T",
    "pow": "x ** y",
    "abs": "np.abs(x)",
    "norm": "np.linalg.norm(x)",
    "matmul": "x @ y",
    "numel": "x.size",
    **dict.fromkeys(("double", "float"), "x.astype(np.float64), x.astype(np.float32)"),
    **dict.fromkeys(("cpu", "cuda"), "arrays are in main memory; x.value is the plain array"),
    "block_until_ready": "values are computed at once",
}


def _names(node: Any) -> list[str]:
    return ops.without_missing(np.ndarray.__dir__(node), type(node))


for _name, _advice in _ATTRIBUTES.items():
    _hint = ops.Missing(_advice)
    _hint.__set_name__(Node, _name)
    setattr(Value, _name, _hint)
Value.__dir__ = _names  # type: ignore[method-assign, assignment]


# Names that other packages' modules have.
_OF_AUTODIFF = "grad value_and_grad jacobian hessian vjp jvp vmap jacrev jacfwd hvp elementwise_grad checkpoint"
NAMES_ELSEWHERE = {
    **dict.fromkeys(("tensor", "Tensor", "Variable"), "cg.variable(value, name) makes an array that has derivatives"),
    **{name: f"derivatives are in the package autodiff, autodiff.{name}" for name in _OF_AUTODIFF.split()},
    "backward": "autodiff.gradient(loss) gives the derivatives with respect to all variables",
    "no_grad": "with cg.no_graph(): records nothing; autodiff.stop_gradient(x) lets no derivative through",
    **dict.fromkeys(("no_autodiff", "set_grad_enabled"), "with cg.no_graph(): records nothing"),
    "Parameter": "cg.variable(value, name) makes an array that has derivatives",
    "compile": "cg.jit(f)",
    **dict.fromkeys(("draw", "plot", "visualize"), "cg.visualize_at(node) draws a graph"),
    "make_jaxpr": "print(cg.program(node)) writes a graph as lines of code",
    "manual_seed": "rng = np.random.default_rng(seed)",
    "cat": "cg.concatenate",
    "lax": "for, while and if are recorded as they are",
    "jnp": "import numpy as np: its functions record",
    "from_numpy": "cg.variable(array, copy=False) shares the array's memory",
    "custom_vjp": "autodiff.custom_gradient declares a derivative; cg.primitive and autodiff.rule an operation with a rule",
    "numpy": "import numpy as np: its functions record",
}


def hinting(name: str, function: Any) -> Any:
    """A function of the namespace; ``gradient``, NumPy's finite differences, raises where derivatives are meant."""
    if name != "gradient":
        return function

    @functools.wraps(function)
    def gradient(f: Any, *spacings: Any, **options: Any) -> Any:
        if "wrt" in options or (isinstance(f, Value) and np.ndim(f) == 0):
            raise TypeError(
                "compgraph.gradient is np.gradient, finite differences along the axes of an array, and a scalar has none; "
                "derivatives are autodiff.gradient(node, wrt) of a node, and autodiff.grad(f) of a function"
            )
        return function(f, *spacings, **options)

    return gradient
