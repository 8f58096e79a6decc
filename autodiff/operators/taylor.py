"""Taylor series of functions: series propagate through the recorded graph of one call (see `series`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.array_types import Array
from compgraph.bind import bind, to_concrete
from compgraph.context import is_recording, run_isolated
from compgraph.graph import to_values
from compgraph.guards import collecting_leaks, note_input_shapes
from compgraph.interception import intercept
from compgraph.tracing import Tracing
from compgraph.values import Value

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
from ..batching import LiftedFunction, active_levels, outside_vmap
from ..forward import jvp
from ..reverse import Tape, collect, depends_on_outside
from .series import Expansion, UnsupportedGraphError, require_supported_graph
from .trace import join_outputs, make_argument_tracer

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
        lifted_points = LiftedFunction(call_flat, points, lifts=True)
        lifted_directions = LiftedFunction(call_flat, directions, lifts=True)
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


def _copy_for_caller(coefficient: Any, out: Any) -> Any:
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
