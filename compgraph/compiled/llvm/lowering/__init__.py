"""Lowering: from a schedule of the executor to steps over buffers."""

from .graph_lowering import GraphLowering

__all__ = ["GraphLowering"]
