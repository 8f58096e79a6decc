"""The steps of loops of many turns, from those of some with few (a pass).

After `rolling`, programs of one function that differ in the turns of its loops are alike but for whole numbers: lengths of
loops and of what is kept for all turns, offsets from the end. Each such number is taken to be linear in the turns. Two programs
tell how it grows with the turns of a loop, another one has to be as these foretell, and all that is read or written must lie
within its buffer; else nothing is foretold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from ..steps import Buffer, Call, Counter, Gather, Loop, Place, Scatter, Step
from .turns import MOST_BYTES

Of = Callable[[int], int]
MOST_ENDS = 8  # numbers of a table that differ from all others


class Steps(NamedTuple):
    """The steps of a program, and what they begin and end with.

    Attributes
    ----------
    all : list of Step
        In order, loops among them.
    inputs : list of Buffer or None
        Where what is given lies; None for what is not needed.
    outputs : list of Place
        Where the results will lie.
    """

    all: list[Step]
    inputs: list[Buffer | None]
    outputs: list[Place]


def grown(programs: Sequence[Steps], turns: Sequence[tuple[int, ...]], wanted: tuple[int, ...]) -> Steps:
    """The program of other turns.

    Parameters
    ----------
    programs : sequence of Steps
        The first one; for each loop one in which it has some turns more; and others that have to be as these foretell.
    turns : sequence of tuple of int
        The turns of the loops of each.
    wanted : tuple of int
        Those of the program that is returned.

    Raises
    ------
    NotImplementedError
        If they are not alike, or do not grow evenly.
    """
    forms = [_Form(program) for program in programs]
    if any(form.told != forms[0].told for form in forms[1:]):
        raise NotImplementedError("programs with other numbers of turns are not alike")
    numbers, count = np.array([form.numbers for form in forms], np.int64), len(wanted)
    by, steps = numbers[1 : 1 + count] - numbers[0], np.diag(np.array(turns[1 : 1 + count]) - turns[0])

    def foretold(many: tuple[int, ...]) -> Any:
        times, rest = np.divmod(np.array(many) - turns[0], steps)
        if rest.any():
            raise NotImplementedError("other numbers of turns are needed to foretell these")
        return numbers[0] + times @ by

    for many, found in zip(turns[1 + count :], numbers[1 + count :], strict=True):
        if (found != foretold(many)).any():
            raise NotImplementedError("programs do not grow evenly with their turns")
    rest = iter(foretold(wanted).tolist())
    made = _Rewriting(lambda _: next(rest)).program(programs[0])
    _require_within(made)
    return made


class _Form:
    """What is the same in all programs, and the numbers that may differ."""

    def __init__(self, program: Steps) -> None:
        self.numbers: list[int] = []

        def noted(number: int) -> int:
            self.numbers.append(number)
            return number

        rewriting = _Rewriting(noted)
        rewriting.program(program)
        self.told = rewriting.told


class _Rewriting:
    """Goes through a program, in order, and makes it anew with other numbers; `told` is all that is no such number."""

    def __init__(self, of: Of) -> None:
        self._of, self.told = of, list[Any]()
        self._buffers: dict[Buffer, tuple[int, Buffer]] = {}
        self._counters: dict[Counter, tuple[int, Counter]] = {}

    def program(self, program: Steps) -> Steps:
        """All of a program."""
        inputs = [None if buffer is None else self._buffer(buffer, place) for place, buffer in enumerate(program.inputs)]
        self.told.append([buffer is None for buffer in inputs])
        steps = [self._step(step) for step in program.all]
        return Steps(steps, inputs, [self._place(place) for place in program.outputs])

    def _step(self, step: Any) -> Any:
        self.told.append(type(step))
        if isinstance(step, Loop):
            counter = self._counter(step.counter)
            self.told.append(len(step.steps))
            return Loop(counter, [self._step(inner) for inner in step.steps])
        if isinstance(step, Call):
            raise NotImplementedError("NumPy is called")
        return replace(step, **{field.name: self._field(step, field.name) for field in fields(step)})

    def _field(self, step: Any, name: str) -> Any:
        value = getattr(step, name)
        if isinstance(value, Place):
            return self._place(value)
        if name == "operands":
            self.told.append(len(value))
            return tuple([self._place(v) if isinstance(v, Place) else self._number(v) for v in value])
        if name in ("lengths", "strides") and isinstance(step, (Gather, Scatter)):
            return self._all(value)
        self.told.append(value)
        return value

    def _number(self, value: Any) -> Any:
        """A number that is computed with."""
        number = np.asarray(value)
        self.told.append((type(value), number.dtype, number.tobytes()))
        return value

    def _all(self, numbers: Sequence[int]) -> tuple[int, ...]:
        self.told.append(len(numbers))
        return tuple([self._of(number) for number in numbers])

    def _place(self, place: Place) -> Place:
        buffer = self._buffer(place.buffer)
        offset, shape, strides = self._of(place.offset), self._all(place.shape), self._all(place.strides)
        moves = tuple([(self._counter(counter), self._of(by)) for counter, by in place.moves])
        self.told.append(len(moves))
        return Place(buffer, offset, shape, strides, moves)

    def _counter(self, counter: Counter) -> Counter:
        known = self._counters.get(counter)
        if known is None:
            known = self._counters[counter] = len(self._counters), Counter(self._of(counter.length))
        self.told.append(known[0])
        return known[1]

    def _buffer(self, buffer: Buffer, given: int | None = None) -> Buffer:
        known = self._buffers.get(buffer)
        if known is None:
            made = self._made(buffer) if given is None else buffer
            if given is not None:
                self.told.append((buffer.dtype, buffer.size, given))
            known = self._buffers[buffer] = len(self._buffers), made
        self.told.append(known[0])
        return known[1]

    def _made(self, buffer: Buffer) -> Buffer:
        """A buffer that is no input."""
        if not buffer.is_given:
            self.told.append((buffer.dtype, buffer.is_called))
            return Buffer(buffer.dtype, self._of(buffer.size), None, False, buffer.is_called)
        array = getattr(buffer.node, "raw_value", buffer.node)
        head, tail = _ends(array) if array is buffer.node else (array.size, 0)
        if head + tail >= array.size:
            self.told.append((array.dtype, array.shape, array.strides, array.tobytes()))
            return buffer
        middle = array[head : head + 1]
        ends = array[:head], array[array.size - tail :]
        self.told.append((array.dtype, middle.tobytes(), *[end.tobytes() for end in ends]))
        size = self._of(array.size)
        if size == array.size:
            return buffer
        whole = np.concatenate((ends[0], np.repeat(middle, size - head - tail), ends[1]))
        return Buffer(buffer.dtype, size, whole, is_given=True)


def _ends(array: Any) -> tuple[int, int]:
    """How many numbers of a table come before, and after, the longest part of it that are equal; all if there is no such part."""
    if array.ndim != 1 or array.size < 2 * MOST_ENDS or array.strides != (array.itemsize,):
        return array.size, 0
    numbers = array.view(f"V{array.itemsize}")
    differs = np.flatnonzero(numbers != numbers[array.size // 2])
    head = int(differs[differs < array.size // 2].max(initial=-1)) + 1
    tail = array.size - int(differs[differs > array.size // 2].min(initial=array.size))
    return (head, tail) if head + tail <= MOST_ENDS else (array.size, 0)


def _require_within(program: Steps) -> None:
    """Raise a NotImplementedError unless all lies within buffers, and these are not too large."""
    sizes: dict[Buffer, int] = {}
    for place in _places(program.all):
        buffer = place.buffer
        ends = [s * (n - 1) for s, n in zip(place.strides, place.shape, strict=True)]
        ends += [by * (counter.length - 1) for counter, by in place.moves]
        low, high = (place.offset + sum(end(e, 0) for e in ends) for end in (min, max))
        if 0 not in place.shape and not 0 <= low <= high < buffer.size:
            raise NotImplementedError("what is foretold lies outside of its memory")
        if not buffer.is_given:
            sizes[buffer] = buffer.size * buffer.dtype.itemsize
    if sum(sizes.values()) > MOST_BYTES:
        raise NotImplementedError("it would need too much memory")


def _places(steps: Sequence[Any]) -> Iterator[Place]:
    """All places of some steps."""
    for step in steps:
        if isinstance(step, Loop):
            yield from _places(step.steps)
            continue
        for field in fields(step):
            value = getattr(step, field.name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Place):
                    yield part
