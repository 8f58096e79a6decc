"""From nests, products and loops to code: loops, vectors, calls."""

from .units import emit_units

__all__ = ["emit_units"]
