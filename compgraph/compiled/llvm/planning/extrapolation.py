"""Extrapolation: the program of a large trip count, from programs of a few iterations (a pass).

After loop rerolling, programs of one function with different trip counts have the same structure and differ in integers: trip
counts, sizes of stacked values, offsets from the end. Each such integer is assumed to be linear in the trip counts. Two
programs determine its slope for each loop, a further program must match the extrapolation, and all accesses must be within
their buffers. Otherwise the extrapolation fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from ..buffer_ir import Buffer, BufferView, Gather, Loop, LoopIndex, NumPyCall, Scatter, Step
from .loop_rerolling import MAX_BYTES

MapInteger = Callable[[int], int]
MAX_ENDS = 8  # entries of a table that may differ from its constant middle


class StepProgram(NamedTuple):
    """The steps of a program, with its inputs and outputs.

    Attributes
    ----------
    all : list of Step
        The steps in order, including loops.
    inputs : list of Buffer or None
        The buffers of the inputs; None for unused inputs.
    outputs : list of BufferView
        The views of the results.
    """

    all: list[Step]
    inputs: list[Buffer | None]
    outputs: list[BufferView]


def extrapolate(programs: Sequence[StepProgram], trip_counts: Sequence[tuple[int, ...]], wanted: tuple[int, ...]) -> StepProgram:
    """Return the program with other trip counts.

    Parameters
    ----------
    programs : sequence of StepProgram
        The reference program; for each loop, a program where it has more iterations; and programs that must match the
        extrapolation.
    trip_counts : sequence of tuple of int
        The trip counts of each program.
    wanted : tuple of int
        The trip counts of the returned program.

    Raises
    ------
    NotImplementedError
        If the programs differ in structure, or are not linear in the trip counts.
    """
    forms = [_Parametrization(program) for program in programs]
    if any(form.structure != forms[0].structure for form in forms[1:]):
        raise NotImplementedError("programs with different trip counts differ in structure")
    numbers, count = np.array([form.numbers for form in forms], np.int64), len(wanted)
    by, steps = numbers[1 : 1 + count] - numbers[0], np.diag(np.array(trip_counts[1 : 1 + count]) - trip_counts[0])

    def foretold(many: tuple[int, ...]) -> Any:
        times, rest = np.divmod(np.array(many) - trip_counts[0], steps)
        if rest.any():
            raise NotImplementedError("the trip counts are not multiples of the sampled step")
        return numbers[0] + times @ by

    for many, actual_numbers in zip(trip_counts[1 + count :], numbers[1 + count :], strict=True):
        if (actual_numbers != foretold(many)).any():
            raise NotImplementedError("programs are not linear in their trip counts")
    rest = iter(foretold(wanted).tolist())
    extrapolated_program = _Rewriter(lambda _: next(rest)).program(programs[0])
    _require_in_bounds(extrapolated_program)
    return extrapolated_program


class _Parametrization:
    """The structure that all programs share, and the integers that may differ."""

    def __init__(self, program: StepProgram) -> None:
        self.numbers: list[int] = []

        def noted(number: int) -> int:
            self.numbers.append(number)
            return number

        rewriting = _Rewriter(noted)
        rewriting.program(program)
        self.structure = rewriting.structure


class _Rewriter:
    """Rebuilds a program with other integers, in order; `structure` records everything else."""

    def __init__(self, of: MapInteger) -> None:
        self._of, self.structure = of, list[Any]()
        self._buffers: dict[Buffer, tuple[int, Buffer]] = {}
        self._counters: dict[LoopIndex, tuple[int, LoopIndex]] = {}

    def program(self, program: StepProgram) -> StepProgram:
        """Rebuild a program."""
        inputs = [None if buffer is None else self._buffer(buffer, place) for place, buffer in enumerate(program.inputs)]
        self.structure.append([buffer is None for buffer in inputs])
        steps = [self._step(step) for step in program.all]
        return StepProgram(steps, inputs, [self._view(place) for place in program.outputs])

    def _step(self, step: Any) -> Any:
        self.structure.append(type(step))
        if isinstance(step, Loop):
            loop_index = self._counter(step.loop_index)
            self.structure.append(len(step.steps))
            return Loop(loop_index, [self._step(inner) for inner in step.steps])
        if isinstance(step, NumPyCall):
            raise NotImplementedError("it calls NumPy")
        return replace(step, **{field.name: self._field(step, field.name) for field in fields(step)})

    def _field(self, step: Any, name: str) -> Any:
        value = getattr(step, name)
        if isinstance(value, BufferView):
            return self._view(value)
        if name == "operands":
            self.structure.append(len(value))
            return tuple([self._view(v) if isinstance(v, BufferView) else self._number(v) for v in value])
        if name in ("lengths", "strides") and isinstance(step, (Gather, Scatter)):
            return self._integers(value)
        self.structure.append(value)
        return value

    def _number(self, value: Any) -> Any:
        """Record a floating-point constant."""
        number = np.asarray(value)
        self.structure.append((type(value), number.dtype, number.tobytes()))
        return value

    def _integers(self, numbers: Sequence[int]) -> tuple[int, ...]:
        self.structure.append(len(numbers))
        return tuple([self._of(number) for number in numbers])

    def _view(self, place: BufferView) -> BufferView:
        buffer = self._buffer(place.buffer)
        offset, shape, strides = self._of(place.offset), self._integers(place.shape), self._integers(place.strides)
        moves = tuple([(self._counter(loop_index), self._of(by)) for loop_index, by in place.loop_strides])
        self.structure.append(len(moves))
        return BufferView(buffer, offset, shape, strides, moves)

    def _counter(self, loop_index: LoopIndex) -> LoopIndex:
        known = self._counters.get(loop_index)
        if known is None:
            known = self._counters[loop_index] = len(self._counters), LoopIndex(self._of(loop_index.trip_count))
        self.structure.append(known[0])
        return known[1]

    def _buffer(self, buffer: Buffer, input_position: int | None = None) -> Buffer:
        known = self._buffers.get(buffer)
        if known is None:
            replacement = self._new_buffer(buffer) if input_position is None else buffer
            if input_position is not None:
                self.structure.append((buffer.dtype, buffer.size, input_position))
            known = self._buffers[buffer] = len(self._buffers), replacement
        self.structure.append(known[0])
        return known[1]

    def _new_buffer(self, buffer: Buffer) -> Buffer:
        """Rebuild a buffer that is not an input."""
        if not buffer.is_given:
            self.structure.append((buffer.dtype, buffer.is_called))
            return Buffer(buffer.dtype, self._of(buffer.size), None, False, buffer.is_called)
        array = getattr(buffer.node, "raw_value", buffer.node)
        head, tail = _varying_ends(array) if array is buffer.node else (array.size, 0)
        if head + tail >= array.size:
            self.structure.append((array.dtype, array.shape, array.strides, array.tobytes()))
            return buffer
        middle = array[head : head + 1]
        ends = array[:head], array[array.size - tail :]
        self.structure.append((array.dtype, middle.tobytes(), *[end.tobytes() for end in ends]))
        size = self._of(array.size)
        if size == array.size:
            return buffer
        whole = np.concatenate((ends[0], np.repeat(middle, size - head - tail), ends[1]))
        return Buffer(buffer.dtype, size, whole, is_given=True)


def _varying_ends(array: Any) -> tuple[int, int]:
    """Return the number of leading and trailing entries outside of a table's constant middle, or its size and 0."""
    if array.ndim != 1 or array.size < 2 * MAX_ENDS or array.strides != (array.itemsize,):
        return array.size, 0
    numbers = array.view(f"V{array.itemsize}")
    differs = np.flatnonzero(numbers != numbers[array.size // 2])
    head = int(differs[differs < array.size // 2].max(initial=-1)) + 1
    tail = array.size - int(differs[differs > array.size // 2].min(initial=array.size))
    return (head, tail) if head + tail <= MAX_ENDS else (array.size, 0)


def _require_in_bounds(program: StepProgram) -> None:
    """Raise a NotImplementedError unless all views are within their buffers, and the memory is limited."""
    sizes: dict[Buffer, int] = {}
    for place in _views_in(program.all):
        buffer = place.buffer
        ends = [s * (n - 1) for s, n in zip(place.strides, place.shape, strict=True)]
        ends += [by * (loop_index.trip_count - 1) for loop_index, by in place.loop_strides]
        low, high = (place.offset + sum(end(e, 0) for e in ends) for end in (min, max))
        if 0 not in place.shape and not 0 <= low <= high < buffer.size:
            raise NotImplementedError("an extrapolated view is out of bounds")
        if not buffer.is_given:
            sizes[buffer] = buffer.size * buffer.dtype.itemsize
    if sum(sizes.values()) > MAX_BYTES:
        raise NotImplementedError("it would need too much memory")


def _views_in(steps: Sequence[Any]) -> Iterator[BufferView]:
    """Yield all views of some steps."""
    for step in steps:
        if isinstance(step, Loop):
            yield from _views_in(step.steps)
            continue
        for field in fields(step):
            value = getattr(step, field.name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, BufferView):
                    yield part
