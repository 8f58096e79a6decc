"""A picture of a program: each step an entry, each nest of several steps a box, each loop a box that counts its turns.

Arrows lead from what is given, or from the step that wrote a part of memory last, to the steps that read it; dashed ones from a
turn of a loop to the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...guards import Guard
from ...ops import OPNAMES
from ...storage import Write
from ...values import MultiOutput, Value
from ...view import FOLDED_FROM, INFIX, SIGNS, Arrow, Box, Drawing, Entry, ProgramOptions
from .planning import LoopUnit, Nest, Unit
from .steps import Buffer, Call, Place, Product, Reduce

Result = tuple[Place | None, Any]  # where a result lies; None if it is what a call gave, of an item
MOST_SOURCES = 8  # of one operand: of numbers that more steps wrote, the last are drawn
GATHERED = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_or": "any", "logical_and": "all",
}  # fmt: skip


def drawing_of(units: Sequence[Unit], results: Sequence[Result], names: dict[Buffer, str], options: ProgramOptions) -> Drawing:
    """What is drawn of a program.

    Parameters
    ----------
    units : sequence of Unit
        What is run, in order.
    results : sequence of (Place or None, Node)
        Where each result lies, and of which node it is.
    names : dict
        What the inputs are called, by their buffers.
    options : ProgramOptions
        What is asked of `visualize_at`.
    """
    picture = _Picture(names, options, sum(map(_size, units)))
    picture.add(units, None)
    for number, (place, item) in enumerate(results, 1):
        picture.add_result(f"result {number}" if len(results) > 1 else "result", place, item)
    return picture.drawing


def _size(unit: Unit) -> int:
    if isinstance(unit, LoopUnit):
        return sum(map(_size, unit.units))
    return len(unit.steps) if isinstance(unit, Nest) else 1


class _Picture:
    """A drawing as it grows; who wrote what, so far."""

    def __init__(self, names: dict[Buffer, str], options: ProgramOptions, size: int) -> None:
        self.drawing = Drawing()
        self._names, self._options = names, options
        self._is_folded = size > FOLDED_FROM if options.fold is None else options.fold
        self._left = size if options.limit is None else options.limit  # how much is still drawn
        self._writers: dict[Buffer, list[tuple[Place, int]]] = defaultdict(list)  # since all of it was written
        self._items: dict[Any, int] = {}  # what was left to NumPy
        self._open: list[
            tuple[int, list[tuple[int, Place]]]
        ] = []  # loops around: first entry, and what is read before it is written

    # ------------------------------------------------------------------------------------------ units

    def add(self, units: Iterable[Unit], box: int | None) -> None:
        """Draw units, in a box."""
        for unit in units:
            if self._left <= 0:
                self.drawing.rest += _size(unit)
            elif isinstance(unit, LoopUnit):
                self._add_loop(unit, box)
            elif isinstance(unit, Nest):
                self._add_nest(unit, box)
            else:
                self._add_step(unit, box)
                self._left -= 1

    def _add_loop(self, unit: LoopUnit, box: int | None) -> None:
        turns = unit.loop.counter.length
        inside = self._box(f"{turns:,} turns", box, count=turns, closed=self._options.scopes == "closed")
        self._open.append((len(self.drawing.entries), []))
        self.add(unit.units, inside)
        first, reads = self._open.pop()
        for reader, place in reads:
            later = [writer for _, writer in self._writers[place.buffer] if writer >= max(first, reader)]
            self._arrows(later, reader, again=True)

    def _add_nest(self, unit: Nest, box: int | None) -> None:
        if len(unit.steps) == 1:
            self._add_step(unit.steps[0], box)
            self._left -= 1
            return
        title = f"each of {_lengths(unit.shape)}" if unit.shape else "numbers"
        if unit.pieces is not None:
            title += f", in {unit.pieces.count} pieces"
        closed = self._is_folded or self._options.scopes == "closed"
        inside = self._box(title, box, closed=closed)
        parts = iter(() if unit.pieces is None else unit.pieces.parts)
        for step in unit.steps:
            if closed or self._left > 0:
                number = self._add_step(step, inside)
                part = next(parts, None) if isinstance(step, Reduce) else None
                if part is not None:  # what the pieces gathered is put together later
                    self._writers[part.buffer].append((part, number))
                self._left -= not closed
            else:
                self.drawing.rest += 1
        self._left -= closed

    def _box(self, title: str, parent: int | None, count: int = 1, closed: bool = False) -> int:
        self.drawing.boxes.append(Box(title, parent, count, closed))
        return len(self.drawing.boxes) - 1

    # ------------------------------------------------------------------------------------------ steps

    def _add_step(self, step: Any, box: int | None) -> int:
        is_call = isinstance(step, Call)
        number = self._entry("called" if is_call else "operation", _label(step), step.out, box, _name(step))
        if is_call:
            self.drawing.entries[number].details["line"] = getattr(step.item, "line", None) or ""
            self._items[step.item] = number
            self._arrows([self._items[a] for a in _operands(step.item) if a in self._items and a not in step.places], number)
        for place in step.places.values() if is_call else step.operands:
            if isinstance(place, Place):
                self._read(place, number)
        if step.out is not None:
            if _covers(step.out):
                self._writers[step.out.buffer].clear()
            self._writers[step.out.buffer].append((step.out, number))
        return number

    def _read(self, place: Place, number: int) -> None:
        """Draw where the numbers of a place come from."""
        writers = self._writers[place.buffer]
        if not writers and place.buffer.is_given:
            self._writers[place.buffer].append((place, self._given(place)))
        exact = bool(writers) and (writers[-1][0] == place or _covers(writers[-1][0]))
        sources = [writer for _, writer in (writers[-1:] if exact else writers)]
        self._arrows(sources[-MOST_SOURCES:], number)
        for first, reads in self._open:
            if not exact or sources[-1] < first:
                reads.append((number, place))

    def _given(self, place: Place) -> int:
        name = self._names.get(place.buffer)
        return self._entry("constant" if name is None else "variable", name or "constant", place, None)

    def add_result(self, name: str, place: Place | None, item: Any) -> None:
        """Draw a result."""
        number = self._entry("result", name, place, None)
        if place is not None:
            self._read(place, number)
        elif item in self._items:
            self._arrows([self._items[item]], number)

    def _entry(self, kind: str, label: str, place: Place | None, box: int | None, opname: str = "") -> int:
        shape = "" if place is None else str(_shape(place))
        dtype = "" if place is None else str(place.buffer.dtype)
        details = {"title": label, "name": "" if kind == "operation" else label, "opname": opname}
        details |= {"formula": "", "value": "", "shape": shape, "dtype": dtype, "line": "", "code": ""}
        told = [label, shape if self._options.shapes else "", dtype if self._options.dtypes else ""]
        self.drawing.entries.append(Entry(kind, "\n".join(filter(None, told)), details, box, sign=label in SIGNS.values()))
        return len(self.drawing.entries) - 1

    def _arrows(self, sources: Iterable[int], target: int, again: bool = False) -> None:
        self.drawing.arrows += [Arrow(source, target, again=again) for source in dict.fromkeys(sources)]


def _covers(place: Place) -> bool:
    """Whether a place is all of its buffer."""
    return not place.moves and prod(_shape(place)) == place.buffer.size


def _shape(place: Place) -> tuple[int, ...]:
    """The lengths of a place; of the result of a reduction those of the axes that stay."""
    return tuple(n for n, s in zip(place.shape, place.strides, strict=True) if s or n == 1)


def _label(step: Any) -> str:
    """What is computed: its sign, or its name, with the numbers among the operands."""
    name = _name(step)
    sign = SIGNS.get(_opname(name), name)
    if isinstance(step, Call) or all(isinstance(operand, Place) for operand in step.operands):
        return sign
    operands = ["·" if isinstance(operand, Place) else _number(operand) for operand in step.operands]
    if _opname(name) in INFIX and len(operands) == 2:
        return f"{operands[0]} {sign} {operands[1]}"
    return f"{name}({', '.join(operands)})"


def _name(step: Any) -> str:
    """What is computed, in a word."""
    if isinstance(step, Call):
        return "check" if isinstance(step.item, Guard) else str(getattr(step.item, "opname", None) or type(step.item).__name__)
    if isinstance(step, Product):
        return "matmul"
    if isinstance(step, Reduce):
        return GATHERED.get(step.operation, step.operation)
    kind = type(step).__name__.lower()
    operation = str(getattr(step, "operation", getattr(step, "kind", kind)))
    if operation == "copy" and not isinstance(step.operands[0], Place):
        return "fill"
    return operation if kind in ("map", operation) else f"{kind} {operation}"


def _opname(name: str) -> str:
    """The opname of a function of NumPy's; other names are opnames, or words that are none."""
    return str(OPNAMES.get(getattr(np, name, None), name))


def _number(value: Any) -> str:
    return f"{float(value):.4g}".replace("-", "−")


def _lengths(shape: tuple[int, ...]) -> str:
    return " × ".join(f"{n:,}" for n in shape)


def _operands(item: Any) -> list[Any]:
    return [a for a in item.args if isinstance(a, (Value, MultiOutput, Write))]
