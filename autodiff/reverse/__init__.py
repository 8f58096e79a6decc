"""Derivatives of recorded graphs, by reverse accumulation."""

from .gradient import Gradients, check_gradient, gradient, gradients, unbroadcast_adjoint
from .jacobian import jacobian, variables

__all__ = ["Gradients", "check_gradient", "gradient", "gradients", "jacobian", "unbroadcast_adjoint", "variables"]
