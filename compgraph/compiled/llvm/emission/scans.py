"""What goes along an axis in order: sums and products of what comes before."""

from __future__ import annotations

from contextlib import ExitStack

from .. import elementwise
from ..code import Code, Value
from ..steps import Scan
from .addresses import Base, Turns
from .elements import Memory, store


def emit_scan(code: Code, step: Scan, base: Base, turns: Turns) -> None:
    """Write the code of a scan: the first element is the operand's own, as NumPy's is."""
    memory = Memory(code, base, turns)
    operand, dtype, shape = step.operands[0], step.out.buffer.dtype, step.out.shape
    with ExitStack() as loops:
        first: list[Value | None] = [None] * len(shape)
        for axis, length in enumerate(shape):
            if axis != step.axis and length > 1:
                first[axis] = loops.enter_context(code.loop(0, length)).index
        value = memory.read(operand, first, dtype)
        store(code, value, memory.address(step.out, first), dtype)
        if shape[step.axis] == 1:
            return
        with code.loop(1, shape[step.axis], 1, [value]) as loop:
            inside = [*first[: step.axis], loop.index, *first[step.axis + 1 :]]
            value = elementwise.emit(code, step.operation, [loop.now[0], memory.read(operand, inside, dtype)], dtype)
            store(code, value, memory.address(step.out, inside), dtype)
            loop.then = [value]
