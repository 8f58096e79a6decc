"""A part on its machine: its parameters, their optimizer, and the stages that use them.

A stage computes its values by recording its graph again. One reverse sweep through the recorded nodes computes cotangents.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from compgraph.executor import collect_dependencies, retrace_outputs, retrace_sources_of
from compgraph.graph import GraphNode
from compgraph.guards import GuardError
from compgraph.values import Value, describe

from ...operators import join_outputs
from ...optimizers import Optimizer
from ...reverse import collect, sweep, sweep_supports
from ...rules import OutputCotangents
from .messages import Packed, unpack

Key = Any  # ("port", number), ("parameter", index), ("feed", index), or RESULT
Cotangent = tuple[Any, ...]  # a cotangent, and with supports also its mask of entries that are not structural zeros
RESULT = "result"  # the key of the output of the whole graph among the outputs of a stage


class Links(NamedTuple):
    """The connections of a stage to other stages and parts.

    Attributes
    ----------
    stage : tuple
        The number of the stage, and its part.
    input_keys : tuple
        The keys of values that are computed by other stages, of any part.
    remote_parameters : tuple
        The keys of parameters that belong to other parts.
    feeds : tuple
        The keys of placeholders.
    output_parts : dict
        For each value that other stages read, the part that reads it.
    awaited_outputs : tuple
        The keys of outputs whose cotangents are returned.
    cotangent_parts : dict
        For each cotangent that is computed for another stage, the part of that stage.
    has_backward : bool
        Whether cotangents pass through the stage.
    """

    stage: Any
    input_keys: tuple[Key, ...]
    remote_parameters: tuple[Key, ...]
    feeds: tuple[Key, ...]
    output_parts: dict[Key, int]
    awaited_outputs: tuple[Key, ...]
    cotangent_parts: dict[Key, int]
    has_backward: bool


class StageGraph:
    """The graph of a stage."""

    def __init__(self, pickled: bytes) -> None:
        self.outputs, guards, self.input_nodes, self.differentiable_keys = pickle.loads(pickled)
        self._items = collect_dependencies([*self.outputs.values(), *guards], retrace_sources_of)

    def forward(self, values: Mapping[Key, Any]) -> StagePass:
        """Compute the values of the stage. An error gets a note with the user's line that recorded the operation."""
        current_item: Any = None

        def note_item(item: GraphNode, position: int, replacements: object) -> None:
            nonlocal current_item
            current_item = item

        try:
            feeds = {node: values[key] for key, node in self.input_nodes.items()}
            return StagePass(self, retrace_outputs(self._items, self.outputs.values(), feeds, read_operand=note_item))
        except Exception as error:
            if isinstance(current_item, Value) and not isinstance(error, GuardError):
                error.add_note(f"This is the {describe(current_item)}, which was recorded at {current_item.line}.")
            raise


class StagePass:
    """The recorded nodes of one pass through a stage."""

    def __init__(self, graph: StageGraph, replacements: dict[Any, Any]) -> None:
        self.outputs = {key: replacements[node] for key, node in graph.outputs.items()}
        self.inputs = {key: replacements[graph.input_nodes[key]] for key in graph.differentiable_keys}

    def backward(self, output_cotangents: Mapping[Key, Cotangent], with_supports: bool) -> dict[Key, Cotangent]:
        """Return the cotangents of the inputs from those of the outputs; with their supports if `with_supports`."""
        nodes = {node: key for key, node in self.inputs.items()}
        if not output_cotangents:
            zeros = {key: np.zeros_like(node.raw_value) for node, key in nodes.items()}
            return {key: (zero, np.zeros(zero.shape)) if with_supports else (zero,) for key, zero in zeros.items()}
        multi_output = join_outputs([self.outputs[key] for key in output_cotangents])
        graph = collect(multi_output)
        seeds = OutputCotangents({k: pair[0] for k, pair in enumerate(output_cotangents.values())})
        if not with_supports:
            with np.errstate(invalid="ignore", divide="ignore"):  # if the result has NaN, the pass is repeated with supports
                cotangents = sweep(graph, multi_output, seeds, set(nodes), False)
            return {key: (_cotangent_or_zeros(cotangents, node),) for node, key in nodes.items()}
        supports = {k: pair[1] for k, pair in enumerate(output_cotangents.values())}
        cotangents = sweep(graph, multi_output, seeds, set(nodes), False, support=OutputCotangents(dict(supports)))
        supports_by_node = sweep_supports(graph, multi_output, OutputCotangents(dict(supports)), set(nodes), False, ())
        full_supports = {node: np.array(np.broadcast_to(supports_by_node.get(node, 0.0), node.shape)) for node in nodes}
        return {key: (_cotangent_or_zeros(cotangents, node), full_supports[node]) for node, key in nodes.items()}


def _cotangent_or_zeros(cotangents: Mapping[Any, Any], node: Value) -> Any:
    return np.asarray(cotangents[node] if node in cotangents else np.zeros_like(node.raw_value))


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
        make_optimizer = None if optimizer is None else pickle.loads(optimizer)
        self.optimizer: Optimizer | None = (
            None if make_optimizer is None or not self.arrays else make_optimizer(list(self.arrays.values()))
        )
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
