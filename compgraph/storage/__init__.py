"""Storage of nodes: their slots, shared buffers and views, and the log of writes into buffers."""

from .aliasing import (
    address_of,
    last_writers,
    layout_in,
    layout_of,
    overlaps_itself,
    owner_of,
    root_of,
    scatter_to_buffer,
    viewed_operand,
    window,
)
from .node_slots import TRACERS, Layout, Opaque, OpaqueTransform, set_class
from .write_log import (
    BufferCopy,
    Memory,
    Write,
    by_sequence_number,
    cycle_collector,
    interrupted_write_error,
    memory_of,
    value_at,
)

__all__ = [
    "TRACERS", "BufferCopy", "Layout", "Memory", "Opaque", "OpaqueTransform", "Write", "address_of", "by_sequence_number",
    "cycle_collector", "interrupted_write_error", "last_writers", "layout_in", "layout_of", "memory_of", "overlaps_itself",
    "owner_of", "root_of", "scatter_to_buffer", "set_class", "value_at", "viewed_operand", "window",
]  # fmt: skip
