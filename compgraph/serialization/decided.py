"""What was decided about the leaves of a graph that is pickled or deep-copied.

Questions hold functions and code of the program that asked them, and stay with it. The copy of a leaf knows only that there
were some, so that a graph of copies which hangs on them is refused like one whose decisions were forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

from ..graph import ConstantNode, PlaceholderNode, VariableNode
from ..guards import Guard, Lineage, Log, copied, gathered_up, is_forgetful, noted


class Decided:
    """Finds what was decided about leaves, looking through each log once."""

    def __init__(self) -> None:
        self._newest: dict[Log, dict[int, Guard]] = {}

    def about(self, leaf: Any, last: float, now: float) -> tuple[str, float] | None:
        """The latest decision about a leaf of a graph whose last operation was at a tick: in words, and when, from now."""
        recipe = getattr(leaf, "recipe", None)
        found = None if recipe is None else self._found(recipe, last)
        return None if found is None else (found[0], found[1] - now)

    def _found(self, recipe: Lineage, last: float) -> tuple[str, float] | None:
        log = recipe.log.found()
        if log not in self._newest:
            self._newest[log] = _newest(noted([log]), last)
        decision = self._newest[log].get(id(recipe))
        if decision is not None:
            return str(decision), decision.tick
        if is_forgetful(log, -inf):
            return "more of them than are remembered", log.forgotten
        return next(((lost.words, lost.tick) for lost in copied(log) if lost.lineage is recipe), None)


def _newest(decisions: Iterable[Guard], last: float) -> dict[int, Guard]:
    """The latest decision behind which each leaf is, by the identity of its recipe; those of constants alone are theirs."""
    matter = [d for d in decisions if d.is_used or d.tick < last]
    is_fed = gathered_up([a for d in matter for a in d.args], _is_fed, any)
    found: dict[int, Guard] = {}
    seen: set[int] = set()
    for decision in reversed(matter):
        queue = [a for a in decision.args if a.__class__ is Lineage and id(a) not in seen]
        by_constants = not any(is_fed[id(a)] for a in decision.args if a.__class__ is Lineage)
        for recipe in queue:
            if id(recipe) in seen:
                continue
            if not by_constants and isinstance(recipe.node(), ConstantNode):
                continue
            seen.add(id(recipe))
            if recipe.function is None:
                found[id(recipe)] = decision
            queue += [a for a in recipe.sources() if id(a) not in seen]
    return found


def _is_fed(recipe: Lineage) -> bool:
    return recipe.function is None and isinstance(recipe.node(), (VariableNode, PlaceholderNode))
