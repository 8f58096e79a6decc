"""Operators on functions: a function of arrays becomes one that returns its derivatives."""

from .fields import curl, directional_derivative, divergence, elementwise_grad, laplacian
from .grad import grad, jvp, value_and_grad, vjp
from .hessians import hessian, hessian_diagonal, hessian_vector_product, hvp
from .jacobians import jacfwd, jacobian, jacrev, linearize
from .taylor import taylor
from .trace import Trace, concatenate_raveled, fresh_node, join_outputs

__all__ = [
    "Trace", "concatenate_raveled", "curl", "directional_derivative", "divergence", "elementwise_grad", "fresh_node", "grad",
    "hessian", "hessian_diagonal", "hessian_vector_product", "hvp", "jacfwd", "jacobian", "jacrev", "join_outputs", "jvp",
    "laplacian", "linearize", "taylor", "value_and_grad", "vjp",
]  # fmt: skip
