"""Sub-graphs, which compute some nodes from others; the latter become placeholders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..arrays import placeholder
from ..graph import walk
from ..guards import guards_of, log_guard, warn_leaks
from ..storage import root_of
from ..values import PlaceholderNode, Value, describe, require_history
from .retrace import replay
from .schedule import needed, origin_of, origins_of


def subgraph(outputs: Any, at: Any) -> tuple[Any, list[Any]]:
    """The sub-graph that computes some nodes from others, in which these are placeholders.

    Parameters
    ----------
    outputs : Node or sequence of Node
        What the sub-graph computes.
    at : Node or sequence of Node
        Where it begins. What lies behind these nodes is no part of it, unless another path leads there.

    Returns
    -------
    outputs : Node or list of Node
        One for each of `outputs`, of a new graph that shares its other leaves with the whole one; one alone if one was given.
    placeholders : list of PlaceholderNode
        One for each node of `at`, with its name, dtype and value; of its shape, or of any lengths if a placeholder of the
        whole graph that has free axes lies behind it.

    Raises
    ------
    TypeError
        If something is no node, or carries a tangent.
    ValueError
        If no node is given, the outputs do not depend on a node of `at`, a node of `at` is named twice or was written into, or
        a derivative (`autodiff.reverse.gradients`) was taken through one.

    Warns
    -----
    RuntimeWarning
        If numbers left the graph while it was recorded, as an `Executor` warns.

    Notes
    -----
    The sub-graph is recorded anew. It keeps the guards of the whole graph that are about its own nodes; those about nodes before
    the cut are left to whoever computes these.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.placeholder((None,), name="x")
    >>> hidden = cg.tanh(x * 2)
    >>> out = cg.sum(hidden * hidden)
    >>> front, (given,) = cg.subgraph(hidden, x)
    >>> back, (inner,) = cg.subgraph(out, [hidden])
    >>> first = cg.Executor(front).run({given: [0.5, 1.0]})
    >>> cg.Executor(back).run({inner: first}) == cg.Executor(out).run({"x": [0.5, 1.0]})
    np.True_
    """
    single = _is_one(outputs)
    ends, starts = _nodes(outputs, "computes"), _nodes(at, "begins at")
    guards, escaped = guards_of(needed(ends, origins_of))
    warn_leaks(escaped)
    asked = _about(guards, ends, starts)
    made, placeholders = cut_items(ends, starts, asked)
    for guard in asked:
        log_guard(made[guard])
    found = [made[node] for node in ends]
    return (found[0] if single else found), placeholders


def cut_items(outputs: Sequence[Any], at: Sequence[Any], guards: Iterable[Any]) -> tuple[dict[Any, Any], list[Any]]:
    """For each item of a sub-graph, and each of the guards, the one that takes its place; and the placeholders. See `cut`."""
    items = needed([*outputs, *guards], origins_of, stop=at)
    _require_cuttable(items, outputs, at)
    placeholders = [_stand_in(node) for node in at]
    made = replay(items, {}, instead=dict(zip(at, placeholders, strict=True)))
    return made, placeholders


def _is_one(nodes: Any) -> bool:
    return isinstance(nodes, (np.ndarray, str)) or not isinstance(nodes, Iterable)


def _nodes(given: Any, what: str) -> list[Any]:
    nodes = [given] if _is_one(given) else list(given)
    if not nodes:
        raise ValueError(f"cut was given no node that the sub-graph {what}")
    for node in nodes:
        require_history(node)
        if not isinstance(node, Value):
            raise TypeError(f"the sub-graph {what} nodes, not a {type(node).__name__}, which has no graph")
        if node.level:
            raise TypeError("a graph cannot be cut at a value that carries tangents")
    return nodes


def _about(guards: list[Any], outputs: list[Any], at: list[Any]) -> list[Any]:
    """The guards that a sub-graph can answer by itself: no other leaves lie behind them than its own."""
    known = frozenset([*needed(outputs, origins_of, stop=at), *at])
    stop = frozenset(at)
    found = []
    for guard in guards:
        behind = needed([guard], origins_of, stop=at)
        if all(item in known for item in behind if item is not guard and (item in stop or not item.args)):
            found.append(guard)
    return found


def _require_cuttable(items: list[Any], outputs: Sequence[Any], at: Sequence[Any]) -> None:
    known, seen = frozenset(items), set()
    for node in at:
        if node in seen:
            raise ValueError(f"the {describe(node)} is named twice among the nodes where the sub-graph begins")
        if node not in known:
            ends = ", the ".join(map(describe, outputs))
            raise ValueError(f"the {ends} does not depend on the {describe(node)}, or only through others where the graph is cut")
        if root_of(node).memory:
            raise ValueError(
                f"the graph cannot be cut at the {describe(node)}, which was written into; cut at a copy of it (np.copy)"
            )
        seen.add(node)
    stop = frozenset(at)
    for item in items:
        if item in stop or (origin := origin_of(item)) is None:
            continue
        severed = stop.intersection(between(origin.output, origin.wrt))
        if severed:
            raise ValueError(
                f"the graph cannot be cut at the {describe(next(iter(severed)))}, through which the derivative of the "
                f"{describe(origin.output)} was taken; cut the graph of that, and take the derivatives of its parts"
            )


def between(output: Any, wrt: Iterable[Any]) -> list[Any]:
    """All that `output` depends on and that depends, itself or by others, on a node of `wrt`; the nodes of `wrt` are left out."""
    ends = frozenset(wrt)
    order = needed([output], origins_of, stop=ends)
    depends: set[Any] = set(ends)
    for item in order:
        if item not in ends and any(source in depends for source in origins_of(item)):
            depends.add(item)
    return [item for item in order if item in depends and item not in ends]


def _stand_in(node: Any) -> Any:
    """A placeholder to take the place of a node."""
    if isinstance(node, PlaceholderNode):
        declared = node.declared
    else:
        behind: Callable[[Any], Any] = origins_of
        is_free = any(isinstance(n, PlaceholderNode) and None in n.declared for n in walk([node], behind))
        declared = (None,) * node.ndim if is_free else node.shape
    return placeholder(declared, node.dtype, node.name, example=node.raw_value)
