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

from compgraph.protocols import stop_gradient

from . import checks, forward, grads, numeric, optimizers, reverse
from .batching import vmap
from .checks import check_grads
from .custom import checkpoint, checkpointed_chain, custom_gradient, fixed_point, minimize, odeint, root
from .numeric import DetachedGradientError
from .operators import (
    curl,
    directional_derivative,
    divergence,
    elementwise_grad,
    grad,
    hessian,
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
from .reverse import limits as limits  # tells the rules how adjoints fall to 0 at corners
from .rules import rule

__all__ = [
    "DetachedGradientError", "check_grads", "checkpoint", "checkpointed_chain", "checks", "curl", "custom_gradient",
    "directional_derivative", "divergence", "elementwise_grad", "fixed_point", "forward", "grad", "grads", "hessian", "hvp",
    "jacfwd", "jacobian", "jacrev", "jvp", "laplacian", "linearize", "minimize", "numeric", "odeint", "optimizers", "reverse",
    "root", "rule", "stop_gradient", "taylor", "value_and_grad", "vjp", "vmap",
]  # fmt: skip
