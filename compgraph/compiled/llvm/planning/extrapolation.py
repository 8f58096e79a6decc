"""Extrapolation: the program for large trip counts, from programs for a few iterations (a pass).

After loop rerolling, the programs of one function for different trip counts have the same structure and differ in integers: trip
counts, sizes of stacked values, offsets from the end. Each such integer is assumed to be linear in the trip counts. Two
programs determine its slope for each loop, a further program must match the extrapolation, and all accesses must be within
their buffers. Otherwise the extrapolation fails, and all iterations are traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....array_types import Operand
from ..buffer_ir import Buffer, BufferView, Gather, Loop, LoopIndex, NumPyCall, Scatter, Step
from .loop_rerolling import MAX_BYTES
from .step_table import columns

MapInteger = Callable[[int], int]  # returns the replacement of an integer of a program
MAX_ENDS = 8  # entries of a table outside of its middle of equal entries


class StepProgram(NamedTuple):
    """The steps of a program, with its inputs and outputs.

    Attributes
    ----------
    steps : list of Step
        The steps in order, including loops.
    inputs : list of Buffer or None
        The buffers of the inputs; None for unused inputs.
    outputs : list of BufferView
        The views of the results.
    """

    steps: list[Step]
    inputs: list[Buffer | None]
    outputs: list[BufferView]


def extrapolate(programs: Sequence[StepProgram], trip_counts: Sequence[tuple[int, ...]], target: tuple[int, ...]) -> StepProgram:
    """Return the program with the target trip counts.

    Parameters
    ----------
    programs : sequence of StepProgram
        The reference program; for each loop, a program in which only this loop has more iterations; and programs that must match
        the extrapolation.
    trip_counts : sequence of tuple of int
        The trip counts of each program.
    target : tuple of int
        The trip counts of the returned program.

    Raises
    ------
    NotImplementedError
        If the programs differ in structure, or are not linear in the trip counts.
    """
    samples = [_Parametrization(program) for program in programs]
    if any(sample.structure != samples[0].structure for sample in samples[1:]):
        raise NotImplementedError("programs with different trip counts differ in structure")
    integers, count = np.array([sample.integers for sample in samples], np.int64), len(target)
    # The additional iterations of each loop in the program that extends it.
    increments = np.diag(np.array(trip_counts[1 : 1 + count]) - trip_counts[0])
    slopes = integers[1 : 1 + count] - integers[0]  # per increment

    def extrapolate_integers(counts: tuple[int, ...]) -> Any:
        multiples, remainders = np.divmod(np.array(counts) - trip_counts[0], increments)
        if remainders.any():
            raise NotImplementedError(f"the trip counts {counts} are not those of a sample plus multiples of its increments")
        return integers[0] + multiples @ slopes

    for counts, actual in zip(trip_counts[1 + count :], integers[1 + count :], strict=True):
        if (actual != extrapolate_integers(counts)).any():
            raise NotImplementedError("programs are not linear in their trip counts")
    target_integers = iter(extrapolate_integers(target).tolist())
    program = _Rewriter(lambda _: next(target_integers)).rewrite(programs[0])
    _require_in_bounds(program)
    return program


class _Parametrization:
    """A program as `structure`, which all programs must share, and `integers`, which may differ."""

    def __init__(self, program: StepProgram) -> None:
        self.integers: list[int] = []

        def record(integer: int) -> int:
            self.integers.append(integer)
            return integer

        rewriter = _Rewriter(record)
        rewriter.rewrite(program)
        self.structure = rewriter.structure


class _Rewriter:
    """Rebuilds a program with each of its integers replaced, in order; `structure` records everything else."""

    def __init__(self, map_integer: MapInteger) -> None:
        self._map_integer, self.structure = map_integer, list[Any]()
        self._buffers: dict[Buffer, tuple[int, Buffer]] = {}
        self._loop_indices: dict[LoopIndex, tuple[int, LoopIndex]] = {}

    def rewrite(self, program: StepProgram) -> StepProgram:
        """Return the rebuilt program."""
        inputs = [None if buffer is None else self._buffer(buffer, position) for position, buffer in enumerate(program.inputs)]
        self.structure.append([buffer is None for buffer in inputs])
        steps = [self._step(step) for step in program.steps]
        return StepProgram(steps, inputs, [self._view(view) for view in program.outputs])

    def _step(self, step: Any) -> Any:
        self.structure.append(type(step))
        if isinstance(step, Loop):
            loop_index = self._loop_index(step.loop_index)
            self.structure.append(len(step.steps))
            return Loop(loop_index, [self._step(inner) for inner in step.steps])
        if isinstance(step, NumPyCall):
            raise NotImplementedError("programs that call NumPy are not extrapolated")
        return replace(step, **{field.name: self._field(step, field.name) for field in fields(step)})

    def _field(self, step: object, name: str) -> Any:
        value = getattr(step, name)
        if isinstance(value, BufferView):
            return self._view(value)
        if name == "operands":
            self.structure.append(len(value))
            return tuple([self._view(v) if isinstance(v, BufferView) else self._literal(v) for v in value])
        if name in ("lengths", "strides") and isinstance(step, (Gather, Scatter)):
            return self._integers(value)
        self.structure.append(value)
        return value

    def _literal(self, value: Operand) -> Any:
        """Record a literal, which must not change."""
        array = np.asarray(value)
        self.structure.append((type(value), array.dtype, array.tobytes()))
        return value

    def _integers(self, integers: Sequence[int]) -> tuple[int, ...]:
        self.structure.append(len(integers))
        return tuple([self._map_integer(integer) for integer in integers])

    def _view(self, view: BufferView) -> BufferView:
        buffer = self._buffer(view.buffer)
        offset, shape, strides = self._map_integer(view.offset), self._integers(view.shape), self._integers(view.strides)
        loop_strides = tuple([(self._loop_index(index), self._map_integer(stride)) for index, stride in view.loop_strides])
        self.structure.append(len(loop_strides))
        return BufferView(buffer, offset, shape, strides, loop_strides)

    def _loop_index(self, loop_index: LoopIndex) -> LoopIndex:
        entry = self._loop_indices.get(loop_index)
        if entry is None:
            rewritten = LoopIndex(self._map_integer(loop_index.trip_count))
            entry = self._loop_indices[loop_index] = len(self._loop_indices), rewritten
        self.structure.append(entry[0])
        return entry[1]

    def _buffer(self, buffer: Buffer, input_position: int | None = None) -> Buffer:
        entry = self._buffers.get(buffer)
        if entry is None:
            replacement = self._new_buffer(buffer) if input_position is None else buffer
            if input_position is not None:
                self.structure.append((buffer.dtype, buffer.size, input_position))
            entry = self._buffers[buffer] = len(self._buffers), replacement
        self.structure.append(entry[0])
        return entry[1]

    def _new_buffer(self, buffer: Buffer) -> Buffer:
        """Rebuild a buffer that is not an input; a table of constants with an equal middle gets a new length."""
        if not buffer.is_external:
            self.structure.append((buffer.dtype, buffer.is_numpy_result))
            return Buffer(buffer.dtype, self._map_integer(buffer.size), None, False, buffer.is_numpy_result)
        array = getattr(buffer.node, "raw_value", buffer.node)
        head, tail = _varying_ends(array) if array is buffer.node else (array.size, 0)
        if head + tail >= array.size:
            self.structure.append((array.dtype, array.shape, array.strides, array.tobytes()))
            return buffer
        middle = array[head : head + 1]
        ends = array[:head], array[array.size - tail :]
        self.structure.append((array.dtype, middle.tobytes(), *[end.tobytes() for end in ends]))
        size = self._map_integer(array.size)
        if size == array.size:
            return buffer
        table = np.concatenate((ends[0], np.repeat(middle, size - head - tail), ends[1]))
        return Buffer(buffer.dtype, size, table, is_external=True)


def _varying_ends(array: NDArray[Any]) -> tuple[int, int]:
    """Return how many entries of a table precede and follow its middle of equal entries; its size and 0 without such a middle."""
    if array.ndim != 1 or array.size < 2 * MAX_ENDS or array.strides != (array.itemsize,):
        return array.size, 0
    entries = array.view(f"V{array.itemsize}")  # compared by their bits
    different = np.flatnonzero(entries != entries[array.size // 2])
    head = int(different[different < array.size // 2].max(initial=-1)) + 1
    tail = array.size - int(different[different > array.size // 2].min(initial=array.size))
    return (head, tail) if head + tail <= MAX_ENDS else (array.size, 0)


def _require_in_bounds(program: StepProgram) -> None:
    """Raise a NotImplementedError unless all views are within their buffers, and the memory is limited."""
    sizes: dict[Buffer, int] = {}
    for view in (column for step in program.steps for column in columns(step) if isinstance(column, BufferView)):
        low, high = view.bounds
        if 0 not in view.shape and not 0 <= low <= high < view.buffer.size:
            raise NotImplementedError(f"an extrapolated view is out of bounds: {low} to {high} of {view.buffer.size} elements")
        if not view.buffer.is_external:
            sizes[view.buffer] = view.buffer.nbytes
    if sum(sizes.values()) > MAX_BYTES:
        raise NotImplementedError(f"the extrapolated program needs more than {MAX_BYTES:,} bytes")
