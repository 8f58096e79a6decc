"""Which functions become steps in modules of their own: for each what appends the steps of an item, or says why it has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import ops
from . import contracting, convolutions, folding, indexing, joining, pooling, replacing
from .placing import Placing

Maker = Callable[[Placing, Any], str]
_CONVOLUTIONS = {
    "cross_correlate": convolutions.forward,
    "conv": convolutions.convolved,
    "cross_correlate_back": convolutions.back,
    "cross_correlate_kernel": convolutions.kernel,
}
_POOLING = {
    "max_pool": pooling.largest,
    "max_pool_back": pooling.largest_back,
    "max_pool_along": pooling.largest_along,
    "mean_pool": pooling.mean,
    "mean_pool_back": pooling.mean_back,
}

KINDS: dict[Any, Maker] = {
    **indexing.KINDS,
    **joining.KINDS,
    **folding.KINDS,
    **replacing.KINDS,
    **contracting.KINDS,
    **{ops.function_named(name): lower for name, lower in {**_CONVOLUTIONS, **_POOLING}.items()},
}
# Functions of derivatives, by the names under which they are recorded.
NAMED: dict[str, Maker] = {**indexing.NAMED, **joining.NAMED}


def maker(function: Any) -> Maker | None:
    """What makes the steps of a function's items; None if nothing does."""
    if isinstance(function, ops.Keyworded):
        is_known = replacing.VARYING.issuperset(function.names)  # an axis that is a node differs between runs
        return replacing.KEYWORDED.get(function.function) if is_known else None
    if isinstance(function, ops.Packed):
        return joining.PACKED.get(function.function)
    found = KINDS.get(function)
    name = getattr(function, "__name__", "")
    if found is None and name in NAMED and ops.function_named(name) is function:
        return NAMED[name]
    return found
