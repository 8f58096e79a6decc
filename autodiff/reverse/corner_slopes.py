"""The slope of a cotangent with respect to its value, at a corner (a point without a derivative); see `grads.corners`."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.array_types import Array, Operand
from compgraph.bind import bind
from compgraph.graph import walk
from compgraph.guards import guarded_value
from compgraph.values import INERT, ConstantNode, Value

from ..grads import corners
from .linearization import push_through
from .replay import Tape
from .sweep import collect, sweep

# The maximum number of operations between a value and its cotangent; the cotangent follows from all later operations.
MAX_DISTANCE = 256


def find_slope(g: Any, out: Any, corner: Operand) -> tuple[Any, Any]:
    """Return where `g` is 0 at a corner, and its slope with respect to `out` if `g` depends on nothing else there.

    Parameters
    ----------
    g : Node
        The cotangent of `out`, of its shape, or a batch of them along a first axis.
    out : Node
        The value.
    corner : numpy.ndarray
        A mask of the elements of `out` that have a corner.

    Returns
    -------
    where : numpy.ndarray
        Has the shape of `g`.
    slope : Node, array or None
        None if it is unknown, because `g` depends on other elements or on other values that can change.
    """
    where = corner & (g.raw_value == 0)
    if not np.any(where):
        return where, None
    guarded_value(g == 0, "where a cotangent is 0")  # may fail if the graph is replayed with other values
    guarded_value(out + 0, "which elements have a corner")
    nodes, duplicates = _graph_between(g, out)
    if nodes is None or _depends_on_others(nodes, g, where, duplicates):
        return where, None
    with np.errstate(all="ignore"):
        random_tangent = _random_numbers(out.shape).astype(out.dtype)
        slope = push_through(nodes, dict.fromkeys(duplicates, ConstantNode.wrap(np.ones_like(out.raw_value))), g, True, None)
        pushforward = push_through(nodes, dict.fromkeys(duplicates, random_tangent), g, False, None)
        if slope is None:
            return where, np.zeros_like(g.raw_value)
        plain = slope.raw_value if isinstance(slope, Value) else slope
        deviation = np.abs(pushforward - plain * random_tangent)  # not 0 if `g` depends on other elements of `out`
        if not np.all(np.where(where, deviation, 0) <= _rounding_tolerance(pushforward)):  # false also for nan
            return where, None
    return where, np.where(where, bind(corners.limit_value, (slope,), {}), 0)


def _graph_between(g: object, out: object) -> tuple[Any, list[Any]]:
    """Return the graph of `g` up to `out` and its duplicates, and the list of these nodes, `out` first.

    The graph is None if it is too large, has writes, or contains slopes that are limits.
    """
    if not _is_near(g, out):
        return None, []
    nodes = collect(g, stop=(out,))
    if type(nodes) is Tape:
        return None, []
    duplicates = [out, *[node for node in nodes if node is not out and _is_duplicate(node, out)]]
    nodes = collect(g, stop=duplicates) if len(duplicates) > 1 else nodes
    has_limits = any(node.function is corners.limit_value for node in nodes)
    return (None if has_limits else nodes), duplicates


def _is_near(g: object, out: object) -> bool:
    """Whether few operations are between a value and its cotangent."""
    nodes = walk([g], lambda node: [a for position in node.parent_argnums if (a := node.args[position]) is not out])
    return sum(1 for _ in islice(nodes, MAX_DISTANCE + 1)) <= MAX_DISTANCE


def _is_duplicate(node: Any, out: Any) -> bool:
    """Whether a node was computed by the same function from the same operands."""
    if node.function is not out.function or len(node.args) != len(out.args) or node.options.keys() != out.options.keys():
        return False
    pairs = [*zip(node.args, out.args, strict=True), *[(node.options[k], out.options[k]) for k in out.options]]
    return all(a is b or (not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray) and a == b) for a, b in pairs)


def _depends_on_others(nodes: Any, g: Array, where: Operand, duplicates: list[Any]) -> bool:
    """Whether `g`, where it is 0, depends on leaves other than `duplicates`, or on another node with a corner."""
    stops = set(duplicates)
    ends = {
        node
        for node in nodes
        if isinstance(node, Value) and node not in stops and type(node) not in INERT and (not node.args or _has_corner(node))
    }
    if not ends:
        return False
    seed = np.where(where, _random_numbers(g.shape), 0).astype(g.dtype)
    with np.errstate(all="ignore"):
        cotangents = sweep(nodes, g, seed, ends | stops, False, ends=ends | stops)
    others = [cotangent for node, cotangent in cotangents.items() if node not in stops]
    return any(not np.all(np.abs(cotangent) <= np.finfo(cotangent.dtype).tiny) for cotangent in others)


def _has_corner(node: Value) -> bool:
    """Whether a node is the length of a vector, and 0 somewhere."""
    spec = ops.spec_of(node.function)
    return spec is not None and spec.corner == "length" and bool(np.any(node.raw_value == 0))


def _random_numbers(shape: tuple[int, ...]) -> Any:
    """Return independent random numbers between 1 and 2."""
    return np.random.default_rng(0).uniform(1, 2, shape)


def _rounding_tolerance(values: Array) -> Any:
    """Return the tolerance for rounding errors of values."""
    return 1e4 * np.finfo(values.dtype).eps * np.max(np.abs(values), initial=0)


corners.register_slope_finder(find_slope)
