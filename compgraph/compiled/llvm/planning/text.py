"""Units as text, for people to read."""

from __future__ import annotations

from typing import Any

from ..steps import Call, Product
from .group import LoopUnit, Nest, Unit


def named(item: Any) -> str:
    """An item of a graph, by its operation and its line."""
    line = getattr(item, "line", None)
    name = getattr(item, "opname", None) or type(item).__name__
    return name if line is None else f"{name} ({line})"


def described(unit: Unit) -> list[str]:
    """The lines that tell of a unit."""
    if isinstance(unit, Call):
        return [f"call {named(unit.item)}"]
    if isinstance(unit, LoopUnit):
        inside = [line for inner in unit.units for line in described(inner)]
        return [f"repeat {unit.loop.counter.length} times:", *[f"    {line}" for line in inside]]
    if isinstance(unit, Product):
        a, b = unit.operands[:2]
        return [f"product {a.shape} @ {b.shape}"]
    if isinstance(unit, Nest):
        return [f"for {unit.shape}: " + "; ".join(step.operation for step in unit.steps)]
    return [f"{type(unit).__name__.lower()} {unit.out.shape}"]
