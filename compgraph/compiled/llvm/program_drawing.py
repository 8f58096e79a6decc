"""Drawings of compiled programs: an entry per step, a box per fused nest, and a box per loop with its trip count.

Arrows lead from an input, or from the last writer of a buffer, to the readers. Dashed arrows lead to the next iteration.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...guards import Guard
from ...ops import FOLDS, OPNAMES
from ...storage import Write
from ...values import MultiOutput, Value
from ...view import FOLDED_FROM, INFIX, SYMBOLS, Arrow, Box, Drawing, Entry, ProgramOptions, short_location, source_text
from .buffer_ir import Buffer, BufferView, MatMul, NumPyCall, Reduce
from .planning import FusedLoop, LoopNest, Unit

Result = tuple[BufferView | None, Any]  # the view of a result, or None if NumPy computed it; and its node
MAX_SOURCES = 8  # arrows per operand, from the last writers
REDUCTION_NAMES = {ufunc.__name__: function.__name__ for (ufunc, method), function in FOLDS.items() if method == "reduce"}


def draw_program(units: Sequence[Unit], results: Sequence[Result], names: dict[Buffer, str], options: ProgramOptions) -> Drawing:
    """Draw a program.

    Parameters
    ----------
    units : sequence of Unit
        The units, in order.
    results : sequence of (BufferView or None, Node)
        The view of each result, and its node.
    names : dict
        The names of the inputs, by buffer.
    options : ProgramOptions
        Options of `visualize_at`.
    """
    builder = _DrawingBuilder(names, options, sum(map(_count_steps, units)))
    builder.add(units, None)
    for number, (view, item) in enumerate(results, 1):
        builder.add_result(f"result {number}" if len(results) > 1 else "result", view, item)
    return builder.drawing


def _count_steps(unit: Unit) -> int:
    """Return the number of steps of a unit, each of which is an entry."""
    if isinstance(unit, FusedLoop):
        return sum(map(_count_steps, unit.units))
    return len(unit.steps) if isinstance(unit, LoopNest) else 1


class _DrawingBuilder:
    """A drawing under construction, and the writers of each buffer so far."""

    def __init__(self, names: dict[Buffer, str], options: ProgramOptions, size: int) -> None:
        self.drawing = Drawing()
        self._names, self._options = names, options
        self._is_folded = size > FOLDED_FROM if options.fold is None else options.fold
        self._remaining = size if options.limit is None else options.limit  # entries left to draw; a closed box counts as one
        self._writers: dict[Buffer, list[tuple[BufferView, int]]] = defaultdict(list)  # since the last full write
        self._items: dict[Any, int] = {}  # items computed by NumPy
        # For each open loop its first entry, and the reads that a write in the previous iteration may reach: entry and view.
        self._open_loops: list[tuple[int, list[tuple[int, BufferView]]]] = []

    # ------------------------------------------------------------------------------------------ units

    def add(self, units: Iterable[Unit], box: int | None) -> None:
        """Draw units, in a box."""
        for unit in units:
            if self._remaining <= 0:
                self.drawing.omitted_nodes += _count_steps(unit)
            elif isinstance(unit, FusedLoop):
                self._add_loop(unit, box)
            elif isinstance(unit, LoopNest):
                self._add_nest(unit, box)
            else:
                self._add_step(unit, box)
                self._remaining -= 1

    def _add_loop(self, unit: FusedLoop, box: int | None) -> None:
        trip_count = unit.loop.loop_index.trip_count
        inner_box = self._box(f"{trip_count:,} iterations", box, count=trip_count, closed=self._options.scopes == "closed")
        self._open_loops.append((len(self.drawing.entries), []))
        self.add(unit.units, inner_box)
        first, reads = self._open_loops.pop()
        for reader, view in reads:
            later_writers = [writer for _, writer in self._writers[view.buffer] if writer >= max(first, reader)]
            self._arrows(later_writers, reader, loop_carried=True)

    def _add_nest(self, unit: LoopNest, box: int | None) -> None:
        if len(unit.steps) == 1:
            self._add_step(unit.steps[0], box)
            self._remaining -= 1
            return
        title = f"each of {_format_shape(unit.shape)}" if unit.shape else "numbers"
        if unit.tiling is not None:
            title += f", in {unit.tiling.count} tiles"
        closed = self._is_folded or self._options.scopes == "closed"
        inner_box = self._box(title, box, closed=closed)
        partials = iter(() if unit.tiling is None else unit.tiling.partials)
        for step in unit.steps:
            if closed or self._remaining > 0:
                entry = self._add_step(step, inner_box)
                partial = next(partials, None) if isinstance(step, Reduce) else None
                if partial is not None:  # a later nest combines the partial results of the tiles
                    self._writers[partial.buffer].append((partial, entry))
                if not closed:
                    self._remaining -= 1
            else:
                self.drawing.omitted_nodes += 1
        if closed:
            self._remaining -= 1

    def _box(self, title: str, parent: int | None, count: int = 1, closed: bool = False) -> int:
        self.drawing.boxes.append(Box(title, parent, count, closed))
        return len(self.drawing.boxes) - 1

    # ------------------------------------------------------------------------------------------ steps

    def _add_step(self, step: Any, box: int | None) -> int:
        is_call = isinstance(step, NumPyCall)
        entry = self._entry("called" if is_call else "operation", _label(step), step.out, box, _name(step))
        if is_call:
            line = getattr(step.item, "line", None)
            self.drawing.entries[entry].details |= {"line": short_location(line), "code": source_text(line)}
            self._items[step.item] = entry
            self._arrows([self._items[a] for a in _operand_items(step.item) if a in self._items and a not in step.views], entry)
        for view in step.views.values() if is_call else step.operands:
            if isinstance(view, BufferView):
                self._draw_sources(view, entry)
        if step.out is not None:
            if _covers_buffer(step.out):
                self._writers[step.out.buffer].clear()
            self._writers[step.out.buffer].append((step.out, entry))
        return entry

    def _draw_sources(self, view: BufferView, reader: int) -> None:
        """Draw the sources of a view that the entry `reader` reads."""
        writers = self._writers[view.buffer]
        if not writers and view.buffer.is_external:
            self._writers[view.buffer].append((view, self._input_entry(view)))
        last_write_covers_view = bool(writers) and (writers[-1][0] == view or _covers_buffer(writers[-1][0]))
        sources = [writer for _, writer in (writers[-1:] if last_write_covers_view else writers)]
        self._arrows(sources[-MAX_SOURCES:], reader)
        for first, reads in self._open_loops:
            if not last_write_covers_view or sources[-1] < first:
                reads.append((reader, view))

    def _input_entry(self, view: BufferView) -> int:
        name = self._names.get(view.buffer)
        return self._entry("constant" if name is None else "variable", name or "constant", view, None)

    def add_result(self, name: str, view: BufferView | None, item: object) -> None:
        """Draw a result."""
        entry = self._entry("result", name, view, None)
        if view is not None:
            self._draw_sources(view, entry)
        elif item in self._items:
            self._arrows([self._items[item]], entry)

    def _entry(self, kind: str, label: str, view: BufferView | None, box: int | None, opname: str = "") -> int:
        shape = "" if view is None else str(_shape(view))
        dtype = "" if view is None else str(view.buffer.dtype)
        details = {"title": label, "name": "" if kind == "operation" else label, "opname": opname}
        details |= {"formula": "", "value": "", "shape": shape, "dtype": dtype, "line": "", "code": ""}
        label_lines = [label, shape if self._options.shapes else "", dtype if self._options.dtypes else ""]
        self.drawing.entries.append(
            Entry(kind, "\n".join(filter(None, label_lines)), details, box, has_symbol=label in SYMBOLS.values())
        )
        return len(self.drawing.entries) - 1

    def _arrows(self, sources: Iterable[int], target: int, loop_carried: bool = False) -> None:
        self.drawing.arrows += [Arrow(source, target, loop_carried=loop_carried) for source in dict.fromkeys(sources)]


def _covers_buffer(view: BufferView) -> bool:
    """Return whether a view covers its buffer."""
    return not view.loop_strides and prod(_shape(view)) == view.buffer.size


def _shape(view: BufferView) -> tuple[int, ...]:
    """Return the shape of a view without axes of stride 0, which are reduced or broadcast."""
    return tuple(n for n, s in zip(view.shape, view.strides, strict=True) if s or n == 1)


def _label(step: Any) -> str:
    """Return the label of a step: its symbol or name, with the numbers among the operands."""
    name = _name(step)
    symbol = SYMBOLS.get(_opname(name), name)
    if isinstance(step, NumPyCall) or all(isinstance(operand, BufferView) for operand in step.operands):
        return symbol
    operands = ["·" if isinstance(operand, BufferView) else _format_number(operand) for operand in step.operands]
    if _opname(name) in INFIX and len(operands) == 2:
        return f"{operands[0]} {symbol} {operands[1]}"
    return f"{name}({', '.join(operands)})"


def _name(step: Any) -> str:
    """Return the name of a step."""
    if isinstance(step, NumPyCall):
        return "check" if isinstance(step.item, Guard) else str(getattr(step.item, "opname", None) or type(step.item).__name__)
    if isinstance(step, MatMul):
        return "matmul"
    if isinstance(step, Reduce):
        return REDUCTION_NAMES.get(step.operation, step.operation)
    class_name = type(step).__name__.lower()
    operation = str(getattr(step, "operation", None) or getattr(step, "kind", class_name))
    if operation == "require":
        return "check"
    if operation == "copy" and not isinstance(step.operands[0], BufferView):
        return "fill"
    return operation if class_name in ("map", operation) else f"{class_name} {operation}"


def _opname(name: str) -> str:
    """Return the opname of a NumPy function; other names are returned unchanged."""
    return str(OPNAMES.get(getattr(np, name, None), name))


def _format_number(value: Any) -> str:
    return f"{float(value):.4g}".replace("-", "−")


def _format_shape(shape: tuple[int, ...]) -> str:
    return " × ".join(f"{n:,}" for n in shape)


def _operand_items(item: Any) -> list[Any]:
    return [a for a in item.args if isinstance(a, (Value, MultiOutput, Write))]
