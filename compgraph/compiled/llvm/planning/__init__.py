"""Which steps are done again and again, and which together, and where their results lie."""

from .axes import Axis, Loops
from .buffers import LINE, Plan, used
from .group import LoopUnit, Nest, Pieces, Unit, grouped
from .pieces import split
from .rolling import rolled

__all__ = ["LINE", "Axis", "LoopUnit", "Loops", "Nest", "Pieces", "Plan", "Unit", "grouped", "rolled", "split", "used"]
