"""The interpreters that process operations: recording, computing without a graph, and what wraps them."""

from .recording import COMPUTING, RECORDING, Observed, Scoped, counted, detach_result, inert, is_recorded, raised, scalar

__all__ = ["COMPUTING", "RECORDING", "Observed", "Scoped", "counted", "detach_result", "inert", "is_recorded", "raised", "scalar"]
