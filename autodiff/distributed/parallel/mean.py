"""The mean of a loss as one node of the graph, and its derivatives of every order.

The machines differentiate: along directions (`machine.along`) as often as it takes. A gradient that has to be a node is another
node; its adjoints are, by the symmetry of second derivatives, the gradient of the loss differentiated along them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph.graph import record

from ...custom import Opaque, has_node, zeros_for

# ``ask(order, leaves, slopes)`` gives the mean of the loss, differentiated so often along directions, and its gradient.
Ask = Callable[[int, Sequence[Any], bool], tuple[Any, list[Any]]]


class Mean:
    """The mean of a loss over a batch, at leaves that may be nodes.

    Parameters
    ----------
    ask : callable
        What asks the machines.
    order : int
        How often it is differentiated along directions, which follow the leaves.
    """

    def __init__(self, ask: Ask, order: int = 0) -> None:
        self.ask, self.order = ask, order
        self.operands: tuple[Any, ...] = ()
        self.kept: list[Any] = []

    def compute(self, *leaves: Any) -> Any:
        """The mean; its gradient is found on the way, and kept."""
        value, slopes = self.ask(self.order, leaves, True)
        self.operands, self.kept = leaves, slopes
        return value

    def slopes(self, *operands: Any, recorded: bool) -> Sequence[Any]:
        """The gradient, as nodes if it has to be differentiated itself."""
        if recorded:
            return slopes_at(self.ask, self.order, operands)
        if len(operands) != len(self.operands) or any(a is not b for a, b in zip(operands, self.operands, strict=True)):
            self.compute(*operands)  # one was written into since, or the graph runs again
        return self.kept

    def pull(self, adjoint: Any, out: Any, *operands: Any) -> list[Any]:
        """The adjoints of the leaves."""
        return [adjoint * s for s in self.slopes(*operands, recorded=has_node(adjoint, *operands))]

    def push(self, position: int, tangent: Any, out: Any, *operands: Any) -> Any:
        """The tangent of the mean from that of one leaf."""
        return np.sum(self.slopes(*operands, recorded=has_node(tangent, *operands))[position] * tangent)


class Slopes:
    """The gradient of the mean; at first it may be known."""

    def __init__(self, ask: Ask, order: int, known: list[Any] | None = None) -> None:
        self.ask, self.order, self.known = ask, order, known

    def compute(self, *leaves: Any) -> Any:
        """The gradient, one array for each leaf."""
        known, self.known = self.known, None  # when the graph runs again it is another one
        found = [np.array(s)[()] for s in known or self.ask(self.order, leaves, True)[1]]
        return tuple(found) if len(found) > 1 else found[0]

    def pull(self, adjoint: Any, out: Any, *operands: Any) -> list[Any]:
        """The adjoints of the leaves: the matrix of second derivatives times those of the gradient."""
        directions = zeros_for(adjoint, out) if isinstance(out, tuple) else (adjoint,)
        given = (*operands, *directions)
        if has_node(*given):
            return list(slopes_at(self.ask, self.order + 1, given)[: len(operands)])
        return self.ask(self.order + 1, given, True)[1][: len(operands)]

    def push(self, position: int, tangent: Any, out: Any, *operands: Any) -> Any:
        """The tangents of the gradient from that of one leaf: as that matrix is symmetric, it is the same product."""
        if not isinstance(out, tuple):
            return self.pull(tangent, out, *operands)[0]
        directions = [np.zeros(o.shape, o.dtype)[()] for o in out]
        directions[position] = tangent
        return tuple(self.pull(tuple(directions), out, *operands))


def mean_at(ask: Ask, leaves: Sequence[Any]) -> Any:
    """The mean as a node."""
    return record(_mean, tuple(leaves), {"call": Mean(ask)})


def both_at(ask: Ask, leaves: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    """The mean and its gradient as nodes, for which the machines are asked once."""
    mean = Mean(ask)
    return record(_mean, tuple(leaves), {"call": mean}), slopes_at(ask, 0, leaves, mean.kept)


def slopes_at(ask: Ask, order: int, leaves: Sequence[Any], known: list[Any] | None = None) -> tuple[Any, ...]:
    """The gradient as nodes."""
    found = record(_slopes, tuple(leaves), {"call": Slopes(ask, order, known)})
    return found if isinstance(found, tuple) else (found,)


_mean = Opaque("data_parallel")
_slopes = Opaque("data_parallel_gradient")
