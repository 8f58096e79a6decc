"""Which steps are done together, and where their results lie."""

from .buffers import LINE, Plan, used
from .group import Nest, Unit, grouped

__all__ = ["LINE", "Nest", "Plan", "Unit", "grouped", "used"]
