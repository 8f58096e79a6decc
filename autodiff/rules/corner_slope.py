"""The slope of an adjoint at a corner: rules ask for it, and what finds it, in a recorded sweep, is above them.

See `autodiff.grads.corners`, which says what it is for, and `autodiff.reverse.corner_slopes`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compgraph import ops
from compgraph.values import Value

# limit(g, out, corner) -> where it is known, and the slope of g by out; None for the slope if it is known nowhere.
Limit = Callable[[Any, Any, Any], tuple[Any, Any]]
_limit: list[Limit] = []


def found_by(limit: Limit) -> None:
    """Say how the slope of an adjoint by the value it belongs to is found."""
    _limit[:] = [limit]


def limit_value(x: Any) -> Any:
    """A slope that stands for a quotient."""
    return x


ops.enter(limit_value, "limit_value")


def slope_at_corner(g: Any, out: Any, corner: Any) -> tuple[Any, Any]:
    """Where the adjoint is 0 at a corner and how fast it falls, if that can be known."""
    if not (isinstance(g, Value) and isinstance(out, Value)) or g.level or out.level or not _limit:
        return False, None
    return _limit[0](g, out, corner)
