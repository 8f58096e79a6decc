"""Which steps are done again and again, and which together, and where their results lie."""

from .buffers import LINE, Plan, used
from .group import LoopUnit, Nest, Unit, grouped
from .rolling import rolled

__all__ = ["LINE", "LoopUnit", "Nest", "Plan", "Unit", "grouped", "rolled", "used"]
