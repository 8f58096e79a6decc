"""One stage of a graph, on its machine.

A stage computes its values by recording its graph again, and keeps the nodes; adjoints go back through these by one sweep.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from compgraph.executor import needed, origins_of, replay_watched
from compgraph.guards import GuardError
from compgraph.values import Value, describe

from ....operators import join_outputs
from ....reverse import collect, sweep, sweep_supports
from ....rules import OutputCotangents

Key = Any  # ("port", number), ("parameter", index), ("feed", index), or RESULT
Adjoint = tuple[Any, ...]  # an adjoint; if careful also its support: where it has no structural zeros
RESULT = "result"  # the key of the output of the whole graph among what a stage computes


class Links(NamedTuple):
    """The inputs and outputs of a stage, with the other stages and parts.

    Attributes
    ----------
    stage : tuple
        Its number, and its part.
    reads : tuple
        The keys of values that other stages, of this part or another, compute.
    borrows : tuple
        The keys of parameters that belong to other parts.
    feeds : tuple
        The keys of placeholders.
    gives : dict
        For each value that other stages read, their part.
    awaits : tuple
        The keys of values whose cotangents are returned.
    returns : dict
        For each cotangent that it computes for others, their part.
    goes_back : bool
        Whether cotangents pass through it.
    """

    stage: Any
    reads: tuple[Key, ...]
    borrows: tuple[Key, ...]
    feeds: tuple[Key, ...]
    gives: dict[Key, int]
    awaits: tuple[Key, ...]
    returns: dict[Key, int]
    goes_back: bool


class StageGraph:
    """The graph of a stage, as it was shipped."""

    def __init__(self, shipped: bytes) -> None:
        self.ends, guards, self.stand_ins, self.wanted = pickle.loads(shipped)
        self._items = needed([*self.ends.values(), *guards], origins_of)

    def forward(self, values: Mapping[Key, Any]) -> Record:
        """Compute the stage's values; an error gets a note with the line of the user's code that recorded the operation."""
        reached: Any = None

        def look(item: object, place: int, replacements: dict[Any, Any]) -> None:
            nonlocal reached
            reached = item

        try:
            feeds = {node: values[key] for key, node in self.stand_ins.items()}
            return Record(self, replay_watched(self._items, self.ends.values(), feeds, reading=look))
        except Exception as error:
            if isinstance(reached, Value) and not isinstance(error, GuardError):
                error.add_note(f"This is the {describe(reached)}, which was recorded at {reached.line}.")
            raise


class Record:
    """One pass through a stage."""

    def __init__(self, graph: StageGraph, replacements: dict[Any, Any]) -> None:
        self.ends = {key: replacements[node] for key, node in graph.ends.items()}
        self.starts = {key: replacements[graph.stand_ins[key]] for key in graph.wanted}

    def back(self, adjoints: Mapping[Key, Adjoint], careful: bool) -> dict[Key, Adjoint]:
        """Return the cotangents of the inputs from those of the outputs; `careful` with their supports."""
        nodes = {node: key for key, node in self.starts.items()}
        if not adjoints:
            zeros = {key: np.zeros_like(node.raw_value) for node, key in nodes.items()}
            return {key: (zero, np.zeros(zero.shape)) if careful else (zero,) for key, zero in zeros.items()}
        joint = join_outputs([self.ends[key] for key in adjoints])
        graph = collect(joint)
        seeds = OutputCotangents({k: parts[0] for k, parts in enumerate(adjoints.values())})
        if not careful:
            with np.errstate(invalid="ignore", divide="ignore"):  # if NaN comes of it, the pass is repeated with supports
                cotangents = sweep(graph, joint, seeds, set(nodes), False)
            return {key: (_or_zeros(cotangents, node),) for node, key in nodes.items()}
        supports = {k: parts[1] for k, parts in enumerate(adjoints.values())}
        cotangents = sweep(graph, joint, seeds, set(nodes), False, support=OutputCotangents(dict(supports)))
        where = sweep_supports(graph, joint, OutputCotangents(dict(supports)), set(nodes), False, ())
        full = {node: np.array(np.broadcast_to(where.get(node, 0.0), node.shape)) for node in nodes}
        return {key: (_or_zeros(cotangents, node), full[node]) for node, key in nodes.items()}


def _or_zeros(cotangents: Mapping[Any, Any], node: Any) -> Any:
    return np.asarray(cotangents[node] if node in cotangents else np.zeros_like(node.raw_value))
