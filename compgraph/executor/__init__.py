"""Executors: recorded graphs that run again with other values, optimized by passes and compiled by a backend."""

from ..guards import GuardError
from .codegen import CodeWriter, GlobalNames, NumPyBackend
from .cse import simplify
from .executor import MISMATCH_ERRORS, Executor, convert_fed_value
from .nan_checks import has_nan, select_hidden
from .passes import compile_family, compile_schedule, fastest_backend, require_shape, supports_families
from .retrace import retrace_graph, retrace_outputs
from .schedule import (
    Program,
    Schedule,
    ScheduleInterpreter,
    TripCountFamily,
    check_threads,
    collect_dependencies,
    origin_of,
    retrace_sources_of,
    sources_of,
)
from .subgraphs import cut_items, items_between, subgraph

__all__ = [
    "MISMATCH_ERRORS", "CodeWriter", "Executor", "GlobalNames", "GuardError", "NumPyBackend", "Program", "Schedule",
    "ScheduleInterpreter", "TripCountFamily", "check_threads", "collect_dependencies", "compile_family", "compile_schedule",
    "convert_fed_value", "cut_items", "fastest_backend", "has_nan", "items_between", "origin_of",
    "require_shape", "retrace_graph", "retrace_outputs", "retrace_sources_of", "select_hidden", "simplify", "sources_of",
    "subgraph", "supports_families",
]  # fmt: skip
