"""A part on its machine: its parameters, their optimizer, and the stages that use them."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....optimizers import Optimizer
from .packing import Packed, unpack
from .stage import Key, Links, StageGraph


class StaleError(Exception):
    """A call of a step that was given up."""


class Part:
    """Parameters that live together, their optimizer, and the stages that use them.

    Parameters
    ----------
    number : int
        Its number.
    stages : list of tuple
        The links of each stage, and its graph.
    arrays : mapping
        The parameters, by their numbers.
    ways : mapping
        For each port by which one of its parameters is read, the parameter's number.
    borrowers : mapping
        For those of these ports that lead to other parts: whether an adjoint comes back, and the part.
    optimizer : bytes or None
        The constructor of the optimizer, pickled.
    clips : bool
        Whether the optimizer clips gradients; otherwise the client does, which has those of all parts.
    """

    def __init__(
        self, number: int, stages: Sequence[tuple[Links, bytes]], arrays: Mapping[int, Packed], ways: Mapping[Key, int],
        borrowers: Mapping[Key, tuple[bool, int]], optimizer: bytes | None, clips: bool,
    ) -> None:  # fmt: skip
        self.number, self.ways, self.borrowers = number, ways, borrowers
        self.stages = [(links, StageGraph(graph)) for links, graph in stages]
        self.arrays = {i: unpack(array, own=True) for i, array in arrays.items()}
        make = None if optimizer is None else pickle.loads(optimizer)
        self.optimizer: Optimizer | None = None if make is None or not self.arrays else make(list(self.arrays.values()))
        if self.optimizer is not None and not clips:
            self.optimizer._clip = None
        self.epoch = 0
        self.ready: Any = None

    def begin(self, epoch: int) -> None:
        """Drop the state of an earlier epoch."""
        if epoch < self.epoch:
            raise StaleError
        if epoch > self.epoch:
            self.epoch, self.ready = epoch, None

    def checked(self, gradients: Mapping[int, Any]) -> Any:
        """The gradients of a step, checked. No part takes the step before all have checked theirs."""
        return None if self.optimizer is None else self.optimizer._check_gradients([gradients[i] for i in self.arrays])

    def prepare(self, gradients: Mapping[int, Packed]) -> None:
        """Check given gradients, for `commit` to step along."""
        self.ready = self.checked({i: unpack(g) for i, g in gradients.items()})

    def commit(self, tells: bool) -> Any:
        """Take the step that is ready; return the state after it if `tells`."""
        if self.optimizer is not None:
            self.optimizer._apply_step(self.ready, self.optimizer.learning_rate)
        self.ready = None
        return self.state() if tells else None

    def state(self) -> dict[str, Any]:
        """The parameters and the optimizer's state; parameters are numbered within this part."""
        if self.optimizer is not None:
            return self.optimizer.state_dict()
        return {f"parameter.{k}": array.copy() for k, array in enumerate(self.arrays.values())}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        if self.optimizer is not None:
            self.optimizer.load_state_dict(state)
        else:
            for k, array in enumerate(self.arrays.values()):
                np.copyto(array, state[f"parameter.{k}"])


def summed(by_port: Mapping[int, Any]) -> Any:
    """The sum of the received values, in the order of the ports."""
    total: Any = None
    for port in sorted(by_port):
        total = by_port[port] if total is None else total + by_port[port]
    return total


def weighed(parts: Sequence[Any], weights: Sequence[float]) -> Any:
    """Return the sum of values, weighted by the micro-batches' shares of the rows; a single one is returned unchanged."""
    if len(parts) == 1:
        return parts[0]
    total: Any = None
    for part, weight in zip(parts, weights, strict=True):
        total = part * weight if total is None else total + part * weight
    return total
