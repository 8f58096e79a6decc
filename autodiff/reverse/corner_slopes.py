"""How fast an adjoint falls to 0 with the value it belongs to, as the recorded graph tells; see `grads.corners`."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from compgraph.bind import bind
from compgraph.graph import walk
from compgraph.guards import guarded_value
from compgraph.values import INERT, ConstantNode, Value

from ..rules import found_by, limit_value
from .replay import Events
from .sweep import collect, sweep
from .tangent_sweep import push_through

# Operations between a value and its adjoint that are looked at: each corner of a chain has all the later ones between.
MOST = 256
LENGTHS = frozenset({"abs", "fabs", "hypot", "linalg_norm", "std"})


def limit(g: Any, out: Any, corner: Any) -> tuple[Any, Any]:
    """Where `g` is 0 at a corner, and its slope by `out` if that tells all of how it leaves 0.

    Parameters
    ----------
    g : Node
        The adjoint of `out`, of its shape, or of a batch of directions along a first axis.
    out : Node
        The value.
    corner : numpy.ndarray
        Where `out` has a corner.

    Returns
    -------
    where : numpy.ndarray
        Of the shape of `g`.
    slope : Node, array or None
        None if it is not known: `g` depends on other elements, or on other things that can change.
    """
    where = corner & (g.raw_value == 0)
    if not np.any(where):
        return where, None
    guarded_value(g == 0, "where an adjoint is 0")  # where the graph is run with other numbers, this does not hold
    guarded_value(out + 0, "what has a corner")
    nodes, same = _between(g, out)
    if nodes is None or _depends_on_others(nodes, g, where, same):
        return where, None
    with np.errstate(all="ignore"):
        ones, others = np.ones_like(out.raw_value), _numbers(out.shape).astype(out.dtype)
        held = ConstantNode.hold(ones)
        slope = push_through(nodes, dict.fromkeys(same, held), g, True, None)
        mixed = push_through(nodes, dict.fromkeys(same, others), g, False, None)
        if slope is None:
            return where, np.zeros_like(g.raw_value)
        plain = slope.raw_value if isinstance(slope, Value) else slope
        apart = np.abs(mixed - plain * others)
        if not np.all(np.where(where, apart, 0) <= _rounding(mixed)):  # nan among them
            return where, None
    return where, np.where(where, _held(slope), 0)


def _held(slope: Any) -> Any:
    return bind(limit_value, (slope,), {})


def _between(g: Any, out: Any) -> tuple[Any, list[Any]]:
    """The graph of `g` up to `out` and to all that is computed in the same way; None for one that cannot be told."""
    if not _is_near(g, out):
        return None, []
    nodes = collect(g, stop=(out,))
    if type(nodes) is Events:
        return None, []
    same = [out, *[node for node in nodes if node is not out and _is_same(node, out)]]
    nodes = collect(g, stop=same) if len(same) > 1 else nodes
    unknown = any(node.function is limit_value for node in nodes)
    return (None if unknown else nodes), same


def _is_near(g: Any, out: Any) -> bool:
    """Whether there is little between an adjoint and the value it belongs to."""
    found = walk([g], lambda node: [a for position in node.parent_argnums if (a := node.args[position]) is not out])
    return sum(1 for _ in islice(found, MOST + 1)) <= MOST


def _is_same(node: Any, out: Any) -> bool:
    """Whether a node was computed from the very same operands by the same function."""
    if node.function is not out.function or len(node.args) != len(out.args) or node.options.keys() != out.options.keys():
        return False
    pairs = [*zip(node.args, out.args, strict=True), *[(node.options[k], out.options[k]) for k in out.options]]
    return all(a is b or (not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray) and a == b) for a, b in pairs)


def _depends_on_others(nodes: Any, g: Any, where: Any, same: list[Any]) -> bool:
    """Whether `g` changes, where it is 0, with anything but `same`; with another length that is 0, nobody knows how."""
    stops = set(same)
    ends = {
        node
        for node in nodes
        if isinstance(node, Value) and node not in stops and type(node) not in INERT and (not node.args or _has_corner(node))
    }
    if not ends:
        return False
    seed = np.where(where, _numbers(g.shape), 0).astype(g.dtype)
    with np.errstate(all="ignore"):
        found = sweep(nodes, g, seed, ends | stops, False, ends=ends | stops)
    others = [adjoint for node, adjoint in found.items() if node not in stops]
    return any(not np.all(np.abs(adjoint) <= np.finfo(adjoint.dtype).tiny) for adjoint in others)


def _has_corner(node: Any) -> bool:
    return node.opname in LENGTHS and bool(np.any(node.raw_value == 0))


def _numbers(shape: tuple[int, ...]) -> Any:
    """Numbers between 1 and 2 that have nothing to do with each other."""
    return np.random.default_rng(0).uniform(1, 2, shape)


def _rounding(values: Any) -> Any:
    return 1e4 * np.finfo(values.dtype).eps * np.max(np.abs(values), initial=0)


found_by(limit)
