"""Central differences of plain functions, the ground under every check, and what they tell of gradients that lack a part."""

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
