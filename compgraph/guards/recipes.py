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

MAX_RECIPE_ARRAY_BYTES = 2**20  # larger arrays are weak references in a recipe


class NotRecomputableError(Exception):
    """Raised if the argument of a guard cannot be computed again."""


class Recipe:
    """The operation and operands that computed a node or a multi-output operation.

    Attributes
    ----------
    node : callable
        ``node()`` returns the node while it exists, else None.
    function, args, options, sequence_number
        Those of the node, with recipes in place of nodes among the arguments, and weak references in place of large arrays. The
        function of a leaf is None.
    value : array or None
        For a leaf of one of the kinds in `guard_logs._STABLE_LEAVES`, its array, unless that is large.
    root : Recipe or None
        For a view, the recipe of its operand or of its root; see `find_root`.
    log : GuardLog
        The log of the guards about the node.
    buffer : BufferWrites or None
        For a root that was written into, the writes.
    """

    __slots__ = ("__weakref__", "args", "buffer", "function", "log", "node", "options", "root", "sequence_number", "value")

    args: tuple[Any, ...]
    buffer: BufferWrites | None
    function: Any
    log: Any
    node: Callable[[], Any]
    options: dict[str, Any]
    root: Recipe | None
    sequence_number: float
    value: Any

    def find_root(self) -> Recipe:
        """Return the recipe of the root, the node that first had the buffer."""
        root = self
        while root.root is not None:
            root = root.root
        view = self
        while view.root is not None and view.root is not root:  # shortens the chain for later calls
            view.root, view = root, view.root
        return root

    def sources(self) -> list[Recipe]:
        """Return the recipes of the operands, and of the values stored in the buffer, which may depend on the buffer itself."""
        stored = () if self.buffer is None else self.buffer.stored
        return [a for a in (*self.args, *stored) if type(a) is Recipe]


class BufferWrites:
    """The writes into a buffer that recipes already include.

    Attributes
    ----------
    write_count : int
        The number of writes.
    first_write : float
        The sequence number of the first write.
    stored : list of Recipe
        The recipes of the stored nodes.
    """

    __slots__ = ("first_write", "stored", "write_count")

    def __init__(self, first_write: float) -> None:
        self.write_count, self.first_write = 0, first_write
        self.stored: list[Recipe] = []


def reduce_ancestors(
    recipes: Iterable[Any], evaluate: Callable[[Recipe], Any], combine: Callable[[Iterable[Any]], Any]
) -> dict[int, Any]:
    """Combine the values ``evaluate(recipe)`` of each recipe and its ancestors by `combine`; return the results by id."""
    ordered = sort_recipes(recipes)
    results = {id(recipe): evaluate(recipe) for recipe in ordered}
    has_buffers = any(recipe.buffer for recipe in ordered)
    has_changed = True
    while has_changed:
        has_changed = False  # stored values are younger than their buffer, so one pass by sequence number may miss them
        for recipe in ordered:
            sources = recipe.sources()
            if sources:
                result = combine([results[id(recipe)], *[results[id(a)] for a in sources]])
                has_changed = has_changed or (has_buffers and result != results[id(recipe)])
                results[id(recipe)] = result
    return results


def sort_recipes(recipes: Iterable[Any]) -> list[Recipe]:
    """Return recipes and all their ancestors, operands first."""
    return sorted(walk([a for a in recipes if type(a) is Recipe], Recipe.sources), key=_leaves_first)


def _leaves_first(recipe: Recipe) -> tuple[bool, float]:
    return recipe.function is not None, recipe.sequence_number


# ------------------------------------------------------------------------------------------- rematerialization


class Rematerializer:
    """Returns the nodes of recipes. Freed nodes are recomputed from existing ones."""

    def __init__(self) -> None:
        # By the ids of recipes, which the guards keep alive: the node, and the sequence number up to which its value is correct
        # (the first write into a freed buffer behind it).
        self._nodes: dict[int, Any] = {}
        self._valid_until: dict[int, float] = {}

    def rematerialize(self, arg: Recipe, sequence_number: float) -> Any:
        """Return the node for an argument of a guard; raise a NotRecomputableError if it cannot be computed."""
        if type(arg) is not Recipe:
            return self._operand(arg)
        needed = list(walk([arg], self._missing_operands))
        missing = [recipe for recipe in needed if id(recipe) not in self._nodes]
        for recipe in sorted(missing, key=_leaves_first):
            first_write = np.inf if recipe.buffer is None else recipe.buffer.first_write
            valid_until = min([self._valid_until[id(a)] for a in recipe.args if type(a) is Recipe], default=np.inf)
            node = self._recompute(recipe)
            self._nodes[id(recipe)], self._valid_until[id(recipe)] = node, min(first_write, valid_until)
        if self._valid_until[id(arg)] < sequence_number:
            raise NotRecomputableError
        return self._nodes[id(arg)]

    def _missing_operands(self, recipe: Recipe) -> list[Recipe]:
        """Return the operands needed to recompute a freed node. An existing node is stored, and needs none."""
        if id(recipe) not in self._nodes:
            node = recipe.node()
            if node is None:
                return [a for a in recipe.args if type(a) is Recipe]
            self._nodes[id(recipe)], self._valid_until[id(recipe)] = node, np.inf
        return []

    def _recompute(self, recipe: Recipe) -> Any:
        if recipe.function is None:
            if recipe.value is None:
                raise NotRecomputableError
            return ConstantNode.wrap(recipe.value)
        args = tuple([self._operand(a) for a in recipe.args])
        values = [a.raw_value if isinstance(a, (Value, MultiOutput)) else a for a in args]
        try:
            with np.errstate(all="ignore"):
                value = recipe.function(*values, **recipe.options)
        except Exception as error:
            raise NotRecomputableError from error
        with rerecording():
            node = attach(value, recipe.function, args, recipe.options)
        if isinstance(node, (tuple, list)):
            node = next(part for part in node if part is not None).args[0]  # the multi-output operation
        node.sequence_number = recipe.sequence_number
        return node

    def _operand(self, arg: object) -> Any:
        if type(arg) is Recipe:
            return self._nodes[id(arg)]
        if isinstance(arg, weakref.ref):
            arg = arg()
            if arg is None:
                raise NotRecomputableError
        return arg
