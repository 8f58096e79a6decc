"""From nests, loops, and steps that stand alone, to code: loops, vectors, calls."""

from .units import emit_units

__all__ = ["emit_units"]
