"""One pass of some micro-batches through one part, on its machine.

Each stage runs as soon as its inputs have arrived. A part sends values to other parts directly, not through the client; a reply
contains the cotangents of the values. The client requests a pass from every part, and gets a `PassResult` when it is complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from compgraph.array_types import Array

from .messages import Packed, error_response, pack, unpack
from .part import RESULT, Key, Links, Part, StageGraph, StagePass, sum_by_port, weighted_sum

Compute = Callable[..., Awaitable[Any]]  # compute(function, *args)
Payload = dict[Any, Any]  # values by ("value", micro-batch, key), cotangents by ("cotangent", micro-batch, key)
Send = Callable[[int, Payload, list[Any]], Awaitable[Payload]]  # send(part, values, keys of the returned cotangents)


class PassRequest(NamedTuple):
    """The work of a part in a pass.

    A named tuple is pickled as one object, whereas Dask serializes a plain tuple item by item.

    Attributes
    ----------
    attempt : int
        The number of the attempt. Values of earlier attempts are dropped.
    feeds : list of dict
        For each micro-batch, the values of the placeholders.
    mode : str
        "forward" computes values alone, "gradient" also the gradient, "prepare" prepares a step of the optimizer.
    weights : list of float
        The fraction of the rows of the batch in each micro-batch.
    with_supports : bool
        Whether cotangents are sent with their supports, so that structural zeros stay zero in all parts (see
        `autodiff.reverse`).
    peers : dict
        For each part, the address of the machine, and the key of its actor.
    """

    attempt: int
    feeds: list[dict[Key, Packed]]
    mode: str
    weights: list[float]
    with_supports: bool
    peers: dict[int, tuple[str, str]]


class PassResult(NamedTuple):
    """The result of a pass in one part.

    Attributes
    ----------
    values : list of Packed
        The output for each micro-batch; empty if another part computes it.
    has_nan : bool
        Whether a cotangent contains NaN.
    gradients : dict
        The gradients, if requested.
    step_error : tuple or None
        The error that prevents the step, as returned by `messages.error_response`.
    """

    values: list[Packed]
    has_nan: bool
    gradients: dict[int, Packed]
    step_error: Any


class Mailbox:
    """Values from other stages, by key. A reader waits until its value arrives."""

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt
        self._futures: dict[Any, asyncio.Future[Any]] = {}
        self._is_closed = False

    def close(self) -> None:
        """Cancel all waiting readers, and later ones that wait for a value."""
        self._is_closed = True
        for future in self._futures.values():
            future.cancel()

    def _future(self, key: object) -> asyncio.Future[Any]:
        if key not in self._futures:
            self._futures[key] = asyncio.get_running_loop().create_future()
            if self._is_closed:
                self._futures[key].cancel()
        return self._futures[key]

    def put(self, payload: Payload) -> None:
        """Deliver values."""
        for key, value in payload.items():
            future = self._future(key)
            if not future.done():
                future.set_result(value)

    async def take(self, key: object) -> Any:
        """Wait for a value and remove it."""
        value = await self._future(key)
        self._futures.pop(key, None)
        return value

    async def peek(self, key: object) -> Any:
        """Wait for a value without removing it, because it has several readers."""
        return await self._future(key)


async def gather_or_cancel(awaitables: Iterable[Awaitable[Any]]) -> list[Any]:
    """Return all results. If one raises, cancel the others, wait until they have finished, and raise the first error."""
    tasks = [asyncio.ensure_future(a) for a in awaitables]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


class TaskGroup:
    """Concurrent tasks, which may add further tasks."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._completion: Any = None

    def add(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Start another task."""
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._handle_end)

    def _handle_end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if self._completion.done():
            return
        if task.cancelled():
            self._completion.cancel()
        elif error is not None:
            self._completion.set_exception(error)
        elif not self._tasks:
            self._completion.set_result(None)

    async def run(self, *coroutines: Coroutine[Any, Any, Any]) -> None:
        """Run coroutines, and the tasks that they add. If one raises or is cancelled, cancel the others and raise the error."""
        self._completion = asyncio.get_running_loop().create_future()
        for coroutine in coroutines:
            self.add(coroutine)
        try:
            await self._completion
        finally:
            remaining = list(self._tasks)
            for task in remaining:
                task.cancel()
            await asyncio.gather(*remaining, return_exceptions=True)


class Pass:
    """One pass of some micro-batches through one part.

    Parameters
    ----------
    part : Part
        The part.
    request : PassRequest
        The feeds, mode and weights of the pass.
    mailbox : Mailbox
        The values and cotangents that other parts send to this part.
    compute : callable
        Runs a slow function; on a worker, in a thread, so that the event loop is not blocked.
    send_message : callable
        Sends values to a part, and returns their cotangents.
    """

    def __init__(self, part: Part, request: PassRequest, mailbox: Mailbox, compute: Compute, send_message: Send) -> None:
        self.part, self.request, self.mailbox = part, request, mailbox
        self.compute, self.send_message = compute, send_message
        self.values: dict[int, Packed] = {}
        self.has_nan = False
        self._tasks = TaskGroup()
        self._stage_passes: dict[Any, StagePass] = {}
        # Cotangents by parameter, micro-batch and port; each reader of a parameter has a port.
        self._parameter_cotangents: dict[int, dict[int, dict[int, Any]]] = {}

    async def run(self) -> PassResult:
        """Run the pass."""
        count = len(self.request.feeds)
        await self._tasks.run(self._send_parameters(), *[self._run_micro_batch(micro_batch) for micro_batch in range(count)])
        gradients: dict[int, Packed] = {}
        step_error = None
        if self.request.mode != "forward" and self.part.arrays:
            await self._collect_cotangents(count)
            if self.request.mode == "gradient":
                gradients = await self.compute(lambda: {i: pack(g) for i, g in self._gradients().items()})
            else:
                step_error = await self._prepare_step()
        return PassResult([self.values[k] for k in sorted(self.values)], self.has_nan, gradients, step_error)

    async def _send_parameters(self) -> None:
        """Send parameters to the parts that read them."""
        payloads: dict[int, Payload] = {}
        awaited_keys: dict[int, list[Any]] = {}
        for key, (is_differentiable, reader) in self.part.remote_readers.items():
            payloads.setdefault(reader, {})["value", None, key] = self.part.arrays[self.part.port_parameters[key]]
            micro_batches = range(len(self.request.feeds) if is_differentiable else 0)
            awaited_keys.setdefault(reader, []).extend([("cotangent", micro_batch, key) for micro_batch in micro_batches])
        if payloads:
            packed = await self.compute(lambda: {p: {key: pack(x) for key, x in v.items()} for p, v in payloads.items()})
            self._dispatch_payloads(packed, awaited_keys)

    async def _run_micro_batch(self, micro_batch: int) -> None:
        """Run one micro-batch forward and backward."""
        await gather_or_cancel(self._forward(links, graph, micro_batch) for links, graph in self.part.stages)
        if self.request.mode != "forward":
            await gather_or_cancel(self._backward(links, micro_batch) for links, _ in self.part.stages if links.has_backward)

    def _dispatch_payloads(self, payloads: Mapping[int, Payload], awaited_keys: Mapping[int, list[Any]]) -> None:
        """Send values to other parts. Put values for this part, and the returned cotangents, into the mailbox."""
        self.mailbox.put(payloads.get(self.part.number, {}))
        for part, payload in payloads.items():
            if part != self.part.number:
                self._tasks.add(self._exchange(part, payload, awaited_keys.get(part, [])))

    async def _exchange(self, part: int, payload: Payload, awaited_keys: list[Any]) -> None:
        self.mailbox.put(await self.send_message(part, payload, awaited_keys if self.request.mode != "forward" else []))

    # ------------------------------------------------------------------------------------------- forward

    async def _forward(self, links: Links, graph: StageGraph, micro_batch: int) -> None:
        """Compute a stage as soon as its inputs have arrived."""
        inputs = {key: self.request.feeds[micro_batch][key] for key in links.feeds}
        for key in links.input_keys:
            inputs[key] = await self.mailbox.take(("value", micro_batch, key))
        for key in links.remote_parameters:
            inputs[key] = await self.mailbox.peek(("value", None, key))
        awaited_keys: dict[int, list[Any]] = {}
        for key in links.awaited_outputs:
            awaited_keys.setdefault(links.output_parts[key], []).append(("cotangent", micro_batch, key))
        self._dispatch_payloads(await self.compute(self._compute_stage, links, graph, micro_batch, inputs), awaited_keys)

    def _compute_stage(self, links: Links, graph: StageGraph, micro_batch: int, inputs: Mapping[Key, Any]) -> dict[int, Payload]:
        values: dict[Key, Any] = {}
        for key in graph.input_nodes:
            if key in inputs:
                values[key] = _unpack_if_packed(inputs[key])
            else:
                index = self.part.port_parameters.get(key, key[1])  # of the key ("port", number) or ("parameter", index)
                values[key] = self.part.arrays[index]
        stage_pass = graph.forward(values)
        if self.request.mode != "forward" and links.has_backward:
            self._stage_passes[links.stage, micro_batch] = stage_pass
        payloads: dict[int, Payload] = {}
        for key, node in stage_pass.outputs.items():
            if key == RESULT:
                self.values[micro_batch] = pack(node.raw_value)
                continue
            target = links.output_parts[key]
            value = np.asarray(node.raw_value) if target == self.part.number else pack(node.raw_value)
            payloads.setdefault(target, {})["value", micro_batch, key] = value
        return payloads

    # ------------------------------------------------------------------------------------------ backward

    async def _backward(self, links: Links, micro_batch: int) -> None:
        """Pass cotangents back through a stage once all of them have arrived."""
        output_cotangents = {key: await self.mailbox.take(("cotangent", micro_batch, key)) for key in links.awaited_outputs}
        self.mailbox.put(await self.compute(self._compute_cotangents, links, micro_batch, output_cotangents))

    def _compute_cotangents(self, links: Links, micro_batch: int, output_cotangents: Mapping[Key, Any]) -> Payload:
        """Return the cotangents of the inputs of a stage, except those of parameters of this part, which `_gradients` sums."""
        stage_pass, with_supports = self._stage_passes.pop((links.stage, micro_batch)), self.request.with_supports
        cotangents = {key: tuple(map(_unpack_if_packed, pair)) for key, pair in output_cotangents.items()}
        if RESULT in stage_pass.outputs:
            ones = np.ones_like(unpack(self.values[micro_batch]))
            cotangents[RESULT] = (ones, np.ones(ones.shape)) if with_supports else (ones,)
        input_cotangents = stage_pass.backward({k: cotangents[k] for k in stage_pass.outputs if k in cotangents}, with_supports)
        payload: Payload = {}
        for key, (cotangent, *support) in input_cotangents.items():
            self.has_nan |= bool(np.isnan(cotangent).any())
            if key[0] == "parameter":
                self._add_cotangent(key[1], micro_batch, 0, cotangent)
            elif key in self.part.port_parameters:
                self._add_cotangent(self.part.port_parameters[key], micro_batch, key[1], cotangent)
            else:
                is_local = links.cotangent_parts[key] == self.part.number
                pair = (cotangent, *support)
                payload["cotangent", micro_batch, key] = pair if is_local else tuple(map(pack, pair))
        return payload

    # ------------------------------------------------------------------------------------- the gradients

    async def _collect_cotangents(self, count: int) -> None:
        """Wait for the cotangents of parameters that are read by other parts."""
        for key, (is_differentiable, _) in self.part.remote_readers.items():
            for micro_batch in range(count if is_differentiable else 0):
                cotangent, *_ = await self.mailbox.take(("cotangent", micro_batch, key))
                self._add_cotangent(self.part.port_parameters[key], micro_batch, key[1], unpack(cotangent))

    def _add_cotangent(self, index: int, micro_batch: int, port: int, cotangent: Array) -> None:
        self._parameter_cotangents.setdefault(index, {}).setdefault(micro_batch, {})[port] = cotangent

    def _gradients(self) -> dict[int, Any]:
        """Sum the cotangents of each parameter over its readers; then take the weighted sum over the micro-batches."""
        weights: Sequence[float] = self.request.weights
        micro_batches = range(len(weights))
        by_micro_batch = {i: [sum_by_port(self._parameter_cotangents[i][m]) for m in micro_batches] for i in self.part.arrays}
        return {i: weighted_sum(cotangents, weights) for i, cotangents in by_micro_batch.items()}

    async def _prepare_step(self) -> Any:
        """Check and store the gradients of a step. Return the error response if that fails, else None.

        The client ignores the error if a cotangent contains NaN, and repeats the pass.
        """
        try:
            self.part.prepared_gradients = await self.compute(lambda: self.part.check_gradients(self._gradients()))
        except Exception as error:
            return error_response(error)
        return None


def _unpack_if_packed(value: Any) -> Any:
    return unpack(value) if isinstance(value, Packed) else value
