"""Graphs that run again with other values: they are recorded once more, made smaller, and written as one NumPy function."""

from ..guards import GuardError
from .cse import simplified
from .cutting import between, cut, cut_items
from .executor import Executor, as_fed
from .retrace import replay
from .schedule import needed, origin_of, origins_of, sources_of

__all__ = [
    "Executor", "GuardError", "as_fed", "between", "cut", "cut_items", "needed", "origin_of", "origins_of", "replay",
    "simplified", "sources_of",
]  # fmt: skip
