"""NumPy functions in recorded steps, for those whose own code would lose the graph."""

from . import moving, selection, statistics
from .conversions import ensure_array

__all__ = ["ensure_array", "moving", "selection", "statistics"]
