"""`jvp`: the derivative of a function along a direction, in one forward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.array_types import Array
from compgraph.bind import bind, to_concrete
from compgraph.context import is_recording, run_isolated, wrapping_buffers
from compgraph.graph import walk
from compgraph.guards import collecting_leaks, note_input_shapes
from compgraph.interception import intercept
from compgraph.scipy import register_imported
from compgraph.storage import memory_of
from compgraph.tracing import Tracing, retracing
from compgraph.values import (
    VARYING,
    ClassViews,
    Value,
    constant_operand,
    is_python_arithmetic,
    mark_python_number,
    next_sequence_number,
    unwrap_buffer,
)

from ..arguments import (
    as_argument,
    as_constant,
    as_direction,
    as_result,
    call_with_read_only,
    find_shared_positions,
    flatten,
    is_labeled,
    is_read_only_tracer,
    lost_graph_error,
    make_read_only,
    require_aligned,
    require_class_independence,
    require_function,
    require_label_independence,
    short_tracebacks,
    split_aux,
    unflatten,
    warn_zero_derivative,
)
from ..batching import active_levels, base_of, is_batch, is_broadcast, lift_to_active_levels, wrap_batch
from ..rules import conform
from .tangent_node import TangentNode, next_level

R = TypeVar("R")


@overload
def jvp(f: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[False] = False) -> tuple[R, R]: ...
@overload
def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool) -> Any: ...
@short_tracebacks
def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Compute the value of a function and its derivative along a direction (Jacobian-vector product), in one forward pass.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array, or several, nested in any way.
    primals : tuple or list of array_like
        The arguments, which may nest. Python numbers become floats; integer arrays raise.
    tangents : tuple or list of array_like
        The direction: for each argument, an array of its shape and nesting.
    has_aux : bool
        Whether `f` returns a pair ``(value, aux)``; the result is then ``(value, tangent, aux)``.

    Returns
    -------
    value, tangent : array
        The value and its tangent, of the shape of ``f(*primals)``.

    Raises
    ------
    TypeError
        If an argument is an integer array, `f` does not return an array, or `primals` or `tangents` are not in a tuple or list.
    ValueError
        If the tangents do not match the arguments in number or shape.

    Examples
    --------
    >>> import numpy as np
    >>> value, tangent = jvp(lambda x: np.sin(x) * x, (2.0,), (1.0,))
    >>> print(round(float(tangent), 6))
    0.077004
    """
    f = require_function("jvp", f)
    for name, argument in (("primals", primals), ("tangents", tangents)):
        if not isinstance(argument, (tuple, list)):
            raise TypeError(
                f"jvp: the {name} are a tuple with one entry per argument of the function, not a {type(argument).__name__}. For "
                "one argument write jvp(f, (x,), (t,))"
            )
    if len(primals) != len(tangents):
        raise ValueError(
            f"jvp: the numbers of primals ({len(primals)}) and tangents ({len(tangents)}) differ. Pass one tangent per primal"
        )
    (points, structure), (directions, tangent_structure) = flatten(list(primals)), flatten(list(tangents))
    if tangent_structure != structure:
        raise ValueError(f"jvp: the tangents nest as {tangent_structure}, but the primals as {structure}. Nest them alike")
    if any(map(is_labeled, (*points, *directions))):
        labels = (("primal", points), ("tangent", directions))
        require_aligned("jvp", [(f"{label} {k}", x) for label, leaves in labels for k, x in enumerate(leaves)])
    arrays = [as_argument(x, f"jvp: primal {k}") for k, x in enumerate(points)]
    pairs = enumerate(zip(directions, arrays, strict=True))
    directions = [as_direction(t, x, f"jvp: tangent {k}", "its primal") for k, (t, x) in pairs]
    call = lambda *leaves: f(*unflatten(structure, leaves))  # noqa: E731
    outs, nesting, aux = run_with_tangents(f, call, points, directions, _make_tangent_node, primals, has_aux=has_aux)
    value_and_tangent = unflatten(nesting, [value for value, _ in outs]), unflatten(nesting, [tangent for _, tangent in outs])
    return (*value_and_tangent, aux) if has_aux else value_and_tangent


def run_with_tangents(
    f: Callable[..., Any],
    call: Callable[..., Any],
    points: Sequence[Any],
    directions: Sequence[Any],
    make: Callable[[Any, Any, int], TangentNode],
    arguments: Sequence[Any],
    unchanged: Sequence[Any] = (),
    has_aux: bool = False,
) -> tuple[list[tuple[Any, Any]], Any, Any]:
    """Return the leaves of a function's result with their tangents, the nesting of the result, and auxiliary results.

    Parameters
    ----------
    f : callable
        The function, for messages and interception.
    call : callable
        The function of the leaves of its arguments.
    points, directions : sequence
        The leaves of the arguments, and a tangent for each; or a batch of tangents, if `make` accepts it.
    make : callable
        ``make(primal, tangent, level)`` returns the tracer of a leaf.
    arguments, unchanged : sequence
        The arguments, and those that the function receives unchanged; see `intercept`.
    has_aux : bool
        Whether the function returns a pair of a result and anything else.
    """
    level, start, outer_levels = next_level(), next_sequence_number(), active_levels()
    tracers = []
    for point, tangent in zip(points, directions, strict=True):
        tracers.append(_make_tracer(as_argument(point), tangent, lambda p, t: make(p, t, level), outer_levels))
        if is_python_arithmetic(point):
            mark_python_number(tracers[-1])
    shared = find_shared_positions(points)
    for position, (point, tracer) in enumerate(zip(points, tracers, strict=True)):
        if position in shared or is_read_only_tracer(point):
            make_read_only(tracer)
    wrapped = wrapping_buffers(lambda buffer: _wrap_buffer(buffer, lambda b: make(b, None, level)))

    def run() -> Any:
        register_imported()
        with (
            Tracing(records=True),
            wrapped,
            intercept(f, arguments, unchanged=unchanged) as interception,
            collecting_leaks() as leaks,
        ):
            result = call_with_read_only("jvp", shared, points, tracers, interception.captured, lambda: call(*tracers))
            result, aux = split_aux("jvp", result) if has_aux else (result, None)
            outs, nesting = flatten(result)
            return result, aux, [*map(as_result, outs)], nesting, leaks

    views_before = ClassViews.count
    result, aux, outs, nesting, leaks = retracing(lambda: run_isolated(run))
    value_function = lambda *leaves: call(*leaves)[0] if has_aux else call(*leaves)  # noqa: E731
    if any(map(is_labeled, points)):
        require_label_independence("jvp", points, value_function, outs)
    if not outer_levels:
        require_class_independence("jvp", f, points, value_function, outs, ClassViews.count != views_before)
    if not outs:
        raise lost_graph_error("jvp", result, leaks, f)
    parts = [_split_result(out, level, leaks, f) for out in outs]
    if not any(isinstance(a, Value) for a in (*points, *directions)):
        parts = [(_plain_if_independent(value, start), _plain_if_independent(tangent, start)) for value, tangent in parts]
    note_input_shapes("a derivative by autodiff.jvp", *[tangent for _, tangent in parts], sequence_number=start)
    parts = [(_convert_for_caller(value), _convert_for_caller(connect_to_graph(tangent, value))) for value, tangent in parts]
    has_tangent = any(isinstance(base := base_of(out), TangentNode) and base.level == level for out in outs)
    if not has_tangent and not all(leak.is_text for leak in leaks):
        warn_zero_derivative("jvp", "its arguments", leaks)
    return parts, nesting, _drop_tangents(level, aux) if has_aux else None


def _make_tracer(
    primal: NDArray[Any], tangent: NDArray[Any], make: Callable[[Any, Any], TangentNode], outer_levels: list[Any]
) -> Any:
    """Return the tracer of an argument: its value and tangent, whose first axes are those of the enclosing vmaps."""
    is_scalar = primal.ndim == 0
    if outer_levels:
        primal, tangent = base_of(lift_to_active_levels(primal)), base_of(lift_to_active_levels(tangent))
    is_shared = bool(outer_levels) and is_broadcast(primal, len(outer_levels))
    primal_copy = primal if is_shared else bind(ops.input_of, (primal,))  # the function may write in place
    tracer = make(primal_copy, tangent)
    return wrap_batch(tracer, outer_levels, is_array=not is_scalar, borrows_values=is_shared) if outer_levels else tracer


def _make_tangent_node(primal: NDArray[Any], tangent: NDArray[Any], level: int) -> TangentNode:
    """Make a node of a primal and a tangent (None for zero). A plain tangent is copied, because the function may return it."""
    if tangent is not None:
        tangent = conform(tangent, primal)
        tangent = tangent if isinstance(tangent, Value) else np.array(tangent)[()]
    return TangentNode.create_using(primal, tangent, level)


def _drop_tangents(level: int, tree: NDArray[Any] | dict[str, Any]) -> Any:
    """Remove the tangents at a level from nested values."""
    leaves, structure = flatten(tree)
    values = [_drop_tangent(x, level) for x in leaves]
    return unflatten(structure, [_convert_for_caller(value) for value in values])


def _wrap_buffer(buffer: NDArray[Any], make: Callable[[Any], TangentNode]) -> Any:
    """Wrap an array allocated within the function in a node with a zero tangent, inside its batch axes."""
    if is_batch(buffer):
        return wrap_batch(_wrap_buffer(buffer.values, make), [buffer.level], is_array=True)
    return make(buffer)


def _drop_tangent(x: object, level: int) -> Any:
    """Remove the tangent at a level from a value."""
    if is_batch(x):
        return wrap_batch(_drop_tangent(x.values, level), [x.level], is_array=not x.is_scalar)
    return x.primal if isinstance(x, TangentNode) and x.level == level else x


def _split_result(out: NDArray[Any], level: int, leaks: list[Any], f: Callable[..., Any]) -> tuple[Any, Any]:
    """Split a result into value and tangent."""
    if is_batch(out):
        parts = _split_result(out.values, level, leaks, f)
        value, tangent = [wrap_batch(part, [out.level], is_array=not out.is_scalar) for part in parts]
        return value, tangent
    if isinstance(out, TangentNode) and out.level == level:
        return out.primal, out.tangent
    out = as_constant(out, leaks)
    if not isinstance(out, Value):
        raise lost_graph_error("jvp", out, leaks, f)
    if out.level > level:
        raise TypeError(
            "jvp: the function returned a value with a Jacobian, from inputs that it made by autodiff.forward.variables. Return "
            "its .jacobian, or its .primal for the value"
        )
    return out, np.zeros(out.shape, out.dtype)[()]


def _convert_for_caller(value: Any) -> Any:
    """Convert a value or tangent for the caller."""
    if not is_recording():
        return _plain_value(value)
    return to_concrete(value) if isinstance(value, Value) else unwrap_buffer(value)


def _plain_value(value: NDArray[Any]) -> Any:
    """Return the numbers of a value, without graph and tangents."""
    if is_batch(value):
        return wrap_batch(_plain_value(value.values), [value.level], is_array=not value.is_scalar)
    return value.raw_value if isinstance(value, Value) else unwrap_buffer(value)


def _plain_if_independent(value: Array, since: int) -> Any:
    """Convert a node to plain numbers, unless it depends on a node older than `since`, or on a variable or placeholder.

    An inner derivative converts the values it uses to nodes, because they may be written, so a result can be a node whose graph
    has no further use.
    """
    if not isinstance(value, Value) or value.level:
        return value
    for node in walk([value], _operands_and_writes):
        if node.sequence_number <= since or type(node) in VARYING:
            return value
    return value.raw_value


def _operands_and_writes(node: Any) -> list[Any]:
    """Return the operands of a node, and the writes into its memory."""
    operands = [node.args[position] for position in node.parent_argnums]
    memory = memory_of(node) if isinstance(node, Value) else None
    return operands + memory.log if memory else operands


def connect_to_graph(tangent: Array, primal: Array) -> Any:
    """Convert a constant tangent to a node of the primal's graph, if the primal is a node."""
    if isinstance(tangent, Value) or not isinstance(primal, Value):
        return tangent
    tangent = np.ones_like(primal) * tangent
    return tangent if isinstance(tangent, Value) else constant_operand(tangent)
