"""Nodes, and the graph that they are: how a value is recorded, how the graph is walked, and who shares memory with whom.

Nothing here knows of NumPy's protocols or of derivatives. `context` has what holds inside a ``with`` statement, `tracing` keeps
numbers from code that does not ask nodes, and `interpreter` finds the user's line.
"""

from .aliasing import address_of, laid, last_places, overlaps_itself, owner_of, place_in, place_of, root_of, viewed_by, window
from .bind import adopted, attach, bind, concrete, operation
from .buffer import (
    ARRAYS,
    BUFFERS,
    NUMERIC,
    TRACEABLE,
    Borrowed,
    Buffer,
    borrowed,
    buffer_over,
    plain_deep,
    plainly,
    promotable,
    wrapped,
)
from .buffer_twin import Twin, value_at
from .history import recover
from .kinds import (
    ACTIVE,
    BLANK,
    BOTH,
    INERT,
    INPUTS,
    LEFT,
    OPERATORS,
    READ,
    RIGHT,
    SCALARS,
    USED,
    VARYING,
    BlankNode,
    InertBlankNode,
    InertPlaceholderNode,
    InertScalarNode,
    InputNode,
    Joint,
    PlaceholderNode,
    ScalarNode,
    VariableNode,
    beginnings,
    freed_unread,
    input_over,
    is_computed_by_python,
    leaf_like,
    like,
    remade,
    require_unsealed,
    unread,
    use,
    with_tracers,
)
from .layout import TRACERS, Layout, Opaque, set_class
from .lazy import BLOCKS, require_computed
from .node import (
    NO_OPTIONS,
    ConstantNode,
    DiffersError,
    InertNode,
    Node,
    OperationalNode,
    Origin,
    Value,
    describe,
    has_history,
    leaf,
    new_view,
    next_tick,
    placed_as,
    require_history,
    require_single,
    snapshot,
)
from .operands import FAMILIAR, NUMBERS, RAW, as_operand, as_operands, full_name, gathered, is_foreign, leaves_of, to_plain
from .promotion import holds_node, promote, promoted
from .recording import Observed, counted, detach_result, inert, is_recorded, raised
from .reported import class_of, is_number, is_python_number, mark_python_number, reported_class
from .saved import is_plain, numbers_now, require_unchanged, saved, saved_constant, saved_operands, settled
from .tracer import Carrier, Tracer, is_tracer, kind_of
from .walk import GraphNode, breadth_first, operands_of, topological_order, walk
from .write_log import Memory, Write, by_tick, collector, interrupted, memory_of

__all__ = [
    "ACTIVE", "ARRAYS", "BLANK", "BLOCKS", "BOTH", "BUFFERS", "FAMILIAR", "INERT", "INPUTS", "LEFT", "NO_OPTIONS", "NUMBERS",
    "NUMERIC", "OPERATORS", "RAW", "READ", "RIGHT", "SCALARS", "TRACEABLE", "TRACERS", "USED", "VARYING", "BlankNode",
    "Borrowed", "Buffer", "Carrier", "ConstantNode", "DiffersError", "GraphNode", "InertBlankNode", "InertNode",
    "InertPlaceholderNode", "InertScalarNode", "InputNode", "Joint", "Layout", "Memory", "Node", "Observed", "Opaque",
    "OperationalNode", "Origin", "PlaceholderNode", "ScalarNode", "Tracer", "Twin", "Value", "VariableNode", "Write",
    "address_of", "adopted", "as_operand", "as_operands", "attach", "beginnings", "bind", "borrowed", "breadth_first",
    "buffer_over", "by_tick", "class_of", "collector", "concrete", "counted", "describe", "detach_result", "freed_unread",
    "full_name", "gathered", "has_history", "holds_node", "inert", "input_over", "interrupted", "is_computed_by_python",
    "is_foreign", "is_number", "is_plain", "is_python_number", "is_recorded", "is_tracer", "kind_of", "laid", "last_places",
    "leaf", "leaf_like", "leaves_of", "like", "mark_python_number", "memory_of", "new_view", "next_tick", "numbers_now",
    "operands_of", "operation", "overlaps_itself", "owner_of", "place_in", "place_of", "placed_as", "plain_deep", "plainly",
    "promotable", "promote", "promoted", "raised", "recover", "remade", "reported_class", "require_computed",
    "require_history", "require_single", "require_unchanged", "require_unsealed", "root_of", "saved", "saved_constant",
    "saved_operands", "set_class", "settled", "snapshot", "to_plain", "topological_order", "unread", "use", "value_at",
    "viewed_by", "walk", "window", "with_tracers", "wrapped",
]  # fmt: skip
