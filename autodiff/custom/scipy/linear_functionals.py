"""Linear functionals of the user's functions: one node of the graph, however SciPy computes the value.

An integral is linear in the integrand. So its derivative is the integral of the derivative, computed by the same method with the
same options (the Leibniz rule), and a tangent of the function gives the tangent of the integral. The captured nodes of the
function are the operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compgraph.bind import bind
from compgraph.context import is_recording, recording_on
from compgraph.graph import stack_nested, walk
from compgraph.interception import intercept
from compgraph.storage import root_of
from compgraph.tracing import Tracing
from compgraph.values import ACTIVE, MultiOutput, Value, describe, next_sequence_number, require_unbatched

from ...reverse import collect, sweep
from ..call import Opaque, has_node, require_same

Function = Callable[..., Any]


class Watch:
    """A function of the user, for SciPy: it gives plain numbers, and takes note of the nodes that came.

    Attributes
    ----------
    closed : dict
        The nodes from outside that the results were computed from, as keys, in the order in which they were met.
    top : TangentNode or None
        A result with a tangent, of the highest level that was met.
    seen : bool
        Whether a result was a node.
    known : dict
        What the function gave where it was a node, by place, of functions of one number.
    """

    def __init__(self, f: Function) -> None:
        self.f, self.start = f, next_sequence_number()
        self.closed: dict[Any, None] = {}
        self.top: Any = None
        self.seen = False
        self.known: dict[Any, Any] = {}

    def __call__(self, *x: Any) -> Any:
        """Return the function's result as plain numbers."""
        result = self.f(*x)
        if type(result) is float or type(result) is np.float64:
            return result
        result = stack_nested(result)
        if not isinstance(result, Value):
            return result
        self.seen = True
        require_unbatched("a function that SciPy calls", result)
        if result.level:
            if self.top is None or result.level > self.top.level:
                self.top = result
        elif is_recording():
            self.closed.update(dict.fromkeys(closed_nodes(result, self.start)))
        if len(x) == 1 and isinstance(x[0], float):
            self.known[x] = result.raw_value
        return result.raw_value


def closed_nodes(result: Any, start: int) -> list[Any]:
    """The active nodes that are not younger than a sequence number, from which a result was computed."""

    def is_outside(node: Any) -> bool:
        return isinstance(node, (Value, MultiOutput)) and node.sequence_number <= start

    def inside(node: Any) -> list[Any]:
        if is_outside(node):
            return []
        operands = [node.args[position] for position in node.parent_argnums]
        memory = root_of(node).memory if isinstance(node, Value) else None
        return operands + memory.log if memory else operands

    return [n for n in walk([result], inside) if type(n) in ACTIVE and is_outside(n)]


def functional(
    apply: Function, f: Function, known: tuple[Watch, Any] | None = None, value: Any = None, noise: float = 0.0
) -> Any:
    """Compute ``apply(f)``, differentiable in the captured nodes of `f`.

    Parameters
    ----------
    apply : callable
        ``apply(f, noise)`` takes a function that returns plain arrays, of any shape, and returns an array of that shape; it is
        linear. The results of the function are accurate to `noise`, relative to the largest.
    f : callable
        The function of the user, which may return nodes.
    known : tuple of Watch and array, optional
        The function with its record, and the result of `apply`.
    value : array, optional
        The value, if it is known without the nodes behind it.
    noise : float
        The accuracy of the function.
    """
    if known is None:
        watch = Watch(f)
        again = apply(watch, noise)
        value = again if value is None else value
    else:
        watch, value = known
    if watch.top is not None:
        level = watch.top.level
        primal = functional(apply, lambda *x: _split(f(*x), level, watch.top)[0], value=value, noise=noise)
        tangent = functional(apply, lambda *x: _split(f(*x), level, watch.top)[1], noise=noise)
        return watch.top.like(_array(primal), _array(tangent))
    if not watch.closed or not is_recording():
        return value
    return bind(_functional, tuple(watch.closed), {"call": Functional(apply, f, watch, _array(value))})


def _array(value: Any) -> Any:
    return value if isinstance(value, Value) else np.asarray(value)[()]


def _split(result: Any, level: int, top: Any) -> tuple[Any, Any]:
    """A result without its tangent of a level, and that tangent."""
    result = stack_nested(result)
    if isinstance(result, Value) and result.level == level:
        return result.primal, result.tangent  # type: ignore[attr-defined]
    return result, np.zeros_like(top.tangent)


class Functional:
    """One value of a linear functional."""

    def __init__(self, apply: Function, f: Function, watch: Watch, value: Any) -> None:
        self.apply, self.f, self.closed, self.known, self.value = apply, f, list(watch.closed), watch.known, value

    def compute(self, *operands: Any) -> Any:
        """The value that was found."""
        self._require_same(operands)
        return self.value

    def _require_same(self, operands: tuple[Any, ...]) -> None:
        """Raise if the operands have other numbers than the nodes that the function holds."""
        for node, operand in zip(self.closed, operands, strict=True):
            if (
                operand is not node
                and operand is not node.raw_value
                and not np.array_equal(operand, node.raw_value, equal_nan=True)
            ):
                raise ValueError(
                    f"the {describe(node)}, which the function of an integral brings, has other numbers now, and the function "
                    "cannot be given them; compute the integral again"
                )

    def pull(self, adjoint: Any, out: Any, *operands: Any) -> list[Any]:
        """The adjoints of what the function brings: the functional of the function's own."""
        self._require_same(operands)
        of_number = not np.ndim(out)
        seed = None if of_number else adjoint
        recorded = has_node(*operands) or has_node(seed)
        noise = max(float(np.finfo(node.dtype).eps) for node in self.closed)  # slopes have the dtypes of their variables
        with Tracing(), intercept(self.f):  # as in the first call of the function
            flat_gradient = functional(self.apply, lambda *x: self._slope(recorded, seed, *x), noise=noise)
        parts, start = [], 0
        for node in self.closed:
            part = np.reshape(flat_gradient[start : start + node.size], node.shape)
            parts.append(adjoint * part if of_number else part)
            start += node.size
        return parts

    def _slope(self, recorded: bool, seed: Any, *x: Any) -> Any:
        """The gradient of the function at one place by all it brings, as one vector."""
        wanted = self.closed
        with recording_on():
            result = stack_nested(self.f(*x))
            if not isinstance(result, Value):
                return np.zeros(sum(n.size for n in wanted))
            if x in self.known:
                require_same("the function of an integral", self.known[x], result)
            seed = np.ones(result.shape, result.dtype)[()] if seed is None else seed
            nodes = collect(result, stop=wanted)
            cotangents = sweep(nodes, result, seed, set(wanted), recorded, frozenset(wanted))
            flat = [np.ravel(cotangents[n]) if cotangents.get(n) is not None else np.zeros(n.size) for n in wanted]
            return np.concatenate(flat)


_functional = Opaque("integral")
