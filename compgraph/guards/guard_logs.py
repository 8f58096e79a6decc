"""The logs of guards. Leaves that appear together in a guard share a log.

Only graphs of the leaves behind a guard depend on it. So these leaves own the `GuardLog` of the guard together, and it is freed
with them. Guards about other leaves, perhaps of other threads, are in other logs. The size of a log is bounded. The log stores
the sequence number up to which it evicted guards, so that earlier graphs can be rejected.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections import deque
from collections.abc import Container, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..context import reset_after_fork, restart_names, trace_guards
from ..storage import by_sequence_number, root_of, viewed_operand
from ..values import (
    VARYING,
    ArgumentNode,
    ConstantNode,
    InertScalarNode,
    MultiOutput,
    PlaceholderNode,
    Value,
    VariableNode,
    is_operator_tracer,
    next_sequence_number,
)
from .recipes import MAX_RECIPE_ARRAY_BYTES, BufferWrites, Recipe, reduce_ancestors

ndarray = np.ndarray
RECIPE_BYTES = 256  # approximate bytes of a recipe without its arrays
FIRST_EVICTION_BYTES = 2**20  # bytes of recipes at which a log first evicts guards
MAX_LOG_BYTES = 2**23  # bytes of recipes that a log holds at most
MAX_GUARDS = 10_000  # guards that a log holds at most

_loaded_at = 0  # the sequence number of the last unpickling; unpickled nodes have numbers below 0
_reset_at = 0  # the sequence number of the last `reset`, which discards earlier guards


class LostGuard(NamedTuple):
    """A guard about a leaf that was copied later. The graph of the copy cannot check it.

    Attributes
    ----------
    recipe : Recipe
        The recipe of the copy.
    description : str
        The latest guard about the original, for a message.
    sequence_number, copied_at : float
        The times of that guard and of the copy.
    """

    recipe: Recipe
    description: str
    sequence_number: float
    copied_at: float


class GuardLog:
    """Guards about some leaves, the oldest first.

    Attributes
    ----------
    guards : deque of (int, Guard)
        The guards, each with the bytes of the recipes made for it.
    evicted_until : float
        A graph that first read the leaves before this sequence number may depend on evicted guards.
    lost : list of LostGuard
        Guards about the originals of leaves that are copies.
    thread : int
        The thread that created the log.
    """

    __slots__ = ("__weakref__", "_eviction_bytes", "_merged_into", "_recipe_bytes", "evicted_until", "guards", "lost", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.guards: deque[tuple[int, Any]] = deque()
        self.evicted_until = -np.inf
        self.lost: list[LostGuard] = []
        self._merged_into: GuardLog | None = None
        self._recipe_bytes, self._eviction_bytes = 0, FIRST_EVICTION_BYTES

    def resolve(self) -> GuardLog:
        """Return the log into which this one was merged; itself if it was not merged."""
        log = self
        while log._merged_into is not None:
            log = log._merged_into
        while self is not log:  # shortens the chain for later calls
            self._merged_into, self = log, self._merged_into
        return log

    def merge(self, other: GuardLog) -> GuardLog:
        """Merge the smaller of two logs into the larger, and return the larger."""
        large, small = (self, other) if len(self.guards) >= len(other.guards) else (other, self)
        if large is not small:
            if small.guards:
                large.guards = deque(sorted((*large.guards, *small.guards), key=_entry_sequence_number))
            large.evicted_until = max(large.evicted_until, small.evicted_until)
            large.lost = [*large.lost, *small.lost]
            large._recipe_bytes += small._recipe_bytes
            small.guards, small._merged_into = deque(), large
        return large

    def append(self, guard: Any, recipe_bytes: int) -> None:
        """Append a guard. `recipe_bytes` is the number of bytes of the recipes made for it."""
        self.guards.append((recipe_bytes, guard))
        self._recipe_bytes += recipe_bytes
        if self._recipe_bytes > self._eviction_bytes or len(self.guards) > MAX_GUARDS:
            self._evict()

    def _evict(self) -> None:
        """Evict guards about overwritten values of variables. If the log is still too large, evict the oldest guards."""
        updates = _last_updates(recipe for _, guard in self.guards for recipe in guard.args)
        retained: deque[tuple[int, Any]] = deque()
        for entry in self.guards:
            guard = entry[1]
            updated_at = max([updates.get(id(a), -np.inf) for a in guard.args], default=-np.inf)
            if updated_at > guard.sequence_number:
                self.evicted_until = max(self.evicted_until, updated_at)
            else:
                retained.append(entry)
        retained_bytes = sum(recipe_bytes for recipe_bytes, _ in retained)
        if retained_bytes > MAX_LOG_BYTES or len(retained) > MAX_GUARDS:
            while len(retained) > 1 and (retained_bytes > MAX_LOG_BYTES // 2 or len(retained) > MAX_GUARDS // 2):
                recipe_bytes, guard = retained.popleft()
                retained_bytes -= recipe_bytes
                self.evicted_until = max(self.evicted_until, guard.sequence_number)
        self.guards, self._recipe_bytes = retained, retained_bytes
        self._eviction_bytes = max(FIRST_EVICTION_BYTES, 2 * retained_bytes)


def _entry_sequence_number(entry: tuple[int, Any]) -> float:
    return float(entry[1].sequence_number)


def _last_updates(recipes: Iterable[Any]) -> dict[int, float]:
    """Return the sequence number of the latest write into a variable behind each recipe, by the recipe's id."""
    return reduce_ancestors(recipes, _last_update, max)


def _last_update(recipe: Recipe) -> float:
    node = recipe.node()
    return node.sequence_number if isinstance(node, VariableNode) else -np.inf


def reset() -> None:
    """Restart the counters of automatic names, and clear the decisions logged so far.

    Python's decisions on the values of nodes (``if x > 0``) are logged, and each run of an `Executor` checks them. An executor
    cannot distinguish decisions of its graph from earlier ones about the same variables. Call this before the graph is recorded.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.reset()
    >>> cg.variable(1.0).name, cg.variable(1.0).name
    ('var_0', 'var_1')
    """
    global _reset_at
    restart_names()
    _reset_at = next_sequence_number()


def note_unpickling() -> None:
    """Record that a node is unpickled or deep-copied now."""
    global _loaded_at
    _loaded_at = next_sequence_number()


def creation_time(leaf: Value) -> float:
    """Return the sequence number of the creation or last update of a leaf; for an unpickled leaf, that of the loading."""
    return leaf.sequence_number if leaf.sequence_number > 0 else _loaded_at


def logs_of(leaves: Iterable[Any]) -> dict[GuardLog, list[Any]]:
    """Group leaves by their logs."""
    leaves_by_log: dict[GuardLog, list[Any]] = {}
    for leaf in leaves:
        recipe = getattr(leaf, "recipe", None)
        if type(recipe) is Recipe:
            leaves_by_log.setdefault(recipe.log.resolve(), []).append(leaf)
    return leaves_by_log


def other_logs(logs: Container[GuardLog]) -> list[GuardLog]:
    """Return the nonempty logs of this thread that are not among `logs`."""
    thread = threading.get_ident()
    with _lock:
        alive = [log for reference in list(_logs.values()) if (log := reference()) is not None]
    return [log for log in alive if log.guards and log.thread == thread and log not in logs]


def logged_guards(logs: Iterable[GuardLog], since: float = 0) -> list[Any]:
    """Return the guards in some logs after the sequence number `since`, oldest first."""
    with _lock:
        _append_deferred()
    since = max(since, _reset_at)
    recent_guards = [guard for log in logs for _, guard in tuple(log.guards) if guard.sequence_number > since]
    return sorted(recent_guards, key=by_sequence_number)


def has_evicted_guards(log: GuardLog, first_read: float) -> bool:
    """Whether a log may have evicted guards of a graph that first read the leaves at the sequence number `first_read`."""
    return log.evicted_until > max(_reset_at, first_read)


def lost_guards(log: GuardLog) -> list[LostGuard]:
    """Return the guards in `log.lost` about leaves that were copied after the last `reset`."""
    return [lost for lost in log.lost if lost.copied_at > _reset_at]


# ------------------------------------------------------------------------------------------- logging


# Weak references to the logs, by id. The callback is C code, because an interrupt in a Python callback would be lost.
_logs: dict[int, weakref.ref[GuardLog]] = {}
# A third thread may merge the logs of two others.
_lock = reset_after_fork(threading.RLock())


def log_guard(guard: object) -> None:
    """Log a guard: in the list of the current trace, or else in the log of the leaves behind it.

    A guard that depends only on arguments of an operator is dropped, because no graph is left when the operator returns.
    """
    guards = trace_guards.get()
    if guards is not None:
        guards.append(guard)
    elif _depends_on_outer_nodes(guard):
        append_to_log(guard)


def _depends_on_outer_nodes(guard: Any) -> bool:
    """Whether a guard depends on nodes from outside of all operators.

    Nodes without such dependences are marked: their `recipe` is the number of writes into their buffer that were examined. So
    each node is visited once, however many guards there are.
    """
    queue = [a for a in guard.args if isinstance(a, (Value, MultiOutput))]
    items_by_id: dict[int, Any] = {}  # by id, since scalar nodes hash by value
    for item in queue:
        recipe = getattr(item, "recipe", None)
        if type(recipe) is Recipe or not (type(item) is MultiOutput or is_operator_tracer(item)) or type(item) in VARYING:
            return True
        if id(item) in items_by_id:
            continue
        items_by_id[id(item)] = item
        if recipe is None:
            queue += [item.args[position] for position in item.parent_argnums]
        elif type(item.raw_value) is ndarray and item.raw_value.base is not None:
            queue.append(root_of(item))
        if item.memory:
            queue += [write.args[0] for write in item.memory.log[recipe or 0 :] if write.parent_argnums]
    for item in items_by_id.values():
        item.recipe = len(item.memory.log) if item.memory else 0
    return False


def has_dropped_guards(node: object) -> bool:
    """Whether a node is an argument of an operator, or computed from arguments only, and a guard about it was dropped."""
    return type(getattr(node, "recipe", None)) is int


def append_to_log(guard: object) -> None:
    """Log a guard in the log of the leaves behind it, with recipes in place of nodes in `args`."""
    with _lock:
        _append(guard)
        _append_deferred()


def append_without_blocking(guard: object) -> None:
    """As `append_to_log`, without waiting for the lock: nodes may be freed in any thread at any allocation."""
    if _lock._is_owned() or not _lock.acquire(blocking=False):  # type: ignore[attr-defined]  # the logs are being changed
        _deferred.append(guard)
        return
    try:
        _append(guard)
    finally:
        _lock.release()


_deferred: deque[Any] = deque()  # guards not yet in a log; they keep their nodes alive


def _append_deferred() -> None:
    while _deferred:
        _append(_deferred.popleft())


def _append(guard: Any) -> None:
    log, recipe_bytes = _make_recipes([a for a in guard.args if isinstance(a, Value)])
    guard.args = tuple([_as_recipe(a) for a in guard.args])
    log.append(guard, recipe_bytes)


def log_lost_guard(leaf: Any, description: str, sequence_number: float) -> None:
    """Record that a guard about the original of `leaf`, a copy, was logged at a sequence number."""
    with _lock:
        log, _ = _make_recipes([leaf])
        log.lost.append(LostGuard(leaf.recipe, description, sequence_number, next_sequence_number()))


def _as_recipe(operand: NDArray[Any]) -> Any:
    """Return an argument of a guard in the form that a log stores: the recipe of a node, a weak reference to a large array."""
    if isinstance(operand, (Value, MultiOutput)):
        return operand.recipe
    return weakref.ref(operand) if type(operand) is ndarray and operand.nbytes > MAX_RECIPE_ARRAY_BYTES else operand


def _make_recipes(nodes: list[Any]) -> tuple[GuardLog, int]:
    """Make recipes of nodes and of their ancestors; return the common log of their leaves, and the bytes of the new recipes.

    Nodes that have a recipe are skipped, so each node is visited once, however many guards there are.
    """
    new_items: list[Any] = []
    try:
        return _extend_recipes(nodes, new_items)
    except BaseException:  # an interrupt: remove incomplete recipes
        for item in new_items:
            item.recipe = None
        raise


def _extend_recipes(nodes: list[Any], new_items: list[Any]) -> tuple[GuardLog, int]:
    log: GuardLog | None = None
    extended_buffers: list[tuple[BufferWrites, list[Any]]] = []
    queue = list(nodes)
    for item in queue:
        recipe = getattr(item, "recipe", None)
        if type(recipe) is not Recipe:
            new_items.append(item)
            recipe = item.recipe = Recipe()
            recipe.node = weakref.ref(item)
            recipe.function, recipe.options, recipe.sequence_number = item.function, item.options, item.sequence_number
            recipe.root = recipe.buffer = recipe.value = None
            args = item.args
            queue += [args[position] for position in item.parent_argnums]
            if item.memory:
                queue += _new_stored_nodes(item, extended_buffers)
            continue
        if hasattr(recipe, "log"):  # otherwise it was made in this loop
            log = recipe.log.resolve() if log is None else log.merge(recipe.log.resolve())
        root = item if recipe.root is None else recipe.find_root().node()
        if root is not None and root.memory:
            queue += _new_stored_nodes(root, extended_buffers)
    if log is None:
        log = GuardLog()
        _logs[id(log)] = weakref.ref(log, functools.partial(_logs.pop, id(log)))
    recipe_bytes = _fill_recipes(new_items, log)
    for buffer, stored in extended_buffers:
        buffer.stored += [node.recipe for node in stored]
    return log, recipe_bytes


def _new_stored_nodes(root: Any, extended_buffers: list[tuple[BufferWrites, list[Any]]]) -> list[Any]:
    """Return the nodes stored in the buffer of a root since the last call; append them to `extended_buffers`."""
    log = root.memory.log
    recipe = root.recipe
    if log and recipe.buffer is None:
        recipe.buffer = BufferWrites(log[0].sequence_number)
    start = recipe.buffer.write_count if log else 0
    stored = [write.args[0] for write in log[start:] if write.parent_argnums]
    if len(log) > start:
        recipe.buffer.write_count = len(log)
        extended_buffers.append((recipe.buffer, stored))
    return stored


def _fill_recipes(new_items: list[Any], log: GuardLog) -> int:
    """Set the operands, log, root and value of new recipes; return their bytes."""
    recipe_bytes = RECIPE_BYTES * (1 + len(new_items))
    for item in new_items:
        recipe, plain = item.recipe, item.raw_value
        recipe.log = log
        args = list(item.args)
        for position, a in enumerate(args):
            if type(a) is ndarray:
                args[position] = weakref.ref(a) if a.nbytes > MAX_RECIPE_ARRAY_BYTES else a
                recipe_bytes += 0 if a.nbytes > MAX_RECIPE_ARRAY_BYTES else a.nbytes
        for position in item.parent_argnums:
            args[position] = args[position].recipe
        recipe.args = tuple(args)
        if type(plain) is ndarray and plain.base is not None and args:
            operand = viewed_operand(item)
            recipe.root = None if operand is None else operand.recipe
        elif not args and isinstance(item, _STABLE_LEAVES) and plain.nbytes <= MAX_RECIPE_ARRAY_BYTES:
            recipe.value = plain
            recipe_bytes += plain.nbytes
    return recipe_bytes


# Leaves whose array is their first value or, for variables, the last written one. `BufferWrites` records writes into arguments.
_STABLE_LEAVES = (VariableNode, PlaceholderNode, ConstantNode, ArgumentNode, InertScalarNode)
