"""The graph: operands of operations, its walks, and views that NumPy made of a node without a call of ours."""

from .history import recover_history
from .operands import (
    FAMILIAR,
    NUMBERS,
    RAW,
    as_operand,
    as_operands,
    flatten_sequences,
    full_name,
    overrides_protocol,
    stack_nested,
    to_values,
)
from .traversal import GraphNode, breadth_first, operands_of, topological_order, walk

__all__ = [
    "FAMILIAR", "NUMBERS", "RAW", "GraphNode", "as_operand", "as_operands", "breadth_first", "flatten_sequences", "full_name",
    "operands_of", "overrides_protocol", "recover_history", "stack_nested", "to_values", "topological_order", "walk",
]  # fmt: skip
