"""The mean of a loss as one node of the graph, with derivatives of every order.

Machines compute directional derivatives (`actor.differentiate_along`), nested once per order. A gradient that is differentiated
itself is another node. Its VJP is a Hessian-vector product: the gradient of a directional derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph.array_types import Array
from compgraph.bind import bind

from ...custom import CallFunction, has_node, instantiate_zeros

# ``evaluate(order, leaves, with_gradient)``: the mean of the loss after `order` directional derivatives, and its gradient.
Evaluate = Callable[[int, Sequence[Any], bool], tuple[Any, list[Any]]]


class Mean:
    """The mean of a loss over a batch, at leaves that may be nodes.

    Parameters
    ----------
    evaluate : callable
        Evaluates the mean on the machines; see `Evaluate`.
    order : int
        The number of directional derivatives. The directions follow the leaves.
    """

    def __init__(self, evaluate: Evaluate, order: int = 0) -> None:
        self.evaluate, self.order = evaluate, order
        self.operands: tuple[Any, ...] = ()
        self.gradients: list[Any] = []

    def compute(self, *leaves: object) -> Any:
        """Return the mean; the gradient is computed with it and cached."""
        value, gradients = self.evaluate(self.order, leaves, True)
        self.operands, self.gradients = leaves, gradients
        return value

    def gradient(self, *operands: Any, record: bool) -> Sequence[Any]:
        """Return the gradient, as nodes if `record`."""
        if record:
            return record_gradient(self.evaluate, self.order, operands)
        if len(operands) != len(self.operands) or any(a is not b for a, b in zip(operands, self.operands, strict=True)):
            self.compute(*operands)  # an operand was updated, or the graph runs again
        return self.gradients

    def pull(self, cotangent: Any, out: Any, *operands: Any) -> list[Any]:
        """Return the cotangents of the leaves."""
        return [cotangent * g for g in self.gradient(*operands, record=has_node(cotangent, *operands))]

    def push(self, position: int, tangent: Array, out: Array, *operands: Any) -> Any:
        """Return the tangent of the mean from that of one leaf."""
        return np.sum(self.gradient(*operands, record=has_node(tangent, *operands))[position] * tangent)


class MeanGradient:
    """The gradient of the mean; `precomputed` if it was computed with the mean."""

    def __init__(self, evaluate: Evaluate, order: int, precomputed: list[Any] | None = None) -> None:
        self.evaluate, self.order, self.precomputed = evaluate, order, precomputed

    def compute(self, *leaves: object) -> Any:
        """Return the gradient, one array for each leaf."""
        precomputed, self.precomputed = self.precomputed, None  # leaves have other values when the graph runs again
        gradients = [np.array(g)[()] for g in precomputed or self.evaluate(self.order, leaves, True)[1]]
        return tuple(gradients) if len(gradients) > 1 else gradients[0]

    def pull(self, cotangent: Any, out: Any, *operands: Any) -> list[Any]:
        """Return the cotangents of the leaves: the Hessian times the cotangents of the gradient."""
        directions = instantiate_zeros(cotangent, out) if isinstance(out, tuple) else (cotangent,)
        inputs = (*operands, *directions)
        if has_node(*inputs):
            return list(record_gradient(self.evaluate, self.order + 1, inputs)[: len(operands)])
        return self.evaluate(self.order + 1, inputs, True)[1][: len(operands)]

    def push(self, position: int, tangent: Array, out: Array, *operands: Any) -> Any:
        """Return the tangents of the gradient from that of one leaf: the same product, because the Hessian is symmetric."""
        if not isinstance(out, tuple):
            return self.pull(tangent, out, *operands)[0]
        directions = [np.zeros(o.shape, o.dtype)[()] for o in out]
        directions[position] = tangent
        return tuple(self.pull(tuple(directions), out, *operands))


def record_mean(evaluate: Evaluate, leaves: Sequence[Any]) -> Any:
    """Return the mean as a node."""
    return bind(_mean, tuple(leaves), {"call": Mean(evaluate)})


def record_mean_and_gradient(evaluate: Evaluate, leaves: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the mean and its gradient as nodes, by one evaluation."""
    mean = Mean(evaluate)
    return bind(_mean, tuple(leaves), {"call": mean}), record_gradient(evaluate, 0, leaves, mean.gradients)


def record_gradient(
    evaluate: Evaluate, order: int, leaves: Sequence[Any], precomputed: list[Any] | None = None
) -> tuple[Any, ...]:
    """Return the gradient as nodes."""
    output = bind(_mean_gradient, tuple(leaves), {"call": MeanGradient(evaluate, order, precomputed)})
    return output if isinstance(output, tuple) else (output,)


_mean = CallFunction("data_parallel")
_mean_gradient = CallFunction("data_parallel_gradient")
