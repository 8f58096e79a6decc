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
    """A call belongs to an abandoned step."""


class Part:
    """The parameters of one part, their optimizer, and the stages of the part.

    Parameters
    ----------
    number : int
        The number of the part.
    stages : list of tuple
        The links of each stage, and its pickled graph.
    arrays : mapping
        The parameters, by their indices.
    port_parameters : mapping
        For each port through which one of the parameters is read, the index of the parameter.
    remote_readers : mapping
        For each such port that leads to another part: whether a cotangent returns through it, and the part.
    optimizer : bytes or None
        The constructor of the optimizer, pickled.
    clip_in_part : bool
        Whether the optimizer clips gradients. Otherwise the client does, which has the gradients of all parts.
    """

    def __init__(
        self, number: int, stages: Sequence[tuple[Links, bytes]], arrays: Mapping[int, Packed],
        port_parameters: Mapping[Key, int], remote_readers: Mapping[Key, tuple[bool, int]], optimizer: bytes | None,
        clip_in_part: bool,
    ) -> None:  # fmt: skip
        self.number, self.port_parameters, self.remote_readers = number, port_parameters, remote_readers
        self.stages = [(links, StageGraph(graph)) for links, graph in stages]
        self.arrays = {i: unpack(array, copy=True) for i, array in arrays.items()}
        make = None if optimizer is None else pickle.loads(optimizer)
        self.optimizer: Optimizer | None = None if make is None or not self.arrays else make(list(self.arrays.values()))
        if self.optimizer is not None and not clip_in_part:
            self.optimizer._clip = None
        self.attempt = 0
        self.prepared_gradients: Any = None

    def begin_attempt(self, attempt: int) -> None:
        """Drop the state of an earlier attempt."""
        if attempt < self.attempt:
            raise StaleError
        if attempt > self.attempt:
            self.attempt, self.prepared_gradients = attempt, None

    def check_gradients(self, gradients: Mapping[int, Any]) -> Any:
        """Return the checked gradients of a step. No part takes the step before all parts have checked theirs."""
        return None if self.optimizer is None else self.optimizer._check_gradients([gradients[i] for i in self.arrays])

    def prepare(self, gradients: Mapping[int, Packed]) -> None:
        """Check gradients and store them for `commit`."""
        self.prepared_gradients = self.check_gradients({i: unpack(g) for i, g in gradients.items()})

    def commit(self, return_state: bool) -> Any:
        """Take the prepared step; return the state after it if `return_state`."""
        if self.optimizer is not None:
            self.optimizer._apply_step(self.prepared_gradients, self.optimizer.learning_rate)
        self.prepared_gradients = None
        return self.state() if return_state else None

    def state(self) -> dict[str, Any]:
        """Return the parameters and the state of the optimizer. Parameters are numbered within this part."""
        if self.optimizer is not None:
            return self.optimizer.state_dict()
        return {f"parameter.{k}": array.copy() for k, array in enumerate(self.arrays.values())}

    def load(self, state: Mapping[str, Any]) -> None:
        """Load a state."""
        if self.optimizer is not None:
            self.optimizer.load_state_dict(state)
        else:
            for k, array in enumerate(self.arrays.values()):
                np.copyto(array, state[f"parameter.{k}"])


def sum_by_port(by_port: Mapping[int, Any]) -> Any:
    """Sum received values, in the order of the ports."""
    total: Any = None
    for port in sorted(by_port):
        total = by_port[port] if total is None else total + by_port[port]
    return total


def weighted_sum(values: Sequence[Any], weights: Sequence[float]) -> Any:
    """Sum values of micro-batches, weighted by their fractions of the rows. A single value is returned unchanged."""
    if len(values) == 1:
        return values[0]
    total: Any = None
    for value, weight in zip(values, weights, strict=True):
        total = value * weight if total is None else total + value * weight
    return total
