"""Which steps are done again and again, and which together, and where their results lie."""

from .again import computed_again
from .axes import NEAR, Axis, Loops
from .buffers import LINE, Plan, used
from .group import LoopUnit, Nest, Pieces, Unit, grouped
from .growth import Steps, grown
from .pieces import split
from .rolling import rolled
from .text import described, named

__all__ = [
    "LINE", "NEAR", "Axis", "LoopUnit", "Loops", "Nest", "Pieces", "Plan", "Steps", "Unit", "computed_again", "described",
    "grouped", "grown", "named", "rolled", "split", "used",
]  # fmt: skip
