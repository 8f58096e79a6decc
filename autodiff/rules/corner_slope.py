"""The slope of a cotangent at a corner: a hook that rules call and `autodiff.reverse.corner_slopes` implements.

`autodiff.grads.corners` explains its use. The implementation needs the sweeps, which are built on the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compgraph import ops
from compgraph.array_types import Array
from compgraph.values import Value

# finder(g, out, corner) returns the mask where g is 0 at a corner, and the slope of g with respect to out, None if unknown.
SlopeFinder = Callable[[Any, Any, Any], tuple[Any, Any]]
_registered_finder: list[SlopeFinder] = []


def register_slope_finder(finder: SlopeFinder) -> None:
    """Set the function that finds the slope of a cotangent with respect to the value it belongs to."""
    _registered_finder[:] = [finder]


def limit_value(x: Array) -> Any:
    """Return `x`; in a graph, this operation marks a slope that is the limit of a quotient 0 / 0."""
    return x


ops.register_operation(limit_value, "limit_value")


def slope_at_corner(g: object, out: object, corner: Array) -> tuple[Any, Any]:
    """Return where the cotangent is 0 at a corner, and its slope with respect to `out` there; None if it is unknown."""
    if not (isinstance(g, Value) and isinstance(out, Value)) or g.level or out.level or not _registered_finder:
        return False, None
    return _registered_finder[0](g, out, corner)
