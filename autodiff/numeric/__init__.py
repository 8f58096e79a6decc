"""Central differences of plain functions, and the errors for gradients that disagree with them."""

from . import finite_differences
from .finite_differences import directional, gradient, plain, step_of
from .verification import (
    DetachedGradientError,
    detached,
    require_arguments,
    require_differentiable,
    require_known,
    verify_gradient,
)

# What users have; what else is imported here is for other rooms.
__all__ = ["directional", "gradient", "plain", "step_of"]
