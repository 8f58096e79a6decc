"""Fusion: steps with the same iteration space form one loop nest, so that intermediates stay in registers (a pass).

A step joins the first nest of its shape in which all its operands are available. An operand that the same nest computes for the
same element is in a register. An operand in memory must be written by an earlier nest; in a nest without axes, an earlier step
suffices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ..buffer_ir import (
    Buffer,
    BufferView,
    Convolution,
    Factorization,
    Gather,
    Loop,
    Map,
    MatMul,
    NumPyCall,
    Reduce,
    Scan,
    Scatter,
    Search,
    SingleStep,
    Sort,
    Step,
)

MAX_NEST_STEPS = 200  # steps of a nest, because compile time grows faster than linearly
MAX_CANDIDATES = 16  # most recent nests of a shape that a step can join


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
        If the tiled axis is reduced, the partial results of each reduction, with an additional first axis of length `count`.
        Otherwise empty.
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
        Its tiling; None if it is not tiled.
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


Unit = LoopNest | MatMul | Factorization | Convolution | Gather | Scatter | Scan | Sort | Search | NumPyCall | FusedLoop


def fuse_steps(steps: Iterable[Step]) -> list[Unit]:
    """Fuse steps into nests; return the units in order."""
    fusion = _Fusion()
    for step in steps:
        fusion.add(step)
    return fusion.units


class _Fusion:
    """The units so far, and the readers and writers of each buffer; real and imaginary parts of complex ones count apart."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self._written: dict[Half, tuple[int, SingleStep]] = {}  # the number of the unit, and the step, of the last write
        self._read: dict[Half, list[tuple[int, BufferView]]] = defaultdict(list)  # the units and views of the reads since then
        self._open_nests: dict[tuple[int, ...], list[int]] = defaultdict(list)  # by shape; later steps can join them

    def add(self, step: Step) -> None:
        """Assign a step to a unit."""
        if isinstance(step, Loop):  # no later step moves before it
            self._open_nests.clear()
            self.units.append(FusedLoop(step))
            return
        if not isinstance(step, (Map, Reduce)):
            if isinstance(step, NumPyCall):
                self._open_nests.clear()
            number = len(self.units)
            self.units.append(step)
        else:
            number = self._join_nest(step, self._earliest_unit(step))
        self._record_accesses(step, number)

    def _join_nest(self, step: Map | Reduce, earliest: int) -> int:
        """Add a step to a nest, which may be new; return the number of the nest."""
        candidates = self._open_nests[step.shape]
        for number in candidates[-MAX_CANDIDATES:]:
            nest = self.units[number]
            if number >= earliest and isinstance(nest, LoopNest) and nest.accepts(step):
                nest.add(step)
                return number
        nest = LoopNest(step.shape)
        nest.add(step)
        candidates.append(len(self.units))
        self.units.append(nest)
        return len(self.units) - 1

    def _earliest_unit(self, step: Map | Reduce) -> int:
        """Return the number of the first unit that a step can join."""
        earliest = 0
        is_sequential = not step.shape  # without axes, a step sees all effects of previous steps of its nest
        for operand in step.operands:
            for half in _halves(operand) if isinstance(operand, BufferView) else ():
                if half in self._written:
                    number, writer = self._written[half]
                    is_in_register = isinstance(writer, Map) and writer.out == operand
                    can_share = is_in_register or (is_sequential and isinstance(writer, Map))
                    earliest = max(earliest, number if can_share else number + 1)
        out = step.out
        for half in _halves(out) if isinstance(step, Map) and step.is_write else ():
            if half in self._written:
                number, writer = self._written[half]
                is_same_view = isinstance(writer, Map) and writer.out == out
                can_share = is_same_view or (is_sequential and isinstance(writer, Map))
                earliest = max(earliest, number if can_share else number + 1)
            for number, read_view in self._read[half]:
                earliest = max(earliest, number if is_sequential or read_view == out else number + 1)
        return earliest

    def _record_accesses(self, step: SingleStep, number: int) -> None:
        for operand in step.views.values() if isinstance(step, NumPyCall) else step.operands:
            for half in _halves(operand) if isinstance(operand, BufferView) else ():
                self._read[half].append((number, operand))
        for half in _halves(step.out) if step.out is not None else ():
            self._written[half] = number, step
            self._read[half] = []


Half = Buffer | tuple[Buffer, int]


def _halves(view: BufferView) -> tuple[Half, ...]:
    """Return the buffer of a view; of complex numbers, its real or imaginary parts, or both."""
    buffer = view.buffer
    if not buffer.is_complex:
        return (buffer,)
    if any(s % 2 for s in view.strides) or any(s % 2 for _, s in view.loop_strides):
        return (buffer, 0), (buffer, 1)
    return ((buffer, view.offset % 2),)


def describe_item(item: object) -> str:
    """Return the name of a graph item: its operation and its line."""
    line = getattr(item, "line", None)
    name = getattr(item, "opname", None) or type(item).__name__
    return name if line is None else f"{name} ({line})"


def describe_unit(unit: Unit) -> list[str]:
    """Return a description of a unit, as lines of text."""
    if isinstance(unit, NumPyCall):
        return [f"call {describe_item(unit.item)}"]
    if isinstance(unit, FusedLoop):
        body = [line for inner in unit.units for line in describe_unit(inner)]
        return [f"repeat {unit.loop.loop_index.trip_count} times:", *[f"    {line}" for line in body]]
    if isinstance(unit, MatMul):
        a, b = unit.operands[:2]
        return [f"product {a.shape} @ {b.shape}"]
    if isinstance(unit, LoopNest):
        return [f"for {unit.shape}: " + "; ".join(step.operation for step in unit.steps)]
    return [f"{type(unit).__name__.lower()} {unit.out.shape}"]
