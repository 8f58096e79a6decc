"""The mean of a loss as one node of the graph, and its derivatives of every order.

The machines differentiate, along directions (`machine.along`) as often as the order asks for. The gradient, where it has to be
differentiated itself, is another node. Its VJP is a product with the Hessian: the gradient of a directional derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.array_types import Array
from compgraph.bind import bind

from ...custom import Opaque, has_node, instantiate_zeros

# ``ask(order, leaves, slopes)``: the mean of the loss, after `order` directional derivatives, and its gradient if `slopes`.
Ask = Callable[[int, Sequence[Any], bool], tuple[Any, list[Any]]]


class Mean:
    """The mean of a loss over a batch, at leaves that may be nodes.

    Parameters
    ----------
    ask : callable
        Asks the machines; see `Ask`.
    order : int
        How many directional derivatives are taken; the directions follow the leaves.
    """

    def __init__(self, ask: Ask, order: int = 0) -> None:
        self.ask, self.order = ask, order
        self.operands: tuple[Any, ...] = ()
        self.kept: list[Any] = []

    def compute(self, *leaves: object) -> Any:
        """The mean; its gradient is computed with it, and kept."""
        value, slopes = self.ask(self.order, leaves, True)
        self.operands, self.kept = leaves, slopes
        return value

    def slopes(self, *operands: Any, recorded: bool) -> Sequence[Any]:
        """The gradient, as nodes if it has to be differentiated itself."""
        if recorded:
            return slopes_at(self.ask, self.order, operands)
        if len(operands) != len(self.operands) or any(a is not b for a, b in zip(operands, self.operands, strict=True)):
            self.compute(*operands)  # an operand was written into since, or the graph runs again
        return self.kept

    def pull(self, adjoint: object, out: object, *operands: object) -> list[Any]:
        """The adjoints of the leaves."""
        return [adjoint * s for s in self.slopes(*operands, recorded=has_node(adjoint, *operands))]

    def push(self, position: int, tangent: Array, out: object, *operands: object) -> Any:
        """The tangent of the mean from that of one leaf."""
        return np.sum(self.slopes(*operands, recorded=has_node(tangent, *operands))[position] * tangent)


class Slopes:
    """The gradient of the mean; `known` if it was computed with the mean."""

    def __init__(self, ask: Ask, order: int, known: list[Any] | None = None) -> None:
        self.ask, self.order, self.known = ask, order, known

    def compute(self, *leaves: object) -> Any:
        """The gradient, one array for each leaf."""
        known, self.known = self.known, None  # when the graph runs again, leaves have other values
        gradients = [np.array(s)[()] for s in known or self.ask(self.order, leaves, True)[1]]
        return tuple(gradients) if len(gradients) > 1 else gradients[0]

    def pull(self, adjoint: Any, out: Any, *operands: object) -> list[Any]:
        """The adjoints of the leaves: the Hessian times the adjoints of the gradient."""
        directions = instantiate_zeros(adjoint, out) if isinstance(out, tuple) else (adjoint,)
        inputs = (*operands, *directions)
        if has_node(*inputs):
            return list(slopes_at(self.ask, self.order + 1, inputs)[: len(operands)])
        return self.ask(self.order + 1, inputs, True)[1][: len(operands)]

    def push(self, position: int, tangent: Any, out: NDArray[Any] | tuple[Any, ...], *operands: object) -> Any:
        """The tangents of the gradient from that of one leaf: the Hessian is symmetric, so this is the same product."""
        if not isinstance(out, tuple):
            return self.pull(tangent, out, *operands)[0]
        directions = [np.zeros(o.shape, o.dtype)[()] for o in out]
        directions[position] = tangent
        return tuple(self.pull(tuple(directions), out, *operands))


def mean_at(ask: Ask, leaves: Sequence[Any]) -> Any:
    """The mean as a node."""
    return bind(_mean, tuple(leaves), {"call": Mean(ask)})


def both_at(ask: Ask, leaves: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    """The mean and its gradient as nodes, by one request to the machines."""
    mean = Mean(ask)
    return bind(_mean, tuple(leaves), {"call": mean}), slopes_at(ask, 0, leaves, mean.kept)


def slopes_at(ask: Ask, order: int, leaves: Sequence[Any], known: list[Any] | None = None) -> tuple[Any, ...]:
    """The gradient as nodes."""
    output = bind(_slopes, tuple(leaves), {"call": Slopes(ask, order, known)})
    return output if isinstance(output, tuple) else (output,)


_mean = Opaque("data_parallel")
_slopes = Opaque("data_parallel_gradient")
