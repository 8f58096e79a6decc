"""What runs on a machine: stages of a graph, and the parts they belong to, with their parameters and optimisers.

A stage computes its values by recording its graph again, and keeps the nodes; adjoints go back through these by one sweep.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from compgraph.executor import needed, origins_of, replay
from compgraph.graph import Node, describe
from compgraph.guards import GuardError

from ...operators import as_joint
from ...optimizers import Optimizer
from ...reverse import collect, sweep, sweep_supports
from ...rules import Parts
from .packing import Packed, pack, unpack

Key = Any  # ("port", number), ("parameter", index), ("feed", index), or RESULT
Adjoint = tuple[Any, ...]  # an adjoint, and where it has no structural zeros (its support) if that is asked for
Sent = tuple[Packed, ...]  # such on its way


class StageGraph:
    """The graph of a stage, as it was shipped."""

    def __init__(self, shipped: bytes) -> None:
        self.ends, guards, self.stand_ins, self.wanted = pickle.loads(shipped)
        self._items = needed([*self.ends.values(), *guards], origins_of)

    def forward(self, values: Mapping[Key, Any]) -> Record:
        """Compute the stage's values; an error is told where in the user's code the operation was recorded."""
        reached: Any = None

        def look(item: Any, place: int, made: Any) -> None:
            nonlocal reached
            reached = item

        try:
            return Record(self, replay(self._items, {node: values[key] for key, node in self.stand_ins.items()}, reading=look))
        except Exception as error:
            if isinstance(reached, Node) and not isinstance(error, GuardError):
                error.add_note(f"This is the {describe(reached)}, which was recorded at {reached.line}.")
            raise


class Record:
    """One pass through a stage."""

    def __init__(self, graph: StageGraph, made: dict[Any, Any]) -> None:
        self.ends = {key: made[node] for key, node in graph.ends.items()}
        self.starts = {key: made[graph.stand_ins[key]] for key in graph.wanted}

    def back(self, adjoints: Mapping[Key, Adjoint], careful: bool) -> dict[Key, Adjoint]:
        """The adjoints of what the stage was given, from those of what it computed; `careful` with their supports."""
        nodes = {node: key for key, node in self.starts.items()}
        if not adjoints:
            zeros = {key: np.zeros_like(node.plain) for node, key in nodes.items()}
            return {key: (zero, np.zeros(zero.shape)) if careful else (zero,) for key, zero in zeros.items()}
        joint = as_joint([self.ends[key] for key in adjoints])
        graph = collect(joint)
        seeds = Parts({k: parts[0] for k, parts in enumerate(adjoints.values())})
        if not careful:
            with np.errstate(invalid="ignore", divide="ignore"):  # if nan comes of it, all is done again with supports
                found = sweep(graph, joint, seeds, set(nodes), False)
            return {key: (_or_zeros(found, node),) for node, key in nodes.items()}
        supports = {k: parts[1] for k, parts in enumerate(adjoints.values())}
        found = sweep(graph, joint, seeds, set(nodes), False, support=Parts(dict(supports)))
        where = sweep_supports(graph, joint, Parts(dict(supports)), set(nodes), False, ())
        full = {node: np.array(np.broadcast_to(where.get(node, 0.0), node.shape)) for node in nodes}
        return {key: (_or_zeros(found, node), full[node]) for node, key in nodes.items()}


def _or_zeros(found: Mapping[Any, Any], node: Any) -> Any:
    return np.asarray(found[node] if node in found else np.zeros_like(node.plain))


class Part:
    """Parameters that live together, their optimiser, and the stages that use them."""

    def __init__(
        self, shipped: Mapping[Any, bytes], arrays: Mapping[int, Packed], ways: Mapping[Key, int], optimizer: bytes | None
    ) -> None:
        self.ways = ways  # by which its parameters are read by several stages
        self.stages = {stage: StageGraph(graph) for stage, graph in shipped.items()}
        self.arrays = {i: unpack(array, own=True) for i, array in arrays.items()}
        make = None if optimizer is None else pickle.loads(optimizer)
        self.optimizer: Optimizer | None = None if make is None or not self.arrays else make(list(self.arrays.values()))
        self.epoch = -1
        self.begin(0)

    def begin(self, epoch: int) -> None:
        """Forget what an earlier epoch left behind."""
        if epoch == self.epoch:
            return
        if epoch < self.epoch:
            raise StaleError
        self.epoch = epoch
        self.records: dict[Any, Record] = {}
        self.values: dict[Any, Any] = {}  # what goes from one stage of the part to another, and what others sent beforehand
        self.adjoints: dict[Any, Any] = {}
        self.sums: dict[int, dict[Any, dict[int, Any]]] = {}  # of parameters: by micro-batch, and by port
        self.ready: Any = None

    # -------------------------------------------------------------------------------------- the passes

    def give(self, values: Mapping[Key, Packed]) -> None:
        """Keep values for all micro-batches: parameters that live elsewhere."""
        self.values.update({(None, key): unpack(value) for key, value in values.items()})

    def lend(self, asked: Sequence[Key]) -> dict[Key, Packed]:
        """The values of parameters, for others."""
        return {key: pack(self.arrays[self.ways[key]]) for key in asked}

    def forward(
        self, stage: Any, micro: int, values: Mapping[Key, Packed], inner: Sequence[Key], keeps: bool
    ) -> dict[Key, Packed]:
        """Compute a stage; what other stages of this part read stays here."""
        graph = self.stages[stage]
        given: dict[Key, Any] = {}
        for key in graph.stand_ins:
            if key in values:
                given[key] = unpack(values[key])
            elif key[0] == "parameter" or key in self.ways:
                given[key] = self.arrays[self.ways.get(key, key[1])]
            else:
                given[key] = self.values[micro, key] if (micro, key) in self.values else self.values[None, key]
        record = graph.forward(given)
        if keeps:
            self.records[stage, micro] = record
        found = {key: node.plain for key, node in record.ends.items()}
        self.values.update({(micro, key): np.asarray(found[key]) for key in inner})
        return {key: pack(value) for key, value in found.items() if key not in inner}

    def backward(
        self, stage: Any, micro: int, adjoints: Mapping[Key, Sent], inner: Sequence[Key], careful: bool
    ) -> tuple[dict[Key, Sent], bool]:
        """Pass adjoints back through a stage; those of this part's parameters stay here, and those for its other stages.

        Returns what goes to other parts, and whether something is nan.
        """
        record = self.records.pop((stage, micro))
        given = {key: tuple(map(unpack, parts)) for key, parts in adjoints.items()}
        given |= {key: self.adjoints.pop((micro, key)) for key in record.ends if (micro, key) in self.adjoints}
        sent = {}
        found = record.back({key: given[key] for key in record.ends if key in given}, careful)
        for key, parts in found.items():
            if key[0] == "parameter":
                self._add(key[1], micro, 0, parts[0])
            elif key in self.ways:
                self._add(self.ways[key], micro, key[1], parts[0])
            elif key in inner:
                self.adjoints[micro, key] = parts
            else:
                sent[key] = tuple(map(pack, parts))
        return sent, any(bool(np.isnan(parts[0]).any()) for parts in found.values())

    def _take(self, taken: Mapping[int, Mapping[Key, Sent]]) -> None:
        """Keep adjoints of parameters that live here and were read elsewhere."""
        for micro, adjoints in taken.items():
            for key, parts in adjoints.items():
                self._add(self.ways[key], micro, key[1], unpack(parts[0]))

    def _add(self, index: int, micro: int, port: int, adjoint: Any) -> None:
        self.sums.setdefault(index, {}).setdefault(micro, {})[port] = adjoint

    # ---------------------------------------------------------------------------------------- a step

    def gradients(self, weights: Sequence[float]) -> dict[int, Any]:
        """The gradient of each parameter: of each micro-batch the adjoints of its readers, the youngest first; then weighed."""
        return {i: weighed([_summed(self.sums[i][micro]) for micro in range(len(weights))], weights) for i in self.arrays}

    def slopes(self, weights: Sequence[float], taken: Mapping[int, Mapping[Key, Sent]]) -> dict[int, Packed]:
        """The gradients, to be sent; `taken` are adjoints that were found elsewhere, by micro-batch."""
        self._take(taken)
        return {i: pack(g) for i, g in self.gradients(weights).items()}

    def prepare(self, weights: Sequence[float], taken: Mapping[int, Mapping[Key, Sent]]) -> None:
        """Check the gradients of a step that all parts take, or none."""
        self._take(taken)
        if self.optimizer is not None:
            found = self.gradients(weights)
            self.ready = self.optimizer._checked([found[i] for i in self.arrays])

    def commit(self, tells: bool) -> Any:
        """Take the step; the state after it, if it is to be told."""
        if self.optimizer is not None:
            self.optimizer._take(self.ready, self.optimizer.rate)
        self.ready, self.sums = None, {}
        return self.state() if tells else None

    def state(self) -> dict[str, Any]:
        """Parameters, and what the optimiser remembers, with the numbers of the parameters among this part's."""
        if self.optimizer is not None:
            return self.optimizer.state_dict()
        return {f"parameter.{k}": array.copy() for k, array in enumerate(self.arrays.values())}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        if self.optimizer is not None:
            self.optimizer.load_state_dict(state)
        else:
            for k, array in enumerate(self.arrays.values()):
                np.copyto(array, state[f"parameter.{k}"])


def _summed(by_port: Mapping[int, Any]) -> Any:
    """The sum of what came through the ports, in order."""
    total: Any = None
    for port in sorted(by_port):
        total = by_port[port] if total is None else total + by_port[port]
    return total


def weighed(parts: Sequence[Any], weights: Sequence[float]) -> Any:
    """The sum of parts, one for each micro-batch, by their shares of the rows; of one part that itself."""
    if len(parts) == 1:
        return parts[0]
    total: Any = None
    for part, weight in zip(parts, weights, strict=True):
        total = part * weight if total is None else total + part * weight
    return total


class StaleError(Exception):
    """A call of a step that was given up."""


class Machine:
    """The parts that live on one machine. Its methods never raise: what went wrong is told, with the traceback."""

    def __init__(self) -> None:
        self.parts: dict[int, Part] = {}

    def install(self, part: int, shipped: bytes) -> Any:
        """Take in a part."""
        return _told(self._install, part, shipped)

    def _install(self, part: int, shipped: bytes) -> None:
        self.parts[part] = Part(*pickle.loads(shipped))

    def drop(self, part: int) -> Any:
        """Let go of a part."""
        self.parts.pop(part, None)
        return "ok", None

    def call(self, part: int, epoch: int, method: str, args: tuple[Any, ...]) -> Any:
        """Call a method of a part; what earlier epochs left is forgotten."""
        return _told(self._call, part, epoch, method, args)

    def _call(self, part: int, epoch: int, method: str, args: tuple[Any, ...]) -> Any:
        found = self.parts[part]
        found.begin(epoch)
        return getattr(found, method)(*args)


def _told(function: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
    """What a function gives, or what it raised, so that it can be raised elsewhere."""
    try:
        return "ok", function(*args)
    except Exception as error:
        text = "".join(traceback.format_exception(error))
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
        return "error", error.with_traceback(None), text
