"""Steps that run along the same axes are put together, so that what one computes the next has in a register (a pass).

A step joins the first nest of its shape that comes after all it needs. What another step of the nest computes for the same
element is there; what lies in memory that is written must have been written by an earlier nest, or, where there are no axes,
before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ..steps import Buffer, Call, Convolution, Gather, Loop, Map, Place, Product, Reduce, Scan, Scatter, Single, Step

LARGEST = 1500  # steps of one nest: what a compiler does with one function is more than linear in its length
REACH = 16  # nests of a shape that are looked at


@dataclass(frozen=True, slots=True)
class Pieces:
    """How a nest is cut.

    Attributes
    ----------
    depth : int
        Which of its loops is cut, counted from the outermost.
    length : int
        The turns of a piece; the last piece has those that are left.
    count : int
        How many pieces there are.
    parts : tuple of Place
        Where each reduction leaves what it gathered, for each piece, where the loop that is cut goes along a reduced axis: of the
        shape of the result with an axis of `count` before it. Otherwise empty.
    """

    depth: int
    length: int
    count: int
    parts: tuple[Place, ...] = ()


class Nest:
    """Maps and reductions along the same axes.

    Attributes
    ----------
    shape : tuple of int
        The lengths of the axes.
    steps : list of Map and Reduce
        What is done for each index, in order.
    axes : frozenset of int or None
        Along which its reductions go; None if it has none.
    pieces : Pieces or None
        How it is cut; None if it is done as one.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.steps: list[Map | Reduce] = []
        self.axes: frozenset[int] | None = None
        self.pieces: Pieces | None = None

    def takes(self, step: Map | Reduce) -> bool:
        """Whether a step can be done in the same loops."""
        if len(self.steps) >= LARGEST:
            return False
        return isinstance(step, Map) or self.axes is None or self.axes == step.axes

    def add(self, step: Map | Reduce) -> None:
        """Do a step, after the others."""
        self.steps.append(step)
        if isinstance(step, Reduce):
            self.axes = step.axes


class LoopUnit:
    """A loop whose steps were put together.

    Attributes
    ----------
    loop : Loop
        What it was made of.
    units : list of Unit
        What is done in each turn, in order.
    """

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.units = grouped(loop.steps)


Unit = Nest | Product | Convolution | Gather | Scatter | Scan | Call | LoopUnit


def grouped(steps: Iterable[Step]) -> list[Unit]:
    """Nests, and the steps that stand alone, in order."""
    found = _Grouping()
    for step in steps:
        found.enter(step)
    return found.units


class _Grouping:
    """Units so far, and who read and wrote each buffer."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self._written: dict[Buffer, tuple[int, Single]] = {}  # the unit and step that wrote it last
        self._read: dict[Buffer, list[tuple[int, Place]]] = defaultdict(list)  # since then
        self._open: dict[tuple[int, ...], list[int]] = defaultdict(list)

    def enter(self, step: Step) -> None:
        """Find the unit of a step."""
        if isinstance(step, Loop):  # nothing after it goes before it, so that it need not be known what it writes
            self._open.clear()
            self.units.append(LoopUnit(step))
            return
        if not isinstance(step, (Map, Reduce)):
            if isinstance(step, Call):
                self._open.clear()
            place = len(self.units)
            self.units.append(step)
        else:
            place = self._joined(step, self._earliest(step))
        self._note(step, place)

    def _joined(self, step: Map | Reduce, earliest: int) -> int:
        together = self._open[step.shape]
        for place in together[-REACH:]:
            nest = self.units[place]
            if place >= earliest and isinstance(nest, Nest) and nest.takes(step):
                nest.add(step)
                return place
        nest = Nest(step.shape)
        nest.add(step)
        together.append(len(self.units))
        self.units.append(nest)
        return len(self.units) - 1

    def _earliest(self, step: Map | Reduce) -> int:
        """The first unit in which a step can be done."""
        first = 0
        in_order = not step.shape  # where there are no axes, a step sees all that those before it in its nest did
        for operand in step.operands:
            if isinstance(operand, Place) and operand.buffer in self._written:
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
        for operand in step.places.values() if isinstance(step, Call) else step.operands:
            if isinstance(operand, Place):
                self._read[operand.buffer].append((place, operand))
        if step.out is not None:
            self._written[step.out.buffer] = place, step
            self._read[step.out.buffer] = []
