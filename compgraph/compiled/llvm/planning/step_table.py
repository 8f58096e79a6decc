"""Tables of steps, in which `loop_rerolling` detects loops: the kind of each step, and its buffers and offsets as integers.

Repeated steps have the same kind. Buffers are numbered in the order of their definitions. So the numbers of the buffers that
an iteration defines, or reads from an earlier iteration, increase by a constant per iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..buffer_ir import (
    Buffer,
    BufferView,
    Convolution,
    Factorization,
    Gather,
    Loop,
    LoopIndex,
    Map,
    MatMul,
    NumPyCall,
    Reduce,
    Scan,
    Scatter,
    Search,
    Sort,
    Step,
)

_OPERAND_STEPS = (MatMul, Factorization, Convolution, Gather, Scatter, Scan, Sort, Search)
MAX_COLUMNS = 600  # columns of a step that may be repeated; limits the size of the table if loops are nested


def columns(step: Step) -> tuple[Any, ...]:
    """Return the operands of a step, which are views and literals, and then its result: a row of the table."""
    if isinstance(step, Loop):
        return tuple([column for inner in step.steps for column in columns(inner)])
    if isinstance(step, NumPyCall):
        return tuple(step.views.values()) + ((step.out,) if step.out is not None else ())
    return (*step.operands, step.out)


def with_columns(step: Step, values: Sequence[Any]) -> Step:
    """Return the step with its columns replaced."""
    if isinstance(step, Loop):
        values, steps = list(values), []
        for inner in step.steps:
            count = len(columns(inner))
            steps.append(with_columns(inner, values[:count]))
            del values[:count]
        return Loop(step.loop_index, steps)
    if isinstance(step, (Map, Scatter)):
        values = [*[_as_operand(value, step.out.shape) for value in values[:-1]], values[-1]]
    if isinstance(step, Map):
        return Map(step.operation, tuple(values[:-1]), values[-1], step.compute_dtype, step.is_write)
    if isinstance(step, Reduce):
        return Reduce(step.operation, values[0], step.axes, values[1])
    if isinstance(step, _OPERAND_STEPS):
        changes: Any = {"operands": tuple(values[:-1]), "out": values[-1]}
        return replace(step, **changes)
    out = values[-1] if step.out is not None else None
    return replace(step, views=dict(zip(step.views, values, strict=False)), out=out)


def _as_operand(value: np.generic | float | BufferView, shape: tuple[int, ...]) -> Any:
    """Return an operand of a shape; a view that replaces a literal is a single element, which is broadcast."""
    if not isinstance(value, BufferView) or value.shape == shape:
        return value
    return BufferView(value.buffer, value.offset, shape, (0,) * len(shape), value.loop_strides)


def written_columns(step: Step) -> tuple[bool, ...]:
    """Return which columns of a step are written."""
    if isinstance(step, Loop):
        return tuple([is_written for inner in step.steps for is_written in written_columns(inner)])
    count = len(columns(step))
    return tuple([k == count - 1 and step.out is not None for k in range(count)])


def column_dtypes(step: Step) -> tuple[Any, ...]:
    """Return the dtype that a literal in each column of a step is converted to; None for columns of views."""
    if isinstance(step, Loop):
        return tuple([dtype for inner in step.steps for dtype in column_dtypes(inner)])
    if isinstance(step, Scatter):
        return (step.out.buffer.dtype, *[None] * len(step.operands))
    if not isinstance(step, Map):
        return (None,) * len(columns(step))
    return (*[step.operand_dtype(k) for k in range(len(step.operands))], None)


class StepTable:
    """A table with a row for each step of a program.

    Parameters
    ----------
    steps : sequence of Step
        The steps, in order.
    result_buffers : collection of Buffer
        The results of the program. A step that defines one is not part of a loop.

    Attributes
    ----------
    buffers : list of Buffer
        The buffers that steps define, by number.
    kinds : (n,) array of int
        The kind of each step: equal for steps that may be the same step of different iterations.
    integers : (n, 2 * m) array of int
        For each column, the number of its buffer and its offset; 0 for literals.
    may_change : (n, 2 * m) array of bool
        Whether each integer may change between iterations. The numbers of external buffers, which are negative, may not.
    buffer_counts : (n + 1,) array of int
        The number of buffers before each step.
    """

    def __init__(self, steps: Sequence[Step], result_buffers: Iterable[Buffer]) -> None:
        self.steps = steps
        self.columns = [columns(step) for step in steps]
        self.buffers: list[Buffer] = []
        self._numbers: dict[Buffer, int] = {}
        self._kinds: dict[Any, int] = {}
        result_buffers, kinds, buffer_counts = frozenset(result_buffers), [], [0]
        lengths, integers = [], list[int]()  # of the rows; all integers in order
        for step, step_columns in zip(steps, self.columns, strict=True):
            can_repeat = not isinstance(step, NumPyCall) and len(step_columns) <= MAX_COLUMNS
            kinds.append(self._kind(step, step_columns, result_buffers, can_repeat))
            buffer_counts.append(len(self.buffers))
            lengths.append(2 * len(step_columns) if can_repeat else 0)
            for column in step_columns if can_repeat else ():
                integers += (self._numbers[column.buffer], column.offset) if isinstance(column, BufferView) else (0, 0)
        self.kinds, self.buffer_counts = np.array(kinds, np.int64), np.array(buffer_counts, np.int64)
        self.integers = np.zeros((len(steps), max([2, *lengths])), np.int64)
        self.integers[np.arange(self.integers.shape[1]) < np.array(lengths)[:, None]] = integers
        self.may_change = np.ones(self.integers.shape, bool)
        self.may_change[:, ::2] = self.integers[:, ::2] >= 0

    def number(self, buffer: Buffer) -> int:
        """Return the number of a buffer; negative for external buffers."""
        return self._numbers[buffer]

    def _kind(self, step: Step, step_columns: Sequence[Any], result_buffers: frozenset[Buffer], can_repeat: bool) -> int:
        """Number the buffers of a step, and return its kind."""
        first_new = len(self.buffers)
        self._number_buffers(step, step_columns)
        new_buffers = self.buffers[first_new:]
        key: Any = id(step)  # a kind of its own
        if can_repeat and result_buffers.isdisjoint(new_buffers):
            are_new = [column.buffer in new_buffers for column in step_columns if isinstance(column, BufferView)]
            key = (_structure_of(step, step_columns, {}), *are_new)
        return self._kinds.setdefault(key, len(self._kinds))

    def _number_buffers(self, step: Step, step_columns: Sequence[Any]) -> None:
        """Number the buffers of a step: those that it defines, then external ones."""
        for view in _written_views(step):
            if view.buffer not in self._numbers:
                self._numbers[view.buffer] = len(self.buffers)
                self.buffers.append(view.buffer)
        for column in step_columns:
            if isinstance(column, BufferView) and column.buffer not in self._numbers:
                self._numbers[column.buffer] = -1 - len(self._numbers)


def _written_views(step: Step) -> list[BufferView]:
    if isinstance(step, Loop):
        return [view for inner in step.steps for view in _written_views(inner)]
    return [step.out] if step.out is not None else []


def _structure_of(step: object, step_columns: Sequence[Any], loop_indices: dict[LoopIndex, int]) -> tuple[Any, ...]:
    """Return the structure of a step, which all iterations share; its loop indices are numbered in order."""
    if isinstance(step, Loop):
        loop_indices[step.loop_index] = len(loop_indices)
        return ("loop", step.loop_index.trip_count, *[_structure_of(inner, columns(inner), loop_indices) for inner in step.steps])
    structure: list[Any] = [type(step)]
    if isinstance(step, Map):
        structure += (step.operation, step.compute_dtype, step.is_write)
    elif isinstance(step, Reduce):
        structure += (step.operation, step.axes)
    elif isinstance(step, _OPERAND_STEPS):
        structure += [getattr(step, field.name) for field in fields(step) if field.name not in ("operands", "out")]
    for column in step_columns:
        if isinstance(column, BufferView):
            buffer, _, shape, strides, loop_strides = column
            numbered_strides = tuple([(loop_indices.get(index, -1), stride) for index, stride in loop_strides])
            structure += (buffer.dtype, buffer.size, shape, strides, numbered_strides)
        else:
            structure.append("literal")
    return tuple(structure)
