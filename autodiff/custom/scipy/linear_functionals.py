"""Linear functionals of the user's functions, such as integrals: one node of the graph, with SciPy's value.

An integral is linear in the integrand. So its derivative is the integral of the derivative, computed by the same method with the
same options (the Leibniz rule), and a tangent of the function gives the tangent of the integral. The captured nodes of the
function are the operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compgraph.array_types import Array, Operand
from compgraph.bind import bind
from compgraph.context import is_recording, recording_on
from compgraph.graph import GraphNode, stack_nested, walk
from compgraph.interception import intercept
from compgraph.storage import root_of
from compgraph.tracing import Tracing
from compgraph.values import ACTIVE, MultiOutput, Value, describe, next_sequence_number, require_unbatched

from ...reverse import collect, sweep
from ..call import CallFunction, has_node, require_same

Function = Callable[..., Any]


class NodeRecorder:
    """A user's function as passed to SciPy: it returns plain numbers, and records the nodes among its results.

    Attributes
    ----------
    captured : dict
        The captured nodes from which results were computed, as keys, in the order of their use.
    top_result : TangentNode or None
        A result with a tangent of the highest level.
    returned_node : bool
        Whether a result was a node.
    recorded_values : dict
        For functions of one number: the values of results that are nodes, by argument.
    """

    def __init__(self, f: Function) -> None:
        self.f, self.start = f, next_sequence_number()
        self.captured: dict[Any, None] = {}
        self.top_result: Any = None
        self.returned_node = False
        self.recorded_values: dict[Any, Any] = {}

    def __call__(self, *x: object) -> Any:
        """Return the function's result as plain numbers."""
        result = self.f(*x)
        if type(result) is float or type(result) is np.float64:
            return result
        result = stack_nested(result)
        if not isinstance(result, Value):
            return result
        self.returned_node = True
        require_unbatched("a function that SciPy calls", result)
        if result.level:
            if self.top_result is None or result.level > self.top_result.level:
                self.top_result = result
        elif is_recording():
            self.captured.update(dict.fromkeys(find_captured_nodes(result, self.start)))
        if len(x) == 1 and isinstance(x[0], float):
            self.recorded_values[x] = result.raw_value
        return result.raw_value


def find_captured_nodes(result: object, start: int) -> list[Any]:
    """Return the active nodes from which a result was computed, created at or before a sequence number."""

    def is_outside(node: object) -> bool:
        return isinstance(node, (Value, MultiOutput)) and node.sequence_number <= start

    def operands_inside(node: GraphNode) -> list[Any]:
        if is_outside(node):
            return []
        operands = [node.args[position] for position in node.parent_argnums]
        memory = root_of(node).memory if isinstance(node, Value) else None
        return operands + memory.log if memory else operands

    return [n for n in walk([result], operands_inside) if type(n) in ACTIVE and is_outside(n)]


def functional(
    apply: Function, f: Function, recorded: tuple[NodeRecorder, Any] | None = None, value: Any = None, noise: float = 0.0
) -> Any:
    """Compute ``apply(f)``, differentiable in the captured nodes of `f`.

    Parameters
    ----------
    apply : callable
        ``apply(f, noise)`` takes a function that returns plain arrays, of any shape, and returns an array of that shape; it is
        linear. The results of the function are accurate to `noise`, relative to the largest.
    f : callable
        The function of the user, which may return nodes.
    recorded : tuple of NodeRecorder and array, optional
        The recorded function, and the result of `apply`.
    value : array, optional
        The value, if it was computed already, without recording.
    noise : float
        The accuracy of the function.
    """
    if recorded is None:
        recorder = NodeRecorder(f)
        integral = apply(recorder, noise)
        value = integral if value is None else value
    else:
        recorder, value = recorded
    if recorder.top_result is not None:
        level = recorder.top_result.level
        primal = functional(apply, lambda *x: _split_tangent(f(*x), level, recorder.top_result)[0], value=value, noise=noise)
        tangent = functional(apply, lambda *x: _split_tangent(f(*x), level, recorder.top_result)[1], noise=noise)
        return recorder.top_result.like(_as_array(primal), _as_array(tangent))
    if not recorder.captured or not is_recording():
        return value
    return bind(_functional, tuple(recorder.captured), {"call": FunctionalCall(apply, f, recorder, _as_array(value))})


def _as_array(value: Operand) -> Any:
    return value if isinstance(value, Value) else np.asarray(value)[()]


def _split_tangent(result: Any, level: int, top: Any) -> tuple[Any, Any]:
    """Split a result into its primal and tangent of a level."""
    result = stack_nested(result)
    if isinstance(result, Value) and result.level == level:
        return result.primal, result.tangent  # type: ignore[attr-defined]
    return result, np.zeros_like(top.tangent)


class FunctionalCall:
    """One evaluation of a linear functional, with the data of its derivative."""

    def __init__(self, apply: Function, f: Function, recorder: NodeRecorder, value: Array) -> None:
        self.apply, self.f, self.value = apply, f, value
        self.captured, self.recorded_values = list(recorder.captured), recorder.recorded_values

    def compute(self, *operands: object) -> Any:
        """Return the stored value."""
        self._require_same(operands)
        return self.value

    def _require_same(self, operands: tuple[Any, ...]) -> None:
        """Raise if the operands differ from the captured nodes."""
        for node, operand in zip(self.captured, operands, strict=True):
            if (
                operand is not node
                and operand is not node.raw_value
                and not np.array_equal(operand, node.raw_value, equal_nan=True)
            ):
                raise ValueError(
                    f"the {describe(node)}, which an integrand captures, has changed since the integral was computed. "
                    "Compute the integral again"
                )

    def pull(self, cotangent: Any, out: Any, *operands: Any) -> list[Any]:
        """Return the cotangents of the captured nodes: the functional of the function's gradient."""
        self._require_same(operands)
        is_scalar = not np.ndim(out)
        seed = None if is_scalar else cotangent
        is_recorded = has_node(*operands) or has_node(seed)
        noise = max(float(np.finfo(node.dtype).eps) for node in self.captured)  # gradients have the dtypes of their variables
        with Tracing(), intercept(self.f):  # as in the first call of the function
            flat_gradient = functional(self.apply, lambda *x: self._gradient_at(is_recorded, seed, *x), noise=noise)
        parts, start = [], 0
        for node in self.captured:
            part = np.reshape(flat_gradient[start : start + node.size], node.shape)
            parts.append(cotangent * part if is_scalar else part)
            start += node.size
        return parts

    def _gradient_at(self, is_recorded: bool, seed: Array | None, *x: object) -> Any:
        """Return the gradient at one point with respect to all captured nodes, as one vector."""
        targets = self.captured
        with recording_on():
            result = stack_nested(self.f(*x))
            if not isinstance(result, Value):
                return np.zeros(sum(n.size for n in targets))
            if x in self.recorded_values:
                require_same("the function of an integral", self.recorded_values[x], result)
            seed = np.ones(result.shape, result.dtype)[()] if seed is None else seed
            nodes = collect(result, stop=targets)
            cotangents = sweep(nodes, result, seed, set(targets), is_recorded, frozenset(targets))
            flat = [np.ravel(cotangents[n]) if cotangents.get(n) is not None else np.zeros(n.size) for n in targets]
            return np.concatenate(flat)


_functional = CallFunction("integral")
