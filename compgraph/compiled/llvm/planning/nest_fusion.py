"""Fusion: steps with the same iteration space are put into one loop nest, so that intermediates stay in registers (a pass).

A step joins the first nest of its shape after all its operands. An operand that the same nest computes for the same element is
in a register. An operand in memory must be written by an earlier nest or, without axes, by an earlier step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..buffer_ir import Buffer, BufferView, Convolution, Gather, Loop, Map, MatMul, NumPyCall, Reduce, Scan, Scatter, Single, Step

MAX_NEST_STEPS = 200  # steps of a nest, because compile time grows faster than linearly
MAX_CANDIDATES = 16  # candidate nests per shape


@dataclass(frozen=True, slots=True)
class Tiling:
    """The division of a nest into tiles for threads.

    Attributes
    ----------
    depth : int
        The tiled loop, counted from the outermost.
    tile_length : int
        The iterations of a tile; the last tile has the rest.
    count : int
        The number of tiles.
    partials : tuple of BufferView
        For a tiled reduced axis, the partial results of each reduction: the shape of the result with a first axis of length
        `count`. Otherwise empty.
    """

    depth: int
    tile_length: int
    count: int
    partials: tuple[BufferView, ...] = ()


class LoopNest:
    """Maps and reductions with the same iteration space.

    Attributes
    ----------
    shape : tuple of int
        The iteration space.
    steps : list of Map and Reduce
        The loop body, in order.
    axes : frozenset of int or None
        The reduced axes; None without reductions.
    tiling : Tiling or None
        Its tiling; None if it runs as a whole.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.steps: list[Map | Reduce] = []
        self.axes: frozenset[int] | None = None
        self.tiling: Tiling | None = None

    def accepts(self, step: Map | Reduce) -> bool:
        """Return whether a step can be added to the nest."""
        if len(self.steps) >= MAX_NEST_STEPS:
            return False
        return isinstance(step, Map) or self.axes is None or self.axes == step.axes

    def add(self, step: Map | Reduce) -> None:
        """Append a step."""
        self.steps.append(step)
        if isinstance(step, Reduce):
            self.axes = step.axes


class FusedLoop:
    """A loop whose body consists of fused units.

    Attributes
    ----------
    loop : Loop
        The original loop.
    units : list of Unit
        The loop body, in order.
    """

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.units = fuse_steps(loop.steps)


Unit = LoopNest | MatMul | Convolution | Gather | Scatter | Scan | NumPyCall | FusedLoop


def fuse_steps(steps: Iterable[Step]) -> list[Unit]:
    """Fuse steps into nests; return the units in order."""
    fusion = _Fusion()
    for step in steps:
        fusion.enter(step)
    return fusion.units


class _Fusion:
    """The units so far, and the readers and writers of each buffer."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self._written: dict[Buffer, tuple[int, Single]] = {}  # the unit and step of the last write
        self._read: dict[Buffer, list[tuple[int, BufferView]]] = defaultdict(list)  # since then
        self._open: dict[tuple[int, ...], list[int]] = defaultdict(list)

    def enter(self, step: Step) -> None:
        """Assign a step to a unit."""
        if isinstance(step, Loop):  # no later step moves before it
            self._open.clear()
            self.units.append(FusedLoop(step))
            return
        if not isinstance(step, (Map, Reduce)):
            if isinstance(step, NumPyCall):
                self._open.clear()
            place = len(self.units)
            self.units.append(step)
        else:
            place = self._joined(step, self._earliest(step))
        self._note(step, place)

    def _joined(self, step: Map | Reduce, earliest: int) -> int:
        together = self._open[step.shape]
        for place in together[-MAX_CANDIDATES:]:
            nest = self.units[place]
            if place >= earliest and isinstance(nest, LoopNest) and nest.accepts(step):
                nest.add(step)
                return place
        nest = LoopNest(step.shape)
        nest.add(step)
        together.append(len(self.units))
        self.units.append(nest)
        return len(self.units) - 1

    def _earliest(self, step: Map | Reduce) -> int:
        """Return the first unit that a step can join."""
        first = 0
        in_order = not step.shape  # without axes, a step sees all effects of previous steps of its nest
        for operand in step.operands:
            if isinstance(operand, BufferView) and operand.buffer in self._written:
                place, maker = self._written[operand.buffer]
                is_there = isinstance(maker, Map) and maker.out == operand
                first = max(first, place if is_there or (in_order and isinstance(maker, Map)) else place + 1)
        out = step.out
        if isinstance(step, Map) and step.is_write:
            if out.buffer in self._written:
                place, maker = self._written[out.buffer]
                is_same = isinstance(maker, Map) and maker.out == out
                first = max(first, place if is_same or (in_order and isinstance(maker, Map)) else place + 1)
            for place, read in self._read[out.buffer]:
                first = max(first, place if in_order or read == out else place + 1)
        return first

    def _note(self, step: Single, place: int) -> None:
        for operand in step.views.values() if isinstance(step, NumPyCall) else step.operands:
            if isinstance(operand, BufferView):
                self._read[operand.buffer].append((place, operand))
        if step.out is not None:
            self._written[step.out.buffer] = place, step
            self._read[step.out.buffer] = []


def describe_item(item: Any) -> str:
    """Return the name of a graph item: its operation and its line."""
    line = getattr(item, "line", None)
    name = getattr(item, "opname", None) or type(item).__name__
    return name if line is None else f"{name} ({line})"


def describe_unit(unit: Unit) -> list[str]:
    """Return the readable lines of a unit."""
    if isinstance(unit, NumPyCall):
        return [f"call {describe_item(unit.item)}"]
    if isinstance(unit, FusedLoop):
        inside = [line for inner in unit.units for line in describe_unit(inner)]
        return [f"repeat {unit.loop.loop_index.trip_count} times:", *[f"    {line}" for line in inside]]
    if isinstance(unit, MatMul):
        a, b = unit.operands[:2]
        return [f"product {a.shape} @ {b.shape}"]
    if isinstance(unit, LoopNest):
        return [f"for {unit.shape}: " + "; ".join(step.operation for step in unit.steps)]
    return [f"{type(unit).__name__.lower()} {unit.out.shape}"]
