"""Recipes: how nodes were computed, so that a guard about a node can be checked after the node was freed.

A `Recipe` refers weakly to its node, and strongly to the recipes of the operands, down to the leaves. So a node that was computed
for a test only (``if np.sum(x) > 0``) can be freed, and computed again. A node keeps its recipe, which is made once.
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
    """Raised if the argument of a guard cannot be computed again."""


class Recipe:
    """How a node or a multi-output operation was computed.

    Attributes
    ----------
    node : callable
        ``node()`` returns the node while it exists, else None.
    function, args, options, sequence_number
        Those of the node, with recipes in place of nodes among the arguments, and weak references in place of large arrays. The
        function of a leaf is None.
    value : array or None
        For a leaf of one of the kinds in `guard_logs._STEADY`, its array, unless it is large.
    root : Recipe or None
        For a view, the recipe of its operand or of its root; see `rooted`.
    log : GuardLog
        The log of guards about it.
    buffer : Buffer or None
        For a root with writes, these.
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
        """The recipe of the root, the node that first had the buffer."""
        root = self
        while root.root is not None:
            root = root.root
        view = self
        while view.root is not None and view.root is not root:
            view.root, view = root, view.root
        return root

    def sources(self) -> list[Recipe]:
        """The recipes of operands, and of values stored in the buffer; these may have been computed from the buffer itself."""
        stored = () if self.buffer is None else self.buffer.stored
        return [a for a in (*self.args, *stored) if type(a) is Recipe]


class Buffer:
    """The examined writes into a buffer.

    Attributes
    ----------
    seen : int
        Their number.
    written : float
        The sequence number of the first.
    stored : list of Recipe
        The recipes of the stored nodes.
    """

    __slots__ = ("seen", "stored", "written")

    def __init__(self, written: float) -> None:
        self.seen, self.written = 0, written
        self.stored: list[Recipe] = []


def reduce_ancestors(
    lineages: Iterable[Any], leaf: Callable[[Recipe], Any], together: Callable[[Iterable[Any]], Any]
) -> dict[int, Any]:
    """Combine ``leaf(recipe)`` of each recipe and its ancestors by `together`; return the results by id."""
    ordered = sort_recipes(lineages)
    results = {id(lineage): leaf(lineage) for lineage in ordered}
    buffers = any(lineage.buffer for lineage in ordered)
    changed = True
    while (
        changed
    ):  # values stored in a buffer are younger than the buffer, so one pass in the order of sequence numbers may miss them
        changed = False
        for lineage in ordered:
            sources = lineage.sources()
            if sources:
                now = together([results[id(lineage)], *[results[id(a)] for a in sources]])
                changed = changed or (buffers and now != results[id(lineage)])
                results[id(lineage)] = now
    return results


def sort_recipes(lineages: Iterable[Any]) -> list[Recipe]:
    """Return recipes and all their ancestors, operands first."""
    return sorted(walk([a for a in lineages if type(a) is Recipe], Recipe.sources), key=_leaves_first)


def _leaves_first(lineage: Recipe) -> tuple[bool, float]:
    return lineage.function is not None, lineage.sequence_number


# ------------------------------------------------------------------------------------------- computed again


class Rematerializer:
    """Computes nodes of recipes: the node itself while it exists, else again from existing ones."""

    def __init__(self) -> None:
        # By the ids of lineages, which the guards keep alive: the node made, and how long its value is right (the
        # first write into a buffer behind it that is gone).
        self._made: dict[int, Any] = {}
        self._until: dict[int, float] = {}

    def revived(self, kept: Any, sequence_number: float) -> Any:
        """Return the node for an argument of a guard; raise a NotRecomputableError if it cannot be computed."""
        if type(kept) is not Recipe:
            return self._operand(kept)
        behind = list(walk([kept], self._needed))
        gone = [lineage for lineage in behind if id(lineage) not in self._made]
        for lineage in sorted(gone, key=_leaves_first):
            written = np.inf if lineage.buffer is None else lineage.buffer.written
            until = min([self._until[id(a)] for a in lineage.args if type(a) is Recipe], default=np.inf)
            node = self._again(lineage)
            self._made[id(lineage)], self._until[id(lineage)] = node, min(written, until)
        if self._until[id(kept)] < sequence_number:
            raise NotRecomputableError
        return self._made[id(kept)]

    def _needed(self, lineage: Recipe) -> list[Recipe]:
        """Return the recipes of the operands of a freed node; an existing one is entered, and needs none."""
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
            node = attach(value, lineage.function, args, lineage.options)
        if isinstance(node, (tuple, list)):
            node = next(part for part in node if part is not None).args[0]
        node.sequence_number = lineage.sequence_number
        return node

    def _operand(self, kept: Any) -> Any:
        if type(kept) is Recipe:
            return self._made[id(kept)]
        if isinstance(kept, weakref.ref):
            kept = kept()
            if kept is None:
                raise NotRecomputableError
        return kept
