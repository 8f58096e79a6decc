"""How nodes lie in memory: their slots, who owns a buffer and which views share it, and the log of writes into it."""

from .aliasing import address_of, laid, last_places, overlaps_itself, owner_of, place_in, place_of, root_of, viewed_by, window
from .buffer_twin import Twin, value_at
from .layout import TRACERS, Layout, Opaque, OpaqueCarrier, set_class
from .write_log import Memory, Write, by_tick, collector, interrupted, memory_of

__all__ = [
    "TRACERS", "Layout", "Memory", "Opaque", "OpaqueCarrier", "Twin", "Write", "address_of", "by_tick", "collector",
    "interrupted", "laid", "last_places", "memory_of", "overlaps_itself", "owner_of", "place_in", "place_of", "root_of",
    "set_class", "value_at", "viewed_by", "window",
]  # fmt: skip
