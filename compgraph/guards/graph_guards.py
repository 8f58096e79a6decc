"""The guards on which a graph depends, and descriptions of dependences that cannot be checked again."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from ..context import trace_guards
from ..frames import warn_user
from ..storage import by_sequence_number
from ..tracing import is_tracing
from ..values import ConstantNode, PlaceholderNode, Value, VariableNode, describe
from .guard import Guard, GuardError, GuardWarning, ShapeGuard
from .guard_logs import (
    append_to_log,
    creation_time,
    has_dropped_guards,
    has_evicted_guards,
    logged_guards,
    logs_of,
    lost_guards,
    other_logs,
)
from .recipes import NotRecomputableError, Recipe, Rematerializer, reduce_ancestors
from .untracked_indices import UntrackedGuard, log_untracked, make_unchanged_guard


def select_guards(guards: Iterable[Guard], items: list[Any]) -> tuple[list[Guard], list[str]]:
    """Select the guards of a trace on which a graph of it depends; describe those that cannot be checked again."""
    node_set = frozenset(items)
    last = max([item.sequence_number for item in items if item.args], default=-inf)
    checkable_guards: list[Guard] = []
    unchecked: list[str] = []
    for guard in guards:
        is_late = guard.sequence_number > last and not guard.is_used
        is_redundant = type(guard) is ShapeGuard and node_set.issuperset(guard.args)  # a graph checks the shapes of its own nodes
        if is_late or is_redundant:
            continue
        if guard.function is None:
            unchecked.append(str(guard))
        else:
            checkable_guards.append(guard)
    return checkable_guards, unchecked


def guards_of(items: list[Any], strict: bool = False, runs_here: bool = False) -> tuple[list[Guard], list[str]]:
    """Return the guards that a graph depends on, and descriptions of dependences that cannot be checked again.

    A graph depends on a guard about one of its leaves. The guard may be older than all operations of the graph. It may also be
    younger, because it may have selected the returned nodes. A graph depends on a guard about other variables if the guard is
    younger than the oldest leaf of the graph, and checks the values at the time of recording.

    Parameters
    ----------
    items : list of Node, MultiOutput or Write
        The graph, as `executor.collect_dependencies` returns it.
    strict : bool
        Whether an `UntrackedGuard` raises instead of warning.
    runs_here : bool
        Whether the graph runs in this process. An `UnchangedGuard` then detects changes of the other variables whose numbers
        were read.

    Returns
    -------
    guards : list of Guard
        Oldest first. Their arguments are nodes; freed nodes are recomputed.
    unchecked : list of str
        The descriptions.
    """
    graph = _Graph(items)
    log_untracked()
    for guard in trace_guards.get() or ():  # an unfinished trace has a list of its own
        append_to_log(replace(guard))
    logs = logs_of(graph.leaves)
    guards = sorted([*logged_guards(logs), *logged_guards(other_logs(logs), graph.oldest)], key=by_sequence_number)
    summaries = graph.summarize_leaves(guards)
    untracked_ids = {id(guard.args[0]) for guard in guards if isinstance(guard, UntrackedGuard) and not guard.is_read}
    checkable_guards: list[Guard] = []
    unchecked: list[str] = []
    rematerializer = Rematerializer()
    for guard in guards:
        summary = _LeafSummary.combine([summaries[id(a)] for a in guard.args if type(a) is Recipe])
        if not graph.depends_on(guard, summary):
            continue
        if guard.sequence_number > graph.last and not guard.is_used:
            continue
        if type(guard) is ShapeGuard and graph.is_redundant(guard, untracked_ids):
            continue
        if isinstance(guard, UntrackedGuard) and (guard.is_read or graph.contains(guard)):
            continue
        if guard.function is None and summary.is_outside and runs_here:
            if (unchanged := make_unchanged_guard(guard, strict)) is not None:
                checkable_guards.append(unchanged)
            continue
        if guard.function is None:
            unchecked.append(str(guard))
            continue
        try:
            args = tuple([rematerializer.rematerialize(a, guard.sequence_number) for a in guard.args])
        except NotRecomputableError:
            unchecked.append(f"{guard}, of values that no longer exist")
        else:
            options = {"is_strict": strict} if isinstance(guard, UntrackedGuard) else {}
            checkable_guards.append(replace(guard, args=args, **options))
    return checkable_guards, unchecked + graph.describe_evicted(logs) + graph.describe_untracked_reads()


def warn_leaks(unchecked: Iterable[str], strict: bool = False) -> None:
    """Warn about dependences of a graph that cannot be checked again (see `guards_of`); if `strict`, raise a GuardError."""
    descriptions = "; ".join(dict.fromkeys(unchecked))
    if not descriptions:
        return
    message = (
        f"numbers left the graph while it was recorded, and uses of them are not repeated: {descriptions}. Compute with the "
        "nodes themselves, or make the numbers a placeholder"
    )
    if strict:
        raise GuardError(message)
    warn_user(message, GuardWarning)


class _LeafSummary(NamedTuple):
    """A summary of the leaves behind a recipe.

    Attributes
    ----------
    has_inputs : bool
        Whether they include variables, placeholders or arrays of the graph.
    has_constants : bool
        Whether they include constants of the graph.
    has_outside : bool
        Whether they include variables or placeholders outside of the graph.
    replaced_at : float
        Guards up to this sequence number checked values that an update of a variable has replaced before the graph read it.
    updated_at : float
        The sequence number of the latest update of a variable outside of the graph.
    """

    has_inputs: bool = False
    has_constants: bool = False
    has_outside: bool = False
    replaced_at: float = -inf
    updated_at: float = -inf

    @property
    def is_outside(self) -> bool:
        """Whether the variables and placeholders are all outside of the graph."""
        return self.has_outside and not self.has_inputs

    @classmethod
    def combine(cls, summaries: Iterable[_LeafSummary]) -> _LeafSummary:
        """Return the summary of the leaves behind several recipes: the maximum of each attribute."""
        return cls(*map(max, zip(cls(), *summaries, strict=True)))


class _Graph:
    """A graph, and when it reads its leaves.

    Attributes
    ----------
    nodes, leaves : list of Node
        Its nodes, and the nodes without operands.
    first, last : float
        The sequence numbers of its first and last operation.
    oldest : float
        The sequence number of the oldest variable or placeholder.
    """

    def __init__(self, items: list[Any]) -> None:
        self.nodes = [item for item in items if isinstance(item, Value)]
        self._node_set = frozenset(self.nodes)
        self.leaves = [node for node in self.nodes if not node.args]
        input_times = [creation_time(node) for node in self.leaves if isinstance(node, (VariableNode, PlaceholderNode))]
        self.oldest = min(input_times, default=inf)
        self._first_placeholder = min(
            [node.sequence_number for node in self.leaves if isinstance(node, PlaceholderNode)], default=inf
        )
        sequence_numbers = [item.sequence_number for item in items if item.args]
        self.first, self.last = min(sequence_numbers, default=inf), max(sequence_numbers, default=-inf)
        self._first_reads: dict[Any, float] = dict.fromkeys(self.leaves, inf)
        for item in items:
            for position in getattr(item, "parent_argnums", ()) if item.args else ():
                read = item.args[position]
                if read in self._first_reads:
                    self._first_reads[read] = min(self._first_reads[read], item.sequence_number)

    def summarize_leaves(self, guards: list[Guard]) -> dict[int, _LeafSummary]:
        """Summarize the leaves behind each recipe in the arguments of guards; keyed by the recipe's id."""
        recipes = (a for guard in guards for a in guard.args)
        return reduce_ancestors(recipes, self._summarize, _LeafSummary.combine)

    def _summarize(self, recipe: Recipe) -> _LeafSummary:
        leaf = recipe.node()
        if leaf is None or recipe.args:
            return _LeafSummary()
        replaced_at = self._last_update(leaf)
        may_change = isinstance(leaf, (VariableNode, PlaceholderNode))
        if leaf not in self._first_reads:
            updated_at = leaf.sequence_number if may_change else -inf
            return _LeafSummary(has_outside=may_change, replaced_at=replaced_at, updated_at=updated_at)
        is_constant = isinstance(leaf, ConstantNode)
        return _LeafSummary(has_inputs=not is_constant, has_constants=is_constant, replaced_at=replaced_at)

    def _last_update(self, leaf: object) -> float:
        """Return the last update of a leaf before the graph read it; the graph does not depend on earlier guards about it."""
        return (
            leaf.sequence_number
            if isinstance(leaf, VariableNode) and leaf.sequence_number < self._first_reads.get(leaf, self.first)
            else -inf
        )

    def depends_on(self, guard: Guard, summary: _LeafSummary) -> bool:
        """Whether the graph depends on a guard; `summary` is that of the leaves behind its arguments."""
        if summary.replaced_at >= guard.sequence_number:
            return False
        if summary.is_outside:
            return self.oldest < guard.sequence_number and (
                guard.sequence_number < self.last or summary.updated_at < guard.sequence_number
            )
        return summary.has_inputs or summary.has_constants

    def contains(self, guard: UntrackedGuard) -> bool:
        """Whether the node of a guard is part of the graph."""
        return guard.args[0].node() in self._node_set

    def is_redundant(self, guard: ShapeGuard, untracked_ids: Container[int]) -> bool:
        """Whether other checks cover a guard on value-dependent shapes.

        The graph checks the shapes of its own nodes. While a placeholder exists, each read of a shape by Python has a guard,
        except in derivative rules. `untracked_ids` contains the ids of recipes whose contents an `UntrackedGuard` compares.
        """
        if all(a.node() in self._node_set for a in guard.args):
            return True
        if guard.is_within_trace:
            return False
        return guard.sequence_number > self._first_placeholder or any(id(a) in untracked_ids for a in guard.args)

    def describe_evicted(self, logs: dict[Any, list[Any]]) -> list[str]:
        """Describe guards that the graph may depend on and that are not in the logs."""
        descriptions = []
        for log, leaves in logs.items():
            if has_evicted_guards(log, min(self._first_reads[leaf] for leaf in leaves)):
                descriptions.append(f"decisions about the {describe(leaves[0])}, which newer ones have evicted from the log")
            for lost in lost_guards(log):
                leaf = lost.recipe.node()
                if self._first_reads.get(leaf, inf) < lost.copied_at and self._last_update(leaf) < lost.sequence_number:
                    descriptions.append(f"decisions about the {describe(leaf)}, which its copy lacks: {lost.description}")
        if is_tracing():  # otherwise the arguments of returned operators are constants
            arguments = [leaf for leaf in self.leaves if has_dropped_guards(leaf)]
            descriptions += [f"decisions about the {describe(leaf)}, an argument of an operator" for leaf in arguments]
        return descriptions

    def describe_untracked_reads(self) -> list[str]:
        """Describe nodes that operations within `no_graph` read before the last operation of the graph."""
        return [
            f"operations on the {describe(node)} within no_graph"
            for node in self.nodes
            if (node.sequence_number if isinstance(node, VariableNode) else -inf)
            < getattr(node, "untracked_read", inf)
            < self.last
        ]
