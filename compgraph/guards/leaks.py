"""Numbers that left a graph and came back into it as constants, so that a part of a derivative is lost.

The log of escapes holds where numbers were taken, of which node, and when. An escape counts for a graph if the graph has a
variable behind that node, not written since, and a later operation with a constant that is not written in the source.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..graph import Node, VariableNode
from ..graph.hollow import bodies
from ..graph.interpreter import numbers_in, source_lines, use_of
from .escapes import SHOWN, Escape, escaped
from .lineage import Lineage, in_order

_MULTIPLES = 180  # an angle that is a multiple of pi / 180 is taken for a written number


def _leaks(nodes: list[Any], wanted: Iterable[Any]) -> list[Escape]:
    """The escapes of some nodes, and of what was computed from them, that may be constants in a graph; oldest first."""
    candidates = [e for e in dict.fromkeys(reversed(escaped())) if e.about is not None and not use_of(e.code, e.instruction)]
    if not candidates:
        return []
    asked = set(map(id, wanted))
    return [e for e in reversed(candidates) if _is_behind(e, asked) and any(_holds(n, e) for n in nodes if n.tick > e.tick)]


def warn_of_leaks(operator: str, nodes: list[Any], wanted: Iterable[Any]) -> None:
    """Warn, on the user's line, of numbers that left a graph and may be constants in it, where derivatives are wanted.

    `nodes` are all nodes of the graph, `wanted` those with respect to which it is differentiated.
    """
    if escaped() and bodies() is None and (found := _leaks(nodes, wanted)):
        source_lines.warn_at(
            source_lines.users_frame(2),
            f"{operator}: numbers of nodes behind the result left their graph, and constants in it may come of them, which count "
            f"as constant: {'; '.join(map(str, found[-SHOWN:]))}. Compute with the nodes themselves (cg.asarray for np.asarray); "
            "where constants are meant, write x.value or cg.stop_gradient(x)",
        )


def concerning(escapes: Any, key: Any) -> list[Escape]:
    """The escapes of a node, or of the variables of a name, and of what was computed from these."""
    return [e for e in escapes if any(n is key or (type(n) is VariableNode and n.name == key) for n in _behind(e))]


def _behind(escape: Escape) -> list[Any]:
    """The nodes behind the one whose numbers left its graph, itself included, as far as they live."""
    about = None if escape.about is None else escape.about()
    if isinstance(about, Lineage):
        return [node for lineage in in_order([about]) if (node := lineage.node()) is not None]
    return [] if about is None else [about]


def _is_behind(escape: Escape, asked: set[int]) -> bool:
    """Whether a node among some is behind an escape, and has kept its numbers since."""
    return any(id(node) in asked and node.tick < escape.tick for node in _behind(escape))


def _holds(node: Any, escape: Escape) -> bool:
    """Whether an operation has a constant operand that may come of an escape."""
    return any(_may_come_of(a, node.code, escape) for a in node.args if not isinstance(a, Node))


def _may_come_of(operand: Any, code: Any, escape: Escape) -> bool:
    taken = escape.number
    if operand is taken:
        return True
    if isinstance(operand, np.ndarray) and operand.size != 1:
        return isinstance(taken, np.ndarray) and _is_same(operand, taken)
    is_array = isinstance(operand, np.ndarray)
    value = operand.reshape(-1)[0] if is_array else operand
    if not isinstance(value, (float, complex, np.inexact)) or not np.isfinite(value) or value == np.round(value):
        return False
    if is_array and np.size(taken) == 1 and value == taken:
        return True
    if code is None or isinstance(code, str):
        return False
    size = float(np.abs(value))
    is_angle = math.isclose(turned := size / math.pi * _MULTIPLES, round(turned), rel_tol=1e-12)
    is_written = (is_array or value.__class__ in (float, complex)) and (
        size in numbers_in(code) or size in numbers_in(escape.code)
    )
    return not (is_angle or is_written)


def _is_same(operand: Any, taken: Any) -> bool:
    return operand.shape == taken.shape and np.array_equal(operand, taken) and bool(np.any(taken != np.round(taken)))
