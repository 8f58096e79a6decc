"""Lineages: how nodes were computed, kept so that a guard about a node can be asked when the node is gone.

A `Recipe` holds its node weakly, and the lineages of the node's operands, down to the leaves. So a node that was computed only
for a test (``if np.sum(x) > 0``) may be freed, and can still be computed again. A node keeps its lineage, which is made once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..bind import attach
from ..context import rerecording
from ..graph import walk
from ..values import ConstantNode, MultiOutput, Value

HEAVY = 2**20  # bytes of the largest array that a lineage keeps alive; a larger one it holds weakly


class NotRecomputableError(Exception):
    """What a guard was about cannot be computed again."""


class Recipe:
    """How a node or joint was computed.

    Attributes
    ----------
    node : callable
        ``node()`` gives the node while it lives, else None.
    function, args, options, tick
        Those of the node; in place of nodes among the arguments lineages, of large arrays weak references. Of a leaf the
        function is None.
    value : array or None
        Of a leaf of one of the kinds in `logs._STEADY`, its array, if it is not heavy.
    root : Lineage or None
        Of a view, the lineage of what it is a view of, or of the root itself; see `rooted`.
    log : Log
        Where guards about it stand.
    buffer : Buffer or None
        Of a root that was written into, the writes.
    """

    __slots__ = ("__weakref__", "args", "buffer", "function", "log", "node", "options", "root", "sequence_number", "value")

    args: tuple[Any, ...]
    buffer: Buffer | None
    function: Any
    log: Any
    node: Callable[[], Any]
    options: dict[str, Any]
    root: Recipe | None
    sequence_number: float
    value: Any

    def rooted(self) -> Recipe:
        """The lineage of the root: the node that first had the buffer."""
        root = self
        while root.root is not None:
            root = root.root
        view = self
        while view.root is not None and view.root is not root:
            view.root, view = root, view.root
        return root

    def sources(self) -> list[Recipe]:
        """The lineages of operands, and of values stored in the buffer; these may have been computed from the buffer itself."""
        stored = () if self.buffer is None else self.buffer.stored
        return [a for a in (*self.args, *stored) if type(a) is Recipe]


class Buffer:
    """The writes into a buffer, as far as they were looked at.

    Attributes
    ----------
    seen : int
        How many they are.
    written : float
        The tick of the first.
    stored : list of Lineage
        Those of the nodes that were stored.
    """

    __slots__ = ("seen", "stored", "written")

    def __init__(self, written: float) -> None:
        self.seen, self.written = 0, written
        self.stored: list[Recipe] = []


def reduce_ancestors(
    lineages: Iterable[Any], leaf: Callable[[Recipe], Any], together: Callable[[Iterable[Any]], Any]
) -> dict[int, Any]:
    """For each lineage, and each behind it, by id: ``leaf(recipe)`` of itself and of all behind it, joined by `together`."""
    ordered = sort_recipes(lineages)
    found = {id(lineage): leaf(lineage) for lineage in ordered}
    buffers = any(lineage.buffer for lineage in ordered)
    changed = True
    while changed:  # what is stored in a buffer is younger than the buffer, so one pass in the order of ticks may miss it
        changed = False
        for lineage in ordered:
            sources = lineage.sources()
            if sources:
                now = together([found[id(lineage)], *[found[id(a)] for a in sources]])
                changed = changed or (buffers and now != found[id(lineage)])
                found[id(lineage)] = now
    return found


def sort_recipes(lineages: Iterable[Any]) -> list[Recipe]:
    """Lineages and all lineages behind them, operands first."""
    return sorted(walk([a for a in lineages if type(a) is Recipe], Recipe.sources), key=_leaves_first)


def _leaves_first(lineage: Recipe) -> tuple[bool, float]:
    return lineage.function is not None, lineage.sequence_number


# ------------------------------------------------------------------------------------------- computed again


class Rematerializer:
    """Makes nodes of lineages: the node itself while it lives, else one computed again from nodes that do."""

    def __init__(self) -> None:
        # By the ids of lineages, which the guards keep alive: the node made, and how long its value is right (the
        # first write into a buffer behind it that is gone).
        self._made: dict[int, Any] = {}
        self._until: dict[int, float] = {}

    def revived(self, kept: Any, sequence_number: float) -> Any:
        """The node for an argument of a guard of that sequence number; raises a GoneError if it cannot be computed again."""
        if type(kept) is not Recipe:
            return self._operand(kept)
        behind = list(walk([kept], self._needed))
        gone = [lineage for lineage in behind if id(lineage) not in self._made]
        for lineage in sorted(gone, key=_leaves_first):
            written = np.inf if lineage.buffer is None else lineage.buffer.written
            until = min([self._until[id(a)] for a in lineage.args if type(a) is Recipe], default=np.inf)
            made = self._again(lineage)
            self._made[id(lineage)], self._until[id(lineage)] = made, min(written, until)
        if self._until[id(kept)] < sequence_number:
            raise NotRecomputableError
        return self._made[id(kept)]

    def _needed(self, lineage: Recipe) -> list[Recipe]:
        """The operands' lineages of a node that is gone; of one that lives nothing, and it is entered."""
        if id(lineage) not in self._made:
            node = lineage.node()
            if node is None:
                return [a for a in lineage.args if type(a) is Recipe]
            self._made[id(lineage)], self._until[id(lineage)] = node, np.inf
        return []

    def _again(self, lineage: Recipe) -> Any:
        if lineage.function is None:
            if lineage.value is None:
                raise NotRecomputableError
            return ConstantNode.hold(lineage.value)
        args = tuple([self._operand(a) for a in lineage.args])
        values = [a.raw_value if isinstance(a, (Value, MultiOutput)) else a for a in args]
        try:
            with np.errstate(all="ignore"):
                value = lineage.function(*values, **lineage.options)
        except Exception as error:
            raise NotRecomputableError from error
        with rerecording():
            made = attach(value, lineage.function, args, lineage.options)
        if isinstance(made, (tuple, list)):
            made = next(part for part in made if part is not None).args[0]
        made.sequence_number = lineage.sequence_number
        return made

    def _operand(self, kept: Any) -> Any:
        if type(kept) is Recipe:
            return self._made[id(kept)]
        if isinstance(kept, weakref.ref):
            kept = kept()
            if kept is None:
                raise NotRecomputableError
        return kept
