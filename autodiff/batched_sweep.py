"""Sweeps over a recorded graph with many directions together: adjoints back, tangents forward.

Both take what `sweep.collect` found, where nothing was written in place, and ask `batching` for each operation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compgraph import operations
from compgraph.lines import made_since
from compgraph.nodes import INERT, Joint, next_tick

from .batching import batch_like, conform_all, pull_batch, push_batch
from .broadcasting import conform, conform_batch
from .deferred import DEFERRED
from .registry import Work, by_function, plain_operands
from .rewind import as_node
from .sweep import _depending_on, _sum
from .tangents import push


def _as_seen(node: Any, create_graph: bool) -> tuple[Any, list[Any]]:
    """The output and the operands of a node, as its rule is given them."""
    if create_graph:
        return as_node(node), [as_node(a) for a in node.args]
    return node.plain, [a.plain if a.__class__ is Joint else a for a in plain_operands(node)]


def pull_together(
    nodes: list[Any], output: Any, seeds: Any, wanted: set[Any], create_graph: bool, needed: set[Any] | None = None
) -> dict[Any, Any]:
    """Pass the adjoints of many directions back through a graph.

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

    Returns
    -------
    dict
        For each wanted node that an adjoint reached, its adjoints, of shape ``(count, *node.shape)``.
    """
    count = seeds.shape[0]
    needed = _depending_on(nodes, wanted) if needed is None else needed
    adjoints: dict[Any, Any] = {output: seeds} if output in needed else {}
    found: dict[Any, Any] = {}
    with Work() as work:
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
            work.at = node
            rule = by_function[node.function]
            out, operands = _as_seen(node, create_graph)
            before = next_tick() if create_graph else 0
            for position in node.edges:
                operand = node.args[position]
                if operand not in needed or rule.formulas[position] is None:
                    continue
                contribution = pull_batch(rule, position, adjoint, out, operands, node.options)
                earlier = adjoints.get(operand)
                if contribution.__class__ in DEFERRED:
                    adjoints[operand] = contribution if earlier is None else earlier + contribution
                    continue
                contribution = conform_batch(contribution, operand.plain, count)
                adjoints[operand] = contribution if earlier is None else _sum(earlier, contribution)
                del contribution, earlier  # so that _sum sees who else holds them
                if create_graph:
                    made_since(adjoints[operand], before, node.code, node.instruction)
    return found


def push_together(nodes: list[Any], tangents: dict[Any, Any], output: Any, create_graph: bool, count: int | None) -> Any:
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
        How many directions; None for one, without an axis.

    Returns
    -------
    array, Node or None
        None where the output does not depend on the inputs.
    """
    waiting = dict(tangents)
    done = _last_uses(nodes, {*tangents, output})
    with Work() as work:
        for node in reversed(nodes):
            if node not in tangents and node.__class__ not in INERT and node.function not in operations.PIECEWISE:
                given = of_operands(node, waiting)
                if any(t is not None for t in given):
                    work.at = node
                    tangent = _pushed(node, given, create_graph, count)
                    if tangent is not None:
                        waiting[node] = tangent
            for finished in done.get(node, ()):
                waiting.pop(finished, None)
    return waiting.get(output)


def _pushed(node: Any, given: list[Any], create_graph: bool, count: int | None) -> Any:
    """The tangent of one node, from those of its operands."""
    if isinstance(node.function, operations.Output):
        tangent = given[0][node.function.index]
        return tangent if tangent is None or count is not None else conform(tangent, node.plain)
    rule = by_function[node.function]
    out, operands = _as_seen(node, create_graph)
    before = next_tick() if create_graph else 0
    if count is None:
        tangent = push(rule, given, out, node.function, tuple(operands), node.options)
        tangent = tangent if tangent is None or node.__class__ is Joint else conform(tangent, node.plain)
    else:
        tangent = push_batch(rule, given, out, node.function, operands, node.options)
        tangent = None if tangent is None else conform_all(tangent, node.plain, count)
    if create_graph and tangent is not None:
        made_since(tangent, before, node.code, node.instruction)
    return tangent


def of_operands(node: Any, known: dict[Any, Any]) -> list[Any]:
    """What is known of each operand of a node; None of others."""
    found: list[Any] = [None] * len(node.args)
    for position in node.edges:
        found[position] = known.get(node.args[position])
    return found


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
