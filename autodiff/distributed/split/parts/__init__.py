"""The worker side: the parts of a graph, their stages, and a pass through them.

The client sends a `PassRequest`, and unwraps the response: a result or an error.
"""

from .messages import LostError, Packed, pack, unpack, unwrap
from .part import RESULT, Links, weighted_sum
from .part_pass import PassRequest, PassResult, gather_or_cancel
from .server import PartActor, PartServer

__all__ = [
    "RESULT", "Links", "LostError", "Packed", "PartActor", "PartServer", "PassRequest", "PassResult", "gather_or_cancel", "pack",
    "unpack", "unwrap", "weighted_sum",
]  # fmt: skip
