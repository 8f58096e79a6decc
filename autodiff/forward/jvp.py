"""`jvp`: the derivative of a function along a direction, in one forward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np

from compgraph import ops
from compgraph.bind import bind, to_concrete
from compgraph.context import is_recording, run_isolated, wrapping_buffers
from compgraph.graph import walk
from compgraph.guards import collecting_leaks, note_input_shapes
from compgraph.interception import intercept
from compgraph.scipy import register_imported
from compgraph.storage import memory_of
from compgraph.tracing import Tracing
from compgraph.values import (
    VARYING,
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
    """The value of a function and its derivative along a direction (Jacobian-vector product), in one forward pass.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array, or several, nested in any way.
    primals : tuple or list of array_like
        The arguments, which may nest; Python numbers become floats, integer arrays are refused.
    tangents : tuple or list of array_like
        The direction: for each argument, an array of its shape, nested as it is.
    has_aux : bool
        Whether `f` returns a pair ``(value, aux)``; the result is then ``(value, tangent, aux)``.

    Returns
    -------
    value, tangent : array
        Of the shape of ``f(*primals)``.

    Raises
    ------
    TypeError
        If an argument is an integer array, `f` returns something that is not an array, or `primals` or `tangents` are not in a
        tuple or list.
    ValueError
        If the tangents do not match the arguments in number or shape.

    Examples
    --------
    >>> import numpy as np
    >>> value, tangent = jvp(lambda x: np.sin(x) * x, (2.0,), (1.0,))
    >>> print(round(float(tangent), 6))
    0.077004
    """
    require_function("jvp", f)
    for what, argument in (("primals", primals), ("tangents", tangents)):
        if not isinstance(argument, (tuple, list)):
            raise TypeError(
                f"jvp: the {what} are a tuple with an entry for each argument of the function, not a {type(argument).__name__}; "
                "of one argument write jvp(f, (x,), (t,))"
            )
    if len(primals) != len(tangents):
        raise ValueError(f"jvp: {len(primals)} primals need as many tangents, {len(tangents)} were given")
    (points, structure), (directions, nesting) = flatten(list(primals)), flatten(list(tangents))
    if nesting != structure:
        raise ValueError(f"jvp: the tangents nest as {nesting}, their primals as {structure}")
    if any(map(is_labeled, (*points, *directions))):
        named = [(f"{what} {k}", x) for what, row in (("primal", points), ("tangent", directions)) for k, x in enumerate(row)]
        require_aligned("jvp", named)
    arrays = [as_argument(x, f"jvp: primal {k}") for k, x in enumerate(points)]
    pairs = enumerate(zip(directions, arrays, strict=True))
    directions = [as_direction(t, x, f"jvp: tangent {k}", "its primal") for k, (t, x) in pairs]
    call = lambda *leaves: f(*unflatten(structure, leaves))  # noqa: E731
    outs, results, aux = run_with_tangents(f, call, points, directions, _with_tangent, primals, has_aux=has_aux)
    both = unflatten(results, [value for value, _ in outs]), unflatten(results, [tangent for _, tangent in outs])
    return (*both, aux) if has_aux else both


def run_with_tangents(
    f: Callable[..., Any],
    call: Callable[..., Any],
    points: Sequence[Any],
    directions: Sequence[Any],
    make: Callable[[Any, Any, int], TangentNode],
    arguments: Sequence[Any],
    kept: Sequence[Any] = (),
    has_aux: bool = False,
) -> tuple[list[tuple[Any, Any]], Any, Any]:
    """The leaves of a function's result with their tangents, how the result nests, and auxiliary results.

    Parameters
    ----------
    f : callable
        The function, for messages and interception.
    call : callable
        The function of the leaves of its arguments.
    points, directions : sequence
        The leaves of the arguments, and a tangent of each; or a batch of tangents, if `make` takes it.
    make : callable
        ``make(primal, tangent, level)`` returns the tracer of a leaf.
    arguments, kept : sequence
        The arguments, and those that the function receives unchanged; see `intercept`.
    has_aux : bool
        Whether the function returns a pair of a result and anything else.
    """
    level, start, around = next_level(), next_sequence_number(), active_levels()
    inputs = []
    for point, tangent in zip(points, directions, strict=True):
        inputs.append(_input(as_argument(point), tangent, lambda p, t: make(p, t, level), around))
        if is_python_arithmetic(point):
            mark_python_number(inputs[-1])
    shared = find_shared_positions(points)
    for position, (point, tracer) in enumerate(zip(points, inputs, strict=True)):
        if position in shared or is_read_only_tracer(point):
            make_read_only(tracer)
    wrapped = wrapping_buffers(lambda buffer: _still(buffer, lambda b: make(b, None, level)))

    def run() -> Any:
        register_imported()
        with Tracing(records=True), wrapped, intercept(f, arguments, unchanged=kept) as opened, collecting_leaks() as escapes:
            result = call_with_read_only("jvp", shared, points, inputs, opened.captured, lambda: call(*inputs))
            result, aux = split_aux("jvp", result) if has_aux else (result, None)
            outs, results = flatten(result)
            return result, aux, [*map(as_result, outs)], results, escapes

    result, aux, outs, results, escapes = run_isolated(run)
    alone = lambda *leaves: _value_alone(call(*leaves), has_aux)  # noqa: E731
    if any(map(is_labeled, points)):
        require_label_independence("jvp", points, alone, outs)
    if not around:
        require_class_independence("jvp", f, points, alone, outs)
    if not outs:
        raise lost_graph_error("jvp", result, escapes, f)
    parts = [_parted(out, level, escapes, f) for out in outs]
    if not any(isinstance(a, Value) for a in (*points, *directions)):
        parts = [(_settled(value, start), _settled(tangent, start)) for value, tangent in parts]
    note_input_shapes("a derivative by autodiff.jvp", *[tangent for _, tangent in parts], sequence_number=start)
    parts = [(_handed(value), _handed(connected(tangent, value))) for value, tangent in parts]
    if not all(e.is_text for e in escapes) and not any(
        isinstance(base := base_of(out), TangentNode) and base.level == level for out in outs
    ):
        warn_zero_derivative("jvp", "its arguments", escapes)
    return parts, results, _without(level, aux) if has_aux else None


def _input(primal: Any, tangent: Any, make: Callable[[Any, Any], TangentNode], around: Any) -> Any:
    """Return the tracer of an argument: its value and tangent, below the enclosing vmaps, whose axes come first."""
    is_scalar = primal.ndim == 0
    if around:
        primal, tangent = base_of(lift_to_active_levels(primal)), base_of(lift_to_active_levels(tangent))
    is_shared = bool(around) and is_broadcast(primal, len(around))
    own = primal if is_shared else bind(ops.input_of, (primal,))  # the function may write in place
    tracer = make(own, tangent)
    return wrap_batch(tracer, around, is_array=not is_scalar, borrows_values=is_shared) if around else tracer


def _with_tangent(primal: Any, tangent: Any, level: int) -> TangentNode:
    """A node of a primal and of its tangent, copied if it is plain, because the function may return it; None is zero."""
    moved = None if tangent is None else conform(tangent, primal)
    copied = moved if moved is None or isinstance(moved, Value) else np.array(moved)[()]
    return TangentNode.create_using(primal, copied, level)


def _value_alone(result: Any, has_aux: bool) -> Any:
    return result[0] if has_aux else result


def _without(level: int, tree: Any) -> Any:
    """Nested values without their tangents at a level."""
    leaves, structure = flatten(tree)
    values = [_still_value(x, level) for x in leaves]
    return unflatten(structure, [_handed(value) for value in values])


def _still(buffer: Any, make: Callable[[Any], TangentNode]) -> Any:
    """An array that is made within the function, with a tangent of zero, below its axes of examples."""
    if is_batch(buffer):
        return wrap_batch(_still(buffer.values, make), [buffer.level], is_array=True)
    return make(buffer)


def _still_value(x: Any, level: int) -> Any:
    """A value without its tangent at a level."""
    if is_batch(x):
        return wrap_batch(_still_value(x.values, level), [x.level], is_array=not x.is_scalar)
    return x.primal if isinstance(x, TangentNode) and x.level == level else x


def _parted(out: Any, level: int, escapes: Any, f: Any) -> tuple[Any, Any]:
    """The value and the tangent of a result."""
    if is_batch(out):
        parts = _parted(out.values, level, escapes, f)
        value, tangent = [wrap_batch(part, [out.level], is_array=not out.is_scalar) for part in parts]
        return value, tangent
    if isinstance(out, TangentNode) and out.level == level:
        return out.primal, out.tangent
    out = as_constant(out, escapes)
    if not isinstance(out, Value):
        raise lost_graph_error("jvp", out, escapes, f)
    if out.level > level:
        raise TypeError(
            "jvp: the function returned a value that carries a Jacobian, for inputs that autodiff.forward.variables made "
            "inside it; return its .jacobian, or its .primal where the value is meant"
        )
    return out, np.zeros(out.shape, out.dtype)[()]


def _handed(value: Any) -> Any:
    """A value or tangent for the caller."""
    if not is_recording():
        return _detached(value)
    return to_concrete(value) if isinstance(value, Value) else unwrap_buffer(value)


def _detached(value: Any) -> Any:
    """The numbers of a value, without graph and tangents."""
    if is_batch(value):
        return wrap_batch(_detached(value.values), [value.level], is_array=not value.is_scalar)
    return value.raw_value if isinstance(value, Value) else unwrap_buffer(value)


def _settled(value: Any, since: int) -> Any:
    """A value for the caller: as plain numbers, unless it was computed from an older node or from one fed later.

    It may be a node though none was given: an inner derivative makes nodes of the values it uses, in case they are written into.
    """
    if not isinstance(value, Value) or value.level:
        return value
    for node in walk([value], _operands_and_writes):
        if node.sequence_number <= since or type(node) in VARYING:
            return value
    return value.raw_value


def _operands_and_writes(node: Any) -> list[Any]:
    """The operands of a node, and the writes into its memory."""
    operands = [node.args[position] for position in node.parent_argnums]
    memory = memory_of(node) if isinstance(node, Value) else None
    return operands + memory.log if memory else operands


def connected(tangent: Any, primal: Any) -> Any:
    """A constant tangent, as a node of the primal's graph if there is one."""
    if isinstance(tangent, Value) or not isinstance(primal, Value):
        return tangent
    tangent = np.ones_like(primal) * tangent
    return tangent if isinstance(tangent, Value) else constant_operand(tangent)
