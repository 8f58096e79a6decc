"""Reverse accumulation over a recorded graph, with one cotangent or a batch of them.

`collect` walks the graph breadth-first from the output and sorts the nodes by descending sequence number. Operands precede
the nodes computed from them, so the cotangent of a node is complete when the sweep reaches it. `sweep` then calls the rule of
each node for the contributions to its operands. Neither depends on particular operations. `sweep_batch` does the same for a
batch: all rows of a Jacobian in one pass.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.bind import bind
from compgraph.context import active_checks, active_profiler
from compgraph.storage import Write, owner_of, root_of
from compgraph.values import (
    ARGUMENTS,
    BOTH,
    INERT,
    LEFT,
    NO_OPTIONS,
    VARYING,
    Value,
    is_operator_tracer,
    next_sequence_number,
    require_unchanged,
)

from ..batching import batch_like, pull_batch, pull_batch_shared
from ..rules import (
    LAZY_COTANGENTS,
    BatchedDerivativeBuffer,
    Rule,
    RuleErrors,
    ScatteredCotangent,
    SharedFormulas,
    add_contribution,
    as_node,
    conform,
    conform_batch,
    scatter_lazily,
)
from .profiled_sweeps import profile_pass
from .replay import (
    RAW_VALUE_CLASSES,
    Replay,
    Tape,
    build_tape,
    conjugate_complex,
    ids_on_paths_through_writes,
    keep_last_writes,
    replay_sweep,
)
from .structural_zeros import Pass, run_sweep, sweep_support

ndarray = np.ndarray
_by_sequence_number = attrgetter("sequence_number")
_memory = attrgetter("memory")


class CollectedNodes(list[Any]):
    """The nodes of a graph, newest first, and their ids."""

    __slots__ = ("ids",)
    ids: set[int]


def collect(output: object, stop: Iterable[Any] = ()) -> list[Any]:
    """List all nodes that `output` was computed from, itself included, newest first.

    Parameters
    ----------
    output : Node
        The output of the graph.
    stop : iterable of Node
        Nodes whose operands are not visited.

    Returns
    -------
    list
        Nodes and multi-output operations; a `Tape`, which also has writes, if a buffer was written in place.
    """
    end_ids = frozenset(map(id, stop))
    ends: list[Any] = []  # nodes in `stop`
    nodes = CollectedNodes((output,))
    has_late_operand = False
    visited = nodes.ids = {id(output)}
    add, append = visited.add, nodes.append
    for node in nodes if id(output) not in end_ids else ():
        args = node.args
        for position in node.parent_argnums:
            operand = args[position]
            key = id(operand)
            if key not in visited:
                add(key)
                if key in end_ids:
                    ends.append(operand)
                else:
                    append(operand)
            if operand.sequence_number > node.sequence_number:
                has_late_operand = True
    nodes += ends
    require_unchanged(nodes)
    nodes.sort(key=_by_sequence_number, reverse=True)
    if has_late_operand or active_checks() is not None or any(map(_memory, nodes)):
        return build_tape(output, nodes, end_ids)
    return nodes


def sweep(
    nodes: list[Any], output: Any, seed: Any, wrt_nodes: set[Any], create_graph: bool, ends: object = (), support: Any = None
) -> dict[Any, Any]:
    """Propagate cotangents from `output` back through `nodes` and return those of `wrt_nodes`.

    Parameters
    ----------
    nodes : list
        The graph, as `collect` returns it.
    output : Node
        The node at which the sweep starts.
    seed : array or Node
        The cotangent of `output`.
    wrt_nodes : set
        The nodes whose cotangents are returned. Only nodes that depend on one of them are visited.
    create_graph : bool
        Whether rules receive nodes, so that their computations are recorded.
    ends : collection of Node
        Nodes in `wrt_nodes` at which the sweep stops, though another one may precede them.
    support : array or True, optional
        The support of `seed`: 0 at structural zeros, 1 elsewhere. True if all its zeros are structural. By default it has no
        structural zeros.
    """
    return run_sweep(_make_pass(nodes, output, wrt_nodes, ends), nodes, seed, create_graph, support)


def sweep_supports(
    nodes: list[Any], output: Any, support: Any, wrt_nodes: set[Any], create_graph: bool, ends: Any
) -> dict[Any, Any]:
    """Return the supports of the cotangents that `sweep` computes, given the support of the seed; see `structural_zeros`."""
    return sweep_support(_make_pass(nodes, output, wrt_nodes, ends), nodes, support, create_graph)


def _make_pass(nodes: list[Any], output: Any, wrt_nodes: set[Any], ends: Any) -> Pass:
    """Return a function that makes one pass over a graph; see `structural_zeros.Pass`."""
    needed_ids = ids_on_paths(nodes, output, wrt_nodes)

    def single_pass(rules: Any, errors: RuleErrors, seed: Any, create_graph: bool) -> dict[Any, Any]:
        if type(nodes) is Tape:
            return replay_sweep(Replay(nodes, create_graph, rules, errors), nodes, output, seed, wrt_nodes, needed_ids, ends)
        cotangents = {id(output): seed} if id(output) in needed_ids else {}
        pass_function = _recorded_pass if create_graph else _plain_pass
        profiler = active_profiler()
        if profiler is None:
            return pass_function(nodes, cotangents, wrt_nodes, needed_ids, ends, rules, errors)

        def run(profiled_cotangents: Any) -> dict[Any, Any]:
            return pass_function(nodes, profiled_cotangents, wrt_nodes, needed_ids, ends, rules, errors)

        return profile_pass(profiler, output, cotangents, errors, run)

    return single_pass


def _plain_pass(
    nodes: list[Any],
    cotangents: dict[int, Any],
    wrt_nodes: set[Any],
    needed_ids: set[int],
    ends: tuple[Any, ...],
    rules: Any,
    errors: RuleErrors,
) -> dict[Any, Any]:
    """Make one pass over a graph without writes by rules of plain arrays; see `structural_zeros.Pass`."""
    wrt_cotangents, owned_ids = dict[Any, Any](), set[int]()  # owned: operands whose cotangents are allocated here
    wrt_ids, end_ids = set(map(id, wrt_nodes)), set(map(id, ends))
    stop_ids, formulas_of = wrt_ids | end_ids, dict[Any, Any]()
    pop_cotangent, get_cotangent, log = cotangents.pop, cotangents.get, errors.log
    for node in nodes:
        key = id(node)
        if (cotangent := pop_cotangent(key, None)) is None:
            continue
        if type(cotangent) in LAZY_COTANGENTS:
            cotangent = cotangent.materialize(node)
        args = node.args
        if key in stop_ids:
            if key in wrt_ids:
                wrt_cotangents[node] = cotangent
            if key in end_ids or not args:
                continue
        errors.current_node = node
        operands: tuple[Any, ...]
        function, positions, options, out, count = node.function, node.parent_argnums, node.options, node.raw_value, len(args)
        if (formulas := formulas_of.get(function)) is None:
            formulas = formulas_of[function] = rules[function].formulas
        if count == 2:  # unrolled, as the calls below: unpacking costs as much as the arithmetic
            a, b = args
            if positions is LEFT:
                operands = a.raw_value, b
            elif positions is BOTH:
                operands = a.raw_value, b.raw_value
            else:
                operands = a.raw_value if type(a) in RAW_VALUE_CLASSES else a, b.raw_value if type(b) in RAW_VALUE_CLASSES else b
        else:
            operands = (
                (args[0].raw_value,) if count == 1 else tuple([a.raw_value if type(a) in RAW_VALUE_CLASSES else a for a in args])
            )
        if type(formulas) is SharedFormulas:
            formulas, operands, options = formulas.evaluate(node, needed_ids, cotangent, out, operands), (), NO_OPTIONS
            count = 0
        for position in positions:
            operand = args[position]
            key = id(operand)
            if key not in needed_ids or (formula := formulas[position]) is None:
                continue
            accumulated = get_cotangent(key)
            # A loop over elements takes this branch in each iteration.
            if type(accumulated) is ScatteredCotangent and formula is scatter_lazily and log is None:
                accumulated.append(cotangent, operands[1:])
                continue
            if options or count > 2:
                contribution = formula(cotangent, out, *operands, **options)
            elif count == 2:
                contribution = formula(cotangent, out, operands[0], operands[1])
            else:
                contribution = formula(cotangent, out, *operands)
            if (kind := type(contribution)) not in LAZY_COTANGENTS:
                c, x = contribution, operand.raw_value
                if not (c.dtype is x.dtype and c.shape == x.shape if kind is ndarray else kind is type(x)):
                    contribution = conform(c, x)
            cotangents[key] = (
                contribution if accumulated is None else add_contribution(accumulated, contribution, cotangent, key, owned_ids)
            )
    return wrt_cotangents


def _recorded_pass(
    nodes: list[Any],
    cotangents: dict[int, Any],
    wrt_nodes: set[Any],
    needed_ids: set[int],
    ends: tuple[Any, ...],
    rules: Any,
    errors: RuleErrors,
) -> dict[Any, Any]:
    """Make one pass as `_plain_pass` does, by rules of nodes, whose computations are recorded."""
    wrt_cotangents, owned_ids = dict[Any, Any](), set[int]()
    wrt_ids, end_ids = set(map(id, wrt_nodes)), set(map(id, ends))
    log, rule_calls = errors.log, errors.rule_calls
    for node in nodes:
        if (cotangent := cotangents.pop(id(node), None)) is None:
            continue
        rule_calls.append((next_sequence_number(), node))
        if type(cotangent) in LAZY_COTANGENTS:
            cotangent = cotangent.materialize(node)
        if id(node) in wrt_ids:
            wrt_cotangents[node] = cotangent
        operands, options = node.args, node.options
        if not operands or id(node) in end_ids:
            continue
        errors.current_node = node
        formulas, out = rules[node.function].formulas, as_node(node)
        if type(formulas) is SharedFormulas:
            formulas, operands, options = formulas.evaluate(node, needed_ids, cotangent, out, operands), (), NO_OPTIONS
        for position in node.parent_argnums:
            operand = node.args[position]
            key = id(operand)
            if key not in needed_ids or (formula := formulas[position]) is None:
                continue
            accumulated = cotangents.get(key)
            if type(accumulated) is ScatteredCotangent and formula is scatter_lazily and log is None:
                accumulated.append(cotangent, operands[1:])
                continue
            contribution = formula(cotangent, out, *operands, **options)
            if log is not None:
                log.append(0 if contribution is cotangent else getattr(contribution, "sequence_number", 0))
            if type(contribution) not in LAZY_COTANGENTS:
                contribution = conform(contribution, operand.raw_value)
            cotangents[key] = (
                contribution if accumulated is None else add_contribution(accumulated, contribution, cotangent, key, owned_ids)
            )
    return wrt_cotangents


def ids_on_paths(nodes: list[Any], output: object, wrt_nodes: set[Any]) -> set[int]:
    """Return the ids of the nodes on paths from an output to a node in `wrt_nodes`.

    Sweeps use ids because a scalar node hashes by its value (see `compgraph.guards.conversions`).
    """
    if type(nodes) is Tape:
        return ids_on_paths_through_writes(nodes, output, wrt_nodes)
    active = nodes if INERT.isdisjoint(map(type, nodes)) else [node for node in nodes if type(node) not in INERT]
    wrt_ids = set(map(id, wrt_nodes))
    if wrt_ids.issuperset([id(node) for node in active if not node.args]):
        return nodes.ids if type(nodes) is CollectedNodes and active is nodes else set(map(id, active))
    needed_ids: set[int] = set()
    add = needed_ids.add
    for node in reversed(active):
        if id(node) in wrt_ids:
            add(id(node))
            continue
        args = node.args
        for position in node.parent_argnums:
            if id(args[position]) in needed_ids:
                add(id(node))
                break
    return needed_ids


def depends_on_outside(nodes: Iterable[Any], inputs: Sequence[Any]) -> bool:
    """Whether a value in a graph depends on something recorded outside of it.

    Parameters
    ----------
    nodes : iterable of Node
        The graph, as `collect` returns it with the inputs as `stop`.
    inputs : sequence of Node
        The inputs of the traced function, oldest first. The input of an outer derivative is older than they are. The input
        of an inner derivative is younger, and is a constant if it has no operands.
    """
    input_ids, first = set(map(id, inputs)), inputs[0].sequence_number
    leaves = (n for n in nodes if type(n) in VARYING or type(n) in ARGUMENTS)
    return any(n.args if id(n) in input_ids else type(n) in VARYING or (n.sequence_number < first and not n.args) for n in leaves)


def depends_on_outer_tracers(nodes: Iterable[Any], inputs: Sequence[Any]) -> bool:
    """Whether a graph depends on tracers of an outer function, which is still traced; see `depends_on_outside`."""
    first = inputs[0].sequence_number
    operands = [operand for x in inputs for operand in x.args]
    return any(map(is_operator_tracer, operands)) or any(is_operator_tracer(n) and n.sequence_number < first for n in nodes)


def connected_zeros(node: Any, seed: NDArray[Any]) -> Any:
    """Return zeros like `node` that belong to the graph of `seed`."""
    return conform(np.zeros_like(node) + 0 * np.sum(seed), node)


def owned_arrays(cotangents: dict[Any, Any], wrt_nodes: Iterable[Any], *seeds: object) -> dict[Any, Any]:
    """Return cotangents as arrays that share no memory, zeros for nodes without one.

    A contribution is a new array, the cotangent that a rule received, or a view; a user's formula that may keep its result
    returns a view (see `as_view`). `seeds` are the cotangents that the sweep started from.
    """
    results: dict[Any, Any] = {}
    used = set(map(id, seeds))
    for node in wrt_nodes:
        cotangent = cotangents.get(node)
        if cotangent is None:
            cotangent = np.zeros_like(node.raw_value)
        elif cotangent.ndim and (cotangent.base is not None or id(cotangent) in used):
            cotangent = cotangent.copy()
        used.add(id(cotangent))
        results[node] = cotangent if cotangent.ndim else cotangent[()]
    return results


def owned_nodes(cotangents: dict[Any, Any], since: int) -> dict[Any, Any]:
    """Return cotangents as nodes with separate memory, so that a write into one changes neither another nor the graph."""
    results: dict[Any, Any] = {}
    used: set[int] = set()
    for key, node in cotangents.items():
        if not isinstance(node, Value):  # zeros of an inactive operand
            results[key] = node
            continue
        owner = id(owner_of(node.raw_value))
        if type(node.raw_value) is ndarray and node.ndim and (owner in used or root_of(node).sequence_number < since):
            node = bind(ops.copy, (node,), {"order": "K"})
            owner = id(owner_of(node.raw_value))
        used.add(owner)
        results[key] = node
    return results


def sweep_batch(
    nodes: list[Any],
    output: object,
    seeds: NDArray[Any],
    wrt_nodes: set[Any],
    create_graph: bool,
    needed_ids: set[int] | None = None,
    support: bool | None = None,
    ends: Any = (),
) -> dict[Any, Any]:
    """Propagate a batch of cotangents back through a graph.

    Parameters
    ----------
    nodes : list
        The graph, as `collect` returns it.
    output : Node
        The node at which the sweep starts.
    seeds : array or Node
        The cotangents of `output`, of shape ``(count, *output.shape)``.
    wrt_nodes : set
        The nodes whose cotangents are returned.
    create_graph : bool
        Whether rules receive nodes, so that their computations are recorded.
    needed_ids : set, optional
        The ids of the nodes to visit, as `ids_on_paths` returns them.
    support : array or True, optional
        The support of `seeds`: 0 at structural zeros, 1 elsewhere. True if all their zeros are structural. By default they
        have no structural zeros.
    ends : collection of Node
        Nodes in `wrt_nodes` at which the sweep stops, though another one may precede them.

    Returns
    -------
    dict
        For each node in `wrt_nodes` with a cotangent, its cotangents, of shape ``(count, *node.shape)``.
    """
    needed_ids = ids_on_paths(nodes, output, wrt_nodes) if needed_ids is None else needed_ids

    def single_pass(rules: object, errors: RuleErrors, seeds: NDArray[Any], create_graph: bool) -> dict[Any, Any]:
        replay = BatchedReplay(nodes, create_graph, rules, errors, seeds.shape[0])
        return replay_sweep(replay, nodes, output, seeds, wrt_nodes, needed_ids, ends)

    return run_sweep(single_pass, nodes, seeds, create_graph, support)


class BatchedFormulas:
    """The formulas of a rule, applied to batches of cotangents."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def __getitem__(self, position: int) -> Any:
        return None if self.rule.formulas[position] is None else functools.partial(pull_batch, self.rule, position)


class BatchedReplay(Replay):
    """A `Replay` with a batch of cotangents."""

    def __init__(self, tape: list[Any], create_graph: bool, rules: Any, errors: RuleErrors, count: int) -> None:
        super().__init__(tape, create_graph, rules, errors)
        self.count = count
        self.conform = functools.partial(conform_batch, count=count)

    def materialize(self, cotangent: Any, node: Any) -> Any:
        """Return a batch of cotangents, materialized if it is lazy."""
        return cotangent.materialize(batch_like(node, self.count)) if type(cotangent) in LAZY_COTANGENTS else cotangent

    def new_cotangent_buffer(self, root: Value) -> Any:
        """Allocate the cotangent buffer of a root."""
        return BatchedDerivativeBuffer(root.raw_value, self.count, self.create_graph)

    def formulas(self, node: Any) -> Any:
        """Return the formulas of a node's rule, for batches of cotangents."""
        rule = self.rules[node.function]
        if type(rule.formulas) is SharedFormulas:
            return SharedFormulas(functools.partial(pull_batch_shared, rule), rule.formulas.fixed)
        return BatchedFormulas(rule)

    def take_cotangent(self, cotangent_buffer: Any, write: Write) -> Any:
        """Return the cotangents of a stored value, and clear them in the cotangent buffer."""
        index = write.index if isinstance(write.index, tuple) else (write.index,)
        whole = index if any(part is Ellipsis for part in index) else (*index, ...)
        batch_last = np.moveaxis(cotangent_buffer.window(write.window), 0, -1)  # as the last axis, the batch axis is not indexed
        cotangent = conjugate_complex(np.copy(np.moveaxis(batch_last[*whole, slice(None)], -1, 0)))
        batch_last[*whole, slice(None)] = 0
        return keep_last_writes(write, cotangent)  # `accumulate` inserts missing leading axes
