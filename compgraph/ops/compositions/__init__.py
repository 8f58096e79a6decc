"""NumPy functions reimplemented in recorded steps, because NumPy's own code would lose the graph."""

from . import array_manipulation, statistics
from .tools import ensure_array

__all__ = ["array_manipulation", "ensure_array", "statistics"]
