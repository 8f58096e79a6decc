"""Planning passes: loop rerolling, extrapolation, fusion, rematerialization, tiling and memory allocation."""

from .extrapolation import StepProgram, extrapolate
from .kernel_table import SUM_BLOCK, Column, Kernel, KernelTable, UnitRecord, products_as_nests
from .loop_nests import MAX_STRIDED_LOAD, Axis, NestLoops
from .loop_rerolling import reroll_loops
from .memory_planning import CACHE_LINE, MemoryPlan, buffers_used
from .nest_fusion import FusedLoop, LoopNest, Tiling, Unit, describe_item, describe_unit, fuse_steps
from .parallel_tiling import tile_nests
from .rematerialization import rematerialize

__all__ = [
    "CACHE_LINE",
    "MAX_STRIDED_LOAD",
    "SUM_BLOCK",
    "Axis",
    "Column",
    "FusedLoop",
    "Kernel",
    "KernelTable",
    "LoopNest",
    "MemoryPlan",
    "NestLoops",
    "StepProgram",
    "Tiling",
    "Unit",
    "UnitRecord",
    "buffers_used",
    "describe_item",
    "describe_unit",
    "extrapolate",
    "fuse_steps",
    "products_as_nests",
    "rematerialize",
    "reroll_loops",
    "tile_nests",
]  # fmt: skip
