"""`Split`: a graph divided into parts on different machines.

The client assigns operations to parts (`layout`), divides the graph into stages (`plan`), sends them to machines
(`hosts`), and runs micro-batches through them (`pipeline`). The machines compute (`parts`).
"""

from .splitting import Split

__all__ = ["Split"]
