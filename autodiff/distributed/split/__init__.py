"""`Split`: a graph cut into parts that live on different machines.

The client lays the operations out (`layout`, `automatic`), cuts the graph into stages (`plan`), sends them to machines (`hosts`)
and lets micro-batches pass (`pipeline`); the machines compute (`stage`). Nothing else is for others.
"""

from .splitting import Split

__all__ = ["Split"]
