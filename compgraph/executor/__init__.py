"""Executors: recorded graphs that run again with other values, optimized by passes and compiled by a backend."""

from ..guards import GuardError
from .codegen import GlobalNames, NumPyBackend, Writer
from .cse import OF_SHAPE_ALONE, simplify
from .executor import MISMATCH_ERRORS, Executor, as_fed, has_nan
from .passes import compile_family, compile_schedule, fastest_backend, supports_families
from .result_checks import VALUE_DEPENDENT_DTYPE, require_shape
from .retrace import replay, replay_watched
from .schedule import Program, Schedule, TripCountFamily, checked_threads, needed, origin_of, origins_of, sources_of
from .schedule_interpreter import ScheduleInterpreter
from .subgraphs import between, cut_items, subgraph

__all__ = [
    "MISMATCH_ERRORS",
    "OF_SHAPE_ALONE",
    "VALUE_DEPENDENT_DTYPE",
    "Executor",
    "GlobalNames",
    "GuardError",
    "NumPyBackend",
    "Program",
    "Schedule",
    "ScheduleInterpreter",
    "TripCountFamily",
    "Writer",
    "as_fed",
    "between",
    "checked_threads",
    "compile_family",
    "compile_schedule",
    "cut",
    "cut_items",
    "fastest_backend",
    "has_nan",
    "needed",
    "origin_of",
    "origins_of",
    "replay",
    "replay_watched",
    "require_shape",
    "simplify",
    "sources_of", "subgraph",
    "supports_families",
]  # fmt: skip
