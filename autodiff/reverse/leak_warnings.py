"""Leaks: numbers that left a graph and returned as constants, so that a part of a derivative is missing.

The log of leaks has the node, the line and the sequence number of each leaked number. A leak counts for a graph under two
conditions: the graph depends on an ancestor variable of that node that was not written since, and a later operation has a
constant that is not in the source.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.frames import classify_use, has_source, literals_in, warn_user
from compgraph.guards import MAX_SHOWN, Leak, Recipe, candidate_leaks, sort_recipes
from compgraph.tracing import LeakWarning, is_tracing
from compgraph.values import MultiOutput, Value, VariableNode

_DEGREES_PER_PI = 180  # a multiple of pi / 180 counts as a literal angle


def _find_leaks(candidates: list[Leak], nodes: list[Any], wrt_nodes: Iterable[Any]) -> list[Leak]:
    """Return the leaks of `wrt_nodes` and their descendants whose numbers may be constants in a graph, oldest first."""
    leaks, wrt_ids = [], set(map(id, wrt_nodes))
    numbers = {id(leak.number) for leak in candidates}
    nodes = [n for n in nodes if any(id(a) in numbers or _is_fraction(a) for a in n.args if not isinstance(a, Value))]
    for leak in candidates:
        use = classify_use(leak.code, leak.instruction)
        leak.is_candidate = use not in ("shown", "dropped") and leak.source_ref() is not None
        is_exact = use == "returned"
        if leak.is_candidate and any(
            _has_constant_from(n, leak, is_exact) for n in nodes if n.sequence_number > leak.sequence_number
        ):
            ancestors = [node for node in _live_ancestors(leak) if isinstance(node, VariableNode) or id(node) in wrt_ids]
            leak.is_candidate = any(node.sequence_number < leak.sequence_number for node in ancestors)
            if any(node.sequence_number < leak.sequence_number and id(node) in wrt_ids for node in ancestors):
                leaks.append(leak)
    return list(dict.fromkeys(leaks))


def warn_of_leaks(operator: str, nodes: list[Any], wrt_nodes: Iterable[Any]) -> None:
    """Warn, on the user's line, of numbers that left a graph and may be constants in a differentiated one.

    Parameters
    ----------
    operator : str
        The operator that differentiates.
    nodes : list
        All nodes of the graph.
    wrt_nodes : iterable of Node
        The nodes to differentiate with respect to.
    """
    candidates = candidate_leaks()
    if candidates and not is_tracing() and (leaks := _find_leaks(candidates, nodes, wrt_nodes)):
        warn_user(
            f"{operator}: numbers left their graph, and constants in the graph of the result may depend on them without a "
            f"derivative: {'; '.join(map(str, leaks[-MAX_SHOWN:]))}. Compute with the nodes themselves (cg.asarray for "
            "np.asarray); for constants, write x.value or cg.stop_gradient(x)",
            LeakWarning,
        )


def leaks_about(leaks: tuple[Any, ...], key: NDArray[Any] | str) -> list[Leak]:
    """Return the leaks of a node, or of the variables with a name, and of their descendants."""

    def is_about(node: object) -> bool:
        return node is key or (isinstance(node, VariableNode) and node.name == key)

    return [leak for leak in leaks if any(map(is_about, _live_ancestors(leak)))]


def _live_ancestors(leak: Leak) -> list[Any]:
    """Return the live ancestors of the node whose numbers left its graph, itself included."""
    source = None if leak.source_ref is None else leak.source_ref()
    if isinstance(source, Recipe):
        return [node for recipe in sort_recipes([source]) if (node := recipe.node()) is not None]
    return [] if source is None else [source]


def _has_constant_from(node: Value | MultiOutput, leak: Leak, is_exact: bool) -> bool:
    """Whether an operation has a constant operand that may result from a leak; if `is_exact`, one equal to its number."""
    return any(_may_result_from(a, node.code, leak, is_exact) for a in node.args if not isinstance(a, Value))


def _is_fraction(operand: Any) -> bool:
    """Whether a constant is not an integer, and thus may be computed from a leaked number."""
    cls = type(operand)
    return cls is not int and (cls is not float or operand != operand // 1)


def _may_result_from(operand: Any, code: CodeType, leak: Leak, is_exact: bool) -> bool:
    """Whether an operand may be computed from a leaked number."""
    leaked_number = leak.number
    if operand is leaked_number:
        return True
    if isinstance(operand, np.ndarray) and operand.size != 1:
        if not has_source(leak.code, leak.instruction):  # possibly passed to NumPy: plain.fill(x), np.sin([x, y])
            return operand.dtype.kind in "fc"
        return isinstance(leaked_number, np.ndarray) and _is_copy(operand, leaked_number)
    is_array = isinstance(operand, np.ndarray)
    value = operand.reshape(-1)[0] if is_array else operand
    if not isinstance(value, (float, complex, np.inexact)) or not np.isfinite(value) or value == np.round(value):
        return False
    if is_array and np.size(leaked_number) == 1 and value == leaked_number:
        return True
    if is_exact or code is None or isinstance(code, str):
        return False
    size = float(np.abs(value))
    is_angle = math.isclose(degrees := size / math.pi * _DEGREES_PER_PI, round(degrees), rel_tol=1e-12)
    is_literal = (is_array or type(value) in (float, complex)) and (size in literals_in(code) or size in literals_in(leak.code))
    return not (is_angle or is_literal)


def _is_copy(operand: NDArray[Any], leaked_number: NDArray[Any]) -> bool:
    """Whether an array equals a leaked one, which has numbers that are not integers."""
    return (
        operand.shape == leaked_number.shape
        and np.array_equal(operand, leaked_number)
        and bool(np.any(leaked_number != np.round(leaked_number)))
    )
