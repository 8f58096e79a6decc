"""Pickling of nodes with their graphs and guards, and deep-copying of nodes.

Pickle recurses into references, and a graph may be a million operations deep. So a node first passes all its ancestors to the
pickler (`AncestorList`), oldest first. When the pickler reaches one of them, its memo already contains the operands.
Nothing is nested, and shared nodes are written once.

A `Session` is the first such list in a pickle, and records the nodes that the pickler has received. The state of each of these
nodes starts with the session, which a pickler reduces once and then refers to. So a written session that is reduced again
belongs to another pickler, and a new session begins.

Guards contain functions and code of the program that recorded them, so they are not copied. A copied leaf keeps only the text of
the latest guard that depends on it. An executor rejects a copied graph that depends on guards, like a graph with evicted guards.
"""

from __future__ import annotations

import copy
import math
import threading
import weakref
from collections.abc import Callable, Container, Iterable
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..array_types import Array
from ..bind import bind
from ..context import reset_after_fork
from ..frames import source_lines
from ..graph import walk
from ..guards import (
    Guard,
    GuardLog,
    Recipe,
    ShapeGuard,
    UntrackedGuard,
    has_evicted_guards,
    log_lost_guard,
    log_untracked,
    logged_guards,
    lost_guards,
    note_unpickling,
    reduce_ancestors,
    watch_shapes,
)
from ..ops import copy as copy_of
from ..storage import BufferCopy, Memory, Write, address_of, layout_of, window
from ..tracing import is_tracing
from ..values import (
    ARGUMENTS,
    NO_OPTIONS,
    TRACKED_CLASS_OF,
    ConstantNode,
    MultiOutput,
    Origin,
    PlaceholderNode,
    Value,
    VariableNode,
    describe,
    next_sequence_number,
    node_class,
    rebuild_node,
    require_history,
    require_unbatched,
    untracked,
)
from .moved import RENAMED_OPERATIONS
from .pickled_functions import pickled_form, resolve_function


class CopiedGuards:
    """Finds the latest guard that depends on a leaf. Each guard log is searched once."""

    def __init__(self, copied_nodes: Container[Any]) -> None:
        log_untracked()
        self._copied_nodes = copied_nodes
        self._latest_guards: dict[GuardLog, dict[int, Guard]] = {}

    def latest_guard(self, leaf: object, last_operation: float, now: float) -> tuple[str, float] | None:
        """Return the text of the latest guard that depends on a leaf, and its sequence number minus `now`.

        `last_operation` is the sequence number of the graph's last operation. Later guards count only if their value was used.
        """
        recipe = getattr(leaf, "recipe", None)
        latest = self._latest(recipe, last_operation) if type(recipe) is Recipe else None
        return None if latest is None else (latest[0], latest[1] - now)

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
            return all(a.node() in self._copied_nodes for a in guard.args)
        return isinstance(guard, UntrackedGuard) and (guard.is_read or guard.args[0].node() in self._copied_nodes)


def _latest_guards(guards: Iterable[Guard], last_operation: float) -> dict[int, Guard]:
    """Return the latest guard that depends on each leaf, by the id of the leaf's recipe.

    A constant never changes, so only guards that depend on constants alone count for it.
    """
    relevant_guards = [guard for guard in guards if guard.is_used or guard.sequence_number < last_operation]
    depends_on_inputs = reduce_ancestors([a for guard in relevant_guards for a in guard.args], _is_input, any)
    guards_by_leaf: dict[int, Guard] = {}
    visited: set[int] = set()
    for guard in reversed(relevant_guards):
        queue = [a for a in guard.args if type(a) is Recipe and id(a) not in visited]
        depends_on_constants_only = not any(depends_on_inputs[id(a)] for a in guard.args if type(a) is Recipe)
        for recipe in queue:
            if id(recipe) in visited:
                continue
            if not depends_on_constants_only and isinstance(recipe.node(), ConstantNode):
                continue
            visited.add(id(recipe))
            if recipe.function is None:
                guards_by_leaf[id(recipe)] = guard
            queue += [a for a in recipe.sources() if id(a) not in visited]
    return guards_by_leaf


def _is_input(recipe: Recipe) -> bool:
    return recipe.function is None and isinstance(recipe.node(), (VariableNode, PlaceholderNode))


ndarray = np.ndarray
_local = threading.local()


class Buffer:
    """A wrapper of an array that owns its memory, unpickled as the array.

    Some picklers write an array at each reference, but a wrapper once.
    """

    __slots__ = ("array",)

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __reduce__(self) -> Any:
        return _identity, (self.array,)

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        return copy.deepcopy(self.array, memo)


def _identity(array: NDArray[Any]) -> Any:
    return array


def _memory_owner(array: object) -> Any:
    """Return the array that owns the memory of a view, or else the last array in the chain of bases."""
    base = array
    while base is not None:
        if isinstance(base, ndarray):
            array = base
        base = getattr(base, "base", None)
    return array


class ArrayEncoder:
    """Encodes arrays for a pickle, preserving which arrays are views of one buffer."""

    def __init__(self) -> None:
        self._buffers: dict[int, tuple[Any, Buffer, BufferCopy | None]] = {}

    def _buffer(self, owner: NDArray[Any]) -> tuple[Any, Buffer, BufferCopy | None]:
        entry = self._buffers.get(id(owner))
        if entry is None:
            is_simple = type(owner) is ndarray and owner.flags.c_contiguous
            buffer_copy = None if is_simple else BufferCopy.copy_of(owner)
            buffer = Buffer(owner if buffer_copy is None else buffer_copy.buffer)
            entry = self._buffers[id(owner)] = (owner, buffer, buffer_copy)
        return entry

    def encode(self, value: Array | tuple[NDArray[Any], ...]) -> Any:
        """Return the pickled form of a value: a `Buffer`, or a buffer and the layout of a view, or the scalar itself."""
        if type(value) is tuple:
            return ("outputs", *map(self.encode, value))
        if type(value) is not ndarray or not value.size:
            return value
        owner, buffer, buffer_copy = self._buffer(_memory_owner(value))
        if value is owner and buffer_copy is None and value.flags.writeable:
            return buffer
        layout = layout_of(value, address_of(owner)) if buffer_copy is None else buffer_copy.layout(value)
        return ("view", buffer, value.shape, layout, value.flags.writeable)


def _decode(encoded: Array | tuple[Any, ...]) -> Any:
    """Return the value that `ArrayEncoder.encode` encoded."""
    if type(encoded) is not tuple:
        return encoded.view(ndarray) if isinstance(encoded, ndarray) and type(encoded) is not ndarray else encoded
    kind, *parts = encoded
    if kind == "outputs":
        return tuple(map(_decode, parts))
    buffer, shape, layout, writeable = parts
    array = window(_decode(buffer), shape, **layout)
    if not writeable:
        array.flags.writeable = False
    return array


class EncodedLog:
    """The log of the writes into a node's buffer; it is pickled after all nodes that it refers to."""

    __slots__ = ("encoded_writes", "root")

    def __init__(self, root: Any, arrays: ArrayEncoder, now: float) -> None:
        self.root = root
        root.memory.require_complete()
        self.encoded_writes = [
            (arrays.encode(w.window), w.index, w.saved, w.args[0], bool(w.parent_argnums), w.sequence_number - now, w.scope)
            for w in root.memory.log
        ]

    def __reduce__(self) -> Any:
        return _rebuild_log, (self.root, self.encoded_writes)


def _rebuild_log(root: Value, encoded_writes: list[Any]) -> None:
    """Restore the write log of a node's buffer."""
    root.memory = Memory()
    for encoded_window, index, saved, value, is_node, sequence_number, scope in encoded_writes:
        root.memory.log.append(
            Write(root.memory, (_decode(encoded_window), index, saved), value, is_node, sequence_number, scope=scope)
        )


class TimeOrigin:
    """The sequence number that pickled ones are relative to, shared by all picklers that run at the same time."""

    _last: Any = None
    _lock = reset_after_fork(threading.Lock())

    def __init__(self) -> None:
        self.sequence_number = next_sequence_number()

    @classmethod
    def current(cls) -> TimeOrigin:
        """Return the origin that a running pickler refers to, or a new one."""
        with cls._lock:
            origin: TimeOrigin | None = None if cls._last is None else cls._last()
            if origin is None:
                origin = cls()
                cls._last = weakref.ref(origin)
            return origin


class GraphEncoder:
    """Traverses graphs and encodes the state of each node once."""

    def __init__(self) -> None:
        self.origin = TimeOrigin.current()
        self.now = self.origin.sequence_number
        self.arrays = ArrayEncoder()
        self.visited: set[Any] = set()
        self._lines: dict[Any, str | None] = {}
        self._pickled_functions: dict[Any, Any] = {}
        self._copied_guards = CopiedGuards(self.visited)
        self._last_operation = -math.inf  # the sequence number of the last operation

    def ancestors(self, node: NDArray[Any]) -> list[Any]:
        """Return the ancestors of a node, the node, and the values written into their buffers: oldest first."""
        unvisited_references = lambda item: [other for other in _references(item) if other not in self.visited]  # noqa: E731
        queue = [] if node in self.visited else list(walk([node], unvisited_references))
        self.visited.update(queue)
        self._last_operation = max([self._last_operation, *[item.sequence_number for item in queue if item.args]])
        logs = [EncodedLog(item, self.arrays, self.now) for item in queue if item.memory]
        return [*sorted(queue, key=lambda n: n.sequence_number if n.args else -math.inf), *logs]

    def function(self, node: Any) -> Any:
        """Return the pickled form of a node's function; see `pickled_form`."""
        function = node.function
        if function not in self._pickled_functions:
            self._pickled_functions[function] = pickled_form(function)
        return self._pickled_functions[function]

    def state(self, node: Any) -> tuple[Any, ...]:
        """The arguments of `_rebuild_node` after the ancestors and the function. Sequence numbers are relative to `now`."""
        line_key = (id(node.code), node.instruction)
        if line_key not in self._lines:
            self._lines[line_key] = source_lines.format_line(node.code, node.instruction)
        name = node._name if isinstance(node, Value) else None
        return (
            node_class(node),
            self.arrays.encode(node.raw_value),
            node.args,
            node.options,
            node.sequence_number - self.now,
            name,
            self._lines[line_key],
            node.scope,
            getattr(node, "origin", None) or getattr(node, "declared_shape", None),
            None if node.args else self._copied_guards.latest_guard(node, self._last_operation, self.now),
            node.untracked_read - self.now if hasattr(node, "untracked_read") else None,
        )


def _references(node: Value) -> list[Any]:
    """Return the nodes that a node refers to: operands, nodes written into its buffer, and those of its origin."""
    written_nodes = [write.args[0] for write in node.memory.log if write.parent_argnums] if node.memory else []
    origin = getattr(node, "origin", None)
    return [node.args[p] for p in node.parent_argnums] + written_nodes + ([origin.output, *origin.wrt] if origin else [])


class AncestorList:
    """The ancestors of a node that a pickler has not written yet, unpickled as a list."""

    def __init__(self, content: Iterable[Any]) -> None:
        self.content = content

    def __reduce__(self) -> Any:
        return list, (), None, iter(self.content)


class Session(GraphEncoder):
    """The nodes that one pickler has received. The pickler's memo keeps it alive."""

    def __init__(self) -> None:
        super().__init__()
        self._node: Any = None
        self._is_written = False
        _local.session = weakref.ref(self)

    @classmethod
    def current(cls) -> Session:
        """Return the running session of this thread, or a new one."""
        reference = getattr(_local, "session", None)
        session: Session | None = None if reference is None else reference()
        return cls() if session is None else session

    def unwritten_ancestors(self, node: Any) -> Any:
        """Return the object that lists the ancestors to pickle before the state of a node."""
        self._node = node
        return self if not self._is_written or node in self.visited else AncestorList(self.ancestors(node))

    def __reduce__(self) -> Any:
        if self._is_written:  # by another pickler; the current one has written nothing yet
            session = Session()
            session._node = self._node
            return list, (), None, iter([session])
        self._is_written = True
        return list, (), None, iter(self.ancestors(self._node))


def _reduce_node(node: object, protocol: int | None = None) -> Any:
    """``__reduce_ex__`` of nodes."""
    _require_picklable(node)
    session = Session.current()
    return _rebuild_node, (session.unwritten_ancestors(node), session.function(node), *session.state(node))


def _is_argument(node: Value) -> bool:
    """Whether a node represents an argument of a traced function."""
    return type(node) in ARGUMENTS and not node.args


def _require_picklable(node: Any) -> None:
    require_history(node)
    require_unbatched("pickling", node)
    if node.level:
        raise TypeError(
            "a value that carries tangents cannot be pickled or copied: it is part of a derivative that is being computed. "
            "Use node.value for the numbers alone"
        )
    if _is_argument(node):
        raise TypeError(
            f"the {describe(node)} cannot be pickled or deep-copied: it represents an argument of a function that is being "
            "differentiated. Use node.value for the numbers alone"
        )


# By operation, the new names of options in pickles of earlier versions.
_RENAMED_OPTIONS = {"scatter": {"layout": "index_counts"}, "scatter_add": {"places": "positions"}}


def _rebuild_node(
    ancestors: list[Any] | None,
    function: object,
    cls: Any,
    encoded_value: Array | tuple[Any, ...],
    args: tuple[Any, ...],
    options: dict[str, Any],
    sequence_number: float,
    name: str | None,
    line: str | None,
    scope: tuple[str, ...],
    origin_or_shape: tuple[Any, ...] | Origin | None = None,
    lost_guard: tuple[str, float] | None = None,
    read_sequence_number: float | None = None,
) -> Any:
    """Rebuild a node from its parts, with a sequence number below that of every later node."""
    _advance_past(sequence_number)
    opname = function.rpartition(":")[2] if isinstance(function, str) else ""
    new_names = _RENAMED_OPTIONS.get(RENAMED_OPERATIONS.get(opname, opname))
    options = {new_names.get(key, key): value for key, value in options.items()} if new_names and options else options
    node = rebuild_node(
        cls, _decode(encoded_value), resolve_function(function), args, options or NO_OPTIONS, sequence_number, name
    )
    node.code, node.instruction, node._scope = line, 0, scope
    if cls in TRACKED_CLASS_OF:  # `rebuild_node` made a node whose shape counts as read
        node.__class__ = cls
        untracked[id(node)] = weakref.ref(node)
    if isinstance(origin_or_shape, Origin):
        node.origin = origin_or_shape
    elif origin_or_shape is not None:
        node.declared_shape = origin_or_shape
        watch_shapes(node)
    if read_sequence_number is not None:
        node.untracked_read = read_sequence_number
    note_unpickling()
    if lost_guard is not None:
        log_lost_guard(node, *lost_guard)
    return node


def _advance_past(sequence_number: float) -> None:
    """Advance the counter past a nonnegative sequence number: of a node recorded after the first dump of its pickler."""
    while sequence_number >= 0 and next_sequence_number() <= sequence_number:
        pass


_ORIGIN_POSITION = -3  # position of the origin, or the declared shape, in `GraphEncoder.state`


def _deep_copy_node(node: Value, memo: dict[int, Any]) -> Any:
    """``__deepcopy__`` of nodes: a new graph; while a function is traced, a recorded copy in the same graph."""
    require_history(node)
    if node.level or is_tracing() or _is_argument(node):
        return bind(copy_of, (node,), {"order": "K"})
    encoder = memo.get(id(GraphEncoder))
    if encoder is None:
        encoder = memo[id(GraphEncoder)] = GraphEncoder()
    for item in encoder.ancestors(node):
        if isinstance(item, EncodedLog):
            _rebuild_log(memo[id(item.root)], [copy.deepcopy(part, memo) for part in item.encoded_writes])
            continue
        if _is_argument(item):
            memo[id(item)] = item
            continue
        _require_picklable(item)
        cls, encoded_value, args, *rest = encoder.state(item)
        if isinstance(origin := rest[_ORIGIN_POSITION], Origin):
            rest[_ORIGIN_POSITION] = origin._replace(output=memo[id(origin.output)], wrt=tuple([memo[id(n)] for n in origin.wrt]))
        args = tuple([memo[id(a)] if isinstance(a, (Value, MultiOutput)) else copy.deepcopy(a, memo) for a in args])
        memo[id(item)] = _rebuild_node(None, item.function, cls, copy.deepcopy(encoded_value, memo), args, *rest)
    return memo[id(node)]


# Names in pickles of earlier versions.
_itself, _log, _rebuilt = _identity, _rebuild_log, _rebuild_node

for _class in (Value, MultiOutput):
    for _name, _method in (("__reduce_ex__", _reduce_node), ("__reduce__", _reduce_node), ("__deepcopy__", _deep_copy_node)):
        setattr(_class, _name, _method)


# ------------------------------------------------------------------------------------------- guards


def _reduce_guard(guard: Guard) -> Any:
    """``__reduce__`` of guards, with the user's line as text.

    Their nodes precede them in a pickle, so the `TimeOrigin` is alive and preserves the order.
    """
    line = source_lines.format_line(guard.code, guard.instruction)
    strictness = (guard.is_strict,) if isinstance(guard, UntrackedGuard) else ()
    return _rebuild_guard, (
        guard.description,
        guard.function,
        guard.args,
        guard.recorded,
        line,
        guard.sequence_number - TimeOrigin.current().sequence_number,
        *strictness,
    )


def _rebuild_guard(
    description: str,
    function: Callable[..., Any] | type,
    args: tuple[Any, ...],
    recorded_value: tuple[Any, ...] | int | str,
    line: str | None,
    sequence_number: float,
    *strict: bool,
) -> Guard:
    _advance_past(sequence_number)
    guard = (UntrackedGuard if strict else Guard)(description, function, args, recorded_value, line, 0, sequence_number)
    if isinstance(guard, UntrackedGuard):
        (guard.is_strict,) = strict
    return guard


def _rebuild_guards(codes: list[Any]) -> list[Guard]:
    """Rebuild the guards in a pickle of an earlier version."""
    return [_rebuild_guard(*code) for code in codes]


Guard.__reduce__ = _reduce_guard  # type: ignore[method-assign, assignment]
