"""`Split`: a graph cut into parts that live on different machines.

The client assigns operations to parts (`layout`, `automatic`), cuts the graph into stages (`plan`), sends them to machines
(`hosts`) and passes micro-batches through (`pipeline`); the machines compute (`parts`).
"""

from .splitting import Split

__all__ = ["Split"]
