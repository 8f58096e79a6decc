"""Passes of micro-batches through all parts, and the division of values into micro-batches: the client side."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from compgraph.executor import convert_fed_value
from compgraph.values import Value, describe

from .messages import Packed, pack, unpack, unwrap
from .part import weighted_sum
from .part_pass import PassRequest, PassResult, gather_or_cancel
from .plan import Plan

Batch = dict[Any, Any]  # the values of the placeholders


class Feeds:
    """The placeholders of a graph.

    Parameters
    ----------
    placeholders : list of PlaceholderNode
        All placeholders of the graph.
    micro_batches : int
        The maximal number of micro-batches.
    """

    def __init__(self, placeholders: list[Any], micro_batches: int) -> None:
        self.placeholders, self.micro_batches = placeholders, micro_batches
        self.row_placeholders = [node for node in placeholders if node.declared_shape and node.declared_shape[0] is None]
        if micro_batches > 1 and not self.row_placeholders:
            raise ValueError("Split: micro_batches divides the first axis of placeholders declared as (None, ...). Declare one.")

    def check(self, feed: object) -> Batch:
        """Return the checked feed, by placeholder."""
        if not isinstance(feed, Mapping):
            raise TypeError(f"Split: a feed must be a mapping of placeholders or names to values, not a {type(feed).__name__}.")
        batch: Batch = {}
        for key, value in feed.items():
            node = self._find_placeholder(key)
            if node in batch:
                raise KeyError(f"the {describe(node)} is fed twice: by itself and by name.")
            batch[node] = convert_fed_value(node, value)
        missing = [describe(node) for node in self.placeholders if node not in batch]
        if missing:
            raise ValueError(f"no value was fed for the {', the '.join(missing)}. Feed a value for each placeholder.")
        lengths = {node.name: len(batch[node]) for node in self.row_placeholders}
        if len(set(lengths.values())) > 1:
            row_counts = ", ".join(f"{rows} of {name!r}" for name, rows in lengths.items())
            raise ValueError(
                f"Split: all placeholders with a first axis of None must be fed equally many rows, not {row_counts}."
            )
        if 0 in lengths.values():
            raise ValueError("Split: the fed arrays have no rows. Feed at least one row.")
        return batch

    def _find_placeholder(self, key: object) -> Any:
        matches = [node for node in self.placeholders if node is key or (isinstance(key, str) and node.name == key)]
        if len(matches) == 1:
            return matches[0]
        names = ", ".join(repr(node.name) for node in self.placeholders) or "none"
        subject = f"the {describe(key)}" if isinstance(key, Value) else f"called {key!r}"
        if matches:
            raise KeyError(f"{len(matches)} placeholders of the graph are {subject}. Feed by the node itself.")
        raise KeyError(f"no placeholder of the graph is {subject}. The placeholders are {names}.")

    def divide(self, batch: Batch) -> tuple[list[Batch], list[float]]:
        """Divide a batch into micro-batches; return them, and their fractions of the rows."""
        if not self.row_placeholders:
            return [batch], [1.0]
        rows = len(batch[self.row_placeholders[0]])
        count = min(self.micro_batches, rows)
        edges = [rows * k // count for k in range(count + 1)]
        spans = list(pairwise(edges))
        batches = [batch | {node: batch[node][a:b] for node in self.row_placeholders} for a, b in spans]
        return batches, [(b - a) / rows for a, b in spans]

    def join_outputs(self, values: list[Any], batches: list[Batch], weights: list[float]) -> Any:
        """Return the output for all rows from those for micro-batches."""
        if len(values) == 1 or not np.ndim(values[0]):
            return weighted_sum(values, weights)
        if [len(v) for v in values] != [len(batch[self.row_placeholders[0]]) for batch in batches]:
            raise ValueError("Split: with micro-batches, an output that is not a scalar must have one row per fed row.")
        return np.concatenate(values)


RunPass = Callable[[int, PassRequest], Coroutine[Any, Any, PassResult]]


class Pipeline:
    """Passes of micro-batches through all parts. The parts run concurrently, and exchange values and cotangents.

    Parameters
    ----------
    plan : Plan
        The stages.
    run_pass : callable
        Runs a pass through one part.
    next_attempt : callable
        Returns the number of a new attempt, in which parts drop the values of earlier ones.
    peers : mapping
        For each part, the address of the machine, and the key of its actor.
    """

    def __init__(
        self, plan: Plan, run_pass: RunPass, next_attempt: Callable[[], int], peers: Mapping[int, tuple[str, str]]
    ) -> None:
        self.plan, self._run_part, self._next_attempt, self._peers = plan, run_pass, next_attempt, dict(peers)

    async def forward(self, batches: Sequence[Batch], weights: Sequence[float]) -> list[Any]:
        """Return the output for each micro-batch."""
        return (await self._run_pass(batches, weights, "forward", False))[0]

    async def forward_backward(self, batches: Sequence[Batch], weights: Sequence[float], mode: str) -> tuple[list[Any], Any]:
        """Return the output for each micro-batch, and the packed gradients. With mode "prepare", all parts prepare a step."""
        values, results = await self._run_pass(batches, weights, mode, False)
        if any(p.has_nan for p in results):
            values, results = await self._run_pass(batches, weights, mode, True)
        for step_error in [p.step_error for p in results if p.step_error is not None]:
            unwrap(step_error)
        return values, {i: gradient for p in results for i, gradient in p.gradients.items()}

    async def _run_pass(
        self, batches: Sequence[Batch], weights: Sequence[float], mode: str, with_supports: bool
    ) -> tuple[list[Any], list[PassResult]]:
        attempt = self._next_attempt()
        feeds = self._pack_feeds(batches)

        def make_request(part: int) -> PassRequest:
            feed_keys = {key for stage_plan in self.plan.stage_plans if stage_plan.part == part for key in stage_plan.links.feeds}
            part_feeds = [{key: values[key] for key in feed_keys} for values in feeds]
            return PassRequest(attempt, part_feeds, mode, list(weights), with_supports, self._peers)

        parts = sorted({stage_plan.part for stage_plan in self.plan.stage_plans})
        results = await gather_or_cancel(self._run_part(part, make_request(part)) for part in parts)
        return [unpack(value)[()] for p in results for value in p.values], results

    def _pack_feeds(self, batches: Sequence[Batch]) -> list[dict[Any, Packed]]:
        """Pack the values of placeholders, by key. A value that all micro-batches share is packed and sent once."""
        distinct_values = {id(value): value for feed in batches for value in feed.values()}
        packed_values = {number: pack(value) for number, value in distinct_values.items()}
        return [{("feed", i): packed_values[id(feed[node])] for node, i in self.plan.feeds.items()} for feed in batches]
