"""Breadth-first reverse accumulation.

`collect` walks the graph from the output, level by level, and orders what it finds by descending creation tick:
operands are older than what is computed from them, so when a node is reached all its adjoints have arrived.
`sweep` then asks the rule of each node for the contributions to its operands. Neither knows any operation.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.bind import bind
from compgraph.context import active_profiler, active_watcher
from compgraph.storage import Write, owner_of, root_of
from compgraph.values import ARGUMENTS, BOTH, INERT, LEFT, NO_OPTIONS, VARYING, Value, next_sequence_number, require_unchanged

from ..batching import batch_like, pull_batch, pull_batch_several
from ..rules import DEFERRED, BatchedShadow, Rule, RuleErrors, Scatter, Shared, added, as_node, conform, conform_batch, fetched
from .profiled_sweeps import told_pass
from .replay import KINDS, Events, Past, events_of, only_last, reached_by_writes, sweep_with, turned
from .structural_zeros import Pass, supported, swept

ndarray = np.ndarray
_by_sequence_number = attrgetter("sequence_number")
_memory = attrgetter("memory")


class Collected(list[Any]):
    """The nodes of a graph, newest first, and their ids."""

    __slots__ = ("ids",)
    ids: set[int]


def collect(output: Any, stop: Iterable[Any] = ()) -> list[Any]:
    """All nodes that `output` was computed from, itself included, youngest first.

    Parameters
    ----------
    output : Node
        Where to start.
    stop : iterable of Node
        Nodes whose operands are not looked at.

    Returns
    -------
    list
        Nodes and joints; `Events`, with writes among them, if a buffer was written into.
    """
    last = frozenset(map(id, stop))
    ends: list[Any] = []  # found, but not expanded
    found = Collected((output,))
    late = False
    seen = found.ids = {id(output)}
    add, append = seen.add, found.append
    for node in found if id(output) not in last else ():
        args = node.args
        for position in node.parent_argnums:
            operand = args[position]
            key = id(operand)
            if key not in seen:
                add(key)
                if key in last:
                    ends.append(operand)
                else:
                    append(operand)
            if operand.sequence_number > node.sequence_number:
                late = True
    found += ends
    require_unchanged(found)
    found.sort(key=_by_sequence_number, reverse=True)
    if late or active_watcher() is not None or any(map(_memory, found)):
        return events_of(output, found, last)
    return found


def sweep(
    nodes: list[Any], output: Any, seed: Any, wanted: set[Any], create_graph: bool, ends: Any = (), support: Any = None
) -> dict[Any, Any]:
    """Pass adjoints from `output` back through `nodes`; return those of the wanted nodes.

    Parameters
    ----------
    nodes : list
        The graph as `collect` gives it.
    output : Node
        Where the sweep starts.
    seed : array or Node
        The adjoint of `output`.
    wanted : set
        The nodes whose adjoints are kept. Only nodes that depend on one of them are swept.
    create_graph : bool
        Whether rules are given nodes, so that what they compute is recorded.
    ends : collection of Node
        Wanted nodes that pass nothing on, though another wanted one may lie behind them.
    support : array or True, optional
        Where `seed` has no structural zeros, 1, elsewhere 0; True if all its zeros are. It has none by default.
    """
    return swept(_pass(nodes, output, wanted, ends), nodes, seed, create_graph, support)


def sweep_supports(
    nodes: list[Any], output: Any, support: Any, wanted: set[Any], create_graph: bool, ends: Any
) -> dict[Any, Any]:
    """The supports of what `sweep` finds, from that of its seed; see `structural_zeros`."""
    return supported(_pass(nodes, output, wanted, ends), nodes, support, create_graph)


def _pass(nodes: list[Any], output: Any, wanted: set[Any], ends: Any) -> Pass:
    """One pass over a graph; see `structural_zeros.Pass`."""
    needed = depending_on(nodes, output, wanted)

    def once(rules: Any, errors: RuleErrors, seed: Any, create_graph: bool) -> dict[Any, Any]:
        if type(nodes) is Events:
            return sweep_with(Past(nodes, create_graph, rules, errors), nodes, output, seed, wanted, needed, ends)
        adjoints = {id(output): seed} if id(output) in needed else {}
        over_nodes = _recorded_pass if create_graph else _plain_pass
        profiler = active_profiler()
        if profiler is None:
            return over_nodes(nodes, adjoints, wanted, needed, ends, rules, errors)
        sweep = lambda told: over_nodes(nodes, told, wanted, needed, ends, rules, errors)  # noqa: E731
        return told_pass(profiler, output, adjoints, errors, sweep)

    return once


def _plain_pass(
    nodes: list[Any], adjoints: dict[int, Any], wanted: set[Any], needed: set[int], ends: Any, rules: Any, errors: RuleErrors
) -> dict[Any, Any]:
    """One pass over a graph without writes, from some adjoints, by rules of plain arrays; see `structural_zeros.Pass`."""
    found, sums = dict[Any, Any](), set[int]()  # sums: the operands whose adjoints are arrays allocated here
    asked, last = set(map(id, wanted)), set(map(id, ends))
    stations, formulas_of = asked | last, dict[Any, Any]()
    take, waiting, log = adjoints.pop, adjoints.get, errors.log
    for node in nodes:
        key = id(node)
        if (adjoint := take(key, None)) is None:
            continue
        if type(adjoint) in DEFERRED:
            adjoint = adjoint.settle(node)
        args = node.args
        if key in stations:
            if key in asked:
                found[node] = adjoint
            if key in last or not args:
                continue
        errors.at = node
        operands: tuple[Any, ...]
        function, edges, options, out, count = node.function, node.parent_argnums, node.options, node.raw_value, len(args)
        if (formulas := formulas_of.get(function)) is None:
            formulas = formulas_of[function] = rules[function].formulas
        if count == 2:  # written out, as the calls below: a star costs as much as the arithmetic
            a, b = args
            if edges is LEFT:
                operands = a.raw_value, b
            elif edges is BOTH:
                operands = a.raw_value, b.raw_value
            else:
                operands = a.raw_value if type(a) in KINDS else a, b.raw_value if type(b) in KINDS else b
        else:
            operands = (args[0].raw_value,) if count == 1 else tuple([a.raw_value if type(a) in KINDS else a for a in args])
        if type(formulas) is Shared:
            formulas, operands, options = formulas.answers(node, needed, adjoint, out, operands), (), NO_OPTIONS
            count = 0
        for position in edges:
            operand = args[position]
            key = id(operand)
            if key not in needed or (formula := formulas[position]) is None:
                continue
            earlier = waiting(key)
            if type(earlier) is Scatter and formula is fetched and log is None:  # a loop over elements comes here each turn
                earlier.take(adjoint, operands[1:])
                continue
            if options or count > 2:
                contribution = formula(adjoint, out, *operands, **options)
            elif count == 2:
                contribution = formula(adjoint, out, operands[0], operands[1])
            else:
                contribution = formula(adjoint, out, *operands)
            if (kind := type(contribution)) not in DEFERRED:
                c, x = contribution, operand.raw_value
                if not (c.dtype is x.dtype and c.shape == x.shape if kind is ndarray else kind is type(x)):
                    contribution = conform(c, x)
            adjoints[key] = contribution if earlier is None else added(earlier, contribution, adjoint, key, sums)
    return found


def _recorded_pass(
    nodes: list[Any], adjoints: dict[int, Any], wanted: set[Any], needed: set[int], ends: Any, rules: Any, errors: RuleErrors
) -> dict[Any, Any]:
    """As `_plain_pass`, by rules that are given nodes, so that what they compute is recorded."""
    found, sums = dict[Any, Any](), set[int]()
    asked, last = set(map(id, wanted)), set(map(id, ends))
    log, reached = errors.log, errors.reached
    for node in nodes:
        if (adjoint := adjoints.pop(id(node), None)) is None:
            continue
        reached.append((next_sequence_number(), node))
        if type(adjoint) in DEFERRED:
            adjoint = adjoint.settle(node)
        if id(node) in asked:
            found[node] = adjoint
        operands, options = node.args, node.options
        if not operands or id(node) in last:
            continue
        errors.at = node
        formulas, out = rules[node.function].formulas, as_node(node)
        if type(formulas) is Shared:
            formulas, operands, options = formulas.answers(node, needed, adjoint, out, operands), (), NO_OPTIONS
        for position in node.parent_argnums:
            operand = node.args[position]
            key = id(operand)
            if key not in needed or (formula := formulas[position]) is None:
                continue
            earlier = adjoints.get(key)
            if type(earlier) is Scatter and formula is fetched and log is None:
                earlier.take(adjoint, operands[1:])
                continue
            contribution = formula(adjoint, out, *operands, **options)
            if log is not None:
                log.append(0 if contribution is adjoint else getattr(contribution, "sequence_number", 0))
            if type(contribution) not in DEFERRED:
                contribution = conform(contribution, operand.raw_value)
            adjoints[key] = contribution if earlier is None else added(earlier, contribution, adjoint, key, sums)
    return found


def depending_on(nodes: list[Any], output: Any, wanted: set[Any]) -> set[int]:
    """The ids of the nodes on paths from an output to a wanted node.

    Sweeps use ids because a scalar node hashes by its value (see `compgraph.guards.hashes`).
    """
    if type(nodes) is Events:
        return reached_by_writes(nodes, output, wanted)
    active = nodes if INERT.isdisjoint(map(type, nodes)) else [node for node in nodes if type(node) not in INERT]
    asked = set(map(id, wanted))
    if asked.issuperset([id(node) for node in active if not node.args]):
        return nodes.ids if type(nodes) is Collected and active is nodes else set(map(id, active))
    needed: set[int] = set()
    add = needed.add
    for node in reversed(active):
        if id(node) in asked:
            add(id(node))
            continue
        args = node.args
        for position in node.parent_argnums:
            if id(args[position]) in needed:
                add(id(node))
                break
    return needed


def goes_on(nodes: Iterable[Any], inputs: Sequence[Any]) -> bool:
    """Whether something recorded outside can change a value in a graph.

    Parameters
    ----------
    nodes : iterable of Node
        The graph, as `collect` gives it with the inputs for `stop`.
    inputs : sequence of Node
        The inputs of the function that recorded it, oldest first. That of an outer derivative was made before them; that of
        an inner one after them, and is a constant if it was computed from nothing.
    """
    given, first = set(map(id, inputs)), inputs[0].sequence_number
    leaves = (n for n in nodes if type(n) in VARYING or type(n) in ARGUMENTS)
    return any(n.args if id(n) in given else type(n) in VARYING or (n.sequence_number < first and not n.args) for n in leaves)


def connected_zeros(node: Any, seed: Any) -> Any:
    """Zeros like `node` that still belong to the graph of `seed`."""
    return conform(np.zeros_like(node) + 0 * np.sum(seed), node)


def owned(found: dict[Any, Any], wanted: Iterable[Any], *given: Any) -> dict[Any, Any]:
    """The adjoints found, as arrays that share memory with nothing; zeros where none arrived.

    A contribution is a new array, the adjoint that a rule was given, or a view; so is one that a user's own formula may
    keep (see `unowned`). The adjoints that a sweep started from are `given`.
    """
    results: dict[Any, Any] = {}
    taken = set(map(id, given))
    for node in wanted:
        adjoint = found.get(node)
        if adjoint is None:
            adjoint = np.zeros_like(node.raw_value)
        elif adjoint.ndim and (adjoint.base is not None or id(adjoint) in taken):
            adjoint = adjoint.copy()
        taken.add(id(adjoint))
        results[node] = adjoint if adjoint.ndim else adjoint[()]
    return results


def owned_nodes(found: dict[Any, Any], since: int) -> dict[Any, Any]:
    """Adjoints that are nodes, each over memory of its own: whoever writes into one changes no other, nor the graph."""
    results: dict[Any, Any] = {}
    taken: set[int] = set()
    for key, node in found.items():
        if not isinstance(node, Value):  # zeros of an operand that is only looked at
            results[key] = node
            continue
        owner = id(owner_of(node.raw_value))
        if type(node.raw_value) is ndarray and node.ndim and (owner in taken or root_of(node).sequence_number < since):
            node = bind(ops.copy, (node,), {"order": "K"})
            owner = id(owner_of(node.raw_value))
        taken.add(owner)
        results[key] = node
    return results


def sweep_batch(
    nodes: list[Any], output: Any, seeds: Any, wanted: set[Any], create_graph: bool, needed: set[int] | None = None,
    support: Any = None,
) -> dict[Any, Any]:  # fmt: skip
    """Pass a batch of adjoints back through a graph.

    Parameters
    ----------
    nodes : list
        The graph as `collect` gives it.
    output : Node
        Where the sweep starts.
    seeds : array or Node
        The adjoints of `output`, of shape ``(count, *output.shape)``.
    wanted : set
        The nodes whose adjoints are kept.
    create_graph : bool
        Whether rules are given nodes, so that what they compute is recorded.
    needed : set, optional
        The ids of the nodes to be passed, as `depending_on` gives them.
    support : array or True, optional
        Where `seeds` have no structural zeros, 1, elsewhere 0; True if all their zeros are. They have none by default.

    Returns
    -------
    dict
        For each wanted node that an adjoint reached, its adjoints, of shape ``(count, *node.shape)``.
    """
    needed = depending_on(nodes, output, wanted) if needed is None else needed

    def once(rules: Any, errors: RuleErrors, seeds: Any, create_graph: bool) -> dict[Any, Any]:
        past = BatchedPast(nodes, create_graph, rules, errors, seeds.shape[0])
        return sweep_with(past, nodes, output, seeds, wanted, needed)

    return swept(once, nodes, seeds, create_graph, support)


class InBatch:
    """The formulas of a rule, for batches of adjoints."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def __getitem__(self, position: int) -> Any:
        return None if self.rule.formulas[position] is None else functools.partial(pull_batch, self.rule, position)


class BatchedPast(Past):
    """What the buffers held, and a batch of adjoints, at the moment to which the sweep has come back."""

    def __init__(self, events: list[Any], create_graph: bool, rules: Any, errors: RuleErrors, count: int) -> None:
        super().__init__(events, create_graph, rules, errors)
        self.count = count
        self.fitted = functools.partial(conform_batch, count=count)

    def settled(self, adjoint: Any, node: Any) -> Any:
        """Adjoints put together."""
        return adjoint.settle(batch_like(node, self.count)) if type(adjoint) in DEFERRED else adjoint

    def shadow_of(self, root: Any) -> Any:
        """A new shadow of a buffer."""
        return BatchedShadow(root.raw_value, self.count, self.create_graph)

    def formulas(self, node: Any) -> Any:
        """What takes batches, in the place of the formulas of a node's rule."""
        rule = self.rules[node.function]
        if type(rule.formulas) is Shared:
            return Shared(functools.partial(pull_batch_several, rule), rule.formulas.fixed)
        return InBatch(rule)

    def taken(self, shadow: Any, write: Write) -> Any:
        """The adjoints of what a write stored, which are taken out of the shadow."""
        index = write.index if isinstance(write.index, tuple) else (write.index,)
        whole = index if any(part is Ellipsis for part in index) else (*index, ...)
        last = np.moveaxis(shadow.window(write.window), 0, -1)  # behind all others, the batch axis stays where it is
        adjoint = turned(np.copy(np.moveaxis(last[*whole, slice(None)], -1, 0)))
        last[*whole, slice(None)] = 0
        return only_last(write, adjoint)  # that axes of length one are missing in front is seen to with what is given
