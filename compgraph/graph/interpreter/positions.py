"""Which part of the source an instruction stands for, and what was found out about instructions once and for all."""

from __future__ import annotations

import dis
import operator
from bisect import bisect_right
from types import CodeType
from typing import Any

KEPT = 4096  # instructions of which the answer is remembered

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
    """All instructions, without prefixes to the arguments of others, unless one is jumped to; and which of them is at work.

    An offset may lie behind that of the instruction, in its cache, where a property in Python is called. Those of the
    latest code are kept, since a long function may convert on many of its lines.
    """
    global _latest
    of, found = _latest
    if of is not code:
        found = [i for i in dis.get_instructions(code) if i.opname != "EXTENDED_ARG" or i.is_jump_target]
        _latest = code, found
    return found, bisect_right(found, offset, key=_OFFSET) - 1


class Remembered(dict[tuple[int, int], tuple[CodeType, Any]]):
    """Answers by the identity of a code object, which stays alive here, and the instruction.

    Code objects compare by all they hold, so to look them up by value would cost more the longer a function is.
    """

    def put(self, code: CodeType, instruction: int, answer: Any) -> Any:
        """Remember an answer, and give it back."""
        if len(self) >= KEPT:
            self.clear()
        self[id(code), instruction] = code, answer
        return answer
