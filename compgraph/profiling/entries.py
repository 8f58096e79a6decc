"""The entries of a profile: operations at a line of the user's code, with their steps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, TypeAlias

from ..frames import source_lines
from ..ops import opname_of

Function: TypeAlias = Callable[..., Any] | str  # an operation, or a name
Code: TypeAlias = CodeType | str | None  # of the user's line

FORWARD, BACKWARD, TANGENT, BATCHED = "forward", "backward", "tangent", "vmap"


class Entry:
    """The calls, the time and the bytes of one operation in one direction, at one line and in one scope.

    Parameters
    ----------
    direction : {"forward", "backward", "tangent", "vmap"}
        The pass: the operation itself, the adjoints of its operands, the operation with tangents, or on a batch of `vmap`.
    function : callable or str
        The recorded function, or a name.
    code, instruction : object, int
        The user's line, as nodes store it.
    scope : tuple of str
        The names of the enclosing scopes.

    Attributes
    ----------
    calls, seconds, allocated : int, float, int
        The number of calls, their time with all steps, and the bytes of the results and of copied operands.
    steps : dict of Entry
        The entries recorded within this one, by `key`.
    """

    __slots__ = ("allocated", "calls", "code", "direction", "function", "instruction", "key", "scope", "seconds", "steps")

    def __init__(self, direction: str, function: Function, code: Code, instruction: int, scope: tuple[str, ...]) -> None:
        self.direction, self.function, self.code, self.instruction, self.scope = direction, function, code, instruction, scope
        self.key = (direction, function, id(code), instruction, scope)  # hashing a code object is slow
        self.calls, self.seconds, self.allocated = 0, 0.0, 0
        self.steps: dict[Any, Entry] = {}

    def step(self, direction: str, function: Function, code: Code, instruction: int, scope: tuple[str, ...]) -> Entry:
        """Return the entry of a step, which is added if needed."""
        key = (direction, function, id(code), instruction, scope)
        step = self.steps.get(key)
        if step is None:
            step = self.steps[key] = Entry(direction, function, code, instruction, scope)
        return step

    def merge(self, other: Entry) -> None:
        """Add the steps of another entry. Steps of a derivative get its line and scope."""
        queue = [(self, other)]
        for target, source in queue:
            for step in source.steps.values():
                location = step if target.direction is FORWARD else target
                own_step = target.step(step.direction, step.function, location.code, location.instruction, location.scope)
                own_step.calls += step.calls
                own_step.seconds += step.seconds
                own_step.allocated += step.allocated
                queue.append((own_step, step))

    @property
    def own(self) -> float:
        """The time without the steps, in seconds."""
        return max(0.0, self.seconds - sum(step.seconds for step in self.steps.values()))

    @property
    def operation(self) -> str:
        """The name of the operation, with its direction."""
        name = self.function if isinstance(self.function, str) else opname_of(self.function)
        return name if self.direction == FORWARD else f"{name} ({self.direction})"

    @property
    def line(self) -> str:
        """File and line, as ``model.py:12``; empty if unknown."""
        if self.code is None:
            return ""
        if isinstance(self.code, str):  # text, in a graph that was loaded
            return self.code.partition(", in ")[0].removeprefix("File ").replace('"', "").replace(", line ", ":")
        return f"{os.path.basename(self.code.co_filename)}:{source_lines.line_number(self.code, self.instruction)}"

    @property
    def full_line(self) -> str:
        """File and line with the full path."""
        if self.code is None or isinstance(self.code, str):
            return self.line
        return f"{self.code.co_filename}:{source_lines.line_number(self.code, self.instruction)}"

    @property
    def place(self) -> str:
        """File, line, function and text of the user's line; empty if unknown."""
        return source_lines.format_line(self.code, self.instruction) or ""

    def walk(self) -> Iterator[tuple[Entry, tuple[Entry, ...]]]:
        """Yield all entries within this one, each with the enclosing ones, the outermost first."""
        queue: list[tuple[Entry, tuple[Entry, ...]]] = [(step, ()) for step in self.steps.values()]
        for entry, outer in queue:
            yield entry, outer
            queue.extend([(step, (*outer, entry)) for step in entry.steps.values()])


def root_entry() -> Entry:
    """Return an entry to contain all others."""
    return Entry(FORWARD, "", None, 0, ())
