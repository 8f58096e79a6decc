"""Units become code, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..code import Code, Value
from ..planning import LoopUnit, Nest, Unit
from ..steps import Buffer, Convolution, Gather, Product, Scan, Scatter
from .addresses import Base, Turns
from .gathers import emit_gather, emit_scatter
from .kernels import emit_convolution, emit_product
from .nests import emit_nest
from .scans import emit_scan

_ALONE: dict[type, Callable[..., None]] = {  # the steps that stand outside of nests
    Product: emit_product,
    Convolution: emit_convolution,
    Gather: emit_gather,
    Scatter: emit_scatter,
    Scan: emit_scan,
}


def emit_units(
    code: Code,
    units: Iterable[Unit],
    base: Base,
    kept: set[Buffer],
    width: int,
    turns: Turns | None = None,
    piece: Value | None = None,
) -> None:
    """Write the code of units that are no calls; the parameters are those of `emit_nest`."""
    turns = turns or {}
    for unit in units:
        if isinstance(unit, LoopUnit):
            with code.loop(0, unit.loop.counter.length) as loop:
                emit_units(code, unit.units, base, kept, width, {**turns, unit.loop.counter: loop.index})
        elif isinstance(unit, Nest):
            emit_nest(code, unit, base, turns, kept, width, piece)
        else:
            _ALONE[type(unit)](code, unit, base, turns)
