"""Guards that are sent with the graph that they are about, each with its line of the user's code as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..graph import next_tick
from ..graph.interpreter import source_lines
from ..guards import Guard, Unchanged, Watch
from .graphs import Moment


class SentGuards:
    """Guards in a pickle, or a deep copy, loaded as a list of them.

    As long as it lives, nodes are pickled at the same `Moment`, so the ticks of guards and nodes keep their order.
    """

    def __init__(self, guards: Iterable[Guard]) -> None:
        self._guards = [guard for guard in guards if not isinstance(guard, Unchanged)]  # whose variables are not sent
        self._moment = Moment.current()

    def __reduce__(self) -> Any:
        return _loaded, ([self._code(guard) for guard in self._guards],)

    def _code(self, guard: Guard) -> tuple[Any, ...]:
        """A guard as a pickle holds it; of a `Watch` there is one thing more, whether it is strict."""
        line = source_lines.described(guard.code, guard.instruction)
        more = (guard.is_strict,) if isinstance(guard, Watch) else ()
        return guard.what, guard.function, guard.args, guard.answer, line, guard.tick - self._moment.tick, *more


def _loaded(codes: list[Any]) -> list[Guard]:
    while next_tick() <= max([0.0, *[code[5] for code in codes]]):
        pass  # a tick is positive if a pickler outlived its first dump; see `graphs`
    return [_guard(*code) for code in codes]


def _guard(what: str, function: Any, args: Any, answer: Any, line: str | None, tick: float, *strict: bool) -> Guard:
    made = (Watch if strict else Guard)(what, function, args, answer, line, 0, tick)
    if isinstance(made, Watch):
        (made.is_strict,) = strict
    return made
