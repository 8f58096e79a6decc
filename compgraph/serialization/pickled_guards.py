"""Pickling of guards with their graph; the user's line of a guard is pickled as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..frames import source_lines
from ..guards import Guard, UntrackedGuard
from ..values import next_sequence_number
from .graphs import TimeOrigin


def _reduce_guard(guard: Guard) -> Any:
    """``__reduce__`` of guards. Their nodes precede them in a pickle, so the `TimeOrigin` is alive and preserves the order."""
    line = source_lines.format_line(guard.code, guard.instruction)
    strictness = (guard.is_strict,) if isinstance(guard, UntrackedGuard) else ()
    return _rebuild_guard, (
        guard.what,
        guard.function,
        guard.args,
        guard.recorded,
        line,
        guard.sequence_number - TimeOrigin.current().sequence_number,
        *strictness,
    )


def _rebuild_guard(
    what: str,
    function: Callable[..., Any] | type,
    args: tuple[Any, ...],
    recorded_value: tuple[Any, ...] | int | str,
    line: str | None,
    sequence_number: float,
    *strict: bool,
) -> Guard:
    while sequence_number >= 0 and next_sequence_number() <= sequence_number:
        pass  # positive if a pickler outlived its first dump; see `graphs`
    guard = (UntrackedGuard if strict else Guard)(what, function, args, recorded_value, line, 0, sequence_number)
    if isinstance(guard, UntrackedGuard):
        (guard.is_strict,) = strict
    return guard


def _rebuild_guards(codes: list[Any]) -> list[Guard]:
    """Rebuild the guards in a pickle of an earlier version."""
    return [_rebuild_guard(*code) for code in codes]


Guard.__reduce__ = _reduce_guard  # type: ignore[method-assign, assignment]
