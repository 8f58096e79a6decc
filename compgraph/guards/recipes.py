"""How nodes were computed, kept for a decision about them, and the logs in which decisions stand.

A `Recipe` holds a node weakly and the recipes of its operands, down to the leaves, so that what was only computed to decide
is free to die and can still be computed again. A node keeps its recipe: each is made once, whatever is decided later.

A decision matters to graphs of the leaves behind it alone, so it stands in a `Log` that these leaves own together and that
dies with them; what other threads decide about other leaves is no affair of it. A log is bounded: of what it forgets it
keeps the moment, so that an older graph can be refused.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ..graph import (
    ConstantNode,
    InertScalarNode,
    InputNode,
    Joint,
    Node,
    PlaceholderNode,
    VariableNode,
    attach,
    next_tick,
    viewed_by,
)
from ..graph.context import renewed

ndarray = np.ndarray
HEAVY = 2**20  # bytes of an array that a recipe holds strongly; a larger one has to live elsewhere
OPERATION = 256  # bytes that a recipe itself takes, about
FIRST, MOST = 2**20, 2**23  # bytes of recipes after which a log is looked through, and that it holds at most
KEPT = 10_000  # decisions that a log holds at most


class GoneError(Exception):
    """What a decision was about cannot be computed again."""


class Recipe:
    """How a node or joint was computed.

    Attributes
    ----------
    node : callable
        Gives the node while it lives, else None.
    function, args, options, tick
        Those of the node; nodes among the arguments as recipes, large arrays weakly. A leaf has no function.
    value : array or None
        Of a leaf that no operation can write into, its array.
    root : Recipe or None
        Of a view, that of what it is a view of; see `rooted`.
    log : Log
        Where decisions about it stand.
    buffer : Buffer or None
        What was written into the buffer of a root.
    """

    __slots__ = ("args", "buffer", "function", "log", "node", "options", "root", "tick", "value")

    args: tuple[Any, ...]
    buffer: Buffer | None
    function: Any
    log: Log
    node: Callable[[], Any]
    options: dict[str, Any]
    root: Recipe | None
    tick: float
    value: Any

    def rooted(self) -> Recipe:
        """The recipe of the node that first had the buffer."""
        root = self
        while root.root is not None:
            root = root.root
        view = self
        while view.root is not None and view.root is not root:
            view.root, view = root, view.root
        return root

    def sources(self) -> list[Recipe]:
        """What the value hangs on: operands, and what was stored in the buffer; readers of a buffer may be among it."""
        stored = () if self.buffer is None else self.buffer.stored
        return [a for a in (*self.args, *stored) if a.__class__ is Recipe]


class Buffer:
    """The writes into a buffer, as far as they were looked at: how many, when the first was, and recipes of what was stored."""

    __slots__ = ("seen", "stored", "written")

    def __init__(self, written: float) -> None:
        self.seen, self.written = 0, written
        self.stored: list[Recipe] = []


class Lost(NamedTuple):
    """The latest decision about a leaf that was copied, by its recipe, in words; when it was made, and when copied."""

    recipe: Recipe
    words: str
    tick: float
    copied: float


class Log:
    """Decisions about some leaves, the oldest first.

    Attributes
    ----------
    decisions : deque
        What is remembered; the weight of each in bytes is that of the recipes made for it.
    forgotten : float
        Graphs that were begun up to this tick may hang on decisions that are not remembered any more.
    lost : list of Lost
        Of leaves that are copies, what was decided about those they were copied from.
    """

    __slots__ = ("_into", "_limit", "_weight", "decisions", "forgotten", "lost")

    def __init__(self) -> None:
        self.decisions: deque[tuple[int, Any]] = deque()
        self.forgotten = -np.inf
        self.lost: list[Lost] = []
        self._into: Log | None = None
        self._weight, self._limit = 0, FIRST

    def found(self) -> Log:
        """The log that this one was joined to, if any."""
        log = self
        while log._into is not None:
            log = log._into
        while self is not log:
            self._into, self = log, self._into
        return log

    def join(self, other: Log) -> Log:
        """One log for the leaves of both."""
        large, small = (self, other) if len(self.decisions) >= len(other.decisions) else (other, self)
        if large is not small:
            if small.decisions:
                large.decisions = deque(sorted((*large.decisions, *small.decisions), key=_moment))
            large.forgotten = max(large.forgotten, small.forgotten)
            large.lost = [*large.lost, *small.lost]
            large._weight += small._weight
            small.decisions, small._into = deque(), large
        return large

    def enter(self, decision: Any, weight: int) -> None:
        """Remember a decision."""
        self.decisions.append((weight, decision))
        self._weight += weight
        if self._weight > self._limit or len(self.decisions) > KEPT:
            self._forget()

    def _forget(self) -> None:
        """Forget decisions about values that variables had before, and, if need be, the oldest."""
        newest = _newest_leaves(recipe for _, decision in self.decisions for recipe in decision.about)
        stays: deque[tuple[int, Any]] = deque()
        for weight, decision in self.decisions:
            updated = max([newest.get(id(a), -np.inf) for a in decision.about], default=-np.inf)
            if updated > decision.tick:
                self.forgotten = max(self.forgotten, updated)
            else:
                stays.append((weight, decision))
        weighed = sum(weight for weight, _ in stays)
        if weighed > MOST or len(stays) > KEPT:
            while len(stays) > 1 and (weighed > MOST // 2 or len(stays) > KEPT // 2):
                weight, decision = stays.popleft()
                weighed -= weight
                self.forgotten = max(self.forgotten, decision.tick)
        self.decisions, self._weight = stays, weighed
        self._limit = max(FIRST, 2 * weighed)


def _moment(entry: tuple[int, Any]) -> float:
    return float(entry[1].tick)


def _newest_leaves(recipes: Iterable[Any]) -> dict[int, float]:
    """For each recipe, by identity, the latest moment at which a variable behind it was written."""
    leaf = lambda recipe: node.tick if isinstance(node := recipe.node(), VariableNode) else -np.inf  # noqa: E731
    return gathered_up(recipes, leaf, max)


def gathered_up(
    recipes: Iterable[Any], leaf: Callable[[Recipe], Any], together: Callable[[Iterable[Any]], Any]
) -> dict[int, Any]:
    """For recipes and all behind them, by identity, what is said of the leaves behind each, put together by `together`."""
    ordered = in_order(recipes)
    found = {id(recipe): leaf(recipe) for recipe in ordered}
    buffers = any(recipe.buffer for recipe in ordered)
    changed = True
    while changed:  # what was stored in a buffer is younger than it, so once more for each buffer behind another
        changed = False
        for recipe in ordered:
            sources = recipe.sources()
            if sources:
                now = together([found[id(recipe)], *[found[id(a)] for a in sources]])
                changed = changed or (buffers and now != found[id(recipe)])
                found[id(recipe)] = now
    return found


def in_order(recipes: Iterable[Any]) -> list[Recipe]:
    """Recipes and those of all that lies behind them, operands first."""
    found = {id(recipe): recipe for recipe in recipes if recipe.__class__ is Recipe}
    queue = list(found.values())
    for recipe in queue:
        for a in recipe.sources():
            if id(a) not in found:
                found[id(a)] = a
                queue.append(a)
    return sorted(queue, key=_leaves_first)


def _leaves_first(recipe: Recipe) -> tuple[bool, float]:
    return recipe.function is not None, recipe.tick


# ------------------------------------------------------------------------------------------- made

# The logs of two threads may be joined by a third.
_lock = renewed(threading.RLock())


def enter(about: tuple[Any, ...], make: Any) -> None:
    """Remember the decision that `make` makes of what it is about, as recipes and plain values."""
    with _lock:
        log, weight = _remember([a for a in about if isinstance(a, Node)])
        log.enter(make(tuple([_kept(a) for a in about])), weight)


def enter_lost(leaf: Any, words: str, tick: float) -> None:
    """Remember of a copied leaf that something was decided at a tick about what it was copied from."""
    with _lock:
        log, _ = _remember([leaf])
        log.lost.append(Lost(leaf.recipe, words, tick, next_tick()))


def _kept(operand: Any) -> Any:
    """An operand as a recipe, or a decision, holds it."""
    if isinstance(operand, (Node, Joint)):
        return operand.recipe
    return weakref.ref(operand) if operand.__class__ is ndarray and operand.nbytes > HEAVY else operand


def _remember(nodes: list[Any]) -> tuple[Log, int]:
    """Give nodes recipes, those behind them too; the log of all their leaves, and the bytes that were added.

    Each node is walked once, however much is decided.
    """
    new: list[Any] = []
    try:
        return _walked(nodes, new)
    except BaseException:  # an interrupt, say: no recipe may stay that was not filled
        for item in new:
            item.recipe = None
        raise


def _walked(nodes: list[Any], new: list[Any]) -> tuple[Log, int]:
    log: Log | None = None
    grown: list[tuple[Buffer, list[Any]]] = []
    queue = list(nodes)
    for item in queue:
        recipe = getattr(item, "recipe", None)
        if recipe is None:
            new.append(item)
            recipe = item.recipe = Recipe()
            recipe.node, recipe.function, recipe.options, recipe.tick = weakref.ref(item), item.function, item.options, item.tick
            recipe.root = recipe.buffer = recipe.value = None
            args = item.args
            queue += [args[position] for position in item.edges]
            if item.memory:
                queue += _stored(item, grown)
            continue
        if hasattr(recipe, "log"):  # else it is one of these
            log = recipe.log.found() if log is None else log.join(recipe.log.found())
        root = item if recipe.root is None else recipe.rooted().node()
        if root is not None and root.memory:
            queue += _stored(root, grown)
    made = _filled(new, Log() if log is None else log)
    for buffer, stored in grown:
        buffer.stored += [node.recipe for node in stored]
    return made


def _stored(root: Any, grown: list[tuple[Buffer, list[Any]]]) -> list[Any]:
    """What was stored in the buffer of a node since it was looked at."""
    log = root.memory.log
    recipe = root.recipe
    if log and recipe.buffer is None:
        recipe.buffer = Buffer(log[0].tick)
    start = recipe.buffer.seen if log else 0
    stored = [write.args[0] for write in log[start:] if write.edges]
    if len(log) > start:
        recipe.buffer.seen = len(log)
        grown.append((recipe.buffer, stored))
    return stored


def _filled(new: list[Any], log: Log) -> tuple[Log, int]:
    """Let the recipes of nodes know their operands, and where decisions stand."""
    weight = OPERATION * (1 + len(new))
    for item in new:
        recipe, plain = item.recipe, item.plain
        recipe.log = log
        kept = list(item.args)
        for position, a in enumerate(kept):
            if a.__class__ is ndarray:
                kept[position] = weakref.ref(a) if a.nbytes > HEAVY else a
                weight += 0 if a.nbytes > HEAVY else a.nbytes
        for position in item.edges:
            kept[position] = kept[position].recipe
        recipe.args = tuple(kept)
        if plain.__class__ is ndarray and plain.base is not None and kept:
            viewed = viewed_by(item)
            recipe.root = None if viewed is None else viewed.recipe
        elif not kept and isinstance(item, _STEADY) and plain.nbytes <= HEAVY:
            recipe.value = plain
            weight += plain.nbytes
    return log, weight


# Leaves that hold what they held, or, being variables, what was last written into them.
_STEADY = (VariableNode, PlaceholderNode, ConstantNode, InputNode, InertScalarNode)


# ------------------------------------------------------------------------------------------- computed again


class Reviver:
    """Makes nodes of recipes: the node itself if it lives, else one computed again from what does."""

    def __init__(self) -> None:
        # By the identity of recipes, which the decisions hold: nodes, and when buffers that are gone were written into.
        self._made: dict[int, Any] = {}
        self._until: dict[int, float] = {}

    def revived(self, kept: Any, tick: float) -> Any:
        """An operand of a decision that was made at a tick; raises a GoneError if there is no way."""
        if isinstance(kept, weakref.ref):
            found = kept()
            if found is None:
                raise GoneError
            return found
        if kept.__class__ is not Recipe:
            return kept
        queue = [kept]
        gone: dict[int, Recipe] = {}
        for recipe in queue:
            if id(recipe) in self._made or id(recipe) in gone:
                continue
            node = recipe.node()
            if node is not None:
                self._made[id(recipe)], self._until[id(recipe)] = node, np.inf
                continue
            gone[id(recipe)] = recipe
            queue += [a for a in recipe.args if a.__class__ is Recipe]
        for recipe in sorted(gone.values(), key=_leaves_first):
            written = np.inf if recipe.buffer is None else recipe.buffer.written
            until = min([self._until[id(a)] for a in recipe.args if a.__class__ is Recipe], default=np.inf)
            made = self._again(recipe)
            self._made[id(recipe)], self._until[id(recipe)] = made, min(written, until)
        if self._until[id(kept)] < tick:
            raise GoneError
        return self._made[id(kept)]

    def _again(self, recipe: Recipe) -> Any:
        if recipe.function is None:
            if recipe.value is None:
                raise GoneError
            return ConstantNode.hold(recipe.value)
        args = tuple([self._operand(a) for a in recipe.args])
        values = [a.plain if isinstance(a, (Node, Joint)) else a for a in args]
        try:
            with np.errstate(all="ignore"):
                value = recipe.function(*values, **recipe.options)
        except Exception as error:
            raise GoneError from error
        if isinstance(value, (tuple, list)):
            made = next(part for part in attach(value, recipe.function, args, recipe.options) if part is not None).args[0]
        else:
            made = attach(value, recipe.function, args, recipe.options)
        made.tick = recipe.tick
        return made

    def _operand(self, kept: Any) -> Any:
        if kept.__class__ is Recipe:
            return self._made[id(kept)]
        if isinstance(kept, weakref.ref):
            kept = kept()
            if kept is None:
                raise GoneError
        return kept
