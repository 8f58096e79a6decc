"""Graphs that run again with other values: they are recorded once more, made smaller, and written as one NumPy function."""

from ..guards import GuardError
from .checks import require_shape
from .codegen import NumPyBackend, Writer
from .cse import OF_SHAPE_ALONE, simplify
from .cutting import between, cut_items, subgraph
from .executor import MISFITS, Executor, as_fed, hold_nan
from .interpreted import Interpreted
from .passes import compiled, compiled_family, compiles_families, fastest_backend
from .retrace import replay, replay_watched
from .schedule import Family, Program, Schedule, checked_threads, needed, origin_of, origins_of, sources_of

__all__ = [
    "MISFITS", "OF_SHAPE_ALONE", "Executor", "Family", "GuardError", "Interpreted", "NumPyBackend", "Program", "Schedule",
    "Writer", "as_fed", "between", "checked_threads", "compiled", "compiled_family", "compiles_families", "cut_items",
    "fastest_backend", "hold_nan", "needed", "origin_of", "origins_of", "replay", "replay_watched", "require_shape", "simplify",
    "sources_of", "subgraph",
]  # fmt: skip
