"""Batching rules: how each operation processes a batch, with the batch axis first.

`apply_batch_rule` computes one call. A rule is registered by opname, or for a kind of `compgraph.ops.OpSpec`; operations
without a rule run in the fallback loop, which computes batch elements one after the other.
"""

from . import array_manipulation, axis_operations, indexing, linear_algebra  # each registers its rules
from .call import (
    LOOP_COUNTS,
    RULES_BY_KIND,
    RULES_BY_OPNAME,
    Call,
    NoBatchRuleError,
    any_batched,
    apply_batch_rule,
    is_elementwise_rule,
    map_elements,
    stack_results,
)
from .indexing import BatchIndex, batch_index

__all__ = [
    "LOOP_COUNTS", "RULES_BY_KIND", "RULES_BY_OPNAME", "BatchIndex", "Call", "NoBatchRuleError", "any_batched",
    "apply_batch_rule", "array_manipulation", "axis_operations", "batch_index", "convolutions", "indexing",
    "is_elementwise_rule", "linear_algebra", "map_elements", "stack_results",
]  # fmt: skip
