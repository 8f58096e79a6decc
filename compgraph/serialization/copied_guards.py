"""Guards about the leaves of a graph that is pickled or deep-copied.

Guards contain functions and code of the program that recorded them, so they are not copied. A copied leaf keeps only the text of
the latest guard about it. An executor rejects a copied graph that depends on guards, like a graph with evicted guards.
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
        self._latest_guards: dict[GuardLog, dict[int, Guard]] = {}

    def latest_guard(self, leaf: object, last_operation: float, now: float) -> tuple[str, float] | None:
        """Return the text of the latest guard about a leaf, and its sequence number relative to `now`; None without a guard.

        `last_operation` is the sequence number of the graph's last operation. Later guards count only if their value was used.
        """
        recipe = getattr(leaf, "recipe", None)
        text_and_sequence_number = self._latest(recipe, last_operation) if type(recipe) is Recipe else None
        return None if text_and_sequence_number is None else (text_and_sequence_number[0], text_and_sequence_number[1] - now)

    def _latest(self, recipe: Recipe, last_operation: float) -> tuple[str, float] | None:
        log = recipe.log.resolve()
        if log not in self._latest_guards:
            self._latest_guards[log] = _latest_guards(
                [guard for guard in logged_guards([log]) if not self._is_tracked(guard)], last_operation
            )
        guard = self._latest_guards[log].get(id(recipe))
        if guard is not None:
            return str(guard), guard.sequence_number
        if has_evicted_guards(log, -inf):
            return "more of them than the log holds", log.evicted_until
        return next(((lost.description, lost.sequence_number) for lost in lost_guards(log) if lost.recipe is recipe), None)

    def _is_tracked(self, guard: Guard) -> bool:
        """Whether a guard is on a value that is read or copied, or on shapes of copied values."""
        if isinstance(guard, ShapeGuard):
            return all(a.node() in self._copied for a in guard.args)
        return isinstance(guard, UntrackedGuard) and (guard.is_read or guard.args[0].node() in self._copied)


def _latest_guards(guards: Iterable[Guard], last_operation: float) -> dict[int, Guard]:
    """Return the latest guard that depends on each leaf, by the id of the leaf's recipe.

    A constant never changes, so only guards that depend on constants alone count for it.
    """
    relevant = [guard for guard in guards if guard.is_used or guard.sequence_number < last_operation]
    depends_on_inputs = reduce_ancestors([a for guard in relevant for a in guard.args], _is_input, any)
    guards_by_leaf: dict[int, Guard] = {}
    visited: set[int] = set()
    for guard in reversed(relevant):
        queue = [a for a in guard.args if type(a) is Recipe and id(a) not in visited]
        by_constants = not any(depends_on_inputs[id(a)] for a in guard.args if type(a) is Recipe)
        for recipe in queue:
            if id(recipe) in visited:
                continue
            if not by_constants and isinstance(recipe.node(), ConstantNode):
                continue
            visited.add(id(recipe))
            if recipe.function is None:
                guards_by_leaf[id(recipe)] = guard
            queue += [a for a in recipe.sources() if id(a) not in visited]
    return guards_by_leaf


def _is_input(recipe: Recipe) -> bool:
    return recipe.function is None and isinstance(recipe.node(), (VariableNode, PlaceholderNode))
