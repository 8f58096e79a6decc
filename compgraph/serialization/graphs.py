"""Pickling and deep-copying of nodes with their graphs.

Pickle recurses into references, and a graph may be a million operations deep. So a node first passes a `Feed` to the pickler: a
list of all nodes it was computed from, oldest first. When the pickler reaches a node of the list, its memo already has the
operands. So nothing is nested, and shared nodes are written once.

A `Session` is the first feed of a pickler, and records which nodes that pickler was fed. Each node refers to the current session.
A pickler reads the content of a session only if it has not written it yet; if another pickler wrote it, a new session begins.
"""

from __future__ import annotations

import copy
import math
import threading
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..bind import bind
from ..context import reset_after_fork
from ..frames import source_lines
from ..graph import walk
from ..guards import log_lost_guard, note_loaded, watch_shapes
from ..ops import copy as copy_of
from ..storage import BufferCopy, Memory, Write, address_of, layout_of, window
from ..tracing import is_tracing
from ..values import (
    ARGUMENTS,
    NO_OPTIONS,
    TRACKED_CLASS_OF,
    MultiOutput,
    Origin,
    Value,
    describe,
    next_sequence_number,
    node_class,
    rebuild_node,
    require_history,
    require_unbatched,
    untracked,
)
from .copied_guards import CopiedGuards
from .pickled_functions import function_called, name_of

ndarray = np.ndarray
_local = threading.local()


class Buffer:
    """Wraps an array that owns its memory; loaded as the array. Some picklers write an array each time, but a wrapper once."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __reduce__(self) -> Any:
        return _itself, (self.array,)

    def __deepcopy__(self, memo: Any) -> Any:
        return copy.deepcopy(self.array, memo)


def _itself(array: Any) -> Any:
    return array


def _holder(array: Any) -> Any:
    """The array that owns the memory of a view; if no array owns it, the last array in the chain of bases."""
    base = array
    while base is not None:
        if isinstance(base, ndarray):
            array = base
        base = getattr(base, "base", None)
    return array


class Arrays:
    """Encodes arrays for a pickle so that views of one buffer are loaded as views of one buffer."""

    def __init__(self) -> None:
        self._buffers: dict[int, tuple[Any, Buffer, BufferCopy | None]] = {}

    def _buffer(self, holder: Any) -> tuple[Any, Buffer, BufferCopy | None]:
        known = self._buffers.get(id(holder))
        if known is None:
            simple = type(holder) is ndarray and holder.flags.c_contiguous
            twin = None if simple else BufferCopy.copy_of(holder)
            known = self._buffers[id(holder)] = (holder, Buffer(holder if twin is None else twin.buffer), twin)
        return known

    def code(self, plain: Any) -> Any:
        """Return the pickled form of an array: a `Buffer`, or a buffer and a view's position in it; a scalar itself."""
        if type(plain) is tuple:
            return ("outputs", *map(self.code, plain))
        if type(plain) is not ndarray or not plain.size:
            return plain
        holder, buffer, twin = self._buffer(_holder(plain))
        if plain is holder and twin is None and plain.flags.writeable:
            return buffer
        place = layout_of(plain, address_of(holder)) if twin is None else twin.place(plain)
        return ("view", buffer, plain.shape, place, plain.flags.writeable)


def _decoded(code: Any) -> Any:
    """The array that `Arrays.code` encoded."""
    if type(code) is not tuple:
        return code.view(ndarray) if isinstance(code, ndarray) and type(code) is not ndarray else code
    kind, *parts = code
    if kind == "outputs":
        return tuple(map(_decoded, parts))
    buffer, shape, place, writeable = parts
    array = window(_decoded(buffer), shape, **place)
    if not writeable:
        array.flags.writeable = False
    return array


class EncodedLog:
    """The log of the writes into a node's buffer; it is pickled after all nodes that it refers to."""

    __slots__ = ("code", "root")

    def __init__(self, root: Any, arrays: Arrays, now: float) -> None:
        self.root = root
        root.memory.require_complete()
        self.code = [
            (arrays.code(w.window), w.index, w.saved, w.args[0], bool(w.parent_argnums), w.sequence_number - now, w.scope)
            for w in root.memory.log
        ]

    def __reduce__(self) -> Any:
        return _log, (self.root, self.code)


def _log(root: Any, code: Any) -> None:
    """Give a node the log of its buffer."""
    root.memory = Memory()
    for place, index, saved, value, is_node, sequence_number, scope in code:
        root.memory.log.append(Write(root.memory, (_decoded(place), index, saved), value, is_node, sequence_number, scope=scope))


class TimeOrigin:
    """The tick from which others are counted back in a pickle: shared by all picklers that are at work at the same time."""

    _last: Any = None
    _lock = reset_after_fork(threading.Lock())

    def __init__(self) -> None:
        self.sequence_number = next_sequence_number()

    @classmethod
    def current(cls) -> TimeOrigin:
        """The moment that is still referred to, or a new one."""
        with cls._lock:
            moment: TimeOrigin | None = None if cls._last is None else cls._last()
            if moment is None:
                moment = cls()
                cls._last = weakref.ref(moment)
            return moment


class GraphEncoder:
    """Walks through graphs and gives the state of each node, once."""

    def __init__(self) -> None:
        self.moment = TimeOrigin.current()
        self.now = self.moment.sequence_number
        self.arrays = Arrays()
        self.visited: set[Any] = set()
        self._lines: dict[Any, str | None] = {}
        self._names: dict[Any, Any] = {}
        self._decided = CopiedGuards(self.visited)
        self._last = -math.inf

    def behind(self, node: Any) -> list[Any]:
        """Return the ancestors of a node, the node, and the values written into their buffers: oldest first."""
        unmet = lambda item: [other for other in _behind(item) if other not in self.visited]  # noqa: E731
        queue = [] if node in self.visited else list(walk([node], unmet))
        self.visited.update(queue)
        self._last = max([self._last, *[item.sequence_number for item in queue if item.args]])
        logs = [EncodedLog(item, self.arrays, self.now) for item in queue if item.memory]
        return [*sorted(queue, key=lambda n: n.sequence_number if n.args else -math.inf), *logs]

    def function(self, node: Any) -> Any:
        """Return the pickled form of a node's function; see `name_of`."""
        function = node.function
        if function not in self._names:
            self._names[function] = name_of(function)
        return self._names[function]

    def state(self, node: Any) -> tuple[Any, ...]:
        """The arguments of `_rebuilt` after the feed and the function; ticks are counted back from `now`."""
        line_key = (id(node.code), node.instruction)
        if line_key not in self._lines:
            self._lines[line_key] = source_lines.format_line(node.code, node.instruction)
        name = node._name if isinstance(node, Value) else None
        return (
            node_class(node),
            self.arrays.code(node.raw_value),
            node.args,
            node.options,
            node.sequence_number - self.now,
            name,
            self._lines[line_key],
            node.scope,
            getattr(node, "origin", None) or getattr(node, "declared", None),
            None if node.args else self._decided.about(node, self._last, self.now),
            node.untracked_read - self.now if hasattr(node, "untracked_read") else None,
        )


def _behind(node: Any) -> list[Any]:
    """The nodes that a node refers to: operands, nodes written into its buffer, and those of its origin."""
    written = [write.args[0] for write in node.memory.log if write.parent_argnums] if node.memory else []
    origin = getattr(node, "origin", None)
    return [node.args[p] for p in node.parent_argnums] + written + ([origin.output, *origin.wrt] if origin else [])


class Feed:
    """The nodes behind a node that a pickler has not written yet; it is loaded as a list."""

    def __init__(self, content: Iterable[Any]) -> None:
        self.content = content

    def __reduce__(self) -> Any:
        return list, (), None, iter(self.content)


class Session(GraphEncoder):
    """The nodes that one pickler was fed. It lives as long as the memo of the pickler refers to it."""

    def __init__(self) -> None:
        super().__init__()
        self._requested: Any = None
        self._is_written = False
        _local.session = weakref.ref(self)

    @classmethod
    def current(cls) -> Session:
        """The session at work in this thread."""
        known = getattr(_local, "session", None)
        session: Session | None = None if known is None else known()
        return cls() if session is None else session

    def feed(self, node: Any) -> Any:
        """Return the objects to pickle before the state of a node."""
        self._requested = node
        return self if not self._is_written or node in self.visited else Feed(self.behind(node))

    def __reduce__(self) -> Any:
        if self._is_written:  # another pickler wrote this session, and the one that asks now has written nothing yet
            session = Session()
            session._requested = self._requested
            return list, (), None, iter([session])
        self._is_written = True
        return list, (), None, iter(self.behind(self._requested))


def _reduced(node: Any, protocol: Any = None) -> Any:
    """``__reduce_ex__`` of nodes."""
    _require_picklable(node)
    session = Session.current()
    return _rebuilt, (session.feed(node), session.function(node), *session.state(node))


def _stands_in(node: Any) -> bool:
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
    if _stands_in(node):
        raise TypeError(
            f"the {describe(node)} cannot be pickled or deep-copied: it represents an argument of a function that is being "
            "differentiated. Use node.value for the numbers alone"
        )


def _rebuilt(
    feed: Any, function: Any, cls: Any, plain: Any, args: Any, options: Any, sequence_number: float, name: str | None,
    line: str | None, scope: tuple[str, ...], more: Any = None, decided: tuple[str, float] | None = None,
    read_sequence_number: float | None = None,
) -> Any:  # fmt: skip
    """A node from its parts, with a sequence number older than that of every node to come."""
    while (
        sequence_number >= 0 and next_sequence_number() <= sequence_number
    ):  # positive if a pickler outlived its first dump, and met younger nodes
        pass
    node = rebuild_node(cls, _decoded(plain), function_called(function), args, options or NO_OPTIONS, sequence_number, name)
    node.code, node.instruction, node._scope = line, 0, scope
    if cls in TRACKED_CLASS_OF:  # as unread as the other was
        node.__class__ = cls
        untracked[id(node)] = weakref.ref(node)
    if isinstance(more, Origin):
        node.origin = more
    elif more is not None:
        node.declared = more
        watch_shapes(node)
    if read_sequence_number is not None:
        node.untracked_read = read_sequence_number
    note_loaded()
    if decided is not None:
        log_lost_guard(node, *decided)
    return node


_MORE = -3  # the position of `more` (an origin or a declared shape) in what `GraphEncoder.state` gives


def _deep_copied(node: Any, memo: dict[int, Any]) -> Any:
    """``__deepcopy__`` of nodes: a new graph; while a function is traced, a recorded copy in the same graph."""
    require_history(node)
    if node.level or is_tracing() or _stands_in(node):
        return bind(copy_of, (node,), {"order": "K"})
    unmet = memo.get(id(GraphEncoder))
    if unmet is None:
        unmet = memo[id(GraphEncoder)] = GraphEncoder()
    for item in unmet.behind(node):
        if isinstance(item, EncodedLog):
            _log(memo[id(item.root)], [copy.deepcopy(part, memo) for part in item.code])
            continue
        if _stands_in(item):
            memo[id(item)] = item
            continue
        _require_picklable(item)
        cls, plain, args, *rest = unmet.state(item)
        if isinstance(origin := rest[_MORE], Origin):
            rest[_MORE] = origin._replace(output=memo[id(origin.output)], wrt=tuple([memo[id(n)] for n in origin.wrt]))
        args = tuple([memo[id(a)] if isinstance(a, (Value, MultiOutput)) else copy.deepcopy(a, memo) for a in args])
        memo[id(item)] = _rebuilt(None, item.function, cls, copy.deepcopy(plain, memo), args, *rest)
    return memo[id(node)]


for _class in (Value, MultiOutput):
    for _name, _method in (("__reduce_ex__", _reduced), ("__reduce__", _reduced), ("__deepcopy__", _deep_copied)):
        setattr(_class, _name, _method)
