"""Which part of the source an instruction stands for, and a store for what was found out about instructions."""

from __future__ import annotations

import dis
import operator
from bisect import bisect_right
from types import CodeType
from typing import Any

KEPT = 4096  # instructions whose answers are remembered

_OFFSET = operator.attrgetter("offset")
Span = tuple[tuple[int, int], tuple[int, int]]


def span_of(instruction: dis.Instruction) -> Span | None:
    """Where in the source an instruction's expression begins and ends; None where that was not kept."""
    p = instruction.positions
    if p is None or p.lineno is None or p.col_offset is None or p.end_lineno is None or p.end_col_offset is None:
        return None
    return (p.lineno, p.col_offset), (p.end_lineno, p.end_col_offset)


_latest: tuple[CodeType | None, list[dis.Instruction]] = None, []


def at_work(code: CodeType, offset: int) -> tuple[list[dis.Instruction], int]:
    """All instructions of a code object, and the position of the one at work. EXTENDED_ARG is left out unless jumped to.

    `offset` may lie in the instruction's cache, behind its own: so it does while a property written in Python is called. The
    list of the latest code object is kept, since a long function may convert nodes on many of its lines.
    """
    global _latest
    of, found = _latest
    if of is not code:
        found = [i for i in dis.get_instructions(code) if i.opname != "EXTENDED_ARG" or i.is_jump_target]
        _latest = code, found
    return found, bisect_right(found, offset, key=_OFFSET) - 1


class Remembered(dict[tuple[int, int], tuple[CodeType, Any]]):
    """Answers by the id of a code object, which is kept alive here, and the instruction.

    Code objects are hashed and compared by content, so a look-up by value would cost more the longer the function is.
    """

    def put(self, code: CodeType, instruction: int, answer: Any) -> Any:
        """Remember an answer, and give it back."""
        if len(self) >= KEPT:
            self.clear()
        self[id(code), instruction] = code, answer
        return answer
