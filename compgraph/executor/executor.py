"""`Executor`: runs a graph again, with other values."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import ops
from ..context import active_watcher, recording_for_replay, run_isolated
from ..graph import breadth_first
from ..guards import Guard, OtherProgramError, UnchangedGuard, guards_among, guards_of, warn_leaks
from ..storage import by_sequence_number
from ..values import (
    MultiOutput,
    PlaceholderNode,
    Value,
    describe,
    require_computed,
    require_history,
    require_unbatched,
    require_unchanged,
)
from .passes import compiled, fastest_backend
from .retrace import replay_watched
from .schedule import Program, Schedule, checked_threads, needed, origin_of, origins_of

PROGRAMS = 32  # how many programs an executor keeps at most; each has buffers of its own
# What a program raises for values that it was not written for: lengths that hang on values may misfit before they are checked.
MISFITS = (OtherProgramError, ValueError, IndexError, TypeError)


class Executor:
    """Runs a recorded graph again, with other values in its leaves.

    Parameters
    ----------
    nodes : Node or sequence of Node
        What is to be computed. What several nodes have in common is computed once.
    simplify : bool
        Whether the graph is made smaller first, as by `simplify`. The results have the same bits.
    fuse : bool
        Whether operations element by element on large arrays are done together, block by block, so that a block stays in the
        cache. Faster; the last bits may differ.
    jit : bool
        Whether programs are compiled to machine code, where that is possible (see `compgraph.jit`), instead of being functions
        of NumPy calls.
    threads : int, optional
        How many threads such a program may use; by default as many as the process has processors. The results have the same
        bits with any number.
    strict : bool
        Whether what else gives a warning raises a GuardError: numbers that left the graph while it was recorded (`escapes`), and
        other integers in a run than were recorded, by which plain arrays may be indexed.

    Attributes
    ----------
    nodes : list of Node
        What is computed, as given.
    escapes : list of str
        Where Python was given numbers of the graph (``float(node)``, ``node.value``) while it was recorded. What it did with
        them is not done again.

    Raises
    ------
    ValueError
        If `nodes` is empty, or `threads` is not positive.
    TypeError
        If `nodes` holds something that is no node, or a node that carries a tangent; if `threads` is no integer.
    GuardError
        If `strict`, and numbers left the graph.

    Notes
    -----
    The first run with arrays of some shapes, dtypes and memory layouts records the graph again for these, derivatives (as
    `autodiff.reverse.gradients` gives them) included, and writes a Python function of NumPy calls (see `source`); later runs
    with such arrays just call it. What was decided in Python while the graph was recorded (``if x > 0``, ``int(x)``,
    ``x.shape[0]``), or after that until the executor was made, is checked in each run. Where a plain array is indexed by a node
    (``K[np.argsort(x)]``), NumPy asks nobody: write ``cg.constant(K)[np.argsort(x)]``. So integers and booleans that no operation
    and no guard reads are computed in each run, too; where they are others than recorded, a RuntimeWarning says so once, and a
    GuardError if `strict`. Placeholders of integers, and integers computed from these, are guards where a plain array is indexed.

    A variable that is not fed has the value it has when the graph is run, so updates in place count at once. An executor may be
    shared by threads; runs with the same shapes wait for each other.

    Examples
    --------
    >>> import compgraph as cg
    >>> x, w = cg.placeholder((None,), name="x"), cg.variable(2.0, "w")
    >>> run = cg.Executor([x * w, cg.sum(x)]).run
    >>> run({"x": [1.0, 2.0, 3.0]})
    [array([2., 4., 6.]), np.float64(6.0)]
    >>> run({x: [1.0], w: 5.0})
    [array([5.]), np.float64(1.0)]
    """

    def __init__(
        self,
        nodes: Any,
        *,
        simplify: bool = True,
        fuse: bool = False,
        jit: bool = False,
        threads: int | None = None,
        strict: bool = False,
    ) -> None:
        self._single = not isinstance(nodes, Iterable) or isinstance(nodes, (np.ndarray, str))
        self.nodes: list[Any] = [nodes] if self._single else list(nodes)
        if not self.nodes:
            raise ValueError("an Executor was given no node to compute")
        for node in self.nodes:
            require_history(node)
            if not isinstance(node, Value):
                raise TypeError(f"an Executor runs nodes, not a {type(node).__name__}, which has no graph")
            require_unbatched("an Executor", node)
            if node.level:
                raise TypeError("an Executor cannot run a value that carries tangents")
        self._options = {"simplify": simplify, "fuse": fuse, "threads": checked_threads("an Executor", threads)}
        self._backend = fastest_backend() if jit else "numpy"
        self.escapes = self._prepare(*guards_of(needed(self.nodes, origins_of), strict=strict, runs_here=True))
        warn_leaks(self.escapes, strict)

    def _prepare(self, guards: Sequence[Guard], escaped: Iterable[str] = ()) -> list[str]:
        """Find the items, guards and names of the graph; returns, in words, where numbers left it."""
        self._guards = guards
        self._items = needed([*self.nodes, *guards], origins_of)
        require_unchanged([item for item in self._items if isinstance(item, (Value, MultiOutput))], for_values=True)
        self._known = frozenset(i for i in self._items if isinstance(i, Value))
        self._named = _by_name(self._known)
        self._placeholders = frozenset(node for node in self._known if isinstance(node, PlaceholderNode))
        self._programs: dict[Any, Program] = {}
        self._has_origins = any(origin_of(item) is not None for item in self._items)
        return list(dict.fromkeys(escaped))

    def __reduce__(self) -> Any:
        """Keep nodes, guards and options alone: programs are written again when they are needed."""
        sent = [guard for guard in self._guards if not isinstance(guard, UnchangedGuard)]  # whose variables are not sent
        return object.__new__, (type(self),), (*self._state(), sent)

    def _state(self) -> Any:
        return self.nodes, (self._single, self._options, self._backend), self.escapes

    def __setstate__(self, state: Any) -> None:
        self.nodes, (self._single, self._options, self._backend), self.escapes, *guards = state  # none in earlier versions
        found = (*guards, ()) if guards else guards_of(needed(self.nodes, origins_of), runs_here=True)
        self.escapes = list(dict.fromkeys([*self.escapes, *self._prepare(*found)]))

    def __copy__(self) -> Executor:
        made = object.__new__(type(self))
        made.__setstate__((*self._state(), self._guards))
        return made

    def run(self, feed: Mapping[Any, Any] | None = None) -> Any:
        """Compute the nodes.

        Parameters
        ----------
        feed : mapping, optional
            Values for nodes, by the node itself or by its name: for all placeholders that the result needs, and for any other
            nodes of the graph. An array_like of the node's shape, or of the declared shape of the placeholders.

        Returns
        -------
        array or list of array
            The value of each node, as NumPy would give it; one alone if the executor was made of one. No two share memory, with
            each other or with what was fed.

        Raises
        ------
        KeyError
            If a key is no node of the graph, or the name of none or of several.
        ValueError
            If a placeholder has no value, or a value has a shape with which the graph cannot be computed.
        TypeError
            If `feed` is no mapping, or a value has a dtype that cannot be converted safely.
        GuardError
            If Python would have decided otherwise with these values while the graph was recorded.
        """
        feed = {} if feed is None else feed
        if active_watcher() is not None:  # `debug` looks at operations as they are recorded
            made = self._recorded_again(self._fed(feed))
            results: Any = [np.array(made[node].raw_value)[()] for node in self.nodes]
            return results[0] if self._single else results
        values = list(feed.values()) if isinstance(feed, Mapping) else [None]
        key = _layouts(feed, values)
        program = None if key is None else self._programs.get(key)
        if program is None:
            differing: Any = next((v for v in values if isinstance(v, Value) and v.trace_kind == "batch"), None)
            if differing is not None:
                return differing.each("an Executor", lambda *one: self.run(dict(zip(feed, one, strict=True))), values)
            feeds = self._fed(feed)
            given, values = values, list(feeds.values())
            program = self._program(feeds)
            if key is not None and all(a is b for a, b in zip(given, values, strict=True)):  # else later runs must convert too
                self._keep(key, program)
        try:
            results = program(values)
        except MISFITS:
            feeds = self._fed(feed)
            program, values = self._compiled(feeds), list(feeds.values())
            self._programs.pop(key, None)
            self._keep(_layouts(feeds, values), program)
            results = program(values)
        if self._has_origins and hold_nan(results):
            results = self._guarded(self._fed(feed))
        return results[0] if self._single else list(results)

    def _guarded(self, feeds: dict[Any, Any]) -> Any:
        """The results of a program whose origins were run again with more care: right also where the short form gives nan."""
        values = list(feeds.values())
        key = ("guarded", _layouts(feeds, values))
        program = self._programs.get(key)
        if program is not None:
            try:
                return program(values)
            except MISFITS:
                self._programs.pop(key, None)
        program = run_isolated(self._compiled_guarded, feeds)
        self._keep(key, program)
        return program(values)

    def _compiled_guarded(self, feeds: dict[Any, Any]) -> Program:
        with recording_for_replay():
            return self._compiled(feeds)

    def source(self, feed: Mapping[Any, Any] | None = None) -> str:
        """The function of NumPy calls that computes the nodes for values of the shapes in `feed`; see `run`."""
        return self._program(self._fed(feed or {})).source

    def programs_made(self) -> Iterator[tuple[Program, tuple[str, ...]]]:
        """The programs that exist, the latest first, each with the names of its inputs (none)."""
        return ((program, ()) for program in reversed(list(self._programs.values())))

    def _program(self, feeds: dict[Any, Any]) -> Program:
        """The program for values of these shapes, dtypes and layouts, written now if it is not kept."""
        key = _layouts(feeds, list(feeds.values()))
        program = self._programs.get(key)
        if program is None:
            program = self._compiled(feeds)
            self._keep(key, program)
        return program

    def _keep(self, key: Any, program: Program) -> None:
        if len(self._programs) >= PROGRAMS:
            self._programs.pop(next(iter(self._programs)))
        self._programs[key] = program

    def _compiled(self, feeds: dict[Any, Any]) -> Program:
        noted: list[Guard] = []
        made = self._recorded_again(feeds, noted)
        outputs = [made[node] for node in self.nodes]
        inputs = [made[node] for node in feeds]
        guards = [made[guard] for guard in self._guards if guard in made]
        derived, _ = guards_among(noted, needed([*outputs, *guards], stop=inputs))
        derived = [replace(guard, is_derived=True) for guard in derived]
        return compiled(Schedule.of(outputs, [*guards, *derived], inputs), self._options, self._backend)

    def _recorded_again(self, feeds: dict[Any, Any], noted: list[Guard] | None = None) -> dict[Any, Any]:
        try:
            made = replay_watched(self._items, self.nodes, feeds, noted)
        except (ValueError, IndexError, TypeError) as error:
            other = [node for node, value in feeds.items() if value.shape != node.shape]
            if not other:
                raise
            given = "; ".join(f"{feeds[node].shape} for the {describe(node)}" for node in other)
            raise ValueError(f"the graph cannot be computed with the shapes fed: {given}: {error}") from error
        if self._placeholders.difference(feeds):  # an origin may need a placeholder behind a node that was fed
            self._require_fed(needed([made[node] for node in self.nodes], stop=[made[node] for node in feeds]), ())
        return made

    def _require_fed(self, read: list[Any], given: Container[Any]) -> None:
        missing = sorted([n for n in read if n in self._placeholders and n not in given], key=by_sequence_number)
        if missing:
            raise ValueError(f"no value was fed for the {', the '.join(map(describe, missing))}")

    # ------------------------------------------------------------------------------------------ what is fed

    def _fed(self, feed: Mapping[Any, Any]) -> dict[Any, Any]:
        """The values by node, checked and converted."""
        if not isinstance(feed, Mapping):
            raise TypeError(f"run takes a mapping of nodes or names to values, not a {type(feed).__name__}")
        given = {self._node(key): value for key, value in feed.items()}
        if len(given) < len(feed):
            raise KeyError("a node is fed twice: by itself and by name")
        if self._placeholders.difference(given):
            self._require_fed(needed(self.nodes, origins_of, given), given)
        return {node: as_fed(node, value) for node, value in given.items()}

    def _node(self, key: Any) -> Any:
        """The node that a key, a node or a name, stands for."""
        if isinstance(key, Value):
            require_history(key)
            if key not in self._known:
                raise KeyError(f"the {describe(key)} is no part of the graph")
            return key
        found = self._named.get(key, [])
        if len(found) == 1:
            return found[0]
        if found:
            raise KeyError(f"{len(found)} nodes of the graph are called {key!r}; feed by the node itself")
        raise KeyError(f"no node of the graph is called {key!r}; named are {', '.join(map(repr, self._named)) or 'none'}")


def hold_nan(results: Iterable[Any]) -> bool:
    """Whether results hold nan, which may come of the short form of a derivative."""
    return any(r.dtype.kind in "fc" and bool(np.isnan(r).any()) for r in results)


def _layouts(feed: Mapping[Any, Any], values: list[Any]) -> Any:
    """The key of the program for some values: who is fed, shapes, dtypes and strides; None if they are not all arrays."""
    if any(type(value) is not np.ndarray for value in values):
        return None
    return tuple([(key, value.shape, value.dtype, value.strides) for key, value in zip(feed, values, strict=True)])


def _by_name(nodes: Iterable[Any]) -> dict[str, list[Any]]:
    """The nodes by name, without the argument tracers of operators, which have the names of their arguments."""
    named: dict[str, list[Any]] = {}
    for node in nodes:
        if node._name is not None and node.function is not ops.input_of:
            named.setdefault(node._name, []).append(node)
    return named


def as_fed(node: Any, value: Any) -> np.ndarray[Any, Any]:
    """A value as an array of a node's dtype, and of a shape that can be fed for it; else an error."""
    value = value.raw_value if isinstance(value, Value) else value
    require_computed(value, "what was fed")
    array = np.asarray(value)
    casting = "safe" if isinstance(value, (np.ndarray, np.generic)) else "same_kind"  # Python's own numbers are weak
    if not np.can_cast(array.dtype, node.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(f"{array.dtype} was fed for the {describe(node)}; convert it, as by .astype({node.dtype})")
    declared = getattr(node, "declared", node.shape)
    # A node whose shape follows from a placeholder's may be fed other lengths: guards check those that were read.
    free = None not in declared and any(isinstance(n, PlaceholderNode) for n in breadth_first(node))
    fixed = (None,) * len(declared) if free else declared
    if array.ndim != len(fixed) or any(n not in (None, m) for n, m in zip(fixed, array.shape, strict=True)):
        raise ValueError(f"an array of shape {array.shape} was fed for the {describe(node)}, declared with shape {declared}")
    return array.astype(node.dtype, copy=False)
