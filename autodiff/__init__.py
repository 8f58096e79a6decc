"""Derivatives of NumPy expressions.

The operators turn a function of arrays into one that returns its derivatives; they are named and shaped as in JAX and
compose to any depth, in both modes. `autodiff.reverse` differentiates graphs recorded with ``cg.variable``.

Complex numbers
---------------
The gradient of a real result f with respect to ``z = x + iy`` is ``df/dx - i df/dy``, as in JAX and HIPS/autograd;
for an analytic function the rule is that of the real one, with no conjugation. The direction of steepest ascent, and
PyTorch's gradient, is its conjugate, ``np.conj(g)``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import compgraph
from compgraph import ops
from compgraph.context import import_lazily
from compgraph.protocols import FOREIGN_NAMES, stop_gradient

from . import checks, forward, grads, numeric, reverse
from .arguments import LostGraphError
from .batching import vmap
from .checks import check_grads
from .custom import checkpoint, checkpointed_chain, custom_gradient, fixed_point, odeint, root
from .numeric import DetachedGradientError
from .operators import (
    curl,
    directional_derivative,
    divergence,
    elementwise_grad,
    grad,
    hessian,
    hessian_diagonal,
    hessian_vector_product,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    laplacian,
    linearize,
    taylor,
    value_and_grad,
    vjp,
)
from .reverse import corner_slopes as corner_slopes  # registers the slopes of cotangents at corners with the rules
from .reverse import gradient
from .rules import DerivativeWarning, rule

__all__ = [
    "DerivativeWarning", "DetachedGradientError", "LostGraphError", "check_grads", "checkpoint", "checkpointed_chain", "checks",
    "curl", "custom_gradient", "directional_derivative", "divergence", "elementwise_grad", "fixed_point", "forward", "grad",
    "gradient", "grads", "hessian", "hessian_diagonal", "hessian_vector_product", "hvp", "jacfwd", "jacobian", "jacrev", "jvp",
    "laplacian", "latex", "linearize", "minimize", "numeric", "odeint", "optimizers", "reverse", "root", "rule",
    "stop_gradient", "taylor", "value_and_grad", "vjp", "vmap",
]  # fmt: skip

# Names that other packages have.
_ELSEWHERE = {
    **{name: advice for name, advice in FOREIGN_NAMES.items() if name not in __all__},
    **dict.fromkeys(("backward", "gradients"), "autodiff.gradient(loss) gives the derivatives with respect to all variables"),
    "jit": "compgraph.jit compiles a function, or the function that an operator returns",
    "make_vjp": "value, pull = autodiff.vjp(f, *args)",
    "make_jvp": "value, tangent = autodiff.jvp(f, args, tangents); autodiff.linearize keeps the graph for many tangents",
    "make_hvp": "autodiff.hvp(f)(x, v); autodiff.linearize(autodiff.grad(f), x) keeps the graph for many vectors",
    **dict.fromkeys(("deriv", "egrad", "derivative"), "autodiff.elementwise_grad differentiates element by element"),
    "holomorphic_grad": "autodiff.grad takes complex arguments of real functions; autodiff.jacobian those of analytic ones",
    **dict.fromkeys(("multigrad", "multigrad_dict", "grad_named"), "autodiff.grad(f, argnums=(0, 1)), or by names"),
    "jet": "autodiff.taylor",
    "extend": "cg.primitive and autodiff.rule declare an operation with its derivative",
    **dict.fromkeys(
        ("tree", "tree_map", "tree_util"), "arguments nest in lists, tuples, dictionaries and dataclasses as they are"
    ),
    **dict.fromkeys(("pmap", "shard_map"), "autodiff.distributed runs on several processes and machines"),
    **dict.fromkeys(("variable", "Variable", "tensor", "no_graph", "visualize_at"), "this is in compgraph (cg.variable ...)"),
    **dict.fromkeys(
        ("custom_vjp", "custom_jvp", "primitive", "defvjp"), "autodiff.custom_gradient, or cg.primitive and autodiff.rule"
    ),
}

sys.meta_path.append(ops.AdviceFinder(__name__, _ELSEWHERE))

# Names that are imported on first use, with their packages, so that `import autodiff` is fast.
_LATE = {"latex": "formulas", "minimize": "optimizers"}
_PACKAGES = ["compat", "distributed", "optimizers", "visualize"]

if TYPE_CHECKING:
    from compgraph import __version__ as __version__

    from . import compat as compat
    from . import distributed as distributed
    from . import optimizers
    from . import visualize as visualize
    from .formulas import latex
    from .optimizers import minimize
else:

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return compgraph.__version__
        if name in _PACKAGES:
            return import_lazily(f"autodiff.{name}")
        if name in _LATE:
            return getattr(import_lazily(f"autodiff.{_LATE[name]}"), name)
        raise ops.make_missing_name_error("autodiff", name, _ELSEWHERE)


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES, "__version__"})
