"""The graph: operands of operations, its walks, and views that NumPy made of a node without a call of ours."""

from .history import recover
from .operands import FAMILIAR, NUMBERS, RAW, as_operand, as_operands, full_name, gathered, is_foreign, leaves_of, to_plain
from .traversal import GraphNode, breadth_first, operands_of, topological_order, walk

__all__ = [
    "FAMILIAR", "NUMBERS", "RAW", "GraphNode", "as_operand", "as_operands", "breadth_first", "full_name", "gathered",
    "is_foreign", "leaves_of", "operands_of", "recover", "to_plain", "topological_order", "walk",
]  # fmt: skip
