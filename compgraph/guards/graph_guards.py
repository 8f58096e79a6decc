"""The guards that a graph depends on, and decisions that cannot be checked again."""

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
    creation_time,
    enter_logged,
    has_dropped_guards,
    is_forgetful,
    logged_guards,
    logs_beside,
    logs_of,
    lost_guards,
)
from .recipes import NotRecomputableError, Recipe, Rematerializer, reduce_ancestors
from .untracked_indices import UntrackedGuard, log_untracked, unchanged_guard


def guards_among(noted: Iterable[Guard], items: list[Any]) -> tuple[list[Guard], list[str]]:
    """Return the guards of a trace that matter to a graph of it; and descriptions of those that cannot be checked again."""
    known = frozenset(items)
    last = max([item.sequence_number for item in items if item.args], default=-inf)
    checkable_guards: list[Guard] = []
    escaped: list[str] = []
    for guard in noted:
        is_late = guard.sequence_number > last and not guard.is_used
        is_checked = type(guard) is ShapeGuard and known.issuperset(guard.args)  # as a part of the graph
        if is_late or is_checked:
            continue
        if guard.function is None:
            escaped.append(str(guard))
        else:
            checkable_guards.append(guard)
    return checkable_guards, escaped


def guards_of(items: list[Any], strict: bool = False, runs_here: bool = False) -> tuple[list[Guard], list[str]]:
    """Return the guards that a graph depends on, and descriptions of dependences that cannot be checked again.

    A guard matters to a graph if a leaf of the graph is behind it. It may be older than all operations of the graph, or younger,
    since it may have selected the returned nodes. A guard about other variables matters if it is younger than the oldest leaf of
    the graph, and is about the values at the time of recording.

    Parameters
    ----------
    items : list of Node, MultiOutput or Write
        The graph, as returned by `executor.needed`.
    strict : bool
        Whether an `UntrackedGuard` raises, too.
    runs_here : bool
        Whether the graph is run in this process. Then numbers of other variables matter only after these change, which an
        `UnchangedGuard` detects.

    Returns
    -------
    guards : list of Guard
        Oldest first, about nodes; freed nodes are recomputed.
    escaped : list of str
        The descriptions.
    """
    graph = _Graph(items)
    log_untracked()
    for guard in trace_guards.get() or ():  # of a trace that is under way, which keeps its own
        enter_logged(replace(guard))
    logs = logs_of(graph.leaves)
    guards = sorted([*logged_guards(logs), *logged_guards(logs_beside(logs), graph.oldest)], key=by_sequence_number)
    behind = graph.behind(guards)
    watched = {id(guard.args[0]) for guard in guards if isinstance(guard, UntrackedGuard) and not guard.is_read}
    checkable_guards: list[Guard] = []
    escaped: list[str] = []
    reviver = Rematerializer()
    for guard in guards:
        parts = _Behind.together([behind[id(a)] for a in guard.args if type(a) is Recipe])
        if not graph.hangs_on(guard, parts):
            continue
        if guard.sequence_number > graph.last and not guard.is_used:
            continue
        if type(guard) is ShapeGuard and graph.checks(guard, watched):
            continue
        if isinstance(guard, UntrackedGuard) and (guard.is_read or graph.has(guard)):
            continue
        if guard.function is None and parts.is_elsewhere and runs_here:
            if (kept := unchanged_guard(guard, strict)) is not None:
                checkable_guards.append(kept)
            continue
        if guard.function is None:
            escaped.append(str(guard))
            continue
        try:
            args = tuple([reviver.revived(a, guard.sequence_number) for a in guard.args])
        except NotRecomputableError:
            escaped.append(f"{guard}, of values that no longer exist")
        else:
            more = {"is_strict": strict} if isinstance(guard, UntrackedGuard) else {}
            checkable_guards.append(replace(guard, args=args, **more))
    return checkable_guards, escaped + graph.forgotten(logs) + graph.untracked_reads()


def warn_leaks(escaped: Iterable[str], strict: bool = False) -> None:
    """Warn of the dependences of a graph that cannot be checked again, see `guards_of`; if `strict`, raise a GuardError."""
    left = "; ".join(dict.fromkeys(escaped))
    if not left:
        return
    message = (
        f"numbers left the graph while it was recorded, and uses of them are not repeated: {left}. Compute with the "
        "nodes themselves, or make the numbers a placeholder"
    )
    if strict:
        raise GuardError(message)
    warn_user(message, GuardWarning)


class _Behind(NamedTuple):
    """The leaves behind a recipe.

    Attributes
    ----------
    has_leaves, constant : bool
        Whether they include leaves of the graph: variables, placeholders and arrays; constants.
    foreign : bool
        Whether they include variables or placeholders that are not in the graph.
    replaced : float
        Guards up to this sequence number are about values before an update of a variable that the graph follows.
    updated : float
        The sequence number of the latest update of a variable that is not in the graph.
    """

    has_leaves: bool = False
    constant: bool = False
    foreign: bool = False
    replaced: float = -inf
    updated: float = -inf

    @property
    def is_elsewhere(self) -> bool:
        """Whether no variable leaf belongs to this graph."""
        return self.foreign and not self.has_leaves

    @classmethod
    def together(cls, parts: Iterable[_Behind]) -> _Behind:
        """Return the leaves behind several nodes."""
        return cls(*map(max, zip(cls(), *parts, strict=True)))


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
        self._known = frozenset(self.nodes)
        self.leaves = [node for node in self.nodes if not node.args]
        fed = [creation_time(node) for node in self.leaves if isinstance(node, (VariableNode, PlaceholderNode))]
        self.oldest = min(fed, default=inf)
        self._fed = min([node.sequence_number for node in self.leaves if isinstance(node, PlaceholderNode)], default=inf)
        sequence_numbers = [item.sequence_number for item in items if item.args]
        self.first, self.last = min(sequence_numbers, default=inf), max(sequence_numbers, default=-inf)
        self._reads: dict[Any, float] = dict.fromkeys(self.leaves, inf)
        for item in items:
            for position in getattr(item, "parent_argnums", ()) if item.args else ():
                read = item.args[position]
                if read in self._reads:
                    self._reads[read] = min(self._reads[read], item.sequence_number)

    def behind(self, guards: list[Guard]) -> dict[int, _Behind]:
        """Return the leaves behind each recipe in the arguments of a guard, by its id."""
        about = (a for guard in guards for a in guard.args)
        return reduce_ancestors(about, self._leaf, _Behind.together)

    def _leaf(self, lineage: Recipe) -> _Behind:
        leaf = lineage.node()
        if leaf is None or lineage.args:
            return _Behind()
        replaced = self._replaced(leaf)
        is_fed = isinstance(leaf, (VariableNode, PlaceholderNode))
        if leaf not in self._reads:
            return _Behind(foreign=is_fed, replaced=replaced, updated=leaf.sequence_number if is_fed else -inf)
        return _Behind(has_leaves=not isinstance(leaf, ConstantNode), constant=isinstance(leaf, ConstantNode), replaced=replaced)

    def _replaced(self, leaf: Any) -> float:
        """Return the sequence number after which guards about a leaf matter: the last update before it was read."""
        return (
            leaf.sequence_number
            if isinstance(leaf, VariableNode) and leaf.sequence_number < self._reads.get(leaf, self.first)
            else -inf
        )

    def hangs_on(self, guard: Guard, leaf_summary: _Behind) -> bool:
        """Whether the graph depends on a guard, given the leaves behind its arguments."""
        if leaf_summary.replaced >= guard.sequence_number:
            return False
        if leaf_summary.is_elsewhere:
            return self.oldest < guard.sequence_number and (
                guard.sequence_number < self.last or leaf_summary.updated < guard.sequence_number
            )
        return leaf_summary.has_leaves or leaf_summary.constant

    def has(self, watch: UntrackedGuard) -> bool:
        """Whether the watched node is part of the graph."""
        return watch.args[0].node() in self._known

    def checks(self, count: ShapeGuard, watched: Container[int]) -> bool:
        """Whether a guard on value-dependent shapes is redundant, because they are checked as parts of the graph, or when read.

        While a placeholder exists, guards are logged when Python reads a shape; reads by rules of derivatives have none.
        `fingerprinted_view` contains the ids of recipes whose contents an `UntrackedGuard` compares.
        """
        if all(a.node() in self._known for a in count.args):
            return True
        if count.is_within:
            return False
        return count.sequence_number > self._fed or any(id(a) in watched for a in count.args)

    def forgotten(self, logs: dict[Any, list[Any]]) -> list[str]:
        """Return descriptions of decisions that the graph may depend on and that are not in the log."""
        descriptions = []
        for log, leaves in logs.items():
            if is_forgetful(log, min(self._reads[leaf] for leaf in leaves)):
                why = "because newer decisions have displaced them in the log"
                descriptions.append(f"decisions about the {describe(leaves[0])}, {why}")
            for lost in lost_guards(log):
                leaf = lost.recipe.node()
                if self._reads.get(leaf, inf) < lost.copied and self._replaced(leaf) < lost.sequence_number:
                    descriptions.append(f"decisions about the {describe(leaf)}, which its copy lacks: {lost.words}")
        dropped = [leaf for leaf in self.leaves if has_dropped_guards(leaf)] if is_tracing() else []  # else it is a constant
        return descriptions + [f"decisions about the {describe(leaf)}, an argument of an operator" for leaf in dropped]

    def untracked_reads(self) -> list[str]:
        """Return descriptions of nodes whose numbers operations within `no_graph` read before the last operation of the graph."""
        return [
            f"operations on the {describe(node)} within no_graph"
            for node in self.nodes
            if (node.sequence_number if isinstance(node, VariableNode) else -inf)
            < getattr(node, "untracked_read", inf)
            < self.last
        ]
