"""`animate`: the propagation of a derivative through a graph, step by step."""

from __future__ import annotations

from .animation import Animation, animate

__all__ = ["Animation", "animate"]
