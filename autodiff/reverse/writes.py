"""The sweep over a graph in which buffers were written into: back through time.

Nodes and writes are passed from the youngest to the oldest. A write is undone, in a private copy of its buffer, so that
each rule gets the values its operation saw. The adjoints of a written buffer and of all its views lie in one buffer
too, its *shadow*: what is read adds to it, a write takes the adjoint of its place out of it, and what is left when the
node is reached that first had the buffer is the adjoint of that node. See compgraph/inplace/IN_PLACE.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from compgraph import operations
from compgraph.graph import (
    INERT,
    NO_OPTIONS,
    Joint,
    Memory,
    Node,
    Twin,
    VariableNode,
    Write,
    collector,
    last_places,
    overlaps_itself,
    root_of,
    snapshot,
)
from compgraph.graph.context import watched

from ..rules import DEFERRED, Gone, RuleErrors, Scatter, Shadow, Shared, as_node, conform

ndarray = np.ndarray


class Events(list[Any]):
    """Nodes and writes, youngest first.

    Attributes
    ----------
    roots : dict
        For each node, the root of its buffer if that was written into or is an updated variable's; else None.
    """

    roots: dict[Any, Any]


def events_of(output: Any, found: Iterable[Any], stop: frozenset[Any]) -> Events:
    """The nodes found from an output, with the writes that their readers saw, and what those were computed from.

    Writes that no reader saw are among them, to be undone.
    """
    roots: dict[Any, Any] = {}
    taken: dict[Memory, int] = {}
    queue = list(found)
    seen = set(queue)

    def read(node: Any, tick: float) -> None:
        if node not in seen:
            seen.add(node)
            queue.append(node)
        if node not in roots:
            root = root_of(node) if node.plain.__class__ is ndarray else node
            roots[node] = root if root.memory or root.__class__ is VariableNode else None
        root = roots[node]
        if root is not None and root.memory:
            memory = root.memory
            before, count = taken.get(memory, 0), memory.before(tick)
            if count > before:
                taken[memory] = count
                queue.extend(memory.log[before:count])
            taken.setdefault(memory, 0)

    read(output, np.inf)
    for node in queue:  # the list grows while it is walked
        if node not in stop:
            for position in node.edges:
                read(node.args[position], node.tick)
    for memory, count in taken.items():
        queue.extend(memory.log[count:])
    # Leaves may be younger than their readers: a variable that was updated, a buffer that was looked at late.
    events = Events(sorted(queue, key=lambda event: event.tick if event.args else -np.inf, reverse=True))
    events.roots = roots
    return events


class Past:
    """What the buffers held, and the adjoints, at the moment to which the sweep has come back."""

    def __init__(self, events: Events, create_graph: bool, rules: Any, errors: RuleErrors) -> None:
        self.create_graph = create_graph
        self.rules, self.errors = rules, errors
        self.roots = events.roots
        self.root_with = {root.memory: root for root in events.roots.values() if root is not None and root.memory}
        self.values: dict[Any, Twin] = {}
        self.shadows: dict[Any, Shadow] = {}
        self.adjoints: dict[Any, Any] = {}
        self.fitted: Callable[[Any, Any], Any] = conform  # a contribution in the shape and dtype of its operand

    def undo(self, write: Write) -> None:
        """Put back what a write overwrote."""
        root = self.root_with[write.memory]
        if root not in self.values:
            self.values[root] = Twin.copy_of(root.plain)
        self.values[root].undo(write)

    def value(self, node: Any, reader: Any, tick: float) -> Any:
        """The value of a node as its reader saw it; a node itself if the rules are given nodes."""
        if not isinstance(node, (Node, Joint)):
            return node
        root: Any = self.roots.get(node)
        if root.__class__ is VariableNode and root.tick > tick:
            return Gone(root, node, reader)
        if root in self.values and root.memory.log[-1].tick > tick:
            then = self.values[root].window(node.plain)
            return snapshot(node, tick, then.copy()) if self.create_graph else then
        return as_node(node) if self.create_graph else node.plain

    def operands(self, node: Any) -> list[Any]:
        """The operands of a node as it saw them; a part of an array asks for no number of the whole, which may be large."""
        if self.create_graph and node.function is operations.getitem:
            return [as_node(node.args[0]), *[self.value(a, node, node.tick) for a in node.args[1:]]]
        return [self.value(a, node, node.tick) for a in node.args]

    def settled(self, adjoint: Any, node: Any) -> Any:
        """An adjoint put together."""
        return adjoint.settle(node) if adjoint.__class__ in DEFERRED else adjoint

    def shadow_of(self, root: Any) -> Any:
        """A new shadow of a buffer."""
        return Shadow(root.plain, self.create_graph)

    def give(self, node: Any, contribution: Any) -> None:
        """Add a contribution to the adjoint of a node."""
        root = self.roots.get(node)
        if root is None or not root.memory:
            earlier = self.adjoints.get(node)
            if contribution.__class__ not in DEFERRED:
                contribution = self.fitted(contribution, node.plain)
            self.adjoints[node] = contribution if earlier is None else earlier + contribution
        elif overlaps_itself(node.plain):  # its adjoint has no place in the shadow, that of its operand has
            contribution = self.fitted(self.settled(contribution, node), node.plain)
            self.pass_on(node, contribution, [a if not isinstance(a, Node) else a.plain for a in node.args])
        else:
            if root not in self.shadows:
                self.shadows[root] = self.shadow_of(root)
            place = self.shadows[root].window(node.plain)
            if contribution.__class__ is Scatter:
                Scatter.of([(turned(piece), index) for piece, index in contribution.pieces]).add_to(place)
                contribution = contribution.dense
            if contribution is not None:
                place += turned(self.fitted(contribution, node.plain))

    def formulas(self, node: Any) -> Any:
        """The formulas of a node's rule."""
        return self.rules[node.function].formulas

    def pass_on(self, node: Any, adjoint: Any, operands: list[Any], out: Any = None, needed: Any = None) -> None:
        """Ask the rule of a node for the contributions to its operands."""
        formulas = self.formulas(node)
        before, self.errors.at = self.errors.at, node
        watch = watched()
        if watch is not None:
            watch.unchanged(node)
        out = node.plain if out is None else out
        options = node.options
        if formulas.__class__ is Shared:
            asked = {node.args[p] for p in node.edges if node.args[p].__class__ not in INERT}
            asked = asked if needed is None else asked & needed
            formulas, operands, options = formulas.answers(node, asked, adjoint, out, operands), [], NO_OPTIONS
        for position in node.edges:
            operand = node.args[position]
            if operand.__class__ in INERT or (needed is not None and operand not in needed):
                continue
            formula = formulas[position]
            if formula is not None:
                contribution = formula(adjoint, out, *operands, **options)
                if self.errors.log is not None:
                    self.errors.log.append(0 if contribution is adjoint else getattr(contribution, "tick", 0))
                if watch is not None and contribution.__class__ not in DEFERRED:
                    watch.swept(node, position, contribution)
                if contribution.__class__ is ndarray and contribution.base is not None:
                    contribution = contribution.copy()  # it may be a window of what is undone later
                self.give(operand, contribution)
        self.errors.at = before

    def leave(self, node: Any) -> None:
        """Let go of what belongs to a buffer when the node is passed that first had it: nothing older lies in it."""
        self.values.pop(node, None)
        self.shadows.pop(node, None)

    def adjoint_at(self, root: Any, plain: Any) -> Any:
        """The adjoint of a part of a buffer, or None."""
        shadow = self.shadows.get(root)
        return None if shadow is None else turned(np.copy(shadow.window(plain)))

    def adjoint_of(self, write: Write) -> Any:
        """The adjoint of what a write stored, which is taken out of the shadow; or None."""
        shadow = self.shadows.get(self.root_with[write.memory])
        if shadow is None:
            return None
        place = shadow.window(write.window)
        adjoint = turned(np.copy(place[write.index]))
        place[write.index] = 0
        parts = write.index if isinstance(write.index, tuple) else (write.index,)
        if any(isinstance(part, ndarray) and part.dtype.kind in "iu" for part in parts):
            last, numbers = last_places(write.window.shape, write.index)
            adjoint = np.where(last == numbers, adjoint, 0)  # of several values for one place, the last stays
        extra = np.ndim(write.args[0]) - adjoint.ndim
        return adjoint if extra <= 0 else np.reshape(adjoint, (1,) * extra + adjoint.shape)


def turned(adjoint: Any) -> Any:
    """An adjoint as the shadow keeps it, or back: conjugated, so that real and imaginary parts are windows too."""
    return np.conjugate(adjoint) if adjoint.dtype.kind == "c" else adjoint


def sweep_back(
    events: Events, output: Any, seed: Any, wanted: set[Any], create_graph: bool, ends: Any, rules: Any, errors: RuleErrors
) -> dict[Any, Any]:
    """One pass over a graph in which buffers were written into, by the rules given; see `structural_zeros.Pass`."""
    collector.weigh(sum([event.plain.nbytes for event in events if isinstance(event, Node)]))
    return sweep_with(Past(events, create_graph, rules, errors), events, output, seed, wanted, ends)


def sweep_with(past: Past, events: Events, output: Any, seed: Any, wanted: set[Any], ends: Any) -> dict[Any, Any]:
    """Go back to the beginning with a past, that is now."""
    needed = depending_on(events, output, wanted)
    found: dict[Any, Any] = {}
    if output in needed:
        past.give(output, seed)
    for event in events:
        if event.__class__ is Write:
            past.undo(event)
            adjoint = past.adjoint_of(event)
            if adjoint is not None and event.edges and event.args[0] in needed:
                past.give(event.args[0], adjoint)
            continue
        root = past.roots.get(event)
        is_view = root is not None and root.memory and root is not event
        if is_view and event not in wanted:  # its adjoint lies in the shadow, and stays there
            continue
        adjoint = _arrived(past, event)
        if adjoint is not None:
            if event in wanted:
                found[event] = adjoint
            if not is_view and event not in ends and event.args and event.function not in operations.PIECEWISE:
                operands = past.operands(event)
                out = past.value(event, event, event.tick + 0.5)
                past.pass_on(event, adjoint, operands, out, needed)
                del operands, out
        past.leave(event)
    return found


def _arrived(past: Past, node: Any) -> Any:
    """The adjoint of a node, or None."""
    root = past.roots.get(node)
    if root is not None and root.memory:
        return past.adjoint_at(root, node.plain)
    return past.settled(past.adjoints.pop(node, None), node)


def depending_on(events: Events, output: Any, wanted: set[Any]) -> set[Any]:
    """The nodes an adjoint has to pass on its way to a wanted one."""
    needed: set[Any] = set()
    written: set[Any] = set()  # memories that hold something needed
    roots = events.roots

    def hold(node: Any) -> bool:
        """Whether something needed was written into the buffer of a node; it may be older than that."""
        root = roots.get(node)
        held = root is not None and root.memory in written
        if held and node.__class__ not in INERT:
            needed.add(node)
        return held

    for event in reversed(events):
        depends = event in wanted
        for position in event.edges:
            operand = event.args[position]
            depends = hold(operand) or operand in needed or depends
        if not depends or event.__class__ in INERT:
            continue
        if event.__class__ is Write:
            written.add(event.memory)
            continue
        needed.add(event)
        root = roots.get(event)
        if root is not None and root.memory:
            written.add(root.memory)
    hold(output)
    return needed
