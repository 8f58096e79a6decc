"""The sweep over a graph in which buffers were written into: back through time.

Nodes and writes are passed from the youngest to the oldest. A write is undone, in a private copy of its buffer, so that
each rule gets the values its operation saw. The adjoints of a written buffer and of all its views lie in one buffer
too, its *shadow*: what is read adds to it, a write takes the adjoint of its place out of it, and what is left when the
node is reached that first had the buffer is the adjoint of that node. See compgraph/inplace/IN_PLACE.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.context import active_profiler, active_watcher
from compgraph.storage import BufferCopy, Memory, Write, by_sequence_number, collector, last_writers, overlaps_itself, root_of
from compgraph.values import ACTIVE, INERT, NO_OPTIONS, USED, MultiOutput, Value, VariableNode, next_sequence_number, snapshot

from ..rules import DEFERRED, Gone, RuleErrors, Scatter, Shadow, Shared, added, as_node, conform
from .profiled_sweeps import told_past

ndarray = np.ndarray
KINDS = ACTIVE | INERT | USED.keys()


class Events(list[Any]):
    """Nodes and writes, youngest first.

    Attributes
    ----------
    roots : dict
        For the id of each array, the root of its buffer if that was written into or is an updated variable's; else None.
    """

    roots: dict[int, Any]


def events_of(output: Any, found: Iterable[Any], stop: frozenset[int]) -> Events:
    """The nodes found from an output, with the writes that their readers saw, and what those were computed from.

    Writes that no reader saw are among them, to be undone. `stop` has the ids of nodes whose operands are not visited.
    """
    roots: dict[int, Any] = {}
    taken: dict[Memory, int] = {}
    queue = list(found)
    seen = set(map(id, queue))

    def read(node: Any, sequence_number: float) -> None:
        """Take the writes that a reader of an array saw."""
        if id(node) not in roots:
            root = root_of(node)
            roots[id(node)] = root if root.memory or isinstance(root, VariableNode) else None
        root = roots[id(node)]
        if root is not None and root.memory:
            memory = root.memory
            before, count = taken.setdefault(memory, 0), memory.before(sequence_number)
            if count > before:
                taken[memory] = count
                queue.extend(memory.log[before:count])

    if type(output.raw_value) is ndarray:
        read(output, np.inf)
    for node in queue:  # the list grows while it is walked
        if id(node) in stop:
            continue
        args = node.args
        for position in node.parent_argnums:
            operand = args[position]
            if id(operand) not in seen:
                seen.add(id(operand))
                queue.append(operand)
            if type(operand.raw_value) is ndarray:
                read(operand, node.sequence_number)
    for memory, count in taken.items():
        queue.extend(memory.log[count:])
    # Leaves may be younger than their readers: a variable that was updated, a buffer that was looked at late.
    events = Events(sorted([event for event in queue if event.args], key=by_sequence_number, reverse=True))
    events.extend([event for event in queue if not event.args])
    events.roots = roots
    return events


class Past:
    """What the buffers held, and the adjoints, at the moment to which the sweep has come back."""

    def __init__(self, events: list[Any], create_graph: bool, rules: Any, errors: RuleErrors) -> None:
        self.create_graph = create_graph
        self.rules, self.errors = rules, errors
        self.roots = events.roots if type(events) is Events else {}
        self.root_with = {root.memory: root for root in self.roots.values() if root is not None and root.memory}
        self.undone: dict[Memory, list[Write]] = defaultdict(list)  # what the copies of buffers still hold
        self.values: dict[Any, BufferCopy] = {}
        self.shadows: dict[Any, Shadow] = {}
        self.adjoints: dict[int, Any] = {}  # by the ids of the nodes
        self.sums: set[int] = set()  # the nodes whose adjoints are arrays allocated here
        self.fitted: Callable[[Any, Any], Any] = conform  # a contribution in the shape and dtype of its operand
        self.watch = active_watcher()

    def held(self, root: Any) -> BufferCopy:
        """What a buffer held. It is put back when somebody asks, since a loop over numbers keeps those itself."""
        twin = self.values.get(root)
        if twin is None:
            twin = self.values[root] = BufferCopy.copy_of(root.raw_value)
        for write in self.undone.pop(root.memory, ()):
            twin.undo(write)
        return twin

    def value(self, node: Any, reader: Any, sequence_number: float) -> Any:
        """The value of a node as its reader saw it; a node itself if the rules are given nodes."""
        if not isinstance(node, (Value, MultiOutput)):
            return node
        root: Any = self.roots.get(id(node))
        if isinstance(root, VariableNode) and root.sequence_number > sequence_number:
            return Gone(root, node, reader)
        log = root.memory.log if root is not None and root.memory else None
        if log and log[-1].sequence_number > sequence_number:
            then = self.held(root).window(node.raw_value)
            return snapshot(node, sequence_number, then.copy()) if self.create_graph else then
        return as_node(node) if self.create_graph else node.raw_value

    def seen(self, node: Any) -> tuple[list[Any], Any]:
        """The operands of a node as it saw them, and its own value."""
        args, sequence_number, roots, recorded = node.args, node.sequence_number, self.roots, self.create_graph
        if not roots and not recorded:  # nothing was written
            return [a.raw_value if type(a) in KINDS else a for a in args], node.raw_value
        out = self.value(node, node, sequence_number + 0.5) if recorded or roots.get(id(node)) is not None else node.raw_value
        if node.function is ops.getitem and isinstance(args[0], Value):  # it asks for no number of what may be large
            whole = args[0] if recorded else args[0].raw_value
            return [whole, *[self.value(a, node, sequence_number) for a in args[1:]]], out
        if recorded:
            return [self.value(a, node, sequence_number) for a in args], out
        return [
            a.raw_value if type(a) in ACTIVE and roots.get(id(a)) is None else self.value(a, node, sequence_number) for a in args
        ], out

    def settled(self, adjoint: Any, node: Any) -> Any:
        """An adjoint put together."""
        return adjoint.settle(node) if type(adjoint) in DEFERRED else adjoint

    def shadow_of(self, root: Any) -> Any:
        """A new shadow of a buffer."""
        return Shadow(root.raw_value, self.create_graph)

    def give(self, node: Any, contribution: Any, adjoint: Any = None) -> None:
        """Add a contribution to the adjoint of a node; a rule made it of `adjoint`, if one is given."""
        key = id(node)
        root = self.roots.get(key)
        if root is None or not root.memory:
            earlier = self.adjoints.get(key)
            if type(contribution) not in DEFERRED:
                contribution = self.fitted(contribution, node.raw_value)
            self.adjoints[key] = contribution if earlier is None else added(earlier, contribution, adjoint, key, self.sums)
        elif overlaps_itself(node.raw_value):  # its adjoint has no place in the shadow, that of its operand has
            contribution = self.fitted(self.settled(contribution, node), node.raw_value)
            self.pass_on(node, contribution, [a if not isinstance(a, Value) else a.raw_value for a in node.args], node.raw_value)
        else:
            shadow = self.shadows.get(root)
            if shadow is None:
                shadow = self.shadows[root] = self.shadow_of(root)
            place = shadow.window(node.raw_value)
            if type(contribution) is Scatter:
                contribution.pieces = [*map(turned, contribution.pieces)]
                contribution.add_to(place)
                contribution = contribution.dense
            if contribution is not None:
                place += turned(self.fitted(contribution, node.raw_value))

    def formulas(self, node: Any) -> Any:
        """The formulas of a node's rule."""
        return self.rules[node.function].formulas

    def pass_on(self, node: Any, adjoint: Any, operands: list[Any], out: Any, needed: Any = None) -> None:
        """Ask the rule of a node for the contributions to its operands: to all, or to those that are needed."""
        formulas, args, options, watch = self.formulas(node), node.args, node.options, self.watch
        recorded, log = self.create_graph, self.errors.log
        before, self.errors.at = self.errors.at, node
        if watch is not None:
            watch.unchanged(node)
        if type(formulas) is Shared:
            asked = {id(args[p]) for p in node.parent_argnums if type(args[p]) not in INERT}
            asked = asked if needed is None else asked & needed
            formulas, operands, options = formulas.answers(node, asked, adjoint, out, operands), [], NO_OPTIONS
        for position in node.parent_argnums:
            operand = args[position]
            if type(operand) in INERT if needed is None else id(operand) not in needed:
                continue
            formula = formulas[position]
            if formula is None:
                continue
            if recorded:
                self.errors.reached.append((next_sequence_number(), node))
            contribution = formula(adjoint, out, *operands, **options)
            if log is not None:
                log.append(0 if contribution is adjoint else getattr(contribution, "sequence_number", 0))
            if watch is not None and type(contribution) not in DEFERRED:
                watch.swept(node, position, contribution)
            if type(contribution) is ndarray and contribution.base is not None and self.roots:
                contribution = contribution.copy()  # it may be a window of what is undone later
            self.give(operand, contribution, adjoint)
        self.errors.at = before

    def leave(self, root: Any) -> None:
        """Let go of what belongs to a buffer when the node is passed that first had it: nothing older lies in it."""
        self.undone.pop(root.memory, None)
        self.values.pop(root, None)
        self.shadows.pop(root, None)

    def adjoint_at(self, root: Any, plain: Any) -> Any:
        """The adjoint of a part of a buffer, or None."""
        shadow = self.shadows.get(root)
        return None if shadow is None else turned(np.copy(shadow.window(plain)))

    def undo(self, write: Write, needed: set[int]) -> None:
        """Go back beyond a write, and give the adjoint of its place to what was stored there."""
        self.undone[write.memory].append(write)
        shadow = self.shadows.get(self.root_with[write.memory])
        if shadow is not None:
            adjoint = self.taken(shadow, write)
            if write.parent_argnums and id(write.args[0]) in needed:
                self.give(write.args[0], adjoint)

    def taken(self, shadow: Any, write: Write) -> Any:
        """The adjoint of what a write stored, which is taken out of the shadow."""
        place, index = shadow.window(write.window), write.index
        adjoint = place[index]
        if type(adjoint) not in ops.SAME_BITS:  # else it is a number of its own
            adjoint = only_last(write, turned(adjoint.copy("K")))
        place[index] = 0
        extra = write.args[0].raw_value.ndim - adjoint.ndim if write.parent_argnums else 0
        return adjoint if extra <= 0 else np.reshape(adjoint, (1,) * extra + adjoint.shape)


def only_last(write: Write, adjoint: Any) -> Any:
    """The adjoint of a write's place; of several values for one place, the last stays, and has it alone."""
    parts = write.index if type(write.index) is tuple else (write.index,)
    if not any(isinstance(part, ndarray) and part.dtype.kind in "iu" for part in parts):
        return adjoint
    last, numbers = last_writers(write.window.shape, write.index)
    return np.where(last == numbers, adjoint, 0)


def turned(adjoint: Any) -> Any:
    """An adjoint as the shadow keeps it, or back: conjugated, so that real and imaginary parts are windows too."""
    return np.conjugate(adjoint) if adjoint.dtype.kind == "c" else adjoint


def sweep_with(
    past: Past, events: list[Any], output: Any, seed: Any, wanted: set[Any], needed: set[int], ends: Any = ()
) -> dict[Any, Any]:
    """One pass over a graph, back to the beginning with a past that is now; see `structural_zeros.Pass`."""
    profiler = active_profiler()
    if profiler is not None:
        return told_past(profiler, past, output, seed, lambda: _swept(past, events, output, seed, wanted, needed, ends))
    return _swept(past, events, output, seed, wanted, needed, ends)


def _swept(
    past: Past, events: list[Any], output: Any, seed: Any, wanted: set[Any], needed: set[int], ends: Any
) -> dict[Any, Any]:
    """The pass itself."""
    if past.roots:
        collector.weigh(sum([event.raw_value.nbytes for event in events if isinstance(event, Value)]))
    found: dict[Any, Any] = {}
    roots, waiting, recorded = past.roots, past.adjoints, past.create_graph
    asked, last = set(map(id, wanted)), set(map(id, ends))
    if id(output) in needed:
        past.give(output, seed)
    for event in events:
        if recorded:
            past.errors.reached.append((next_sequence_number(), event))
        if type(event) is Write:
            past.undo(event, needed)
            continue
        key = id(event)
        root = roots.get(key)
        is_view = False
        if root is None or not root.memory:
            adjoint = waiting.pop(key, None)
            if type(adjoint) in DEFERRED:
                adjoint = past.settled(adjoint, event)
        else:
            is_view = root is not event
            if is_view and key not in asked:  # its adjoint is in the shadow, and remains there
                continue
            adjoint = past.adjoint_at(root, event.raw_value)
        if adjoint is not None:
            if key in asked:
                found[event] = adjoint
            if not is_view and key not in last and event.args and event.function not in ops.PIECEWISE:
                past.pass_on(event, adjoint, *past.seen(event), needed)
        if root is event:
            past.leave(event)
    return found


def reached_by_writes(events: Events, output: Any, wanted: set[Any]) -> set[int]:
    """The ids of the nodes on paths from an output to a wanted node, including paths through writes."""
    needed: set[int] = set()
    asked = set(map(id, wanted))
    written: set[Any] = set()  # memories that hold something needed
    roots = events.roots

    def hold(node: Any) -> bool:
        """Whether something needed was written into the buffer of a node; it may be older than that."""
        root = roots.get(id(node))
        held = root is not None and root.memory in written
        if held and type(node) not in INERT:
            needed.add(id(node))
        return held

    for event in reversed(events):
        depends = id(event) in asked
        args = event.args
        for position in event.parent_argnums:
            operand = args[position]
            depends = id(operand) in needed or (roots.get(id(operand)) is not None and hold(operand)) or depends
        if not depends or type(event) in INERT:
            continue
        if type(event) is Write:
            written.add(event.memory)
            continue
        needed.add(id(event))
        root = roots.get(id(event))
        if root is not None and root.memory:
            written.add(root.memory)
    hold(output)
    return needed
