"""The worker side: the parts of a graph, their stages, and a pass through them.

The client sends an `Order`, and unwraps the answer: a result or an error.
"""

from .machine import Machine, Resident
from .packing import Packed, pack, unpack
from .part import weighed
from .passing import Order, PassResult, together
from .responses import LostError, unwrap
from .stage import RESULT, Links

__all__ = [
    "RESULT", "Links", "LostError", "Machine", "Order", "Packed", "PassResult", "Resident", "pack", "together", "unpack",
    "unwrap", "weighed",
]  # fmt: skip
