"""What is asked of a compiled program that `visualize_at` draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .drawing import Drawing


@dataclass(frozen=True)
class ProgramOptions:
    """Those arguments of `visualize_at` that are about programs too; `fold` closes the boxes of steps that are done together."""

    limit: int | None
    shapes: bool
    dtypes: bool
    scopes: str
    fold: bool | None


class Compiled(Protocol):
    """A function, or a graph, of which programs were made."""

    def programs_made(self) -> Iterable[tuple[Any, Sequence[str]]]:
        """The programs that exist, the latest first, each with the names of its inputs. Those of machine code can be drawn."""


def drawing_of_program(compiled: Compiled, options: ProgramOptions, **others: Any) -> Drawing:
    """The drawing of a compiled program; an error if something else is asked of it that only graphs have."""
    given = [name for name, value in others.items() if value is not None and value is not False]
    if given:
        raise ValueError(f"a compiled program has no {', no '.join(given)} that could be drawn; draw a node of the graph")
    if options.scopes not in ("open", "closed"):
        raise ValueError(f"of a compiled program, scopes must be 'open' or 'closed', not {options.scopes!r}")
    for program, names in compiled.programs_made():
        if hasattr(program, "drawing"):
            drawing: Drawing = program.drawing(options, names)
            return drawing
    raise ValueError(
        "there is no machine code to draw: of a compiled function, call compile(*args) first, and see report(); an Executor is "
        "drawn once it has run with jit=True; of a graph, draw a node"
    )
