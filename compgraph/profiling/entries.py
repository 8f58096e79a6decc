"""Entries of a profile: operations at a line of the user's code, and the steps that they consist of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..frames import source_lines
from ..ops import opname_of

FORWARD, BACKWARD, TANGENT, EXAMPLES = "forward", "backward", "tangent", "vmap"


class Entry:
    """One operation, in one direction, at one line and in one scope: how often it was done, how long that took, how many bytes.

    Parameters
    ----------
    direction : {"forward", "backward", "tangent", "vmap"}
        Whether the operation is computed, its adjoints, its tangent as well, or all examples of a vmap.
    function : callable or str
        The function that is recorded; or the name of what is no operation.
    code, instruction : object, int
        The user's line, as nodes keep it.
    scope : tuple of str
        The names of the scopes around.

    Attributes
    ----------
    calls, seconds, allocated : int, float, int
        How often it was done; how long that took, with all steps; the bytes of the results, and of what was copied for them.
    steps : dict of Entry
        What was done meanwhile, by `key`.
    """

    __slots__ = ("allocated", "calls", "code", "direction", "function", "instruction", "key", "scope", "seconds", "steps")

    def __init__(self, direction: str, function: Any, code: Any, instruction: int, scope: tuple[str, ...]) -> None:
        self.direction, self.function, self.code, self.instruction, self.scope = direction, function, code, instruction, scope
        self.key = (direction, function, id(code), instruction, scope)  # a code object takes long to hash
        self.calls, self.seconds, self.allocated = 0, 0.0, 0
        self.steps: dict[Any, Entry] = {}

    def step(self, direction: str, function: Any, code: Any, instruction: int, scope: tuple[str, ...]) -> Entry:
        """The entry of a step, which is made if there is none yet."""
        key = (direction, function, id(code), instruction, scope)
        found = self.steps.get(key)
        if found is None:
            found = self.steps[key] = Entry(direction, function, code, instruction, scope)
        return found

    def take(self, other: Entry) -> None:
        """Add the steps of another entry to these; those of a derivative belong to its line and scope."""
        queue = [(self, other)]
        for into, given in queue:
            is_rule = into.direction is not FORWARD
            for step in given.steps.values():
                place = (into if is_rule else step).site[2:]
                mine = into.step(step.direction, step.function, *place)
                mine.calls += step.calls
                mine.seconds += step.seconds
                mine.allocated += step.allocated
                queue.append((mine, step))

    @property
    def site(self) -> tuple[str, Any, Any, int, tuple[str, ...]]:
        """What it was made of."""
        return self.direction, self.function, self.code, self.instruction, self.scope

    @property
    def own(self) -> float:
        """The seconds that it took without its steps."""
        return max(0.0, self.seconds - sum(step.seconds for step in self.steps.values()))

    @property
    def operation(self) -> str:
        """The name of the operation, and in which direction."""
        name = self.function if isinstance(self.function, str) else opname_of(self.function)
        return name if self.direction == FORWARD else f"{name} ({self.direction})"

    @property
    def line(self) -> str:
        """File and line in short, as ``model.py:12``; empty if they are not known."""
        if self.code is None:
            return ""
        if isinstance(self.code, str):  # of a graph that was loaded: a text
            return self.code.partition(", in ")[0].removeprefix("File ").replace('"', "").replace(", line ", ":")
        return f"{os.path.basename(self.code.co_filename)}:{source_lines.line_number(self.code, self.instruction)}"

    @property
    def full_line(self) -> str:
        """The same with the whole path, which tells files of one name apart."""
        if self.code is None or isinstance(self.code, str):
            return self.line
        return f"{self.code.co_filename}:{source_lines.line_number(self.code, self.instruction)}"

    @property
    def place(self) -> str:
        """File, line, function and text of the user's line; empty if they are not known."""
        return source_lines.format_line(self.code, self.instruction) or ""

    def walk(self) -> Iterator[tuple[Entry, tuple[Entry, ...]]]:
        """All entries within this one, each with those around it, the outermost first."""
        queue: list[tuple[Entry, tuple[Entry, ...]]] = [(step, ()) for step in self.steps.values()]
        for entry, around in queue:
            yield entry, around
            queue.extend([(step, (*around, entry)) for step in entry.steps.values()])


def root() -> Entry:
    """An entry around all others."""
    return Entry(FORWARD, "", None, 0, ())
