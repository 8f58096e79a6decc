"""The worker side: the parts of a graph, their stages, and a pass through them.

The client sends an `Order`, and unwraps the answer: a result or an error.
"""

from .machine import Machine, Resident
from .packing import Packed, pack, unpack
from .part import weighed
from .passing import Order, Passed, together
from .stage import RESULT, Links
from .telling import LostError, unwrapped

__all__ = [
    "RESULT", "Links", "LostError", "Machine", "Order", "Packed", "Passed", "Resident", "pack", "together", "unpack",
    "unwrapped", "weighed",
]  # fmt: skip
