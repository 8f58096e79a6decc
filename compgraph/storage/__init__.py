"""How nodes lie in memory: their slots, who owns a buffer and which views share it, and the log of writes into it."""

from .aliasing import (
    address_of,
    last_writers,
    overlaps_itself,
    owner_of,
    place_in,
    place_of,
    root_of,
    scatter_to_buffer,
    viewed_operand,
    window,
)
from .node_slots import TRACERS, Layout, Opaque, OpaqueTransform, set_class
from .write_log import BufferCopy, Memory, Write, by_sequence_number, collector, interrupted_write, memory_of, value_at

__all__ = [
    "TRACERS", "BufferCopy", "Layout", "Memory", "Opaque", "OpaqueTransform", "Write", "address_of", "by_sequence_number",
    "collector", "interrupted_write", "last_writers", "memory_of", "overlaps_itself", "owner_of", "place_in", "place_of",
    "root_of", "scatter_to_buffer", "set_class", "value_at", "viewed_operand", "window",
]  # fmt: skip
