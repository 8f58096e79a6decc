"""The pass forward over a recorded graph, operands before results: of tangents, supports, patterns, series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from compgraph import ops
from compgraph.values import INERT


def propagate(
    nodes: Iterable[Any],
    known: dict[Any, Any],
    step: Callable[[Any, list[Any]], Any],
    last_uses: Mapping[Any, Sequence[Any]] | None = None,
) -> dict[Any, Any]:
    """Find of all nodes of a graph what follows from that of their operands.

    Parameters
    ----------
    nodes : iterable of Node
        Operands before results.
    known : dict
        What is known of some of them, to which the rest is added. Nodes that pass no derivative are left out.
    step : callable
        ``step(node, of_operands)`` is given None for operands of which nothing is known, and returns None if nothing follows.
    last_uses : dict, optional
        For a node, of which others nothing need be known after it.

    Returns
    -------
    dict
        `known`.
    """
    piecewise = ops.PIECEWISE
    for node in nodes:
        if type(node) not in INERT and node not in known and node.function not in piecewise:
            given: list[Any] = [None] * len(node.args)
            reached = False
            for position in node.parent_argnums:
                given[position] = of_operand = known.get(node.args[position])
                reached = reached or of_operand is not None
            if reached:
                found = step(node, given)
                if found is not None:
                    known[node] = found
        if last_uses is not None:
            for finished in last_uses.get(node, ()):
                known.pop(finished, None)
    return known
