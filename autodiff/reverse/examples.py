"""Gradients of what differs between the examples of a vmap: one for each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compgraph.values import Node, Value, describe

from ..batching import BatchNode, is_batch

Derive = Callable[[Any, Any, Any], Any]


def gradients_of_examples(derive: Derive, node: Any, wrt: Any, adjoint: Any) -> dict[Any, Any]:
    """The gradients of a value that differs between examples, each of which differs too.

    Parameters
    ----------
    derive : callable
        ``derive(values, wrt, adjoint)`` gives those of the values of all examples: a mapping from nodes.
    node : BatchNode
        What to differentiate.
    wrt, adjoint : object
        As `gradient` has them.

    Returns
    -------
    dict
        The gradients by what was asked for.

    Notes
    -----
    What differs as well belongs to one example alone, so that one sweep from all of them gives the gradient of each. What the
    examples share takes a sweep for each.
    """
    level, values, count = node.level, _in_graph(node), node.count
    asked: Any = wrt if wrt is None else [wrt] if isinstance(wrt, (str, Node)) else list(wrt)
    own = [] if asked is None else [w for w in asked if is_batch(w) and w.level == level]
    shared: Any = None if asked is None else [w for w in asked if not any(w is o for o in own)]
    seed = _adjoints_of_examples(node, adjoint, level)
    found: dict[Any, Any] = {}
    if own:
        inner = [_in_graph(w) for w in own]
        adjoints = derive(values, inner, seed)
        found = {w: BatchNode.create_using(adjoints[i], level, is_array=True) for w, i in zip(own, inner, strict=True)}
    if shared is None or shared:
        rows = [derive(values, shared, _of_one(values, seed, k)) for k in range(count)]
        known = rows[0]._adjoints if rows else derive(values, shared, None)._adjoints
        for w in known:
            stacked = np.stack([row[w] for row in rows]) if rows else np.zeros((0, *w.shape), w.dtype)
            found[w] = BatchNode.create_using(stacked, level, is_array=True)
    return found


def _in_graph(value: Any) -> Any:
    """The node of the values of all examples."""
    if not isinstance(value.values, Value):
        raise ValueError(
            f"gradient: the {describe(value)} is of no graph, as the arguments are that vmap gives to a function; differentiate "
            "a function of them by autodiff.grad, within vmap"
        )
    return value.values


def _adjoints_of_examples(node: Any, adjoint: Any, level: int) -> Any:
    """The adjoint to start from, of all examples; None for ones."""
    if adjoint is None:
        return None
    if is_batch(adjoint) and adjoint.level == level:
        return adjoint.values
    if np.shape(adjoint) != node.shape:
        raise ValueError(f"the adjoint has shape {np.shape(adjoint)}, but belongs to the {describe(node)}")
    return np.broadcast_to(adjoint, (node.count, *node.shape))


def _of_one(values: Any, seed: Any, k: int) -> Any:
    """The adjoints of all examples with zeros but for one."""
    chosen = np.zeros((values.shape[0],) + (1,) * (values.ndim - 1), values.dtype)
    chosen[k] = 1
    return np.broadcast_to(chosen, values.shape) if seed is None else chosen * seed
