"""Rematerialization: cheap, large intermediates are recomputed where they are read (a pass).

The differences of all pairs, ``x[:, None] - x[None]``, cost one subtraction each, but much more memory than `x`. A nest that
reads them recomputes them from `x` in registers. The same applies to cheap functions of a value of the same size that is in
memory anyway: a nest that reads ``1 - h * h`` computes it from `h`. The results keep their bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from ..buffer_ir import Buffer, BufferView, Map
from .memory_planning import find_materialized, steps_in, views_read
from .nest_fusion import FusedLoop, LoopNest, Unit

CHEAP = frozenset({"add", "subtract", "multiply", "negative", "square", "copy", "absolute", "maximum", "minimum", "where"})
MAX_OPERATIONS = 4  # operations that recompute a value
MIN_RATIO = 3  # minimal ratio of the sizes of a value and of each of its small sources


def rematerialize(units: Sequence[Unit], outputs: Collection[BufferView]) -> None:
    """Replace reads of cheap, large intermediates by their computation.

    Parameters
    ----------
    units : sequence of Unit
        A program, in order; its nests are modified.
    outputs : collection of BufferView
        Its results.
    """
    rematerializer = _Rematerializer(units, {view.buffer for view in outputs})
    for number, unit in enumerate(units):
        if isinstance(unit, LoopNest):
            rematerializer.rewrite(unit, number)
    rematerializer.remove_unread_steps()


class _Rematerializer:
    """The recipes of all values that can be recomputed, and the nests that read them."""

    def __init__(self, units: Sequence[Unit], outputs: Collection[Buffer]) -> None:
        self._units = units
        self._materialized = find_materialized(units).union(outputs)
        self._write_counts: Counter[Buffer] = Counter()  # the number of writes into each buffer
        self._producers: dict[Buffer, tuple[int, Map]] = {}  # the number of the nest, and the step, that compute each buffer
        excluded: set[Buffer] = set(outputs)  # results, and buffers that are read outside of nests or by different views
        for number, unit in enumerate(units):
            for step in steps_in(unit):
                for view in views_read(step):
                    producer = self._producers.get(view.buffer)
                    if producer is None or producer[1].out != view or not isinstance(unit, LoopNest):
                        excluded.add(view.buffer)
                if step.out is not None:
                    self._write_counts[step.out.buffer] += 2 if isinstance(unit, FusedLoop) else 1  # a loop writes more than once
                    if isinstance(step, Map) and isinstance(unit, LoopNest):
                        self._producers[step.out.buffer] = number, step
        candidates = [b for b in self._producers if b in self._materialized and b not in excluded]
        self._recipes = {b: self._recipe(b, b.size) for b in candidates}
        self._rematerialized: set[Buffer] = set()

    def _recipe(self, buffer: Buffer, size: int, depth: int = 0) -> list[Map] | None:
        """Return the operations, in order, that recompute a value from values in memory; None if that is not cheap."""
        _, step = self._producers[buffer]
        if depth == MAX_OPERATIONS or step.is_write or self._write_counts[buffer] > 1 or step.operation not in CHEAP:
            return None
        operations: list[Map] = []
        for operand in step.operands:
            if isinstance(operand, BufferView) and not self._is_small(operand.buffer, size):
                producer = self._producers.get(operand.buffer)
                inner = None if producer is None or producer[1].out != operand else self._recipe(operand.buffer, size, depth + 1)
                if inner is None and not self._is_readable(operand, buffer):
                    return None
                operations += [s for s in inner or () if s not in operations]
        operands = [o for s in (*operations, step) for o in s.operands if isinstance(o, BufferView)]
        large_operands = {o for o in operands if not self._is_small(o.buffer, size)} - {s.out for s in operations}
        is_expensive = len(large_operands) > 1  # several large values would be read instead of one
        return None if len(operations) >= MAX_OPERATIONS or is_expensive else [*operations, step]

    def _is_readable(self, view: BufferView, buffer: Buffer) -> bool:
        """Return whether a value is in memory anyway, is not larger than `buffer`, and is never overwritten."""
        source = view.buffer
        is_whole = source in self._producers and self._producers[source][1].out == view
        return is_whole and source in self._materialized and self._write_counts[source] == 1 and source.nbytes <= buffer.nbytes

    def _is_small(self, buffer: Buffer, size: int) -> bool:
        """Return whether a value is in memory, is never overwritten, and is much smaller than a result of `size` elements."""
        is_constant = self._write_counts[buffer] == 0 if buffer.is_external else self._write_counts[buffer] <= 1
        return is_constant and (buffer.is_external or buffer in self._materialized) and buffer.size * MIN_RATIO <= size

    def rewrite(self, nest: LoopNest, number: int) -> None:
        """Insert recomputed operations into a nest before their readers."""
        steps: list[Any] = []
        recomputed: dict[BufferView, BufferView] = {}
        for step in nest.steps:
            for view in views_read(step):
                recipe = self._recipes.get(view.buffer)
                if recipe and self._producers[view.buffer][0] != number:
                    self._rematerialized.add(view.buffer)
                    steps += [self._copy_step(operation, recomputed) for operation in recipe if operation.out not in recomputed]
            steps.append(_redirect(step, recomputed))
        nest.steps = steps

    @staticmethod
    def _copy_step(step: Map, recomputed: dict[BufferView, BufferView]) -> Map:
        """Return a copy of a step with a buffer of its own, and register its result."""
        original = step.out
        buffer = Buffer(original.buffer.dtype, original.buffer.size, original.buffer.node)
        out = BufferView(buffer, original.offset, original.shape, original.strides)
        step_copy: Map = replace(_redirect(step, recomputed), out=out)
        recomputed[original] = step_copy.out
        return step_copy

    def remove_unread_steps(self) -> None:
        """Remove the steps whose results all readers recompute."""
        read_buffers = {view.buffer for unit in self._units for step in steps_in(unit) for view in views_read(step)}
        for buffer in self._rematerialized - read_buffers:
            nest = self._units[self._producers[buffer][0]]
            assert isinstance(nest, LoopNest)
            nest.steps = [step for step in nest.steps if step.out.buffer is not buffer]


def _redirect(step: Any, recomputed: dict[BufferView, BufferView]) -> Any:
    """Return a step that reads recomputed values instead of the stored ones."""
    if not recomputed or not any(view in recomputed for view in views_read(step)):
        return step
    operands = tuple(recomputed.get(o, o) if isinstance(o, BufferView) else o for o in step.operands)
    if isinstance(step, Map):
        return replace(step, operands=operands)
    return replace(step, operand=operands[0])
