"""Steps as rows of a table: what two turns of a loop must have in common, and what may change between them.

Buffers are numbered in the order in which steps make them, so that what a turn makes has numbers that grow by the same from turn
to turn, and so have the values of earlier turns that it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..steps import Buffer, Call, Convolution, Counter, Gather, Loop, Map, Place, Product, Reduce, Scan, Scatter, Step

_ALONE = (Product, Convolution, Gather, Scatter, Scan)
WIDEST = 600  # columns of a loop that may be a step of others


def columns(step: Step) -> tuple[Any, ...]:
    """The places and numbers of a step; what it writes comes last."""
    if isinstance(step, Loop):
        return tuple([column for inner in step.steps for column in columns(inner)])
    if isinstance(step, Call):
        return tuple(step.places.values()) + ((step.out,) if step.out is not None else ())
    return (*step.operands, step.out)


def with_columns(step: Step, values: Sequence[Any]) -> Step:
    """The step with other places and numbers."""
    if isinstance(step, Loop):
        values, steps = list(values), []
        for inner in step.steps:
            count = len(columns(inner))
            steps.append(with_columns(inner, values[:count]))
            del values[:count]
        return Loop(step.counter, steps)
    if isinstance(step, (Map, Scatter)):
        values = [*[_seen(value, step.out.shape) for value in values[:-1]], values[-1]]
    if isinstance(step, Map):
        return Map(step.operation, tuple(values[:-1]), values[-1], step.computed_in, step.is_write)
    if isinstance(step, Reduce):
        return Reduce(step.operation, values[0], step.axes, values[1])
    if isinstance(step, _ALONE):
        changed: Any = {"operands": tuple(values[:-1]), "out": values[-1]}
        return replace(step, **changed)
    out = values[-1] if step.out is not None else None
    return Call(step.item, dict(zip(step.places, values, strict=False)), out, step.why, step.checks)


def _seen(value: Any, shape: tuple[int, ...]) -> Any:
    """An operand as it is seen where one of a shape is asked for; a place that took a number's place is a single element."""
    if not isinstance(value, Place) or value.shape == shape:
        return value
    return Place(value.buffer, value.offset, shape, (0,) * len(shape), value.moves)


def writes(step: Step) -> tuple[bool, ...]:
    """Which columns of a step are written."""
    if isinstance(step, Loop):
        return tuple([is_written for inner in step.steps for is_written in writes(inner)])
    count = len(columns(step))
    return tuple([k == count - 1 and step.out is not None for k in range(count)])


def dtypes(step: Step) -> tuple[Any, ...]:
    """What the numbers among the columns of a step are converted to."""
    if isinstance(step, Loop):
        return tuple([dtype for inner in step.steps for dtype in dtypes(inner)])
    if isinstance(step, Scatter):
        return (step.out.buffer.dtype, *[None] * len(step.operands))
    if not isinstance(step, Map):
        return (None,) * len(columns(step))
    return (*[step.operand_dtype(k) for k in range(len(step.operands))], None)


class Table:
    """The rows of some steps.

    Parameters
    ----------
    steps : sequence of Step
        In order.
    single : collection of Buffer
        Those that must stay as they are: a step that makes one is no turn of a loop.

    Attributes
    ----------
    buffers : list of Buffer
        Those that steps make, by their numbers.
    kinds : (n,) array of int
        What each step is like.
    numbers : (n, 2 * m) array of int
        For each column the number of its buffer, and the offset in it.
    may_change : (n, 2 * m) array of bool
        Which of them may change from turn to turn: not the numbers of arrays from outside, which are below 0.
    made : (n + 1,) array of int
        How many buffers there are before each step.
    """

    def __init__(self, steps: Sequence[Step], single: Iterable[Buffer]) -> None:
        self.steps = steps
        self.columns = [columns(step) for step in steps]
        self.buffers: list[Buffer] = []
        self._numbers: dict[Buffer, int] = {}
        self._kinds: dict[Any, int] = {}
        single, kinds, made = frozenset(single), [], [0]
        is_row = [not isinstance(step, Call) and len(found) <= WIDEST for step, found in zip(steps, self.columns, strict=True)]
        for step, found, is_possible in zip(steps, self.columns, is_row, strict=True):
            kinds.append(self._kind(step, found, single) if is_possible else self._only(step, found))
            made.append(len(self.buffers))
        self.kinds, self.made = np.array(kinds, np.int64), np.array(made, np.int64)
        widest = max((len(found) for found, is_possible in zip(self.columns, is_row, strict=True) if is_possible), default=1)
        self.numbers = np.zeros((len(steps), 2 * widest), np.int64)
        for row, found in enumerate(self.columns):
            if is_row[row]:
                flat = [x for c in found for x in ((self._numbers[c.buffer], c.offset) if isinstance(c, Place) else (0, 0))]
                self.numbers[row, : len(flat)] = flat
        self.may_change = np.ones(self.numbers.shape, bool)
        self.may_change[:, ::2] = self.numbers[:, ::2] >= 0

    def number(self, buffer: Buffer) -> int:
        """The number of a buffer; below 0 for one that no step makes."""
        return self._numbers[buffer]

    def _kind(self, step: Step, found: Sequence[Any], single: frozenset[Buffer]) -> int:
        """Enter the buffers of a step, and give the number of what it is like."""
        before = len(self.buffers)
        self._enter(step, found)
        made = self.buffers[before:]
        if made and not single.isdisjoint(made):
            return self._kinds.setdefault(id(step), len(self._kinds))
        kind = (_described(step, found, {}), *[column.buffer in made for column in found if isinstance(column, Place)])
        return self._kinds.setdefault(kind, len(self._kinds))

    def _only(self, step: Step, found: Sequence[Any]) -> int:
        """As `_kind`, of a step that is no turn of any loop."""
        self._enter(step, found)
        return self._kinds.setdefault(id(step), len(self._kinds))

    def _enter(self, step: Step, found: Sequence[Any]) -> None:
        for place in _written(step):
            if place.buffer not in self._numbers:
                self._numbers[place.buffer] = len(self.buffers)
                self.buffers.append(place.buffer)
        for column in found:
            if isinstance(column, Place) and column.buffer not in self._numbers:
                self._numbers[column.buffer] = -1 - len(self._numbers)


def _written(step: Step) -> list[Place]:
    if isinstance(step, Loop):
        return [place for inner in step.steps for place in _written(inner)]
    return [step.out] if step.out is not None else []


def _described(step: Any, given: Sequence[Any], counters: dict[Counter, int]) -> tuple[Any, ...]:
    """What is the same in all turns; counters of loops within by their depth and order."""
    if isinstance(step, Loop):
        counters[step.counter] = len(counters)
        return ("loop", step.counter.length, *[_described(inner, columns(inner), counters) for inner in step.steps])
    found: list[Any] = [type(step).__name__]
    if isinstance(step, Map):
        found += [step.operation, step.computed_in.str, step.is_write]
    elif isinstance(step, Reduce):
        found += [step.operation, step.axes]
    elif isinstance(step, _ALONE):
        found += [getattr(step, name.name) for name in fields(step) if name.name not in ("operands", "out")]
    for column in given:
        if isinstance(column, Place):
            moves = tuple([(counters.get(counter, -1), by) for counter, by in column.moves])
            found.append((column.buffer.dtype.str, column.buffer.size, column.shape, column.strides, moves))
        else:
            found.append("number")
    return tuple(found)
