"""What goes along an axis in order: sums and products of what comes before, and the search for the greatest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from .. import elementwise
from ..code import LONG, Code, Value
from ..steps import Scan, Search
from .addresses import Base, Turns
from .elements import Memory, load, store


def emit_scan(code: Code, step: Scan, base: Base, turns: Turns) -> None:
    """Write the code of a scan: the first element is the operand's own, as NumPy's is."""
    memory = Memory(code, base, turns)
    operand, dtype, shape = step.operands[0], step.out.buffer.dtype, step.out.shape
    with _counted(code, [n for k, n in enumerate(shape) if k != step.axis]) as rest:
        first = [*rest[: step.axis], None, *rest[step.axis :]]
        value = memory.read(operand, first, dtype)
        store(code, value, memory.address(step.out, first), dtype)
        if shape[step.axis] == 1:
            return
        with code.loop(1, shape[step.axis], 1, [value]) as loop:
            inside = [*rest[: step.axis], loop.index, *rest[step.axis :]]
            value = elementwise.emit(code, step.operation, [loop.now[0], memory.read(operand, inside, dtype)], dtype)
            store(code, value, memory.address(step.out, inside), dtype)
            loop.then = [value]


def emit_search(code: Code, step: Search, base: Base, turns: Turns) -> None:
    """Write the code of a search."""
    memory = Memory(code, base, turns)
    operand, shape = step.operands[0], step.operands[0].shape
    dtype = operand.buffer.dtype
    kept = [k for k in range(len(shape)) if k not in step.axes]
    with _counted(code, [shape[k] for k in kept]) as counters:
        outside: list[Value | None] = [None] * len(shape)
        for k, counter in zip(kept, counters, strict=True):
            outside[k] = counter
        zero = code.number(0, LONG)
        state = [load(code, memory.address(operand, outside), dtype), zero, zero]

        def gone(axes: Sequence[int], indices: list[Value | None], state: list[Value]) -> list[Value]:
            if not axes:
                return _better(code, step.operation, load(code, memory.address(operand, indices), dtype), state, dtype.kind)
            with code.loop(0, shape[axes[0]], 1, state) as loop:
                inside = [loop.index if k == axes[0] else index for k, index in enumerate(indices)]
                loop.then = gone(axes[1:], inside, loop.now)
            return loop.then

        found = gone(sorted(step.axes), outside, state)[1]
        store(code, found, memory.address(step.out, outside), step.out.buffer.dtype)


def _better(code: Code, order: str, x: Value, state: Sequence[Value], kind: str) -> list[Value]:
    """The best element so far, its number, and the number of the next, after one more."""
    best, place, number = state
    if kind == "f":  # nan is better than any number, and a later nan no better
        name = {"greater": "ugt", "less": "ult"}[order]
        is_better = code.binary("and", code.compare(name, x, best), code.compare("ord", best, best))
    else:
        name = ("u" if kind in "ub" else "s") + {"greater": "gt", "less": "lt"}[order]
        is_better = code.compare(name, x, best)
    following = code.binary("add", number, code.number(1, LONG))
    return [code.select(is_better, x, best), code.select(is_better, number, place), following]


@contextmanager
def _counted(code: Code, lengths: Sequence[int]) -> Iterator[list[Value | None]]:
    """A loop for each of some lengths, one in the other; gives their counters."""
    with ExitStack() as loops:
        yield [loops.enter_context(code.loop(0, length)).index if length > 1 else None for length in lengths]
