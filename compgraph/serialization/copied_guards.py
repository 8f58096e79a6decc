"""Guards about the leaves of a graph that is pickled or deep-copied.

Guards contain functions and code of the program that recorded them, so they are not copied. A copied leaf keeps only the text of
the latest guard about it. An executor rejects a graph of copies that depends on guards, as one whose guards were evicted.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from math import inf
from typing import Any

from ..guards import (
    Guard,
    GuardLog,
    Recipe,
    ShapeGuard,
    UntrackedGuard,
    has_evicted_guards,
    log_untracked,
    logged_guards,
    lost_guards,
    reduce_ancestors,
)
from ..values import ConstantNode, PlaceholderNode, VariableNode


class CopiedGuards:
    """Finds the guards about leaves, looking through each log once."""

    def __init__(self, copied_nodes: Container[Any]) -> None:
        log_untracked()
        self._copied = copied_nodes  # the nodes that are copied
        self._newest: dict[GuardLog, dict[int, Guard]] = {}

    def about(self, leaf: Any, last: float, now: float) -> tuple[str, float] | None:
        """The latest guard about a leaf: its text, and its sequence number counted from `now`; None if there was none.

        `last` is the sequence number of the graph's last operation: later guards do not concern the graph, unless they were used.
        """
        lineage = getattr(leaf, "recipe", None)
        text_and_sequence_number = self._latest(lineage, last) if type(lineage) is Recipe else None
        return None if text_and_sequence_number is None else (text_and_sequence_number[0], text_and_sequence_number[1] - now)

    def _latest(self, lineage: Recipe, last: float) -> tuple[str, float] | None:
        log = lineage.log.resolve()
        if log not in self._newest:
            self._newest[log] = _newest([guard for guard in logged_guards([log]) if not self._is_known(guard)], last)
        guard = self._newest[log].get(id(lineage))
        if guard is not None:
            return str(guard), guard.sequence_number
        if has_evicted_guards(log, -inf):
            return "more of them than are remembered", log.evicted_until
        return next(((lost.description, lost.sequence_number) for lost in lost_guards(log) if lost.recipe is lineage), None)

    def _is_known(self, guard: Guard) -> bool:
        """Whether a guard watches a value that is read or copied, or the shapes of a value that is copied."""
        if isinstance(guard, ShapeGuard):
            return all(a.node() in self._copied for a in guard.args)
        return isinstance(guard, UntrackedGuard) and (guard.is_read or guard.args[0].node() in self._copied)


def _newest(guards: Iterable[Guard], last: float) -> dict[int, Guard]:
    """For each leaf, by the id of its lineage, the latest guard that depends on it.

    A constant never changes, so it gets only guards that depend on constants alone.
    """
    matter = [d for d in guards if d.is_used or d.sequence_number < last]
    is_fed = reduce_ancestors([a for d in matter for a in d.args], _is_fed, any)
    guards_by_leaf: dict[int, Guard] = {}
    seen: set[int] = set()
    for guard in reversed(matter):
        queue = [a for a in guard.args if type(a) is Recipe and id(a) not in seen]
        by_constants = not any(is_fed[id(a)] for a in guard.args if type(a) is Recipe)
        for lineage in queue:
            if id(lineage) in seen:
                continue
            if not by_constants and isinstance(lineage.node(), ConstantNode):
                continue
            seen.add(id(lineage))
            if lineage.function is None:
                guards_by_leaf[id(lineage)] = guard
            queue += [a for a in lineage.sources() if id(a) not in seen]
    return guards_by_leaf


def _is_fed(lineage: Recipe) -> bool:
    return lineage.function is None and isinstance(lineage.node(), (VariableNode, PlaceholderNode))
