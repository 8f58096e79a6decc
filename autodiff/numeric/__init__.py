"""Central differences of plain functions, the ground under every check, and what they tell of gradients that lack a part."""

from .finite_differences import directional, gradient, plain, step_of

__all__ = ["directional", "gradient", "plain", "step_of"]
