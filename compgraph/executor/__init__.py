"""Graphs that run again with other values: they are recorded once more, made smaller, and written as one NumPy function."""

from ..guards import GuardError
from .checks import require_shape
from .codegen import NumPyBackend
from .cse import simplified
from .cutting import between, cut, cut_items
from .executor import Executor, as_fed
from .interpreted import Interpreted
from .passes import compiled, fastest_backend
from .retrace import replay
from .schedule import Program, Schedule, checked_threads, needed, origin_of, origins_of, sources_of

__all__ = [
    "Executor", "GuardError", "Interpreted", "NumPyBackend", "Program", "Schedule", "as_fed", "between", "checked_threads",
    "compiled",
    "cut",
    "cut_items", "fastest_backend", "needed", "origin_of", "origins_of", "replay", "require_shape", "simplified", "sources_of",
]  # fmt: skip
