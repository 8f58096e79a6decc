"""Forward mode: tangents carried along as the values are computed, with no graph stored.

`jvp` passes one direction through a function; `variables` makes inputs of which the whole Jacobian is carried.
"""

from __future__ import annotations

from .jacobian_node import JacobianNode, Layers, jacobian, real_inputs, refuse_jacobian, variables
from .jvp import jvp
from .tangent_node import TangentNode

__all__ = ["JacobianNode", "Layers", "TangentNode", "jacobian", "jvp", "real_inputs", "refuse_jacobian", "variables"]
