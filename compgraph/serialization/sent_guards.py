"""How guards are pickled with the graph that they are about: each with its line of the user's code as text."""

from __future__ import annotations

from typing import Any

from ..frames import source_lines
from ..guards import Guard, Watch
from ..values import next_tick
from .graphs import Moment


def _reduced(guard: Guard) -> Any:
    """``__reduce__`` of guards. Nodes come before them in a pickle, whose `Moment` is still at work: ticks keep their order."""
    line = source_lines.described(guard.code, guard.instruction)
    more = (guard.is_strict,) if isinstance(guard, Watch) else ()
    return _guard, (guard.what, guard.function, guard.args, guard.answer, line, guard.tick - Moment.current().tick, *more)


def _guard(what: str, function: Any, args: Any, answer: Any, line: str | None, tick: float, *strict: bool) -> Guard:
    while tick >= 0 and next_tick() <= tick:
        pass  # a tick is positive if a pickler outlived its first dump; see `graphs`
    made = (Watch if strict else Guard)(what, function, args, answer, line, 0, tick)
    if isinstance(made, Watch):
        (made.is_strict,) = strict
    return made


def _loaded(codes: list[Any]) -> list[Guard]:
    """The guards in a pickle of an earlier version."""
    return [_guard(*code) for code in codes]


Guard.__reduce__ = _reduced  # type: ignore[method-assign, assignment]
