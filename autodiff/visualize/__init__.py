"""A derivative as it travels through a graph, step by step: `animate`."""

from __future__ import annotations

from .animation import Animation, animate

__all__ = ["Animation", "animate"]
