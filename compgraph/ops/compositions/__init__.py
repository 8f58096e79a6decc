"""NumPy functions reimplemented in recorded steps, because NumPy's own code would lose the graph."""

from . import moving, selection, statistics
from .tools import ensure_array

__all__ = ["ensure_array", "moving", "selection", "statistics"]
