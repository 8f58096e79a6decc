"""Forward mode: tangents are computed together with values, and no graph is stored.

`jvp` evaluates a function along one direction. `variables` makes inputs, and values computed from them have Jacobians.
"""

from __future__ import annotations

from .jacobian_node import JacobianNode, as_real_inputs, jacobian, require_no_jacobian, run_with_tangent_batch, variables
from .jvp import jvp
from .tangent_node import TangentNode

# The public names; the other imports are for other packages.
__all__ = ["JacobianNode", "TangentNode", "jacobian", "jvp", "variables"]
