"""Subgraphs that compute some nodes from others, which become placeholders (`subgraph`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import placeholder
from ..graph import walk
from ..guards import guards_of, log_guard, warn_leaks
from ..storage import root_of
from ..values import PlaceholderNode, Value, describe, require_history
from .retrace import retrace_graph
from .schedule import collect_dependencies, origin_of, retrace_sources_of


def subgraph(outputs: Any, at: Any) -> tuple[Any, list[Any]]:
    """Extract the subgraph that computes some nodes from others, which become placeholders.

    Parameters
    ----------
    outputs : Node or sequence of Node
        The nodes that the subgraph computes.
    at : Node or sequence of Node
        The nodes where the subgraph begins. Their operands are not part of it, unless another path leads to them.

    Returns
    -------
    outputs : Node or list of Node
        One node per element of `outputs`, of a new graph that shares the other leaves. A single node if one was passed.
    placeholders : list of PlaceholderNode
        One per node of `at`, with its name, dtype and value. Its lengths are free if the node depends on a placeholder with
        free axes; otherwise they are fixed.

    Raises
    ------
    TypeError
        If an argument is not a node, or carries a tangent.
    ValueError
        If no node is given, the outputs do not depend on a node of `at`, a node of `at` is repeated or was written into, or
        a derivative (`autodiff.reverse.gradients`) was taken through one.

    Warns
    -----
    GuardWarning
        If values left the graph while it was recorded, as an `Executor` warns.

    Notes
    -----
    The subgraph is recorded anew. It keeps the guards that involve only its own nodes. Guards on nodes before the cut are not
    checked.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.placeholder((None,), name="x")
    >>> hidden = cg.tanh(x * 2)
    >>> out = cg.sum(hidden * hidden)
    >>> front, (entry,) = cg.subgraph(hidden, x)
    >>> back, (inner,) = cg.subgraph(out, [hidden])
    >>> first = cg.Executor(front).run({entry: [0.5, 1.0]})
    >>> cg.Executor(back).run({inner: first}) == cg.Executor(out).run({"x": [0.5, 1.0]})
    np.True_
    """
    is_single = _is_single(outputs)
    ends, starts = _as_nodes(outputs, "computes"), _as_nodes(at, "begins at")
    guards, unchecked = guards_of(collect_dependencies(ends, retrace_sources_of))
    warn_leaks(unchecked)
    checkable_guards = _checkable_guards(guards, ends, starts)
    replacements, placeholders = cut_items(ends, starts, checkable_guards)
    for guard in checkable_guards:
        log_guard(replacements[guard])
    new_outputs = [replacements[node] for node in ends]
    return (new_outputs[0] if is_single else new_outputs), placeholders


def cut_items(outputs: Sequence[Any], at: Sequence[Any], guards: Iterable[Any]) -> tuple[dict[Any, Any], list[Any]]:
    """Map the items of a subgraph and the guards to their replacements; also return the placeholders. See `subgraph`."""
    items = collect_dependencies([*outputs, *guards], retrace_sources_of, stop=at)
    _require_cuttable(items, outputs, at)
    placeholders = [_placeholder_for(node) for node in at]
    replacements = retrace_graph(items, {}, substitutions=dict(zip(at, placeholders, strict=True)))
    return replacements, placeholders


def _is_single(nodes: object) -> bool:
    return isinstance(nodes, (np.ndarray, str)) or not isinstance(nodes, Iterable)


def _as_nodes(node_or_nodes: NDArray[Any] | list[Any] | str, role: str) -> list[Any]:
    """Return a list of nodes; `role` is the verb of messages: the subgraph "computes" or "begins at" them."""
    nodes = [node_or_nodes] if _is_single(node_or_nodes) else list(node_or_nodes)
    if not nodes:
        raise ValueError(f"subgraph needs at least one node that the subgraph {role}")
    for node in nodes:
        require_history(node)
        if not isinstance(node, Value):
            raise TypeError(f"the subgraph {role} nodes, not a {type(node).__name__}, which has no graph")
        if node.level:
            raise TypeError(
                "a graph cannot be cut at a value that carries tangents. Cut it outside of the differentiated function"
            )
    return nodes


def _checkable_guards(guards: list[Any], outputs: list[Any], at: list[Any]) -> list[Any]:
    """Return the guards whose leaves are all in the subgraph."""
    subgraph_items = frozenset([*collect_dependencies(outputs, retrace_sources_of, stop=at), *at])
    stop = frozenset(at)
    checkable_guards = []
    for guard in guards:
        dependencies = collect_dependencies([guard], retrace_sources_of, stop=at)
        if all(item in subgraph_items for item in dependencies if item is not guard and (item in stop or not item.args)):
            checkable_guards.append(guard)
    return checkable_guards


def _require_cuttable(items: list[Any], outputs: Sequence[Any], at: Sequence[Any]) -> None:
    subgraph_items, visited = frozenset(items), set()
    for node in at:
        if node in visited:
            raise ValueError(f"the {describe(node)} is repeated among the nodes at which the subgraph begins")
        if node not in subgraph_items:
            ends = ", the ".join(map(describe, outputs))
            raise ValueError(
                f"the {ends} does not depend on the {describe(node)}, or only through other nodes at which the graph is cut"
            )
        if root_of(node).memory:
            raise ValueError(
                f"the graph cannot be cut at the {describe(node)}, which was written into; cut at a copy of it (np.copy)"
            )
        visited.add(node)
    stop = frozenset(at)
    for item in items:
        if item in stop or (origin := origin_of(item)) is None:
            continue
        severed = stop.intersection(items_between(origin.output, origin.wrt))
        if severed:
            raise ValueError(
                f"the graph cannot be cut at the {describe(next(iter(severed)))}, through which the derivative of the "
                f"{describe(origin.output)} was taken; cut the graph of the {describe(origin.output)} instead, and "
                "differentiate its parts"
            )


def items_between(output: NDArray[Any], wrt: Iterable[Any]) -> list[Any]:
    """Return the items that `output` depends on and that depend on a node of `wrt`, without the nodes of `wrt`."""
    ends = frozenset(wrt)
    order = collect_dependencies([output], retrace_sources_of, stop=ends)
    depends: set[Any] = set(ends)
    for item in order:
        if item not in ends and any(source in depends for source in retrace_sources_of(item)):
            depends.add(item)
    return [item for item in order if item in depends and item not in ends]


def _placeholder_for(node: Any) -> Any:
    """Return a placeholder that replaces a node."""
    if isinstance(node, PlaceholderNode):
        declared = node.declared_shape
    else:
        dependencies: Callable[[Any], Any] = retrace_sources_of
        is_free = any(isinstance(n, PlaceholderNode) and None in n.declared_shape for n in walk([node], dependencies))
        declared = (None,) * node.ndim if is_free else node.shape
    return placeholder(declared, node.dtype, node.name, example=node.raw_value)
