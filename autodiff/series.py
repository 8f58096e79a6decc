"""Taylor series, carried through a recorded graph one order after the other.

The coefficients of a result follow from those of its operands: a linear operation is applied to each, a product is a
sum of products, a quotient is solved for. For all others the tangent rule is a differential equation: from
``out' = rule(x'; out, x)`` the coefficient of order k is that of the right-hand side of order k - 1, divided by k. What a
rule computes is recorded once, and is a graph through which series are carried in the same way. So nothing is declared
twice, and the work grows as a power of the order, where nested forward mode takes 2 ** order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from compgraph import operations
from compgraph.modes import is_recording, recording_on
from compgraph.nodes import INERT, InputNode, Joint, Node, VariableNode, leaf, record
from compgraph.operands import to_plain

from .along import as_argument, jvp, lost_graph
from .broadcasting import conform
from .registry import by_function
from .rewind import Events
from .sweep import collect
from .tangents import push

Function = Callable[..., Any]
Coefficients = list[Any]  # from order 0; None where a coefficient is zero


def taylor(f: Function, x: Any, order: int, direction: Any = None) -> list[Any]:
    """The Taylor coefficients of a function along a direction.

    Parameters
    ----------
    f : callable
        A function of one array that returns an array.
    x : array_like
        The point.
    order : int
        The highest order.
    direction : array_like, optional
        Of the shape of `x`; ones by default.

    Returns
    -------
    list of array
        ``c`` with ``f(x + t * direction) = c[0] + c[1] * t + ... + c[order] * t ** order + ...``; the k-th derivative is
        ``math.factorial(k) * c[k]``.

    Raises
    ------
    TypeError
        If `x` is an integer array, or `f` returns no node.
    ValueError
        If `order` is negative, or the direction has another shape than `x`.

    Notes
    -----
    The coefficients are exact. `f` runs once. The time grows about as the cube of the order: the formulas for products
    and quotients are those of A. Griewank and A. Walther, *Evaluating Derivatives*, 2nd ed., SIAM 2008, ch. 13; other
    operations are solved as differential equations, as there, from their tangent rules. A function that writes in
    place, or uses operations with several outputs, takes nested forward mode: 2 ** order times the function.

    Examples
    --------
    >>> import numpy as np
    >>> print(np.array(taylor(np.exp, 0.0, 4)))
    [1.         1.         0.5        0.16666667 0.04166667]
    """
    if order < 0:
        raise ValueError(f"taylor: the order must not be negative, {order} was given")
    x = as_argument(x)
    direction = np.ones(x.shape, x.dtype)[()] if direction is None else as_argument(direction)
    if np.shape(direction) != np.shape(x):
        raise ValueError(f"taylor: the direction has shape {np.shape(direction)}, the argument {np.shape(x)}")
    if any(isinstance(a, Node) and a.level for a in (x, direction)):
        return _nested(f, x, direction, order)
    live = is_recording()
    with recording_on():
        given = _stand_in(x if live else to_plain(x))
        out = f(given)
        if not isinstance(out, Node):
            raise TypeError(lost_graph("taylor", out))
        if out.level:
            return _nested(f, x, direction, order)
        nodes = collect(out, stop=[given])
        live = live and (isinstance(direction, Node) or any(_is_outer(n, given) for n in nodes))
        first = given if live else given.plain
        try:
            _require_simple(nodes)
            expansion = Expansion(nodes, {given: [first, direction if live else to_plain(direction)]}, live)
            found = expansion.up_to(order, out)
        except NotSimple:
            return _nested(f, x, direction, order)
    return [np.zeros(out.shape, out.dtype)[()] if c is None else c for c in found]


class NotSimple(Exception):  # noqa: N818
    """Raised for a graph through which series are not carried."""


def _require_simple(nodes: Sequence[Any]) -> None:
    if nodes.__class__ is Events or any(n.__class__ is Joint for n in nodes):
        raise NotSimple


def _is_outer(node: Any, given: Any) -> bool:
    """Whether something recorded outside can change the value of a node without operands."""
    if node.__class__ is InputNode:
        return bool(node.args) if node is given else not node.args and node.tick < given.tick
    return node.__class__ is VariableNode


def _stand_in(value: Any) -> Any:
    """An input with a value, and its history if it is a node."""
    if isinstance(value, Node):
        return InputNode.of(record(operations.input_of, (value,)))
    return leaf(np.array(value), InputNode, None)


def _nested(f: Function, x: Any, direction: Any, order: int) -> list[Any]:
    """The coefficients by nested forward mode."""
    return [f(x), *(_derivative(f, k, direction)(x) / math.factorial(k) for k in range(1, order + 1))]


def _derivative(f: Function, k: int, direction: Any) -> Function:
    if k == 0:
        return f
    inner = _derivative(f, k - 1, direction)
    return lambda x: jvp(inner, (x,), (direction,))[1]


class Expansion:
    """The series of all nodes of a graph, from those of some of them.

    Parameters
    ----------
    nodes : sequence of Node
        The graph as `collect` gives it, youngest first.
    given : dict
        For some of its nodes, their coefficients; the lists may grow.
    live : bool
        Whether coefficients are nodes, that can be differentiated.
    """

    def __init__(self, nodes: Sequence[Any], given: dict[Any, Coefficients], live: bool) -> None:
        self.live = live
        self.series: dict[Any, Coefficients] = dict(given)
        self.steps: list[Any] = []
        self.equations: dict[Any, Equation] = {}
        for node in reversed(nodes):
            if node.__class__ in INERT or node in given or node.plain.dtype.kind not in "fc":
                continue
            if any(node.args[i] in self.series for i in node.edges):
                self.steps.append(node)
                self.series[node] = [self.value(node)]

    def value(self, operand: Any) -> Any:
        """An operand, or its plain value."""
        return operand if self.live else to_plain(operand)

    def up_to(self, order: int, out: Any) -> Coefficients:
        """The coefficients of a node, up to an order."""
        if out not in self.series:
            return [self.value(out), *[None] * order]
        for k in range(1, order + 1):
            for node in self.steps:
                if len(self.series[node]) == k:
                    coefficient = self.coefficient(node, k)
                    self.series[node].append(None if coefficient is None else conform(coefficient, node.plain))
        found = self.series[out]
        return [*found[: order + 1], *[None] * (order + 1 - len(found))]

    def coefficient(self, node: Any, k: int) -> Any:
        """The coefficient of order k of a node, from those of its operands."""
        operands = [self.series.get(a) if isinstance(a, Node) else None for a in node.args]
        rule = by_function[node.function]
        if rule.kind == "linear":
            return self._linear(node, [_at(s, k) for s in operands])
        if rule.kind == "multilinear" or rule.opname == "mul":
            return self._product(node, operands, k)
        if rule.opname == "div":
            return self._quotient(node, operands, k)
        if node not in self.equations:
            self.equations[node] = Equation(self, node, operands)
        return self.equations[node].coefficient(k)

    def _linear(self, node: Any, coefficients: list[Any]) -> Any:
        if all(c is None for c in coefficients):
            return None
        values = tuple(map(self.value, node.args))
        return push(by_function[node.function], coefficients, self.value(node), node.function, values, node.options)

    def _product(self, node: Any, operands: list[Any], k: int) -> Any:
        """The sum of the products of coefficients whose orders sum to k."""
        places = [i for i, s in enumerate(operands) if s is not None]
        total = None
        for orders in product(range(k + 1), repeat=len(places) - 1):
            last = k - sum(orders)
            parts = [_at(operands[i], j) for i, j in zip(places, (*orders, last), strict=True)] if last >= 0 else [None]
            if any(part is None for part in parts):
                continue
            args = [self.value(a) for a in node.args]
            for i, part in zip(places, parts, strict=True):
                args[i] = part
            term = record(node.function, tuple(args), node.options)
            total = term if total is None else total + term
        return total

    def _quotient(self, node: Any, operands: list[Any], k: int) -> Any:
        """From ``out * y = x``: what is left of x, divided by y."""
        x, y = operands
        left = _at(x, k)
        for i in range(1, k + 1):
            a, b = _at(y, i), _at(self.series[node], k - i)
            if a is not None and b is not None:
                left = -(a * b) if left is None else left - a * b
        return None if left is None else left / self.value(node.args[1])


def _at(series: Any, k: int) -> Any:
    """The coefficient of order k; None where it is zero, or there is no series."""
    return series[k] if series is not None and k < len(series) else None


class Equation:
    """The differential equation ``out' = rule(x'; out, x)`` of one node, as a graph of its own."""

    def __init__(self, outer: Expansion, node: Any, operands: list[Any]) -> None:
        self.slopes: list[tuple[Coefficients, Coefficients]] = []
        given: dict[Any, Coefficients] = {}

        def stand_in(series: Coefficients, first: Any) -> Any:
            made = _stand_in(first)
            given[made] = series
            return made

        inner = stand_in(outer.series[node], outer.value(node))
        primals = [outer.value(a) if s is None else stand_in(s, outer.value(a)) for a, s in zip(node.args, operands, strict=True)]
        tangents: list[Any] = [None] * len(primals)
        for i, series in enumerate(operands):
            if series is not None:
                first = _at(series, 1)
                first = np.zeros(primals[i].shape, primals[i].dtype)[()] if first is None else conform(first, primals[i].plain)
                slope: Coefficients = []
                tangents[i] = stand_in(slope, first)
                self.slopes.append((slope, series))
        self.right = push(by_function[node.function], tangents, inner, node.function, tuple(primals), node.options)
        self.expansion = None
        if isinstance(self.right, Node):
            nodes = collect(self.right, stop=list(given))
            _require_simple(nodes)
            for slope, series in self.slopes:
                slope.append(_at(series, 1))
            self.expansion = Expansion(nodes, given, outer.live)

    def coefficient(self, k: int) -> Any:
        """The coefficient of order k of the node, when those below are known."""
        if self.expansion is None:
            return self.right if k == 1 else None
        for slope, series in self.slopes:
            for j in range(len(slope), k):
                c = _at(series, j + 1)
                slope.append(None if c is None else (j + 1) * c)
        found = self.expansion.up_to(k - 1, self.right)[k - 1]
        return None if found is None else found / k
