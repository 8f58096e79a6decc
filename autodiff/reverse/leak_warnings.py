"""Leaks: numbers that left a graph and returned as constants, so that a part of a derivative is missing.

The log of leaks holds the node, the line and the time of each number that left. A leak counts for a graph if the graph depends
on a variable behind that node which was not written since, and a later operation has a constant that is not in the source.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from compgraph.frames import classify_use, has_source, literals_in, warn_user
from compgraph.guards import MAX_SHOWN, Leak, Recipe, open_leaks, sort_recipes
from compgraph.tracing import LeakWarning, is_tracing
from compgraph.values import Value, VariableNode

_MULTIPLES = 180  # a multiple of pi / 180 counts as a literal angle


def _leaks(escapes: list[Leak], nodes: list[Any], wanted: Iterable[Any]) -> list[Leak]:
    """Return the leaks of some nodes and their descendants that may be constants in a graph, oldest first."""
    leaks, wanted_ids = [], set(map(id, wanted))
    numbers = {id(escape.number) for escape in escapes}
    nodes = [n for n in nodes if any(id(a) in numbers or _is_fraction(a) for a in n.args if not isinstance(a, Value))]
    for escape in escapes:
        use = classify_use(escape.code, escape.instruction)
        escape.is_open = use not in ("shown", "dropped") and escape.source_ref() is not None
        is_exact = use == "returned"
        if escape.is_open and any(
            _has_constant_from(n, escape, is_exact) for n in nodes if n.sequence_number > escape.sequence_number
        ):
            behind = [node for node in _live_ancestors(escape) if isinstance(node, VariableNode) or id(node) in wanted_ids]
            escape.is_open = any(node.sequence_number < escape.sequence_number for node in behind)
            if any(node.sequence_number < escape.sequence_number and id(node) in wanted_ids for node in behind):
                leaks.append(escape)
    return list(dict.fromkeys(leaks))


def warn_of_leaks(operator: str, nodes: list[Any], wanted: Iterable[Any]) -> None:
    """Warn, on the user's line, of numbers that left a graph and may be constants in a differentiated one.

    Parameters
    ----------
    operator : str
        The operator that differentiates.
    nodes : list
        All nodes of the graph.
    wanted : iterable of Node
        The nodes to differentiate with respect to.
    """
    escapes = open_leaks()
    if escapes and not is_tracing() and (leaks := _leaks(escapes, nodes, wanted)):
        warn_user(
            f"{operator}: numbers of nodes behind the result left their graph, and constants in it may come from them, which "
            f"have no derivative: {'; '.join(map(str, leaks[-MAX_SHOWN:]))}. Compute with the nodes themselves (cg.asarray for "
            "np.asarray); where constants are meant, write x.value or cg.stop_gradient(x)",
            LeakWarning,
        )


def escapes_about(escapes: Any, key: Any) -> list[Leak]:
    """Return the leaks of a node, or of the variables with a name, and of their descendants."""
    return [e for e in escapes if any(n is key or (isinstance(n, VariableNode) and n.name == key) for n in _live_ancestors(e))]


def _live_ancestors(escape: Leak) -> list[Any]:
    """Return the live ancestors of the node whose numbers left its graph, itself included."""
    about = None if escape.source_ref is None else escape.source_ref()
    if isinstance(about, Recipe):
        return [node for lineage in sort_recipes([about]) if (node := lineage.node()) is not None]
    return [] if about is None else [about]


def _has_constant_from(node: Any, escape: Leak, is_exact: bool) -> bool:
    """Whether an operation has a constant operand that may result from a leak; if `is_exact`, one equal to its number."""
    return any(_may_result_from(a, node.code, escape, is_exact) for a in node.args if not isinstance(a, Value))


def _is_fraction(operand: Any) -> bool:
    """Whether a constant is not an integer, and so may be computed from a leaked number."""
    kind = type(operand)
    return kind is not int and (kind is not float or operand != operand // 1)


def _may_result_from(operand: Any, code: Any, escape: Leak, is_exact: bool) -> bool:
    """Whether an operand may be computed from a leaked number."""
    leaked_number = escape.number
    if operand is leaked_number:
        return True
    if isinstance(operand, np.ndarray) and operand.size != 1:
        if not has_source(escape.code, escape.instruction):  # possibly passed to NumPy: plain.fill(x), np.sin([x, y])
            return operand.dtype.kind in "fc"
        return isinstance(leaked_number, np.ndarray) and _is_duplicate(operand, leaked_number)
    is_array = isinstance(operand, np.ndarray)
    value = operand.reshape(-1)[0] if is_array else operand
    if not isinstance(value, (float, complex, np.inexact)) or not np.isfinite(value) or value == np.round(value):
        return False
    if is_array and np.size(leaked_number) == 1 and value == leaked_number:
        return True
    if is_exact or code is None or isinstance(code, str):
        return False
    size = float(np.abs(value))
    is_angle = math.isclose(turned := size / math.pi * _MULTIPLES, round(turned), rel_tol=1e-12)
    is_written = (is_array or type(value) in (float, complex)) and (size in literals_in(code) or size in literals_in(escape.code))
    return not (is_angle or is_written)


def _is_duplicate(operand: Any, leaked_number: Any) -> bool:
    return (
        operand.shape == leaked_number.shape
        and np.array_equal(operand, leaked_number)
        and bool(np.any(leaked_number != np.round(leaked_number)))
    )
