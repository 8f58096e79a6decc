"""Batching: `vmap`, and batches of cotangents or tangents through operations.

`levels` keeps the active levels of vmap. A `BatchNode` is a batched value; `rules` compute each operation on it,
`batched_writes` its writes. `lifting` moves batch axes out of values, so that derivatives are computed outside of vmap.
`batched_derivatives` passes batches of directions through operations, for Jacobians and Hessians.
"""

from .batch_node import BatchNode
from .batched_derivatives import (
    batch_like,
    gather_batch,
    propagate,
    pull_batch,
    pull_batch_shared,
    pull_reduction,
    push_batch,
    push_node,
    push_reduction,
    reduced_axes,
    rule_operands,
    scatter_batch,
    sum_over_operands,
)
from .levels import base_of, is_batch, next_level, outermost_levels, outside_vmap, pad_ndim
from .lifting import (
    LiftedFunction,
    active_levels,
    is_broadcast,
    levels_of,
    lift_to_active_levels,
    unwrap_batch,
    wrap_batch,
)
from .rules import any_batched, map_elements
from .vmap import vmap

__all__ = [
    "BatchNode", "LiftedFunction", "active_levels", "any_batched", "base_of", "batch_like", "gather_batch", "is_batch",
    "is_broadcast", "levels_of", "lift_to_active_levels", "map_elements", "next_level", "outermost_levels", "outside_vmap",
    "pad_ndim", "propagate", "pull_batch", "pull_batch_shared", "pull_reduction", "push_batch", "push_node", "push_reduction",
    "reduced_axes", "rule_operands", "scatter_batch", "sum_over_operands", "unwrap_batch", "vmap", "wrap_batch",
]  # fmt: skip
