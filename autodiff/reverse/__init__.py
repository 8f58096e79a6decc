"""Derivatives of recorded graphs, by reverse accumulation."""

from . import corner_slopes
from .gradient import Gradients, gradient, gradients, jacobian, seed_of, select_nodes, unbroadcast_adjoint, variables
from .gradient_check import check_gradient
from .linearization import Linearization, complex_jacobian, gradient_nodes, with_tangents, without_tangents
from .replay import Tape
from .structural_zeros import contains_nan, report_unmasked
from .support_rules import SeedSupport
from .sweep import (
    collect,
    connected_zeros,
    depends_on_outer_tracers,
    depends_on_outside,
    ids_on_paths,
    owned_arrays,
    owned_nodes,
    sweep,
    sweep_supports,
)

# The public names; the other imports are for other packages.
__all__ = ["Gradients", "check_gradient", "gradient", "gradients", "jacobian", "unbroadcast_adjoint", "variables"]
