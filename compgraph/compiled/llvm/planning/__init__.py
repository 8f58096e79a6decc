"""Planning passes: accumulation order, loop rerolling, extrapolation, fusion, rematerialization, tiling, memory, and kernels."""

from .accumulation_order import accumulate_early
from .extrapolation import StepProgram, extrapolate
from .kernel_table import SUM_BLOCK, Kernel, KernelTable, ParameterSource, products_as_nests
from .loop_order import MAX_STRIDED_LOAD, LoopOrder
from .loop_rerolling import reroll_loops
from .memory_planning import CACHE_LINE, MemoryPlan, buffers_used
from .nest_fusion import FusedLoop, LoopNest, Unit, describe_item, describe_unit, fuse_steps
from .parallel_tiling import tile_nests
from .rematerialization import rematerialize

__all__ = [
    "CACHE_LINE", "MAX_STRIDED_LOAD", "SUM_BLOCK", "FusedLoop", "Kernel", "KernelTable", "LoopNest", "LoopOrder", "MemoryPlan",
    "ParameterSource", "StepProgram", "Unit", "accumulate_early", "buffers_used", "describe_item", "describe_unit", "extrapolate",
    "fuse_steps", "products_as_nests", "rematerialize", "reroll_loops", "tile_nests",
]  # fmt: skip
