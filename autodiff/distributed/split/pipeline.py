"""Passes of micro-batches through all parts: the client side."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from .parts import Packed, PassRequest, PassResult, gather_or_cancel, pack, unpack, unwrap
from .plan import Plan

Feed = Mapping[Any, Any]  # the values of placeholders
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

    async def forward(self, batches: Sequence[Feed], weights: Sequence[float]) -> list[Any]:
        """Return the output for each micro-batch."""
        return (await self._run_pass(batches, weights, "forward", False))[0]

    async def forward_backward(self, batches: Sequence[Feed], weights: Sequence[float], mode: str) -> tuple[list[Any], Any]:
        """Return the output for each micro-batch, and the packed gradients. With mode "prepare", all parts prepare a step."""
        values, results = await self._run_pass(batches, weights, mode, False)
        if any(p.has_nan for p in results):
            values, results = await self._run_pass(batches, weights, mode, True)
        for step_error in [p.step_error for p in results if p.step_error is not None]:
            unwrap(step_error)
        return values, {i: gradient for p in results for i, gradient in p.gradients.items()}

    async def _run_pass(
        self, batches: Sequence[Feed], weights: Sequence[float], mode: str, with_supports: bool
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

    def _pack_feeds(self, batches: Sequence[Feed]) -> list[dict[Any, Packed]]:
        """Pack the values of placeholders, by key. A value that all micro-batches share is packed and sent once."""
        distinct = {id(value): value for feed in batches for value in feed.values()}
        packed = {number: pack(value) for number, value in distinct.items()}
        return [{("feed", i): packed[id(feed[node])] for node, i in self.plan.feeds.items()} for feed in batches]
