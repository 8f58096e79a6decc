"""Operators on functions: a function of arrays becomes one that returns its derivatives."""

from .fields import curl, directional_derivative, divergence, elementwise_grad, laplacian
from .grad import grad, jvp, value_and_grad, vjp
from .hessians import hessian, hessian_diagonal, hessian_vector_product, hvp
from .jacobians import jacfwd, jacobian, jacrev, linearize
from .joint import as_joint, fresh_node
from .taylor import taylor
from .trace import Trace, concatenated

__all__ = [
    "Trace", "as_joint", "concatenated", "curl", "directional_derivative", "divergence", "elementwise_grad", "fresh_node",
    "grad", "hessian", "hessian_diagonal", "hessian_vector_product", "hvp", "jacfwd", "jacobian", "jacrev", "jvp", "laplacian",
    "linearize", "taylor", "value_and_grad", "vjp",
]  # fmt: skip
