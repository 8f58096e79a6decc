"""Lowering: from a schedule of the executor to steps over buffers.

The lowering of a function appends the steps of an item. It returns an empty string, or the reason why the item is not supported.
"""

from .graph_lowering import GraphLowering

__all__ = ["GraphLowering"]
