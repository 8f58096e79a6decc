"""Guards that are sent with the graph that they are about, each with its line of the user's code as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..graph import next_tick
from ..graph.interpreter import source_lines
from ..guards import Guard
from .graphs import Moment


class SentGuards:
    """Guards in a pickle, or a deep copy, loaded as a list of them.

    As long as it lives, nodes are pickled at the same `Moment`, so the ticks of guards and nodes keep their order.
    """

    def __init__(self, guards: Iterable[Guard]) -> None:
        self._guards, self._moment = list(guards), Moment.current()

    def __reduce__(self) -> Any:
        now = self._moment.tick
        return _loaded, ([(g.what, g.function, g.args, g.answer, _line(g), g.tick - now) for g in self._guards],)


def _line(guard: Guard) -> str | None:
    return source_lines.described(guard.code, guard.instruction)


def _loaded(codes: list[Any]) -> list[Guard]:
    while next_tick() <= max([0.0, *[tick for *_, tick in codes]]):
        pass  # a tick is positive if a pickler outlived its first dump; see `graphs`
    return [Guard(what, function, args, answer, line, 0, tick) for what, function, args, answer, line, tick in codes]
