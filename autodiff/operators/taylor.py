"""Taylor series of functions: series propagate through the recorded graph of one call, order by order.

The coefficients of a result follow from those of its operands. A linear operation is applied to each coefficient, a product is a
sum of products, and a quotient is solved for. For other operations, the tangent rule is a differential equation
``out' = rule(x'; out, x)``: the coefficient of order k is that of the right-hand side of order k - 1, divided by k. The
computation of a rule is recorded once, and series propagate through its graph in the same way. Rules need no further declaration,
and the time grows as the square of the order, compared to 2 ** order of nested forward mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.array_types import Array
from compgraph.bind import bind, to_concrete
from compgraph.context import is_recording, run_isolated
from compgraph.graph import to_values
from compgraph.guards import collecting_leaks, note_input_shapes
from compgraph.interception import intercept
from compgraph.tracing import Tracing
from compgraph.values import MultiOutput, Value

from ..arguments import (
    as_argument,
    as_constant,
    as_direction,
    flatten,
    lost_graph_error,
    require_function,
    short_tracebacks,
    unflatten,
)
from ..batching import LiftedFunction, active_levels, outside_vmap, propagate
from ..forward import jvp
from ..reverse import Tape, collect, depends_on_outside
from ..rules import by_function, conform, push
from .trace import join_outputs, make_argument_tracer

Coefficients = list[Any]  # from order 0; None where a coefficient is zero
MAX_POLYNOMIAL_POWER = 8  # the highest power with the series of a polynomial


class UnsupportedGraphError(Exception):
    """Raised for a graph through which series cannot propagate; `taylor` then uses nested forward mode."""


def require_supported_graph(nodes: Sequence[Any]) -> None:
    """Raise if a graph has writes, multi-output operations, or checkpoints that use nodes from outside."""
    if type(nodes) is Tape or any(type(n) is MultiOutput or _is_capturing_checkpoint(n) for n in nodes):
        raise UnsupportedGraphError


def _is_capturing_checkpoint(node: Value) -> bool:
    """Whether a node is a call under `checkpoint` of a function that uses nodes from outside."""
    return bool(getattr(node.options.get("call"), "captured", ()))


class Expansion:
    """The series of all nodes of a graph, given those of some nodes.

    Parameters
    ----------
    nodes : sequence of Node
        The graph as `collect` returns it, youngest first.
    input_series : dict
        The coefficients of some of its nodes; the lists may grow.
    create_graph : bool
        Whether coefficients are nodes, which can be differentiated.
    equations_by_key : dict, optional
        The equations of the enclosing graph, if this is the graph of an equation; see `_key`.
    """

    def __init__(
        self,
        nodes: Sequence[Any],
        input_series: dict[Any, Coefficients],
        create_graph: bool,
        equations_by_key: dict[Any, Equation] | None = None,
    ) -> None:
        self.create_graph = create_graph
        self.series: dict[Any, Coefficients] = dict(input_series)
        self.steps: list[Any] = []  # the nodes whose series are computed, in order
        self.equations: dict[Any, Equation] = {}
        self.equations_by_key: dict[Any, Equation] = {} if equations_by_key is None else equations_by_key
        self.order_reached = 0
        propagate(reversed(nodes), self.series, self._series_of_node)

    def _series_of_node(self, node: Value, operand_series: list[Any]) -> Coefficients | None:
        """Return the series of a node, shared with an equal node that has an equation."""
        if node.raw_value.dtype.kind not in "fc":
            return None
        self.steps.append(node)
        key = self._key(node)
        equation = None if key is None else self.equations_by_key.get(key)
        if equation is None:
            return [self.value(node)]
        self.equations[node] = equation
        return equation.series

    def _key(self, node: Value) -> Any:
        """Return a key that equal functions of the same series share; None if unknown."""
        if node.options:
            return None
        parts: list[Any] = []
        for operand in node.args:
            if isinstance(operand, Value) and operand in self.series:
                parts.append(id(self.series[operand]))
            elif operand is None or type(operand) in (int, float, bool):
                parts.append((type(operand), repr(operand)))
            else:
                return None
        return (node.function, node.raw_value.dtype, node.raw_value.shape, *parts)

    def value(self, operand: object) -> Any:
        """Return an operand as a node if coefficients are nodes, else its plain value."""
        return operand if self.create_graph else to_values(operand)

    def series_of(self, out: object, order: int) -> Coefficients:
        """Return the coefficients of a node, up to an order."""
        if out not in self.series:
            return [self.value(out), *[None] * order]
        self.extend(order)
        coefficients = self.series[out]
        return [*coefficients[: order + 1], *[None] * (order + 1 - len(coefficients))]

    def extend(self, order: int) -> None:
        """Compute the coefficients of all nodes up to an order."""
        for k in range(self.order_reached + 1, order + 1):
            for node in self.steps:
                if len(self.series[node]) == k:
                    coefficient = self.coefficient(node, k)
                    self.series[node].append(None if coefficient is None else conform(coefficient, node.raw_value))
            self.order_reached = k

    def coefficient(self, node: Value, k: int) -> Any:
        """Compute the coefficient of order k of a node, from those of its operands."""
        operands = [self.series.get(a) if isinstance(a, Value) else None for a in node.args]
        rule = by_function[node.function]
        if rule.kind == "linear":
            return self._linear(node, [_coefficient_at(s, k) for s in operands])
        if rule.kind == "multilinear" or rule.opname == "mul":
            return self._product(node, operands, k)
        if rule.opname == "div":
            return self._quotient(node, operands, k)
        if node not in self.equations:
            self.equations[node] = Equation(self, node, operands, self._key(node))
        equation = self.equations[node]
        return self._linear(node, [_coefficient_at(s, k) for s in operands]) if equation.is_linear else equation.coefficient(k)

    def _linear(self, node: Value, coefficients: list[Any]) -> Any:
        """Return the result of a linear operation for coefficients of one order."""
        if all(c is None for c in coefficients):
            return None
        values = tuple(map(self.value, node.args))
        return push(by_function[node.function], coefficients, self.value(node), node.function, values, node.options)

    def _product(self, node: Value, operands: list[Any], k: int) -> Any:
        """Return the sum of the products of coefficients whose orders sum to k."""
        positions = [i for i, s in enumerate(operands) if s is not None]
        total = None
        for orders in product(range(k + 1), repeat=len(positions) - 1):
            last = k - sum(orders)
            if last < 0:
                continue
            factors = [_coefficient_at(operands[i], j) for i, j in zip(positions, (*orders, last), strict=True)]
            if any(factor is None for factor in factors):
                continue
            args = [self.value(a) for a in node.args]
            for i, factor in zip(positions, factors, strict=True):
                args[i] = factor
            term = bind(node.function, tuple(args), node.options)
            total = term if total is None else total + term
        return total

    def _quotient(self, node: Value, operands: list[Any], k: int) -> Any:
        """Solve ``out * y = x`` for the coefficient of order k."""
        x, y = operands
        remainder = _coefficient_at(x, k)
        for i in range(1, k + 1):
            a, b = _coefficient_at(y, i), _coefficient_at(self.series[node], k - i)
            if a is not None and b is not None:
                remainder = -(a * b) if remainder is None else remainder - a * b
        return None if remainder is None else remainder / self.value(node.args[1])

    def tangent_rule(self, node: Value, operands: list[Any]) -> Callable[..., Any]:
        """Return the tangent rule of a node, as a function of ``(tangents, out, operands)``; for powers, `_push_power`."""
        rule = by_function[node.function]
        if rule.opname == "pow" and not self.create_graph and not self._is_polynomial(node, operands[1]):
            base = self.value(node.args[0]) if operands[0] is None else operands[0][0]
            if np.all(base != 0):
                return _push_power
        return lambda tangents, out, primals: push(rule, tangents, out, node.function, primals, node.options)

    def _is_polynomial(self, node: Value, exponents: list[Any] | None) -> bool:
        """Whether the exponent is a small nonnegative integer, for which repeated derivatives end in exact zeros."""
        if exponents is not None:
            return False
        exponent = self.value(node.args[1])
        return bool(np.all((exponent == np.round(exponent)) & (exponent >= 0) & (exponent <= MAX_POLYNOMIAL_POWER)))


def _push_power(tangents: list[Any], out: Any, primals: tuple[Any, ...]) -> Any:
    """Return the tangent of ``x**y`` for nonzero x, in terms of ``x**y``; the rule of `pow` leads to ever lower powers of x."""
    x, y = primals
    x_term = None if tangents[0] is None else y * tangents[0] / x
    y_term = None if tangents[1] is None else tangents[1] * np.log(x)
    return out * (y_term if x_term is None else x_term if y_term is None else x_term + y_term)


def _coefficient_at(series: list[Any] | None, k: int) -> Any:
    """Return the coefficient of order k; None for zero, or without a series."""
    return series[k] if series is not None and k < len(series) else None


class Equation:
    """The differential equation ``out' = rule(x'; out, x)`` of one node, whose right-hand side is recorded as a graph.

    The inputs of that graph are tracers of the node, of its operands, and of the derivatives of these.
    """

    def __init__(self, outer: Expansion, node: Value, operands: list[Any], key: tuple[Any, ...] | None) -> None:
        self.series = outer.series[node]
        if key is not None:
            outer.equations_by_key[key] = self
        self.operands = operands  # kept alive, because the key contains their ids
        self.derivatives: list[tuple[Coefficients, Coefficients]] = []  # of x' and x, for each operand with a series
        input_series: dict[Any, Coefficients] = {}

        def make_tracer(series: Coefficients, first: object) -> Any:
            tracer = make_argument_tracer(first)
            input_series[tracer] = series
            return tracer

        out_tracer = make_tracer(outer.series[node], outer.value(node))
        primals = [
            outer.value(a) if s is None else make_tracer(s, outer.value(a)) for a, s in zip(node.args, operands, strict=True)
        ]
        tangents: list[Any] = [None] * len(primals)
        for i, series in enumerate(operands):
            if series is not None:
                first = _coefficient_at(series, 1)
                first = (
                    np.zeros(primals[i].shape, primals[i].dtype)[()] if first is None else conform(first, primals[i].raw_value)
                )
                derivative: Coefficients = []
                tangents[i] = make_tracer(derivative, first)
                self.derivatives.append((derivative, series))
        self.right_side = outer.tangent_rule(node, operands)(tangents, out_tracer, tuple(primals))
        self.expansion: Expansion | None = None
        self.is_linear = False
        if isinstance(self.right_side, Value):
            nodes = collect(self.right_side, stop=list(input_series))
            require_supported_graph(nodes)
            for derivative, series in self.derivatives:
                derivative.append(_coefficient_at(series, 1))
            points = {out_tracer, *[x for x in primals if isinstance(x, Value) and x in input_series]}
            self.is_linear = points.isdisjoint(nodes)  # it depends on derivatives alone, so orders do not mix
            if not self.is_linear:
                self.expansion = Expansion(nodes, input_series, outer.create_graph, outer.equations_by_key)

    def coefficient(self, k: int) -> Any:
        """Compute the coefficient of order k of the node, after the lower ones."""
        if self.expansion is None:
            return self.right_side if k == 1 else None
        for derivative, series in self.derivatives:
            for j in range(len(derivative), k):
                c = _coefficient_at(series, j + 1)
                derivative.append(None if c is None else (j + 1) * c)
        if self.right_side not in self.expansion.series:
            return self.right_side if k == 1 else None
        self.expansion.extend(k - 1)
        c = _coefficient_at(self.expansion.series[self.right_side], k - 1)
        return None if c is None else c / k


Function = Callable[..., Any]


@short_tracebacks
def taylor(f: Function, x: object, order: int, direction: Any = None) -> list[Any]:
    """Compute the Taylor coefficients of a function along a direction.

    Parameters
    ----------
    f : callable
        A function of one argument that returns an array or nested arrays.
    x : array_like
        The point: an array of floating or complex dtype, a Python number, or nested arrays.
    order : int
        The highest order, at least 0.
    direction : array_like, optional
        The direction, of the shape and nesting of `x`. By default all ones.

    Returns
    -------
    list of array
        The coefficients ``c`` with ``f(x + t * direction) = c[0] + c[1] * t + ... + c[order] * t ** order + ...``. Each has the
        shape, dtype and nesting of the result. The k-th derivative is ``math.factorial(k) * c[k]``.

    Raises
    ------
    TypeError
        If `x` has an integer dtype, or `f` does not return a recorded value.
    ValueError
        If `order` is negative, or the direction differs from `x` in shape or nesting.

    Notes
    -----
    `f` is called once, and the time grows as the square of the order. Products and quotients use the formulas of [1]_; other
    operations are solved as the differential equations of their tangent rules. For operations whose rule introduces ever new
    functions, such as gamma, the time grows as the cube. A function that writes in place, uses operations with several outputs,
    or contains a checkpoint that uses nodes from outside, is evaluated by nested forward mode, in ``2 ** order`` times its time.

    References
    ----------
    .. [1] A. Griewank, A. Walther, "Evaluating Derivatives", 2nd ed., SIAM 2008, ch. 13.

    Examples
    --------
    >>> import numpy as np
    >>> print(np.array(taylor(np.exp, 0.0, 4)))
    [1.         1.         0.5        0.16666667 0.04166667]
    """
    if order < 0:
        raise ValueError(f"taylor: order must be at least 0, not {order}")
    f = require_function("taylor", f)
    leaves, structure = flatten(x)
    if not leaves:
        raise TypeError(f"taylor: the argument, {x}, contains no array. Pass an array, a number, or nested arrays")
    points = [as_argument(leaf, "taylor: the argument") for leaf in leaves]
    directions = _directions(points, structure, direction)

    def call_flat(*leaves: object) -> Any:
        return f(unflatten(structure, leaves))

    if active_levels():
        lifted_points = LiftedFunction(call_flat, points, lifts_all=True)
        lifted_directions = LiftedFunction(call_flat, directions, lifts_all=True)
        with outside_vmap():
            return [
                lifted_points.wrap_results(coefficient)
                for coefficient in _expand(f, lifted_points, lifted_points.arrays, lifted_directions.arrays, order)
            ]
    return _expand(f, call_flat, points, directions, order)


def _expand(
    f: Callable[..., Any], call_flat: Callable[..., Any], points: list[Any], directions: list[Any], order: int
) -> list[Any]:
    """Return the coefficients of `f`, given as a function `call_flat` of the leaves of its argument."""
    if any(isinstance(a, Value) and a.level for a in (*points, *directions)):
        return _nested_forward_mode(call_flat, points, directions, order)
    return run_isolated(_expand_primals, f, call_flat, points, directions, order)


def _expand_primals(
    f: Callable[..., Any], call_flat: Callable[..., Any], points: list[Any], directions: list[Any], order: int
) -> list[Any]:
    """Return the coefficients, for points and directions without tangents."""
    is_recorded = is_recording()
    with Tracing(records=True):
        inputs = [make_argument_tracer(p if is_recorded else to_values(p)) for p in points]
        with intercept(f), collecting_leaks() as leaks:
            result = call_flat(*inputs)
        outs, result_structure = flatten(result)
        outs = [as_constant(out, leaks) for out in outs]
        for out in outs or [result]:
            if not isinstance(out, Value):
                raise lost_graph_error("taylor", out, leaks, f)
        if any(out.level for out in outs):
            return _nested_forward_mode(call_flat, points, directions, order)
        try:
            nodes = _all_nodes(outs, inputs)
            create_graph = is_recorded and (any(isinstance(d, Value) for d in directions) or depends_on_outside(nodes, inputs))
            input_series = {
                i: [i, d] if create_graph else [i.raw_value, to_values(d)] for i, d in zip(inputs, directions, strict=True)
            }
            expansion = Expansion(nodes, input_series, create_graph)
            if create_graph:
                note_input_shapes("a derivative by autodiff.taylor", *outs)
            output_series = [expansion.series_of(out, order) for out in outs]
        except UnsupportedGraphError:
            return _nested_forward_mode(call_flat, points, directions, order)
    all_coefficients = [
        [_copy_for_caller(c, out) for c in coefficients] for out, coefficients in zip(outs, output_series, strict=True)
    ]
    return [unflatten(result_structure, [coefficients[k] for coefficients in all_coefficients]) for k in range(order + 1)]


def _copy_for_caller(coefficient: object, out: NDArray[Any]) -> Any:
    """Copy a coefficient for the caller, so that it shares no memory with the graph or the direction."""
    if isinstance(coefficient, Value):
        return to_concrete(coefficient)
    return np.zeros(out.shape, out.dtype)[()] if coefficient is None else np.array(coefficient)[()]


def _directions(points: list[Any], structure: object, direction: Array | None) -> list[Any]:
    """Return the leaves of the direction; ones by default."""
    if direction is None:
        return [np.ones(p.shape, p.dtype)[()] for p in points]
    leaves, direction_structure = flatten(direction)
    if direction_structure != structure:
        raise ValueError(f"taylor: the direction nests as {direction_structure}, but the argument as {structure}")
    return [as_direction(d, p, "taylor: the direction", "the argument") for d, p in zip(leaves, points, strict=True)]


def _all_nodes(outs: list[Any], inputs: list[Any]) -> list[Any]:
    """Return the graph of several results, youngest first."""
    if not outs:
        return []
    nodes = collect(join_outputs(outs), stop=inputs)
    if type(nodes) is not Tape:
        nodes = nodes[1:]  # without the multi-output operation
    require_supported_graph(nodes)
    return nodes


def _nested_forward_mode(f: Function, points: list[Any], directions: list[Any], order: int) -> list[Any]:
    """Return the coefficients by nested forward mode."""
    coefficients = [f(*[bind(ops.input_of, (p,)) for p in points])]  # the function may write into them
    for k in range(1, order + 1):
        leaves, structure = flatten(_derivative(f, k, directions)(*points))
        coefficients.append(unflatten(structure, [leaf / math.factorial(k) for leaf in leaves]))
    return coefficients


def _derivative(f: Function, k: int, directions: list[Any]) -> Function:
    """Return the k-th derivative of a function along the directions, as a function of the point."""
    if k == 0:
        return f
    inner = _derivative(f, k - 1, directions)
    return lambda *points: jvp(inner, points, directions)[1]
