"""Forward mode: tangents are computed beside the values, and no graph is stored.

`jvp` passes one direction through a function; `variables` makes inputs with respect to which values have their Jacobians.
"""

from __future__ import annotations

from .jacobian_node import JacobianNode, jacobian, real_inputs, require_no_jacobian, run_with_tangent_batch, variables
from .jvp import jvp
from .tangent_node import TangentNode

# The public names; the other imports are for other packages.
__all__ = ["JacobianNode", "TangentNode", "jacobian", "jvp", "variables"]
