"""Attributes of other packages' arrays, which raise an error on nodes that states the equivalent."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        "autodiff.gradient(loss, [x]) gives the derivatives with respect to any node of the graph",
    ),
    "creator": "x.function and x.operands are the operation that computed it and its operands",
    "is_leaf": "a node without x.operands is a leaf",
    "detach": "cg.stop_gradient(x) lets no derivative through; x.value is the plain array",
    "numpy": "a node is an np.ndarray already; x.value is the plain array",
    "clone": "np.copy(x) is recorded",
    **dict.fromkeys(("cpu", "cuda", "is_cuda"), "arrays are in main memory; x.value is the plain array"),
    "to": "x.astype(dtype) converts; arrays are in main memory, and cg.jit(f, backend='torch') runs on a GPU",
    **dict.fromkeys(("double", "float", "half", "type"), "x.astype(np.float64), x.astype(np.float32)"),
    **dict.fromkeys(("int", "long"), "x.astype(int), which has no derivative"),
    "assign": "x[...] = value writes into a variable",
    "assign_add": "x += value updates a variable in place",
    "assign_sub": "x -= value updates a variable in place",
    **dict.fromkeys(("add_", "sub_", "mul_", "div_"), "x += value, x -= value, x *= value, x /= value"),
    **dict.fromkeys(("copy_", "fill_", "zero_", "normal_", "uniform_"), "x[...] = value writes in place"),
    "clamp_": "np.clip(x, low, high, out=x)",
    "clamp": "np.clip(x, low, high); np.maximum(x, low) for one bound",
    **{name: f"cg.{name}(x)" for name in ("log_softmax", "logsumexp", "relu", "sigmoid", "softmax", "softplus")},
    "grad_fn": "x.function and x.operands are the operation that computed it and its operands",
    "dim": "x.ndim",
    "contiguous": "np.ascontiguousarray(x)",
    **dict.fromkeys(("expand", "expand_as", "broadcast_to"), "np.broadcast_to(x, shape)"),
    "flip": "np.flip(x, axis)",
    "gather": "np.take_along_axis(x, indices, axis)",
    "masked_fill": "np.where(mask, value, x)",
    "index_select": "np.take(x, indices, axis)",
    "view_as": "x.reshape(y.shape)",
    "at": "write in place, x[i] = value or np.add.at(x, i, value); derivatives go through it",
    "unsqueeze": "np.expand_dims(x, axis), or x[:, None]",
    "permute": "np.transpose(x, axes)",
    "t": "x.T",
    "pow": "x ** y",
    "abs": "np.abs(x)",
    "norm": "np.linalg.norm(x)",
    **dict.fromkeys(("bmm", "matmul", "mm", "mv"), "x @ y"),
    "numel": "x.size",
    "block_until_ready": "values are computed at once",
    # Of masked arrays; np.ma.array(x) of a node is its data, and raises if elements are masked.
    **dict.fromkeys(("filled", "compressed"), "no element is masked; np.copy(x), np.ravel(x); np.where(mask, number, x)"),
    **dict.fromkeys(("mask", "recordmask"), "no element is masked; np.ma.getmaskarray(x)"),
    **dict.fromkeys(
        ("fill_value", "harden_mask", "soften_mask", "unshare_mask"), "nodes have no mask; np.where(mask, number, x)"
    ),
    "count": "no element is masked; x.size, x.shape[axis]",
    "anom": "x - np.mean(x, axis, keepdims=True)",
}


def _dir_without_hints(node: NDArray[Any]) -> list[str]:
    return ops.remove_missing_attributes(np.ndarray.__dir__(node), type(node))


for _name, _advice in _ATTRIBUTES.items():
    _hint = ops.MissingAttribute(_advice)
    _hint.__set_name__(Node, _name)
    setattr(Value, _name, _hint)
Value.__dir__ = _dir_without_hints  # type: ignore[method-assign, assignment]


# Options that other packages' functions of arrays have.
FOREIGN_OPTIONS = {"dim": "NumPy calls it axis=", "keepdim": "NumPy calls it keepdims="}

# Names that other packages' modules have.
_AUTODIFF_NAMES = "grad value_and_grad jacobian hessian vjp jvp vmap jacrev jacfwd hvp elementwise_grad checkpoint"
FOREIGN_NAMES = {
    **dict.fromkeys(("tensor", "Tensor", "Variable"), "cg.variable(value, name) makes an array that has derivatives"),
    **{name: f"derivatives are in the package autodiff, autodiff.{name}" for name in _AUTODIFF_NAMES.split()},
    "backward": "autodiff.gradient(loss) gives the derivatives with respect to all variables",
    "no_grad": "with cg.no_graph(): records nothing; autodiff.stop_gradient(x) lets no derivative through",
    **dict.fromkeys(("no_autodiff", "set_grad_enabled"), "with cg.no_graph(): records nothing"),
    "Parameter": "cg.variable(value, name) makes an array that has derivatives",
    "compile": "cg.jit(f)",
    **dict.fromkeys(("draw", "plot", "visualize"), "cg.visualize_at(node) draws a graph"),
    "make_jaxpr": "print(cg.program(node)) writes a graph as lines of code",
    **dict.fromkeys(
        ("PRNGKey", "manual_seed", "normal", "rand", "randn", "random", "seed", "uniform"),
        "rng = np.random.default_rng(seed), then rng.normal(size=shape)",
    ),
    "cat": "np.concatenate",
    **dict.fromkeys(("bmm", "mm"), "x @ y"),
    **{f"reduce_{name}": f"np.{name}(x, axis)" for name in ("max", "mean", "min", "prod", "sum")},
    "cast": "x.astype(dtype)",
    **dict.fromkeys(
        ("cond", "fori_loop", "lax", "scan", "switch", "while_loop"), "Python's for, while and if are recorded as they are"
    ),
    "scipy": "write `import scipy`; its functions are recorded",
    **dict.fromkeys(("jnp", "numpy"), "write `import numpy as np`; its functions are recorded"),
    **dict.fromkeys(
        ("GradientTape", "autograd", "eager"),
        "operations on variables are always recorded; gradients = autodiff.gradient(loss), then gradients[x]",
    ),
    "function": "cg.jit(f)",
    **{name: f"write `from autodiff.optimizers import {name}`" for name in ("AdaGrad", "Adam", "AdamW", "RMSProp", "SGD")},
    **dict.fromkeys(("optax", "optim", "optimizers"), "write `from autodiff.optimizers import Adam`"),
    **dict.fromkeys(
        ("Conv2d", "Linear", "Module", "Sequential", "functional", "keras", "layers", "nn"),
        "a network is a function of its parameters, np.tanh(x @ w + b); cg.relu, cg.softmax and cg.conv are functions",
    ),
    **dict.fromkeys(
        ("cuda", "device", "device_put", "devices"), "arrays are in main memory; cg.jit(f, backend='torch') runs on a GPU"
    ),
    **dict.fromkeys(("config", "set_default_dtype"), "variables are float64; with cg.default_dtype(np.float32): changes it"),
    **dict.fromkeys(("test_util", "gradcheck"), "autodiff.check_grads(f, args)"),
    "from_numpy": "cg.variable(array, copy=False) shares the array's memory",
    "custom_vjp": "autodiff.custom_gradient declares a derivative; cg.primitive and autodiff.rule an operation with a rule",
}


def with_gradient_hint(name: str, function: Callable[..., Any]) -> Any:
    """Wrap NumPy's ``gradient`` (finite differences): a call that means derivatives raises. Other functions are unchanged."""
    if name != "gradient":
        return function

    @functools.wraps(function)
    def gradient(f: NDArray[Any], *spacings: object, **options: object) -> Any:
        if "wrt" in options or (isinstance(f, Value) and np.ndim(f) == 0):
            raise TypeError(
                "compgraph.gradient is np.gradient, finite differences along the axes of an array, and a scalar has none; "
                "derivatives are autodiff.gradient(node, wrt) of a node, and autodiff.grad(f) of a function"
            )
        return function(f, *spacings, **options)

    return gradient
