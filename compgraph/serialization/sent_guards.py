"""How guards are pickled with the graph that they are about: each with its line of the user's code as text."""

from __future__ import annotations

from typing import Any

from ..frames import source_lines
from ..guards import Guard, UntrackedGuard
from ..values import next_sequence_number
from .graphs import TimeOrigin


def _reduce_guard(guard: Guard) -> Any:
    """``__reduce__`` of guards. Nodes precede them in a pickle, so the `TimeOrigin` is alive and the order is kept."""
    line = source_lines.format_line(guard.code, guard.instruction)
    more = (guard.is_strict,) if isinstance(guard, UntrackedGuard) else ()
    return _guard, (
        guard.what,
        guard.function,
        guard.args,
        guard.recorded,
        line,
        guard.sequence_number - TimeOrigin.current().sequence_number,
        *more,
    )


def _guard(
    what: str, function: Any, args: Any, recorded_value: Any, line: str | None, sequence_number: float, *strict: bool
) -> Guard:
    while sequence_number >= 0 and next_sequence_number() <= sequence_number:
        pass  # a tick is positive if a pickler outlived its first dump; see `graphs`
    guard = (UntrackedGuard if strict else Guard)(what, function, args, recorded_value, line, 0, sequence_number)
    if isinstance(guard, UntrackedGuard):
        (guard.is_strict,) = strict
    return guard


def _loaded(codes: list[Any]) -> list[Guard]:
    """The guards in a pickle of an earlier version."""
    return [_guard(*code) for code in codes]


Guard.__reduce__ = _reduce_guard  # type: ignore[method-assign, assignment]
