"""One pass of some micro-batches through one part, on its machine.

Each stage runs as soon as its inputs are there. Values go from part to part directly, not through the client, and are answered by
their cotangents. The client requests its share of the pass from every part, and gets an answer when that is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .packing import Packed, pack, unpack
from .part import Part, summed, weighed
from .responses import error_response
from .stage import RESULT, Key, Links, Record, StageGraph

Compute = Callable[..., Awaitable[Any]]  # compute(function, *args)
Parcel = dict[Any, Any]  # values by ("value", micro-batch, key), adjoints by ("adjoint", micro-batch, key)
Send = Callable[[int, Parcel, list[Any]], Awaitable[Parcel]]  # send(part, values, keys of the adjoints that it answers)


class Order(NamedTuple):
    """The work of a part in a pass. (One named tuple is pickled at once; Dask inspects other tuples piece by piece.)

    Attributes
    ----------
    epoch : int
        The number of the attempt; values of earlier ones are dropped.
    feeds : list of dict
        For each micro-batch the placeholders' values.
    then : str
        "forward" for values alone, "slopes" for the gradient, "prepare" to make a step ready.
    weights : list of float
        Each micro-batch's share of the rows.
    careful : bool
        Whether the supports of cotangents are sent with them, so that structural zeros stay zero from part to part (see
        `autodiff.reverse`).
    peers : dict
        For each part the address of the machine, and the key of its actor.
    """

    epoch: int
    feeds: list[dict[Key, Packed]]
    then: str
    weights: list[float]
    careful: bool
    peers: dict[int, tuple[str, str]]


class PassResult(NamedTuple):
    """The result of a pass in one part.

    Attributes
    ----------
    values : list of Packed
        The output for each micro-batch, if it is computed here.
    met_nan : bool
        Whether a cotangent was NaN.
    slopes : dict
        The gradients, if requested.
    refused : tuple or None
        The error, packed by `responses.error_response`, that prevents a step along the gradients.
    """

    values: list[Packed]
    met_nan: bool
    slopes: dict[int, Packed]
    refused: Any


class Mail:
    """Results of other stages: a reader that comes first waits, a value that comes first is held."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self._held: dict[Any, asyncio.Future[Any]] = {}

    def close(self) -> None:
        """Cancel all who wait."""
        for future in self._held.values():
            future.cancel()

    def _future(self, key: tuple[Any, ...]) -> asyncio.Future[Any]:
        if key not in self._held:
            self._held[key] = asyncio.get_running_loop().create_future()
        return self._held[key]

    def put(self, parcel: Parcel) -> None:
        """Leave values."""
        for key, value in parcel.items():
            future = self._future(key)
            if not future.done():
                future.set_result(value)

    async def take(self, key: tuple[Any, ...]) -> Any:
        """A value for this part alone."""
        value = await self._future(key)
        self._held.pop(key, None)
        return value

    async def look(self, key: tuple[Any, ...]) -> Any:
        """A value that others look at too."""
        return await self._future(key)


async def together(awaitables: Iterable[Awaitable[Any]]) -> list[Any]:
    """The results of all; the first error is raised, once the others were cancelled and have ended."""
    tasks = [asyncio.ensure_future(a) for a in awaitables]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


class Jobs:
    """Tasks that run concurrently, and may add others."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._end: Any = None

    def add(self, job: Coroutine[Any, Any, Any]) -> None:
        """Start another task."""
        task = asyncio.ensure_future(job)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if self._end.done():
            return
        if error is not None:
            self._end.set_exception(error)
        elif not self._tasks:
            self._end.set_result(None)

    async def all(self, *jobs: Coroutine[Any, Any, Any]) -> None:
        """Run these, and those they add, to the end; the first error is raised, once the others were cancelled."""
        self._end = asyncio.get_running_loop().create_future()
        for job in jobs:
            self.add(job)
        try:
            await self._end
        finally:
            left = list(self._tasks)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)


class Pass:
    """One pass.

    Parameters
    ----------
    part : Part
        The part.
    order : Order
        The computation.
    mail : Mail
        Where others leave values and adjoints for this part.
    compute : callable
        Runs a function that may take long, off the event loop where there is a thread for that.
    send : callable
        Sends values to a part, and returns their adjoints.
    """

    def __init__(self, part: Part, order: Order, mail: Mail, compute: Compute, send: Send) -> None:
        self.part, self.order, self.mail, self.compute, self.send = part, order, mail, compute, send
        self.values: dict[int, Packed] = {}
        self.met_nan = False
        self._jobs = Jobs()
        self._records: dict[Any, Record] = {}
        self._sums: dict[int, dict[int, dict[int, Any]]] = {}  # adjoints of parameters: by micro-batch, and by port

    async def run(self) -> PassResult:
        """Run the pass."""
        count = len(self.order.feeds)
        await self._jobs.all(self._lend(), *[self._through(micro) for micro in range(count)])
        slopes: dict[int, Packed] = {}
        refused = None
        if self.order.then != "forward" and self.part.arrays:
            await self._collect(count)
            if self.order.then == "slopes":
                slopes = await self.compute(lambda: {i: pack(g) for i, g in self._gradients().items()})
            else:
                refused = await self._prepare()
        return PassResult([self.values[k] for k in sorted(self.values)], self.met_nan, slopes, refused)

    async def _lend(self) -> None:
        """Send parameters to the parts that read them."""
        parcels: dict[int, Parcel] = {}
        awaited: dict[int, list[Any]] = {}
        for key, (comes_back, borrower) in self.part.borrowers.items():
            parcels.setdefault(borrower, {})["value", None, key] = self.part.arrays[self.part.ways[key]]
            backs = range(len(self.order.feeds) if comes_back else 0)
            awaited.setdefault(borrower, []).extend([("adjoint", micro, key) for micro in backs])
        if parcels:
            packed = await self.compute(lambda: {p: {key: pack(x) for key, x in v.items()} for p, v in parcels.items()})
            self._send(packed, awaited)

    async def _through(self, micro: int) -> None:
        """One micro-batch forward, and back."""
        await together(self._forward(links, graph, micro) for links, graph in self.part.stages)
        if self.order.then != "forward":
            await together(self._backward(links, micro) for links, _ in self.part.stages if links.goes_back)

    def _send(self, parcels: Mapping[int, Parcel], awaited: Mapping[int, list[Any]]) -> None:
        """Send values to their parts, and put the returned cotangents into the mail, with the values for this part."""
        self.mail.put(parcels.get(self.part.number, {}))
        for part, parcel in parcels.items():
            if part != self.part.number:
                self._jobs.add(self._exchange(part, parcel, awaited.get(part, [])))

    async def _exchange(self, part: int, parcel: Parcel, awaited: list[Any]) -> None:
        self.mail.put(await self.send(part, parcel, awaited if self.order.then != "forward" else []))

    # ------------------------------------------------------------------------------------------- forward

    async def _forward(self, links: Links, graph: StageGraph, micro: int) -> None:
        """Compute a stage as soon as its inputs are there."""
        inputs = {key: self.order.feeds[micro][key] for key in links.feeds}
        for key in links.reads:
            inputs[key] = await self.mail.take(("value", micro, key))
        for key in links.borrows:
            inputs[key] = await self.mail.look(("value", None, key))
        awaited: dict[int, list[Any]] = {}
        for key in links.awaits:
            awaited.setdefault(links.gives[key], []).append(("adjoint", micro, key))
        self._send(await self.compute(self._computed, links, graph, micro, inputs), awaited)

    def _computed(self, links: Links, graph: StageGraph, micro: int, inputs: Mapping[Key, Any]) -> dict[int, Parcel]:
        values: dict[Key, Any] = {}
        for key in graph.stand_ins:
            if key in inputs:
                values[key] = _opened(inputs[key])
            else:
                values[key] = self.part.arrays[self.part.ways.get(key, key[1])]
        record = graph.forward(values)
        if self.order.then != "forward" and links.goes_back:
            self._records[links.stage, micro] = record
        parcels: dict[int, Parcel] = {}
        for key, node in record.ends.items():
            if key == RESULT:
                self.values[micro] = pack(node.raw_value)
                continue
            where = links.gives[key]
            value = np.asarray(node.raw_value) if where == self.part.number else pack(node.raw_value)
            parcels.setdefault(where, {})["value", micro, key] = value
        return parcels

    # ------------------------------------------------------------------------------------------ backward

    async def _backward(self, links: Links, micro: int) -> None:
        """Pass adjoints back through a stage once all of them are there."""
        output_cotangents = {key: await self.mail.take(("adjoint", micro, key)) for key in links.awaits}
        self.mail.put(await self.compute(self._passed_back, links, micro, output_cotangents))

    def _passed_back(self, links: Links, micro: int, output_cotangents: Mapping[Key, Any]) -> Parcel:
        """The adjoints of what a stage was given; those of this part's parameters are kept for `_gradients` instead."""
        record, careful = self._records.pop((links.stage, micro)), self.order.careful
        adjoints = {key: tuple(map(_opened, parts)) for key, parts in output_cotangents.items()}
        if RESULT in record.ends:
            ones = np.ones_like(unpack(self.values[micro]))
            adjoints[RESULT] = (ones, np.ones(ones.shape)) if careful else (ones,)
        input_cotangents = record.back({key: adjoints[key] for key in record.ends if key in adjoints}, careful)
        back: Parcel = {}
        for key, parts in input_cotangents.items():
            self.met_nan |= bool(np.isnan(parts[0]).any())
            if key[0] == "parameter":
                self._add(key[1], micro, 0, parts[0])
            elif key in self.part.ways:
                self._add(self.part.ways[key], micro, key[1], parts[0])
            else:
                stays = links.returns[key] == self.part.number
                back["adjoint", micro, key] = parts if stays else tuple(map(pack, parts))
        return back

    # ------------------------------------------------------------------------------------- the gradients

    async def _collect(self, count: int) -> None:
        """Wait for the adjoints of parameters that were read by other parts."""
        for key, (comes_back, _) in self.part.borrowers.items():
            for micro in range(count if comes_back else 0):
                parts = await self.mail.take(("adjoint", micro, key))
                self._add(self.part.ways[key], micro, key[1], unpack(parts[0]))

    def _add(self, index: int, micro: int, port: int, adjoint: NDArray[Any]) -> None:
        self._sums.setdefault(index, {}).setdefault(micro, {})[port] = adjoint

    def _gradients(self) -> dict[int, Any]:
        """The gradient of each parameter: the adjoints of its readers summed, youngest first; micro-batches summed by weight."""
        weights: Sequence[float] = self.order.weights
        return {i: weighed([summed(self._sums[i][micro]) for micro in range(len(weights))], weights) for i in self.part.arrays}

    async def _prepare(self) -> Any:
        """Make a step ready, or return an error, which counts only if no part met NaN: see `pipeline`."""
        try:
            self.part.ready = await self.compute(lambda: self.part.checked(self._gradients()))
        except Exception as error:
            return error_response(error)
        return None


def _opened(value: NDArray[Any] | Packed) -> Any:
    return unpack(value) if isinstance(value, Packed) else value
