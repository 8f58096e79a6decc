"""Micro-batches on their way through the stages: values forward, adjoints back, each as soon as what it needs is there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .packing import Packed, pack, unpack
from .plan import RESULT, Piece, Plan, Port
from .stage import Sent

Call = Callable[..., Coroutine[Any, Any, Any]]  # call(part, method, *args)
Feed = Mapping[Any, Any]  # the values of placeholders


async def together(awaitables: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """The results of all; the first that fails is raised, when the others have ended."""
    tasks = [asyncio.ensure_future(a) for a in awaitables]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


class Pipeline:
    """One pass of some micro-batches.

    Parameters
    ----------
    plan : Plan
        The stages.
    call : callable
        Calls a method of a part.
    renew : callable
        Lets the parts forget what has been done so far.

    Attributes
    ----------
    met_nan : bool
        Whether an adjoint was nan.
    taken : dict
        For each part, and each micro-batch, the adjoints of its parameters that other parts found.
    lent : task
        The sending of parameters to parts that read those of others.
    careful : bool
        Whether the supports of adjoints travel with them, so that what was not chosen passes nothing on (see
        `autodiff.reverse`), whichever part it was chosen in.
    """

    def __init__(self, plan: Plan, call: Call, renew: Callable[[], None] = lambda: None) -> None:
        self.plan, self.call, self._renew = plan, call, renew
        self.met_nan = self.careful = False
        self.taken: dict[int, dict[int, dict[Any, Sent]]] = {}
        self.lent: Any = None
        self._home = {port: plan.homes[plan.index[port.value]] for port in plan.ways}

    async def forward(self, batches: Sequence[Feed]) -> list[Any]:
        """The output for each micro-batch."""
        return await self._all(batches, False)

    async def there_and_back(self, batches: Sequence[Feed]) -> list[Any]:
        """The output for each micro-batch; adjoints of parameters are then where these live, or in `taken`."""
        found = await self._all(batches, True)
        if self.met_nan and not self.careful:
            self._renew()
            self.careful, self.taken = True, {}
            found = await self._all(batches, True)
        return found

    async def _all(self, batches: Sequence[Feed], back: bool) -> list[Any]:
        self.lent = asyncio.ensure_future(self._lend())
        try:
            return await together(self._one(micro, feed, back) for micro, feed in enumerate(batches))
        finally:
            self.lent.cancel()
            await asyncio.gather(self.lent, return_exceptions=True)

    async def _lend(self) -> None:
        """Send parameters that are read in other parts to these."""
        away: dict[tuple[int, int], list[Port]] = {}
        for port, home in self._home.items():
            if port.target[1] != home:
                away.setdefault((home, port.target[1]), []).append(port)

        async def lend(home: int, part: int, ports: list[Port]) -> None:
            await self.call(part, "give", await self.call(home, "lend", [_key(p) for p in ports]))

        await together(lend(home, part, ports) for (home, part), ports in away.items())

    async def _one(self, micro: int, feed: Feed, back: bool) -> Any:
        """One micro-batch: the output, after all adjoints have arrived."""
        way = _Way(self, micro, feed, back)
        await way.run(way.forward, lambda piece: [port.source for port in piece.incoming], self.plan.pieces)
        if back:
            last = [piece for piece in self.plan.pieces if piece.goes_back][::-1]
            await way.run(way.backward, lambda piece: [p.target for p in piece.outgoing if p.differentiable], last)
            for part, found in way.of_parameters().items():
                self.taken.setdefault(part, {})[micro] = found
        return unpack(way.values[RESULT])[()]


class _Way:
    """The values and adjoints of one micro-batch that go from part to part."""

    def __init__(self, pipeline: Pipeline, micro: int, feed: Feed, back: bool) -> None:
        self.pipeline, self.micro, self.feed, self.back = pipeline, micro, feed, back
        self.values: dict[Any, Packed] = {}
        self.adjoints: dict[Any, Sent] = {}

    async def run(
        self, step: Callable[[Piece], Awaitable[None]], before: Callable[[Piece], Iterable[Any]], pieces: Sequence[Piece]
    ) -> None:
        """Take a step for each piece, once it was taken for all before it."""
        ended = {piece.stage: asyncio.Event() for piece in pieces}

        async def one(piece: Piece) -> None:
            for stage in before(piece):
                if stage in ended:
                    await ended[stage].wait()
            await step(piece)
            ended[piece.stage].set()

        await together(one(piece) for piece in pieces)

    async def forward(self, piece: Piece) -> None:
        """Compute a stage."""
        if any(p.source is None and p.target[1] != self.pipeline._home[p] for p in piece.incoming):
            await asyncio.shield(self.pipeline.lent)
        given = {_key(p): self.values[_key(p)] for p in piece.incoming if _travels(p)}
        given |= {("feed", self.pipeline.plan.feeds[node]): pack(self.feed[node]) for node in piece.feeds}
        inner = [_key(p) for p in piece.outgoing if not _travels(p)]
        keeps = self.back and piece.goes_back
        self.values |= await self.pipeline.call(piece.part, "forward", piece.stage, self.micro, given, inner, keeps)

    async def backward(self, piece: Piece) -> None:
        """Pass adjoints back through a stage."""
        given = {_key(p): self.adjoints.pop(_key(p)) for p in piece.outgoing if p.differentiable and _travels(p)}
        if piece.has_result:
            ones = np.ones_like(unpack(self.values[RESULT]))
            given[RESULT] = (pack(ones), pack(np.ones(ones.shape))) if self.pipeline.careful else (pack(ones),)
        inner = [_key(p) for p in piece.incoming if p.source is not None and not _travels(p)]
        careful = self.pipeline.careful
        found, has_nan = await self.pipeline.call(piece.part, "backward", piece.stage, self.micro, given, inner, careful)
        self.adjoints |= found
        self.pipeline.met_nan |= has_nan

    def of_parameters(self) -> dict[int, dict[Any, Sent]]:
        """For each part, the adjoints of its parameters that other parts found."""
        found: dict[int, dict[Any, Sent]] = {}
        for port, home in self.pipeline._home.items():
            if _key(port) in self.adjoints:
                found.setdefault(home, {})[_key(port)] = self.adjoints.pop(_key(port))
        return found


def _key(port: Port) -> Any:
    return ("port", port.number)


def _travels(port: Port) -> bool:
    """Whether a value goes from one part to another, each time."""
    return port.source is not None and port.source[1] != port.target[1]
