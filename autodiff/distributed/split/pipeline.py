"""One pass of some micro-batches through all parts, as the client sees it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from .parts import Order, Packed, PassResult, pack, together, unpack, unwrap
from .plan import Plan

Feed = Mapping[Any, Any]  # the values of placeholders
Ask = Callable[[int, Order], Coroutine[Any, Any, PassResult]]


class Pipeline:
    """Passes through all parts, which run concurrently and send each other values and cotangents.

    Parameters
    ----------
    plan : Plan
        The stages.
    ask : callable
        Runs the pass through one part.
    renew : callable
        Begins a new epoch (the number of an attempt), in which parts drop the values of earlier ones.
    peers : mapping
        The machine of each part.
    """

    def __init__(self, plan: Plan, ask: Ask, renew: Callable[[], int], peers: Mapping[int, tuple[str, str]]) -> None:
        self.plan, self._ask, self._renew, self._peers = plan, ask, renew, dict(peers)

    async def forward(self, batches: Sequence[Feed], weights: Sequence[float]) -> list[Any]:
        """The output for each micro-batch."""
        return (await self._through(batches, weights, "forward", False))[0]

    async def there_and_back(self, batches: Sequence[Feed], weights: Sequence[float], then: str) -> tuple[list[Any], Any]:
        """The output for each micro-batch, and the packed gradients; after `then` "prepare" all parts are ready to step."""
        values, passed = await self._through(batches, weights, then, False)
        if any(p.met_nan for p in passed):
            values, passed = await self._through(batches, weights, then, True)
        for refused in [p.refused for p in passed if p.refused is not None]:
            unwrap(refused)
        return values, {i: slope for p in passed for i, slope in p.slopes.items()}

    async def _through(
        self, batches: Sequence[Feed], weights: Sequence[float], then: str, careful: bool
    ) -> tuple[list[Any], list[PassResult]]:
        epoch = self._renew()
        feeds = self._packed(batches)

        def order(part: int) -> Order:
            read = {key for piece in self.plan.pieces if piece.part == part for key in piece.links.feeds}
            mine = [{key: values[key] for key in read} for values in feeds]
            return Order(epoch, mine, then, list(weights), careful, self._peers)

        parts = sorted({piece.part for piece in self.plan.pieces})
        passed = await together(self._ask(part, order(part)) for part in parts)
        return [unpack(value)[()] for p in passed for value in p.values], passed

    def _packed(self, batches: Sequence[Feed]) -> list[dict[Any, Packed]]:
        """The placeholders' values by key; one that all micro-batches share is packed, and sent, once."""
        different = {id(value): value for feed in batches for value in feed.values()}
        known = {number: pack(value) for number, value in different.items()}
        return [{("feed", i): known[id(feed[node])] for node, i in self.plan.feeds.items()} for feed in batches]
