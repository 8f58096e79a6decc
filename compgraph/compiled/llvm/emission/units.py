"""Units become code, one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from ..code import Code
from ..planning import LoopUnit, Nest, Unit
from ..steps import Buffer, Product
from .addresses import Base, Turns
from .nests import emit_nest
from .products import emit_product


def emit_units(code: Code, units: Iterable[Unit], base: Base, kept: set[Buffer], width: int, turns: Turns | None = None) -> None:
    """Write the code of units that are no calls; the parameters are those of `emit_nest`."""
    turns = turns or {}
    for unit in units:
        if isinstance(unit, LoopUnit):
            with code.loop(0, unit.loop.counter.length) as loop:
                emit_units(code, unit.units, base, kept, width, {**turns, unit.loop.counter: loop.index})
        elif isinstance(unit, Nest):
            emit_nest(code, unit, base, turns, kept, width)
        elif isinstance(unit, Product):
            emit_product(code, unit, base, turns)
