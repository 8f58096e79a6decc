"""The logs of guards. Leaves that appear together in a guard share a log.

A guard matters only to graphs of the leaves behind it. So it is in a `GuardLog` that these leaves own together and that is freed
with them. Guards about other leaves, perhaps of other threads, are in other logs. A log is bounded. It stores the sequence number
up to which guards were evicted, so that earlier graphs can be rejected.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections import deque
from collections.abc import Container, Iterable
from typing import Any, NamedTuple

import numpy as np

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
from .recipes import HEAVY, Buffer, Recipe, reduce_ancestors

ndarray = np.ndarray
OPERATION = 256  # bytes, about, of a lineage without the arrays that it holds
FIRST, MOST = 2**20, 2**23  # bytes of lineages: a log is pruned for the first time beyond FIRST, and holds at most MOST
KEPT = 10_000  # guards that a log holds at most

_loaded_at = 0  # the sequence number of the last unpickling; unpickled nodes have numbers below 0
_reset_at = 0  # the tick of the last `reset`: guards up to it count as forgotten


class LostGuard(NamedTuple):
    """A decision about a leaf that was copied later; the graph of the copy cannot check it.

    Attributes
    ----------
    lineage : Recipe
        The recipe of the copy.
    words : str
        The latest guard about the original, for a message.
    sequence_number, copied : float
        The times of that guard and of the copy.
    """

    recipe: Recipe
    words: str
    sequence_number: float
    copied: float


class GuardLog:
    """Guards about some leaves, the oldest first.

    Attributes
    ----------
    guards : deque of (int, Guard)
        The guards, each with the bytes of the recipes made for it.
    forgotten : float
        A graph that first read the leaves before this sequence number may depend on evicted guards.
    lost : list of LostGuard
        Decisions about the originals of leaves that are copies.
    thread : int
        The thread that created the log.
    """

    __slots__ = ("__weakref__", "_into", "_limit", "_weight", "forgotten", "guards", "lost", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.guards: deque[tuple[int, Any]] = deque()
        self.forgotten = -np.inf
        self.lost: list[LostGuard] = []
        self._into: GuardLog | None = None
        self._weight, self._limit = 0, FIRST

    def merged(self) -> GuardLog:
        """The log that this one was merged into; itself if it was not merged."""
        log = self
        while log._into is not None:
            log = log._into
        while self is not log:
            self._into, self = log, self._into
        return log

    def join(self, other: GuardLog) -> GuardLog:
        """Return one log for the leaves of both."""
        large, small = (self, other) if len(self.guards) >= len(other.guards) else (other, self)
        if large is not small:
            if small.guards:
                large.guards = deque(sorted((*large.guards, *small.guards), key=_moment))
            large.forgotten = max(large.forgotten, small.forgotten)
            large.lost = [*large.lost, *small.lost]
            large._weight += small._weight
            small.guards, small._into = deque(), large
        return large

    def enter(self, guard: Any, weight: int) -> None:
        """Append a guard, for which recipes of `weight` bytes were made."""
        self.guards.append((weight, guard))
        self._weight += weight
        if self._weight > self._limit or len(self.guards) > KEPT:
            self._forget()

    def _forget(self) -> None:
        """Evict guards about overwritten values of variables, and if the log is still too large, the oldest guards."""
        newest = _newest_leaves(lineage for _, guard in self.guards for lineage in guard.args)
        stays: deque[tuple[int, Any]] = deque()
        for weight, guard in self.guards:
            updated = max([newest.get(id(a), -np.inf) for a in guard.args], default=-np.inf)
            if updated > guard.sequence_number:
                self.forgotten = max(self.forgotten, updated)
            else:
                stays.append((weight, guard))
        weighed = sum(weight for weight, _ in stays)
        if weighed > MOST or len(stays) > KEPT:
            while len(stays) > 1 and (weighed > MOST // 2 or len(stays) > KEPT // 2):
                weight, guard = stays.popleft()
                weighed -= weight
                self.forgotten = max(self.forgotten, guard.sequence_number)
        self.guards, self._weight = stays, weighed
        self._limit = max(FIRST, 2 * weighed)


def _moment(entry: tuple[int, Any]) -> float:
    return float(entry[1].sequence_number)


def _newest_leaves(lineages: Iterable[Any]) -> dict[int, float]:
    """Return for each recipe, by identity, the latest write into a variable behind it."""
    leaf = lambda lineage: node.sequence_number if isinstance(node := lineage.node(), VariableNode) else -np.inf  # noqa: E731
    return reduce_ancestors(lineages, leaf, max)


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


def note_loaded() -> None:
    """Mark a node as unpickled or deep-copied now."""
    global _loaded_at
    _loaded_at = next_sequence_number()


def creation_time(leaf: Value) -> float:
    """Return when a leaf was made or last written; for an unpickled one, when it was loaded."""
    return leaf.sequence_number if leaf.sequence_number > 0 else _loaded_at


def logs_of(leaves: Iterable[Any]) -> dict[GuardLog, list[Any]]:
    """Return the logs of some leaves, each with its leaves."""
    leaves_by_log: dict[GuardLog, list[Any]] = {}
    for leaf in leaves:
        lineage = getattr(leaf, "recipe", None)
        if type(lineage) is Recipe:
            leaves_by_log.setdefault(lineage.log.merged(), []).append(leaf)
    return leaves_by_log


def logs_beside(logs: Container[GuardLog]) -> list[GuardLog]:
    """Return the other logs of this thread that have guards."""
    thread = threading.get_ident()
    with _lock:
        alive = [log for reference in list(_logs.values()) if (log := reference()) is not None]
    return [log for log in alive if log.guards and log.thread == thread and log not in logs]


def logged_guards(logs: Iterable[GuardLog], since: float = 0) -> list[Any]:
    """Return the guards in some logs after a sequence number, the oldest first."""
    with _lock:
        _enter_late()
    since = max(since, _reset_at)
    recent_guards = [guard for log in logs for _, guard in tuple(log.guards) if guard.sequence_number > since]
    return sorted(recent_guards, key=by_sequence_number)


def is_forgetful(log: GuardLog, first_read: float) -> bool:
    """Whether a log may have evicted guards of a graph that first read the leaves at the sequence number `first_read`."""
    return log.forgotten > max(_reset_at, first_read)


def lost_guards(log: GuardLog) -> list[LostGuard]:
    """Return the decisions in `log.lost` about leaves that were copied after the last `reset`."""
    return [lost for lost in log.lost if lost.copied > _reset_at]


# ------------------------------------------------------------------------------------------- made


# Weak references to the logs, by id. The callback is C code: an interrupt in one of Python's would be lost.
_logs: dict[int, weakref.ref[GuardLog]] = {}
# A third thread may join the logs of two others.
_lock = reset_after_fork(threading.RLock())


def log_guard(guard: Any) -> None:
    """Log a guard: in the list of the current trace, or else in the log of the leaves behind it.

    A guard that depends only on arguments of an operator is dropped, because no graph is left when the operator returns.
    """
    noted = trace_guards.get()
    if noted is not None:
        noted.append(guard)
    elif _depends_on_outer_nodes(guard):
        enter_logged(guard)


def _depends_on_outer_nodes(guard: Any) -> bool:
    """Whether a guard depends on nodes that no operator has made.

    Nodes without such dependences are marked: their `recipe` is the number of writes into their buffer that were examined. So
    each node is visited once, however many guards there are.
    """
    queue = [a for a in guard.args if isinstance(a, (Value, MultiOutput))]
    items_by_id: dict[int, Any] = {}  # by id, since scalar nodes hash by value
    for item in queue:
        lineage = getattr(item, "recipe", None)
        if type(lineage) is Recipe or not (type(item) is MultiOutput or is_operator_tracer(item)) or type(item) in VARYING:
            return True
        if id(item) in items_by_id:
            continue
        items_by_id[id(item)] = item
        if lineage is None:
            queue += [item.args[position] for position in item.parent_argnums]
        elif type(item.raw_value) is ndarray and item.raw_value.base is not None:
            queue.append(root_of(item))
        if item.memory:
            queue += [write.args[0] for write in item.memory.log[lineage or 0 :] if write.parent_argnums]
    for item in items_by_id.values():
        item.recipe = len(item.memory.log) if item.memory else 0
    return False


def has_dropped_guards(node: Any) -> bool:
    """Whether a node is an argument of an operator, or computed from arguments only, and a guard about it was dropped."""
    return type(getattr(node, "recipe", None)) is int


def enter_logged(guard: Any) -> None:
    """Log a guard in the log of the leaves behind it, with recipes in place of nodes in `args`."""
    with _lock:
        _enter(guard)
        _enter_late()


def enter_at_once(guard: Any) -> None:
    """As `log_guard`, but without waiting for locks, because nodes are freed in any thread at any allocation."""
    if _lock._is_owned() or not _lock.acquire(blocking=False):  # type: ignore[attr-defined]  # the logs are being changed
        _late.append(guard)
        return
    try:
        _enter(guard)
    finally:
        _lock.release()


_late: deque[Any] = deque()  # guards that are still to be entered; they keep the nodes that they are about


def _enter_late() -> None:
    while _late:
        _enter(_late.popleft())


def _enter(guard: Any) -> None:
    log, weight = _remember([a for a in guard.args if isinstance(a, Value)])
    guard.args = tuple([_kept(a) for a in guard.args])
    log.enter(guard, weight)


def log_lost_guard(leaf: Any, words: str, sequence_number: float) -> None:
    """Record for `leaf`, a copy, that a decision was made at a sequence number about its original."""
    with _lock:
        log, _ = _remember([leaf])
        log.lost.append(LostGuard(leaf.recipe, words, sequence_number, next_sequence_number()))


def _kept(operand: Any) -> Any:
    """Return an argument as a guard in a log stores it: the recipe of a node, a weak reference to a large array."""
    if isinstance(operand, (Value, MultiOutput)):
        return operand.recipe
    return weakref.ref(operand) if type(operand) is ndarray and operand.nbytes > HEAVY else operand


def _remember(nodes: list[Any]) -> tuple[GuardLog, int]:
    """Make recipes of nodes and of their ancestors; return the common log of their leaves, and the added bytes.

    Nodes with a recipe are not visited again, so each is visited once, however many guards there are.
    """
    new: list[Any] = []
    try:
        return _walked(nodes, new)
    except BaseException:  # an interrupt, say: no lineage may stay that was not filled
        for item in new:
            item.recipe = None
        raise


def _walked(nodes: list[Any], new: list[Any]) -> tuple[GuardLog, int]:
    log: GuardLog | None = None
    grown: list[tuple[Buffer, list[Any]]] = []
    queue = list(nodes)
    for item in queue:
        lineage = getattr(item, "recipe", None)
        if type(lineage) is not Recipe:
            new.append(item)
            lineage = item.recipe = Recipe()
            lineage.node = weakref.ref(item)
            lineage.function, lineage.options, lineage.sequence_number = item.function, item.options, item.sequence_number
            lineage.root = lineage.buffer = lineage.value = None
            args = item.args
            queue += [args[position] for position in item.parent_argnums]
            if item.memory:
                queue += _stored(item, grown)
            continue
        if hasattr(lineage, "log"):  # else it was made in this loop
            log = lineage.log.merged() if log is None else log.join(lineage.log.merged())
        root = item if lineage.root is None else lineage.rooted().node()
        if root is not None and root.memory:
            queue += _stored(root, grown)
    if log is None:
        log = GuardLog()
        _logs[id(log)] = weakref.ref(log, functools.partial(_logs.pop, id(log)))
    log_and_weight = _filled(new, log)
    for buffer, stored in grown:
        buffer.stored += [node.recipe for node in stored]
    return log_and_weight


def _stored(root: Any, grown: list[tuple[Buffer, list[Any]]]) -> list[Any]:
    """Return the nodes that were stored in the buffer of a root since the last call; noted in its recipe, and in `grown`."""
    log = root.memory.log
    lineage = root.recipe
    if log and lineage.buffer is None:
        lineage.buffer = Buffer(log[0].sequence_number)
    start = lineage.buffer.seen if log else 0
    stored = [write.args[0] for write in log[start:] if write.parent_argnums]
    if len(log) > start:
        lineage.buffer.seen = len(log)
        grown.append((lineage.buffer, stored))
    return stored


def _filled(new: list[Any], log: GuardLog) -> tuple[GuardLog, int]:
    """Set operands, log, root and value of new recipes; return the log, and the added bytes."""
    weight = OPERATION * (1 + len(new))
    for item in new:
        lineage, plain = item.recipe, item.raw_value
        lineage.log = log
        kept = list(item.args)
        for position, a in enumerate(kept):
            if type(a) is ndarray:
                kept[position] = weakref.ref(a) if a.nbytes > HEAVY else a
                weight += 0 if a.nbytes > HEAVY else a.nbytes
        for position in item.parent_argnums:
            kept[position] = kept[position].recipe
        lineage.args = tuple(kept)
        if type(plain) is ndarray and plain.base is not None and kept:
            viewed = viewed_operand(item)
            lineage.root = None if viewed is None else viewed.recipe
        elif not kept and isinstance(item, _STEADY) and plain.nbytes <= HEAVY:
            lineage.value = plain
            weight += plain.nbytes
    return log, weight


# Leaves with their first contents, or, for variables, the last written ones; a write into an input is known
# from its `Buffer`.
_STEADY = (VariableNode, PlaceholderNode, ConstantNode, ArgumentNode, InertScalarNode)
