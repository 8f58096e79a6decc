"""Which vmaps are at work around the code that runs."""

from __future__ import annotations

import itertools
from contextvars import ContextVar

from compgraph.graph.context import Setting, layered

# (level, how many examples), the outermost first.
vmaps: ContextVar[tuple[tuple[int, int], ...]] = layered("vmaps", ())
next_level = itertools.count(1).__next__  # of vmaps and of derivatives: those further in have higher ones


def within(level: int, count: int) -> Setting:
    """The context in which a function runs for many examples."""
    return Setting({vmaps: (*vmaps.get(), (level, count))})


def only_around(depth: int) -> Setting:
    """The context of the outermost vmaps around alone."""
    return Setting({vmaps: vmaps.get()[:depth]})


def outside() -> Setting:
    """The context in which arrays with the axis of examples are arrays like others."""
    return Setting({vmaps: ()})
