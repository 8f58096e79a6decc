"""Planning passes: loop rerolling, extrapolation, fusion, rematerialization, tiling and memory allocation."""

from .extrapolation import StepProgram, extrapolate
from .loop_nests import MAX_STRIDED_LOAD, Axis, NestLoops
from .loop_rerolling import reroll_loops
from .memory_planning import CACHE_LINE, MemoryPlan, buffers_used
from .nest_fusion import FusedLoop, LoopNest, Tiling, Unit, describe_item, describe_unit, fuse_steps
from .parallel_tiling import tile_nests
from .rematerialization import rematerialize

__all__ = [
    "CACHE_LINE",
    "MAX_STRIDED_LOAD",
    "Axis",
    "FusedLoop",
    "LoopNest",
    "MemoryPlan",
    "NestLoops",
    "StepProgram",
    "Tiling",
    "Unit",
    "buffers_used",
    "describe_item",
    "describe_unit",
    "extrapolate",
    "fuse_steps",
    "rematerialize",
    "reroll_loops",
    "tile_nests",
]  # fmt: skip
