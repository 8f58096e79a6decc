"""Propagation of tangents forward through a recorded graph without writes, one or a batch of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from compgraph.context import active_profiler
from compgraph.frames import set_lines_since
from compgraph.values import Value, next_sequence_number

from ..batching import propagate, push_node
from ..rules import RuleErrors
from .profiled_sweeps import profile_step
from .structural_zeros import contains_nan, known_supports
from .support_rules import as_support, mask_tangent, push_support


def push_through(
    nodes: list[Any], tangents: dict[Any, Any], output: object, create_graph: bool, count: int | None, support: bool | None = None
) -> Any:
    """Propagate tangents forward through a graph to its output.

    Parameters
    ----------
    nodes : list
        The graph, as `collect` returns it, without writes.
    tangents : dict
        The tangents of the inputs, of shape ``(count, *node.shape)``, or of the shape of the node if `count` is None.
    output : Node
        The node whose tangents are returned.
    create_graph : bool
        Whether rules receive nodes, so that their computations are recorded.
    count : int or None
        The batch size; None for a single direction without a batch axis.
    support : True, optional
        Whether all zeros of the tangents are structural; see `structural_zeros`.

    Returns
    -------
    array, Node or None
        None if the output does not depend on the inputs.
    """
    output_tangents = _forward(nodes, tangents, output, create_graph, count, {}, {})
    if contains_nan(output_tangents if isinstance(output_tangents, tuple) else (output_tangents,)):
        supports_by_number = known_supports(nodes, create_graph)
        supports = {} if support is None or count is None else _compute_supports(nodes, tangents, create_graph, count)
        if supports_by_number or supports:
            return _forward(nodes, tangents, output, create_graph, count, supports_by_number, supports)
    return output_tangents


def _compute_supports(nodes: list[Any], tangents: dict[Any, Any], create_graph: bool, count: int) -> dict[Any, Any]:
    """Return the supports of the tangents of all nodes, given those of the inputs."""
    supports = {x: as_support(t.raw_value if isinstance(t, Value) else t) for x, t in tangents.items()}
    with np.errstate(all="ignore"):
        return propagate(
            reversed(nodes), supports, lambda node, operand_supports: push_support(node, operand_supports, create_graph, count)
        )


def _forward(
    nodes: list[Any],
    tangents: dict[Any, Any],
    output: object,
    create_graph: bool,
    count: int | None,
    supports_by_number: dict[int, Any],
    supports: dict[Any, Any],
) -> Any:
    """Make one forward pass; tangents are masked by supports, given by sequence number or by node."""
    node_tangents = dict(tangents)
    last_uses = _last_uses(nodes, {*tangents, output})
    errors = RuleErrors()

    def step(node: Any, operand_tangents: list[Any]) -> Any:
        errors.at = node
        before = next_sequence_number() if create_graph else 0
        tangent = push_node(node, operand_tangents, create_graph, count)
        support = supports_by_number.get(node.sequence_number)
        if support is not None and np.shape(support) == np.shape(node.raw_value):
            tangent = mask_tangent(tangent, support)
        if node in supports:
            tangent = mask_tangent(tangent, supports[node])
        if tangent is not None and create_graph:
            set_lines_since(tangent, before, node.code, node.instruction, node.scope)
        return tangent

    profiler = active_profiler()
    profiled_step = step if profiler is None else profile_step(profiler, step)
    errors.run(propagate, reversed(nodes), node_tangents, profiled_step, last_uses)
    return node_tangents.get(output)


def _last_uses(nodes: list[Any], retained: Iterable[Any]) -> dict[Any, list[Any]]:
    """Return for each node the operands that no younger node uses, except those in `retained`."""
    operands_by_node: dict[Any, list[Any]] = {}
    visited = set(retained)
    for node in nodes:
        for position in node.parent_argnums:
            operand = node.args[position]
            if operand not in visited:
                visited.add(operand)
                operands_by_node.setdefault(node, []).append(operand)
    return operands_by_node
