"""Which functions become steps in modules of their own: for each what appends the steps of an item, or says why it has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import operations
from . import folding, indexing, joining, neural
from .placing import Placing

Maker = Callable[[Placing, Any], str]
KINDS: dict[Any, Maker] = {**indexing.KINDS, **joining.KINDS, **folding.KINDS, **neural.KINDS}
# Functions of derivatives, by the names under which they are recorded.
NAMED: dict[str, Maker] = {**indexing.NAMED, **joining.NAMED}


def maker(function: Any) -> Maker | None:
    """What makes the steps of a function's items; None if nothing does."""
    if isinstance(function, operations.Packed):
        return joining.PACKED.get(function.function)
    found = KINDS.get(function)
    name = getattr(function, "__name__", "")
    if found is None and name in NAMED and operations.function_named(name) is function:
        return NAMED[name]
    return found
