"""Central differences of plain functions, and the errors for gradients that disagree with them."""

from . import finite_differences
from .finite_differences import directional, gradient, plain, step_of
from .verification import (
    DetachedGradientError,
    detached_gradient_error,
    require_arguments,
    require_differentiable,
    require_verify_option,
    verify_gradient,
)

# The public functions; the other imports are for other packages.
__all__ = ["directional", "gradient", "plain", "step_of"]
