"""Elements that are chosen by arrays of integers: loops in C order, so that of those named several times the last one counts.

An index is read in the outermost loop in which it is known. Along the last axis, if no index hangs on it, elements that follow
each other are moved in vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from .. import elementwise
from ..code import LONG, Code, Value
from ..machine import processor
from ..refusal import refuse
from ..steps import Gather, Place, Scatter
from .addresses import Base, Turns
from .elements import Memory, load, store


def emit_gather(code: Code, step: Gather, base: Base, turns: Turns) -> None:
    """Write the code of a gather."""
    source, *indices = step.operands
    memory = Memory(code, base, turns)
    loops = _Loops(memory, step, source, indices)

    def body(counters: list[Value | None], offset: Value, lanes: int) -> None:
        dtype = source.buffer.dtype
        where = code.at(memory.address(source, counters), offset, elementwise.in_memory(dtype))
        value = elementwise.converted(code, load(code, where, dtype, lanes), dtype, step.out.buffer.dtype)
        store(code, value, memory.address(step.out, counters), step.out.buffer.dtype)

    loops.write(body, (source, step.out))


def emit_scatter(code: Code, step: Scatter, base: Base, turns: Turns) -> None:
    """Write the code of a scatter."""
    value, *indices = step.operands
    memory = Memory(code, base, turns)
    loops = _Loops(memory, step, step.out, indices)

    def body(counters: list[Value | None], offset: Value, lanes: int) -> None:
        dtype = step.out.buffer.dtype
        where = code.at(memory.address(step.out, counters), offset, elementwise.in_memory(dtype))
        now = memory.read(value, counters, dtype, lanes)
        if step.operation != "copy":
            now = elementwise.emit(code, step.operation, [load(code, where, dtype, lanes), now], dtype)
        store(code, now, where, dtype)

    loops.write(body, (step.out,), value)


class _Loops:
    """Loops over the axes of a gather or a scatter.

    Parameters
    ----------
    memory : Memory
        How places are found.
    step : Gather or Scatter
        What is done.
    chosen : Place
        The place along whose axes the indices choose.
    indices : sequence of Place
        The indices.
    """

    def __init__(self, memory: Memory, step: Gather | Scatter, chosen: Place, indices: Sequence[Place]) -> None:
        self.code, self.memory, self.step, self.chosen, self.indices = memory.code, memory, step, chosen, indices
        self.depths = [max((k + 1 for k, s in enumerate(p.strides) if s and p.shape[k] > 1), default=0) for p in indices]

    def write(self, body: Callable[..., None], passed: Sequence[Place], value: object = None) -> None:
        """Write the loops; `body` is given the counters, by how many elements the indices pass on, and how many lanes it has.

        Vectors are taken if the places of `passed`, and the `value` if it is one, are passed through one by one on the last axis.
        """
        shape, items = self.step.out.shape, [p.buffer.dtype.itemsize for p in passed]
        is_dense = bool(shape) and max(self.depths) < len(shape) and all(p.strides[-1] == 1 for p in passed)
        is_dense = is_dense and (not isinstance(value, Place) or value.strides[-1:] in ((), (0,), (1,)))
        lanes = processor()[2] // max(items) if is_dense else 1
        self._at(0, [], self.code.number(0, LONG), body, lanes)

    def _at(self, depth: int, counters: list[Value | None], offset: Value, body: Callable[..., None], lanes: int) -> None:
        """Write the loops from one depth on."""
        for k, known in enumerate(self.depths):
            if known == depth:
                offset = self.code.binary("add", offset, self._passed(k, counters))
        shape = self.step.out.shape
        if depth == len(shape):
            body(counters, offset, 1)
            return
        full = shape[depth] - shape[depth] % lanes if depth == len(shape) - 1 and lanes > 1 else 0
        if full:
            with self._counted(0, full, lanes) as counter:
                body([*counters, counter], offset, lanes)
        if full < shape[depth]:
            with self._counted(full, shape[depth], 1) as counter:
                self._at(depth + 1, [*counters, counter], offset, body, lanes)

    @contextmanager
    def _counted(self, start: int, stop: int, step: int) -> Iterator[Value | None]:
        if (start, stop) == (0, 1):
            yield None
            return
        with self.code.loop(start, stop, step) as loop:
            yield loop.index

    def _passed(self, k: int, counters: list[Value | None]) -> Value:
        """By how many elements an index passes on; one that is out of range is refused, and taken to be 0."""
        code, dtype = self.code, self.indices[k].buffer.dtype
        index = load(code, self.memory.address(self.indices[k], counters), dtype)
        if dtype.itemsize < 8:
            index = code.cast("sext" if dtype.kind == "i" else "zext", index, LONG)
        stride = code.number(self.step.strides[k], LONG)
        if not self.step.lengths[k]:
            return code.binary("mul", index, stride)
        length = code.number(self.step.lengths[k], LONG)
        negative = code.compare("slt", index, code.number(0, LONG))
        index = code.select(negative, code.binary("add", index, length), index)
        outside = code.compare("uge", index, length)
        refuse(code, outside)
        index = code.select(outside, code.number(0, LONG), index)
        return code.binary("mul", index, stride)
