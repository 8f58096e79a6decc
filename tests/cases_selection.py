"""Cases of the family compgraph.policies.selection."""

from __future__ import annotations

from arguments import Sketch

SKETCHES: dict[str, list[Sketch]] = {}
COMPLEX_SKETCHES: dict[str, list[Sketch]] = {}
# The same checks, for functions that NumPy composes of others and that so have no rule of their own.
COMPOSED_SKETCHES: dict[str, list[Sketch]] = {}
