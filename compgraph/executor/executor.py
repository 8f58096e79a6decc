"""`Executor`: runs a recorded graph again with other values."""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np

from .. import ops
from ..context import (
    Setting,
    active_checks,
    guards_corners,
    higher_derivatives,
    recording_for_replay,
    run_isolated,
    unmasked_derivatives,
)
from ..graph import breadth_first
from ..guards import Guard, ProgramMismatchError, UnchangedGuard, guards_of, select_guards, warn_leaks
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
from .nan_checks import has_nan, select_hidden
from .passes import compile_schedule, fastest_backend
from .retrace import retrace_outputs
from .schedule import Program, Schedule, check_threads, collect_dependencies, origin_of, retrace_sources_of

MAX_PROGRAMS = 32  # programs cached by an executor; each has buffers of its own
# Errors of a program called with values that it was not compiled for; value-dependent lengths may fail before their checks.
MISMATCH_ERRORS = (ProgramMismatchError, ValueError, IndexError, TypeError)


class Executor:
    """Runs a recorded graph again, with other values for its leaves.

    Parameters
    ----------
    nodes : Node or sequence of Node
        The results. Common subexpressions of several nodes are computed once.
    simplify : bool
        Whether the graph is simplified first, as by `simplify`. The results have the same bits.
    fuse : bool
        Whether elementwise operations on large arrays are fused and run in cache-sized blocks. This is faster; the last
        bits may differ.
    jit : bool
        Whether programs are compiled to machine code where possible (see `compgraph.jit`), instead of functions of NumPy
        calls.
    threads : int, optional
        The number of threads of a compiled program; by default the number of processors available to the process. The
        results have the same bits with any number.
    strict : bool
        Whether warnings become a GuardError: for values that left the graph while it was recorded, and for
        integers that differ from the recorded ones and may index plain arrays.

    Attributes
    ----------
    nodes : list of Node
        The results, as passed.
    leaks : list of str
        Where Python read values of the graph (``float(node)``, ``node.value``) while it was recorded. Computations with
        these values are not repeated.

    Raises
    ------
    ValueError
        If `nodes` is empty, or `threads` is not positive.
    TypeError
        If an element of `nodes` is not a node, or carries a tangent, or `threads` is not an integer.
    GuardError
        If `strict`, and values left the graph.

    Notes
    -----
    The first run with arrays of some shapes, dtypes and memory layouts retraces the graph, including derivatives (from
    `autodiff.reverse.gradients`), and generates a Python function of NumPy calls (see `source`). Later runs with such arrays
    call this function. Decisions of Python while recording (``if x > 0``, ``int(x)``, ``x.shape[0]``), or later until the
    executor was made, are guards that each run checks.

    NumPy does not report that a node indexes a plain array (``K[np.argsort(x)]``); use ``cg.constant(K)[np.argsort(x)]`` to
    record it. Therefore each run also computes integers and booleans that no operation and no guard reads. If they differ from
    the recorded ones, a GuardWarning is issued once, or a GuardError is raised if `strict`. Placeholders of integers, and
    integers computed from them, are guards where they index a plain array.

    A variable without a fed value has its value at the time of the run, so in-place updates take effect at once. Threads may
    share an executor; runs with the same shapes are serialized.

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
        self._returns_single = not isinstance(nodes, Iterable) or isinstance(nodes, (np.ndarray, str))
        self.nodes: list[Any] = [nodes] if self._returns_single else list(nodes)
        if not self.nodes:
            raise ValueError("an Executor needs at least one node to compute; nodes is empty")
        for node in self.nodes:
            require_history(node)
            if not isinstance(node, Value):
                raise TypeError(f"an Executor runs nodes, not a {type(node).__name__}, which has no graph")
            require_unbatched("an Executor", node)
            if node.level:
                raise TypeError(
                    "an Executor cannot run a value that carries a tangent. Create it outside of the differentiated function"
                )
        self._options = {"simplify": simplify, "fuse": fuse, "threads": check_threads("an Executor", threads)}
        self._backend = fastest_backend() if jit else "numpy"
        items = collect_dependencies(self.nodes, retrace_sources_of)
        self.leaks = self._prepare(*guards_of(items, strict=strict, runs_here=True))
        warn_leaks(self.leaks, strict)

    def _prepare(self, guards: Sequence[Guard], unchecked: Iterable[str] = ()) -> list[str]:
        """Collect the items, guards and names of the graph; return the descriptions of unchecked values without repetition."""
        self._guards = guards
        self._items = collect_dependencies([*self.nodes, *guards], retrace_sources_of)
        require_unchanged([item for item in self._items if isinstance(item, (Value, MultiOutput))], for_values=True)
        self._graph_nodes = frozenset(i for i in self._items if isinstance(i, Value))
        self._nodes_by_name = _group_by_name(self._graph_nodes)
        self._placeholders = frozenset(node for node in self._graph_nodes if isinstance(node, PlaceholderNode))
        self._programs: dict[Any, Program] = {}
        self._has_origins = any(origin_of(item) is not None for item in self._items)
        return list(dict.fromkeys(unchecked))

    @property
    def escapes(self) -> list[str]:
        """The former name of `leaks`."""
        warnings.warn("Executor.escapes is now Executor.leaks", DeprecationWarning, stacklevel=2)
        return self.leaks

    def __reduce__(self) -> Any:
        """Pickle nodes, guards and options; programs are generated again on demand.

        An `UnchangedGuard` is left out, because its variable is not pickled.
        """
        pickled_guards = [guard for guard in self._guards if not isinstance(guard, UnchangedGuard)]
        return object.__new__, (type(self),), (*self._state(), pickled_guards)

    def _state(self) -> Any:
        return self.nodes, (self._returns_single, self._options, self._backend), self.leaks

    def __setstate__(self, state: Any) -> None:
        self.nodes, (self._returns_single, self._options, self._backend), self.leaks, *guards = state
        if guards:
            prepared: Any = (*guards, ())
        else:  # pickles of earlier versions have no guards
            prepared = guards_of(collect_dependencies(self.nodes, retrace_sources_of), runs_here=True)
        self.leaks = list(dict.fromkeys([*self.leaks, *self._prepare(*prepared)]))

    def __copy__(self) -> Executor:
        new_executor = object.__new__(type(self))
        new_executor.__setstate__((*self._state(), self._guards))
        return new_executor

    def run(self, feed: Mapping[Any, Any] | None = None) -> Any:
        """Compute the results.

        Parameters
        ----------
        feed : mapping, optional
            Values by node or by name: for all placeholders that the results need, and for any other nodes of the graph.
            Each value is an array_like of the node's shape, or of a placeholder's declared shape.

        Returns
        -------
        ndarray or list of ndarray
            The value of each node, as NumPy returns it; a single value if the executor has a single node. No two share
            memory with each other or with a fed value.

        Raises
        ------
        KeyError
            If a key is not a node of the graph, or not the name of exactly one.
        ValueError
            If a placeholder has no value, or the graph cannot be computed with a value's shape.
        TypeError
            If `feed` is not a mapping, or a dtype cannot be converted safely.
        GuardError
            If Python would have taken another branch with these values while recording.
        """
        feed = {} if feed is None else feed
        if active_checks() is not None:  # `cg.debug` inspects operations during recording
            replacements = self._retrace(self._convert_feed(feed))
            results: Any = [np.array(replacements[node].raw_value)[()] for node in self.nodes]
            return results[0] if self._returns_single else results
        values = list(feed.values()) if isinstance(feed, Mapping) else [None]
        key = _layout_key(feed, values)
        program = None if key is None else self._programs.get(key)
        if program is None:
            batch: Any = next((v for v in values if isinstance(v, Value) and v.trace_kind == "batch"), None)
            if batch is not None:
                return batch.map_elements("an Executor", lambda *element: self.run(dict(zip(feed, element, strict=True))), values)
            feeds = self._convert_feed(feed)
            fed_values, values = values, list(feeds.values())
            program = self._find_or_compile(feeds)
            is_converted = any(a is not b for a, b in zip(fed_values, values, strict=True))
            if key is not None and not is_converted:  # later runs must convert too
                self._cache_program(key, program)
        try:
            results = program(values)
        except MISMATCH_ERRORS:
            feeds = self._convert_feed(feed)
            program, values = self._compile(feeds), list(feeds.values())
            self._programs.pop(key, None)
            self._cache_program(_layout_key(feeds, values), program)
            results = program(values)
        if self._has_origins and has_nan(results):
            results = self._run_nan_safe(self._convert_feed(feed))
        return results[0] if self._returns_single else list(results[: len(self.nodes)])

    def _run_nan_safe(self, feeds: dict[Any, Any]) -> Any:
        """Run a program whose derivatives were recorded in their nan-safe form."""
        values = list(feeds.values())
        key = ("nan-safe", _layout_key(feeds, values))
        program = self._programs.get(key)
        if program is not None:
            try:
                return program(values)
            except MISMATCH_ERRORS:
                self._programs.pop(key, None)
        program = run_isolated(self._compile_nan_safe, feeds)
        self._cache_program(key, program)
        return program(values)

    def _compile_nan_safe(self, feeds: dict[Any, Any]) -> Program:
        with recording_for_replay():
            return self._compile(feeds)

    def source(self, feed: Mapping[Any, Any] | None = None) -> str:
        """Return the source of the function that computes the results for values of the shapes in `feed`; see `run`."""
        return self._find_or_compile(self._convert_feed(feed or {})).source

    def compiled_programs(self) -> Iterator[tuple[Program, tuple[str, ...]]]:
        """Iterate over the cached programs, the latest first, each with the names of its inputs, which are unknown here."""
        return ((program, ()) for program in reversed(list(self._programs.values())))

    def _find_or_compile(self, feeds: dict[Any, Any]) -> Program:
        """Return the program for values of these shapes, dtypes and layouts, from the cache if possible."""
        key = _layout_key(feeds, list(feeds.values()))
        program = self._programs.get(key)
        if program is None:
            program = self._compile(feeds)
            self._cache_program(key, program)
        return program

    def _cache_program(self, key: Any, program: Program) -> None:
        if len(self._programs) >= MAX_PROGRAMS:
            self._programs.pop(next(iter(self._programs)))
        self._programs[key] = program

    def _compile(self, feeds: dict[Any, Any], checks_corners: bool = False) -> Program:
        guard_log: list[Guard] = []
        unmasked: list[Any] = []
        higher_opnames: list[str] | None = None if checks_corners else []
        settings: dict[ContextVar[Any], Any] = {
            unmasked_derivatives: unmasked,
            higher_derivatives: higher_opnames,
            guards_corners: checks_corners,
        }
        with Setting(settings):
            replacements = self._retrace(feeds, guard_log)
        if higher_opnames:
            return self._compile(feeds, checks_corners=True)
        outputs = [replacements[node] for node in self.nodes]
        inputs = [replacements[node] for node in feeds]
        guards = [replacements[guard] for guard in self._guards if guard in replacements]
        items = collect_dependencies([*outputs, *guards], stop=inputs)
        rule_guards, _ = select_guards(guard_log, items)
        outputs += select_hidden(unmasked, [*items, *rule_guards])
        rule_guards = [replace(guard, selects_program=True) for guard in rule_guards]
        return compile_schedule(Schedule.of(outputs, [*guards, *rule_guards], inputs), self._options, self._backend)

    def _retrace(self, feeds: dict[Any, Any], guard_log: list[Guard] | None = None) -> dict[Any, Any]:
        try:
            replacements = retrace_outputs(self._items, self.nodes, feeds, guard_log)
        except (ValueError, IndexError, TypeError) as error:
            changed_nodes = [node for node, value in feeds.items() if value.shape != node.shape]
            if not changed_nodes:
                raise
            shape_description = "; ".join(f"{feeds[node].shape} for the {describe(node)}" for node in changed_nodes)
            raise ValueError(f"the graph cannot be computed with the fed shapes: {shape_description}: {error}") from error
        if self._placeholders.difference(feeds):  # a fed node replaces its operands, but an origin may still read them
            outputs, fed_nodes = ([replacements[node] for node in nodes] for nodes in (self.nodes, feeds))
            self._require_fed(collect_dependencies(outputs, stop=fed_nodes), ())
        return replacements

    def _require_fed(self, dependencies: list[Any], fed_nodes: Container[Any]) -> None:
        """Raise a ValueError if a placeholder among the dependencies has no value."""
        missing = sorted([n for n in dependencies if n in self._placeholders and n not in fed_nodes], key=by_sequence_number)
        if missing:
            raise ValueError(f"no value was fed for the {', the '.join(map(describe, missing))}. Pass it to run by node or name")

    # ------------------------------------------------------------------------------------------ feeds

    def _convert_feed(self, feed: Mapping[Any, Any]) -> dict[Any, Any]:
        """Check and convert the values of a feed; return them by node."""
        if not isinstance(feed, Mapping):
            raise TypeError(f"run takes a mapping of nodes or names to values, not a {type(feed).__name__}")
        values_by_node = {self._resolve_key(key): value for key, value in feed.items()}
        if len(values_by_node) < len(feed):
            raise KeyError("a node is fed twice: by itself and by name. Remove one of the keys")
        if self._placeholders.difference(values_by_node):
            self._require_fed(collect_dependencies(self.nodes, retrace_sources_of, values_by_node), values_by_node)
        return {node: convert_fed_value(node, value) for node, value in values_by_node.items()}

    def _resolve_key(self, key: Any) -> Any:
        """Return the node that a key, a node or a name, refers to."""
        if isinstance(key, Value):
            require_history(key)
            if key not in self._graph_nodes:
                raise KeyError(f"the {describe(key)} is not part of the graph of this Executor")
            return key
        matches = self._nodes_by_name.get(key, [])
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise KeyError(f"{len(matches)} nodes of the graph are called {key!r}; feed by the node itself")
        names = ", ".join(map(repr, self._nodes_by_name)) or "no names"
        raise KeyError(f"no node of the graph is called {key!r}; the graph has {names}")


def _layout_key(feed: Mapping[Any, Any], values: list[Any]) -> Any:
    """Return the cache key of the program for a feed: keys, shapes, dtypes and strides; None unless all values are arrays."""
    if any(type(value) is not np.ndarray for value in values):
        return None
    return tuple([(key, value.shape, value.dtype, value.strides) for key, value in zip(feed, values, strict=True)])


def _group_by_name(nodes: Iterable[Any]) -> dict[str, list[Any]]:
    """Group the nodes by name. Argument tracers of operators are left out, because they repeat the names of their arguments."""
    nodes_by_name: dict[str, list[Any]] = {}
    for node in nodes:
        if node._name is not None and node.function is not ops.input_of:
            nodes_by_name.setdefault(node._name, []).append(node)
    return nodes_by_name


def convert_fed_value(node: Any, value: object) -> np.ndarray[Any, Any]:
    """Convert a value to an array of a node's dtype; raise if its shape or dtype does not match."""
    value = value.raw_value if isinstance(value, Value) else value
    require_computed(value, "a fed value")
    array = np.asarray(value)
    casting = "safe" if isinstance(value, (np.ndarray, np.generic)) else "same_kind"  # Python's numbers are weakly typed
    if not np.can_cast(array.dtype, node.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(f"{array.dtype} was fed for the {describe(node)}; convert it, as by .astype({node.dtype})")
    declared = getattr(node, "declared_shape", node.shape)
    # A node that depends on a placeholder's shape may be fed other lengths; guards check the lengths that were read.
    has_free_lengths = None not in declared and any(isinstance(n, PlaceholderNode) for n in breadth_first(node))
    lengths = (None,) * len(declared) if has_free_lengths else declared
    if array.ndim != len(lengths) or any(n not in (None, m) for n, m in zip(lengths, array.shape, strict=True)):
        raise ValueError(f"an array of shape {array.shape} was fed for the {describe(node)}, declared with shape {declared}")
    return array.astype(node.dtype, copy=False)
