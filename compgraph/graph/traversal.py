"""The graph behind a node, as lists: pure functions of the operands, none of them recursive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Any, TypeAlias

from ..storage import Write
from ..values import ConstantNode, MultiOutput, Value, operand_nodes

GraphNode: TypeAlias = Value | MultiOutput | Write


def operands_of(node: GraphNode) -> tuple[GraphNode, ...]:
    """What a node was computed from, one entry for each use; plain arrays as ConstantNodes.

    An output of an operation with several outputs has one operand, the MultiOutput; that has the operation's operands. The
    writes into a node's buffer come after its operands. A write has one operand, the value that was stored.
    """
    if isinstance(node, Write):
        (value,) = node.args
        return (value if isinstance(value, Value) else ConstantNode.hold(value),)
    first = node.args[0] if node.args else None
    operands = (first,) if isinstance(first, MultiOutput) else operand_nodes(node)
    return (*operands, *node.memory.log) if node.memory else operands


def walk(starts: Iterable[Any], following: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """All that is reached from some things, each once, breadth first; a generator, so that the caller may stop early.

    Parameters
    ----------
    starts : iterable of hashable
        Where to begin.
    following : callable
        ``following(thing)`` gives what is reached from a thing in one step.

    Yields
    ------
    object
        Each thing; what follows it is asked for only after the caller has seen it.

    Examples
    --------
    >>> from compgraph.graph import walk
    >>> list(walk([1], lambda n: [2 * n, 3 * n] if n < 4 else []))
    [1, 2, 3, 4, 6, 9]
    """
    found = dict.fromkeys(starts)
    order = list(found)
    for thing in order:  # the list grows while it is walked
        yield thing
        for other in following(thing):
            if other not in found:
                found[other] = None
                order.append(other)


def breadth_first(*outputs: GraphNode) -> list[GraphNode]:
    """All that was needed to compute some nodes, each once, the nearest first.

    Parameters
    ----------
    *outputs : Node, MultiOutput or Write
        Where to start.

    Returns
    -------
    list of Node, MultiOutput or Write
        The outputs, their operands, the operands of those, and so on. An operation with several outputs stands
        between them and its operands, as one MultiOutput.

    Examples
    --------
    >>> import compgraph as cg
    >>> from compgraph.graph import breadth_first
    >>> x = cg.variable(3.0, "x")
    >>> [node.opname or node.name for node in breadth_first(x * x - x)]
    ['sub', 'mul', 'x']
    """
    return list(walk(outputs, operands_of))


def topological_order(outputs: Iterable[GraphNode]) -> list[GraphNode]:
    """All that was needed to compute some nodes, each once, operands before what is computed from them.

    Parameters
    ----------
    outputs : iterable of Node or MultiOutput
        Where the graph ends; the order of the outputs does not matter.

    Returns
    -------
    list of Node, MultiOutput or Write
        The leaves, then the operations in the order in which they were recorded.

    Examples
    --------
    >>> import compgraph as cg
    >>> from compgraph.graph import topological_order
    >>> x = cg.variable(3.0, "x")
    >>> [node.opname or node.name for node in topological_order([x * x - x])]
    ['x', 'mul', 'sub']
    """
    if isinstance(outputs, Value):
        raise TypeError("topological_order takes the nodes where the graph ends, several of them: topological_order([node])")
    outputs = list(outputs)
    for node in outputs:
        if not isinstance(node, (Value, MultiOutput, Write)):
            raise TypeError(f"topological_order takes nodes, not a {type(node).__name__}: a plain value has no graph")
    # Leaves may be younger than their readers: a variable that was updated, a constant made when it was looked at.
    return sorted(breadth_first(*outputs), key=lambda node: node.sequence_number if node.args else -inf)
