"""Fusion: steps with the same iteration space form one loop nest, so that intermediates stay in registers (a pass).

A step joins the first nest of its shape in which all its operands are available. An operand that the same nest computes for the
same element is in a register. Other operands must be written by earlier units; in a nest without axes, which has one iteration,
earlier steps suffice.
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

MAX_NEST_STEPS = 200  # steps of a nest; compile time grows faster than linearly
MAX_MIXED_STEPS = 24  # steps up to which a nest may mix independent sequences of equal operations
MIN_SCALAR_STEPS = 3  # steps of the shortest sequence without axes that becomes a nest
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
    reduced_axes : frozenset of int or None
        The axes that its reductions reduce; None without reductions.
    tiling : Tiling or None
        Its tiling; None if it is not tiled.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.steps: list[Map | Reduce] = []
        self.reduced_axes: frozenset[int] | None = None
        self.tiling: Tiling | None = None

    def accepts(self, step: Map | Reduce) -> bool:
        """Return whether a step can be added to the nest."""
        if len(self.steps) >= MAX_NEST_STEPS:
            return False
        return isinstance(step, Map) or self.reduced_axes in (None, step.axes)

    def add(self, step: Map | Reduce) -> None:
        """Append a step."""
        self.steps.append(step)
        if isinstance(step, Reduce):
            self.reduced_axes = step.axes


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
Half = Buffer | tuple[Buffer, int]  # a buffer, or the real (0) or imaginary (1) parts of a complex one


def fuse_steps(steps: Iterable[Step]) -> list[Unit]:
    """Fuse steps into nests; return the units in order."""
    fusion = _Fusion()
    for step in steps:
        fusion.add(step)
    return [part for unit in fusion.units for part in (_split_nest(unit) if isinstance(unit, LoopNest) else [unit])]


def _split_nest(nest: LoopNest) -> list[LoopNest]:
    """Split a long nest into independent sequences of steps if several have the same operations, to share one kernel."""
    if len(nest.steps) <= MAX_MIXED_STEPS:
        return [nest]
    groups: defaultdict[tuple[str, ...], list[list[Map | Reduce]]] = defaultdict(list)
    for steps in _independent_sequences(nest):
        groups[tuple([step.operation for step in steps])].append(steps)
    parts, remaining_nest = list[LoopNest](), LoopNest(nest.shape)
    for operations, sequences in groups.items():
        for steps in sequences:
            part = remaining_nest
            if len(sequences) > 1 and (nest.shape or len(operations) >= MIN_SCALAR_STEPS):
                part = LoopNest(nest.shape)
                parts.append(part)
            for step in steps:
                part.add(step)
    return [*parts, remaining_nest] if remaining_nest.steps else parts


def _independent_sequences(nest: LoopNest) -> list[list[Map | Reduce]]:
    """Return the steps of a nest in sequences, none of which reads or writes elements that another writes.

    If the nest has axes, different sequences also read no common view, because a nest loads it once.
    """
    parents = list(range(len(nest.steps)))  # a forest, whose trees are the sequences

    def root(number: int) -> int:
        while parents[number] != number:
            number = parents[number]
        return number

    written_buffers = {step.out.buffer for step in nest.steps}
    accesses: defaultdict[Buffer, list[tuple[int, int, int]]] = defaultdict(list)  # the bounds, and the number of the step
    first_reads: dict[BufferView, int] = {}
    for number, step in enumerate(nest.steps):
        for view in (*step.operands, step.out):
            if isinstance(view, BufferView) and view.buffer in written_buffers:
                accesses[view.buffer].append((*view.bounds, number))
            elif isinstance(view, BufferView) and nest.shape:
                parents[root(number)] = root(first_reads.setdefault(view, number))
    for intervals in accesses.values():
        end, last = -1, 0
        for low, high, number in sorted(intervals):
            if low <= end:
                parents[root(number)] = root(last)
            end, last = max(end, high), number
    sequences: defaultdict[int, list[Map | Reduce]] = defaultdict(list)
    for number, step in enumerate(nest.steps):
        sequences[root(number)].append(step)
    return list(sequences.values())


class _Fusion:
    """The units so far, and the last accesses to each half; see `Half`."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self._last_write: dict[Half, tuple[int, SingleStep]] = {}  # the number of the unit, and the step
        # The reads since the last write: the number of the unit, and the view.
        self._reads_since: dict[Half, list[tuple[int, BufferView]]] = defaultdict(list)
        self._open_nests: dict[tuple[int, ...], list[int]] = defaultdict(list)  # the nests that later steps can join, by shape

    def add(self, step: Step) -> None:
        """Assign a step to a unit."""
        if isinstance(step, Loop):  # no later step may move before it
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
        earliest, is_write = 0, isinstance(step, Map) and step.is_write
        is_sequential = not step.shape  # a nest without axes has one iteration, in which earlier steps have taken effect
        for view in (*step.operands, step.out) if is_write else step.operands:
            for half in _halves(view) if isinstance(view, BufferView) else ():
                if half in self._last_write:
                    number, writer = self._last_write[half]
                    can_share = isinstance(writer, Map) and (is_sequential or writer.out == view)
                    earliest = max(earliest, number if can_share else number + 1)
        for half in _halves(step.out) if is_write else ():
            for number, view in self._reads_since[half]:
                earliest = max(earliest, number if is_sequential or view == step.out else number + 1)
        return earliest

    def _record_accesses(self, step: SingleStep, number: int) -> None:
        for operand in step.views.values() if isinstance(step, NumPyCall) else step.operands:
            for half in _halves(operand) if isinstance(operand, BufferView) else ():
                self._reads_since[half].append((number, operand))
        for half in _halves(step.out) if step.out is not None else ():
            self._last_write[half] = number, step
            self._reads_since[half] = []


def _halves(view: BufferView) -> tuple[Half, ...]:
    """Return the halves that a view accesses."""
    buffer = view.buffer
    if not buffer.is_complex:
        return (buffer,)
    if any(stride % 2 for stride in view.strides) or any(stride % 2 for _, stride in view.loop_strides):
        return (buffer, 0), (buffer, 1)
    return ((buffer, view.offset % 2),)


def describe_item(item: object) -> str:
    """Return a description of a graph item: its operation, and the user's line."""
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
