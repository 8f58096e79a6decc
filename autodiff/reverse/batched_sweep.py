"""A batch through a recorded graph: adjoints back, tangents forward.

Both take what `sweep.collect` found, where nothing was written in place, and ask `batching` for each operation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from compgraph.graph import Node, next_tick
from compgraph.graph.interpreter import made_since

from ..batching import as_seen, batch_like, propagate, pull_batch, pushed_on
from ..rules import DEFERRED, RuleErrors, Shared, conform_batch
from .structural_zeros import holds_nan, known_zeros, swept
from .supports import as_support, kept, pushed_support
from .sweep import added, depending_on


def sweep_batch(
    nodes: list[Any], output: Any, seeds: Any, wanted: set[Any], create_graph: bool, needed: set[Any] | None = None,
    support: Any = None,
) -> dict[Any, Any]:  # fmt: skip
    """Pass a batch of adjoints back through a graph.

    Parameters
    ----------
    nodes : list
        The graph as `collect` gives it, without writes.
    output : Node
        Where the sweep starts.
    seeds : array or Node
        The adjoints of `output`, of shape ``(count, *output.shape)``.
    wanted : set
        The nodes whose adjoints are kept.
    create_graph : bool
        Whether rules are given nodes, so that what they compute is recorded.
    needed : set, optional
        The nodes to be passed, as an earlier sweep found them.
    support : array or True, optional
        Where `seeds` have no structural zeros, 1, elsewhere 0; True if all their zeros are. They have none by default.

    Returns
    -------
    dict
        For each wanted node that an adjoint reached, its adjoints, of shape ``(count, *node.shape)``.
    """
    needed = depending_on(nodes, wanted) if needed is None else needed

    def once(rules: Any, errors: RuleErrors, seeds: Any, create_graph: bool) -> dict[Any, Any]:
        return _over_nodes(nodes, output, seeds, wanted, create_graph, needed, rules, errors)

    return swept(once, nodes, seeds, create_graph, support)


def _over_nodes(
    nodes: list[Any], output: Any, seeds: Any, wanted: set[Any], create_graph: bool, needed: Any, rules: Any, errors: RuleErrors
) -> dict[Any, Any]:
    """One pass over a graph without writes, by the rules given; see `structural_zeros.Pass`."""
    count, log = seeds.shape[0], errors.log
    adjoints: dict[Any, Any] = {output: seeds} if output in needed else {}
    found: dict[Any, Any] = {}
    sums: set[Any] = set()  # the operands whose adjoints are arrays that were made here
    for node in nodes:
        adjoint = adjoints.pop(node, None)
        if adjoint is None:
            continue
        if adjoint.__class__ in DEFERRED:
            adjoint = adjoint.settle(batch_like(node, count))
        if node in wanted:
            found[node] = adjoint
        if not node.args:
            continue
        errors.at = node
        rule = rules[node.function]
        out, operands = as_seen(node, create_graph)
        before = next_tick() if create_graph else 0
        formulas: Any = rule.formulas
        answers = None
        if formulas.__class__ is Shared and formulas.batched:
            formulas = answers = formulas.answers(node, needed, adjoint, out, operands)
        for position in node.edges:
            operand = node.args[position]
            if operand not in needed or formulas[position] is None:
                continue
            if answers is not None:
                contribution = answers(adjoint, out)
            else:
                contribution = pull_batch(rule, position, adjoint, out, operands, node.options)
            if log is not None:
                log.append(0 if contribution is adjoint else getattr(contribution, "tick", 0))
            earlier = adjoints.get(operand)
            if contribution.__class__ in DEFERRED:
                adjoints[operand] = contribution if earlier is None else earlier + contribution
                continue
            contribution = conform_batch(contribution, operand.plain, count)
            adjoints[operand] = contribution if earlier is None else added(earlier, contribution, adjoint, operand, sums)
            if create_graph:
                made_since(adjoints[operand], before, node.code, node.instruction, node.scope)
    return found


def push_through(
    nodes: list[Any], tangents: dict[Any, Any], output: Any, create_graph: bool, count: int | None, support: Any = None
) -> Any:
    """Pass tangents forward through a graph, to its output.

    Parameters
    ----------
    nodes : list
        The graph as `collect` gives it, without writes.
    tangents : dict
        Those of the inputs, of shape ``(count, *node.shape)``, or of the shape of the node if `count` is None.
    output : Node
        Whose tangents are wanted.
    create_graph : bool
        Whether rules are given nodes, so that what they compute is recorded.
    count : int or None
        How long the batch is; None for a single direction, without an axis.
    support : True, optional
        Whether all zeros of the tangents are structural; see `structural_zeros`.

    Returns
    -------
    array, Node or None
        None where the output does not depend on the inputs.
    """
    found = _forward(nodes, tangents, output, create_graph, count, {}, {})
    if holds_nan(found if isinstance(found, tuple) else (found,)):
        known = known_zeros(nodes, create_graph)
        supports = {} if support is None or count is None else _supports(nodes, tangents, create_graph, count)
        if known or supports:
            return _forward(nodes, tangents, output, create_graph, count, known, supports)
    return found


def _supports(nodes: list[Any], tangents: dict[Any, Any], create_graph: bool, count: int) -> dict[Any, Any]:
    """The supports of the tangents of all nodes, from those of the inputs."""
    found = {x: as_support(t.plain if isinstance(t, Node) else t) for x, t in tangents.items()}
    with np.errstate(all="ignore"):
        return propagate(reversed(nodes), found, lambda node, given: pushed_support(node, given, create_graph, count))


def _forward(
    nodes: list[Any],
    tangents: dict[Any, Any],
    output: Any,
    create_graph: bool,
    count: int | None,
    known: dict[int, Any],
    supports: dict[Any, Any],
) -> Any:
    """One pass forward; tangents are kept within supports, those known by tick and those of nodes."""
    waiting = dict(tangents)
    last_uses = _last_uses(nodes, {*tangents, output})
    errors = RuleErrors()

    def step(node: Any, given: list[Any]) -> Any:
        errors.at = node
        before = next_tick() if create_graph else 0
        tangent = pushed_on(node, given, create_graph, count)
        zeros = known.get(node.tick)
        if zeros is not None and np.shape(zeros) == np.shape(node.plain):
            tangent = kept(tangent, zeros)
        tangent = kept(tangent, supports[node]) if node in supports else tangent
        if tangent is not None and create_graph:
            made_since(tangent, before, node.code, node.instruction, node.scope)
        return tangent

    errors.run(lambda: propagate(reversed(nodes), waiting, step, last_uses))
    return waiting.get(output)


def _last_uses(nodes: list[Any], kept: Iterable[Any]) -> dict[Any, list[Any]]:
    """For each node, the operands that no younger node uses."""
    done: dict[Any, list[Any]] = {}
    seen = set(kept)
    for node in nodes:
        for position in node.edges:
            operand = node.args[position]
            if operand not in seen:
                seen.add(operand)
                done.setdefault(node, []).append(operand)
    return done
