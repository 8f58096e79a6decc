"""The machines of the parts: membership, placement of parts, and calls that end if their machine is lost."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
import uuid
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from ..cluster import Actor, WorkerRegistry
from .messages import LostError, unwrap
from .part_pass import PassRequest, PassResult
from .server import PartActor, PartServer

_log = logging.getLogger(__name__)
POLL_INTERVAL = 0.25  # seconds between checks of the machine of a running call
RETRY_DELAY = 5.0  # seconds until a lost machine is tried again
MIN_HEARTBEAT_TIMEOUT = 3.0  # minimal seconds without a heartbeat until a machine counts as lost; workers send two per second


class LocalHosts:
    """All parts in this process."""

    def __init__(self) -> None:
        self._server = PartServer()
        self.addresses: dict[int, str] = {}
        self.uninitialized: set[int] = set()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in a new thread, because the thread of a notebook has a running event loop."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(contextvars.copy_context().run, asyncio.run, coroutine).result()

    async def count_machines(self) -> int:
        """Return the number of machines."""
        return 1

    async def place_parts(self, parts: Mapping[int, bytes], may_move: bool) -> None:
        """Install the parts that are not installed yet."""
        for part in set(parts).difference(self.addresses):
            unwrap(self._server.install(part, parts[part]))
            self.addresses[part] = "this process"
            self.uninitialized.add(part)

    async def call(self, part: int, attempt: int, method: str, *args: Any) -> Any:
        """Call a method of a part."""
        return unwrap(self._server.call(part, attempt, method, *args))

    @property
    def peers(self) -> dict[int, tuple[str, str]]:
        """The address of each part, for the other parts."""
        return {part: (address, "") for part, address in self.addresses.items()}

    async def pass_through(self, part: int, request: PassRequest) -> PassResult:
        """Run a pass through a part."""
        pass_result: PassResult = unwrap(await self._server.pass_through(part, request))
        return pass_result

    async def close(self) -> None:
        """Drop all parts."""
        self._server.parts.clear()
        self.addresses.clear()


class ClusterHosts:
    """The workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
        A client of the cluster.
    wait : float
        The seconds to wait for a machine, and for a heartbeat of a machine that computes.

    Attributes
    ----------
    addresses : dict
        The machine of each part.
    uninitialized : set
        The newly installed parts, which have no state yet.
    """

    def __init__(self, client: Any, wait: float) -> None:
        self.client, self.wait = client, wait
        self.addresses: dict[int, str] = {}
        self.uninitialized: set[int] = set()
        self._actors: dict[str, Any] = {}  # the futures of the actors, by address
        self._retry_times: dict[str, float] = {}  # for lost machines, the time until which they are not tried again
        self._registry = WorkerRegistry(
            client,
            "Split",
            "`kept_state_dict()` returns the last fetched state. Start a cluster, and load the state into a new Split.",
        )

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the client's event loop. An interrupt of this call cancels it."""
        finished = threading.Event()

        async def run_to_end() -> Any:
            try:
                return await coroutine
            finally:
                finished.set()

        future = asyncio.run_coroutine_threadsafe(run_to_end(), self.client.loop.asyncio_loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            finished.wait(RETRY_DELAY)
            raise

    # --------------------------------------------------------------------------------------- membership

    async def _refresh(self) -> None:
        """Update the list of workers if it is older than `POLL_INTERVAL`."""
        await self._registry.refresh(POLL_INTERVAL)
        self._registry.require_scheduler()

    def _is_alive(self, address: str) -> bool:
        now = time.monotonic()
        if address not in self._registry.workers or self._retry_times.get(address, 0) > now:
            return False
        return now - self._registry.last_heartbeat[address] < max(self.wait, MIN_HEARTBEAT_TIMEOUT)

    def _mark_lost(self, address: str) -> None:
        if address in self._actors:
            parts = [part for part, home in self.addresses.items() if home == address]
            _log.warning("%s is lost, with parts %s", address, parts)
        self._retry_times[address] = time.monotonic() + RETRY_DELAY
        self._release(address)

    def _release(self, address: str) -> None:
        future = self._actors.pop(address, None)
        if future is not None:
            future.release()
        self.addresses = {part: home for part, home in self.addresses.items() if home != address}

    # ---------------------------------------------------------------------------------- placement of parts

    async def count_machines(self) -> int:
        """Return the number of machines, after waiting for the first."""
        return len(await self._wait_for_machines())

    async def _wait_for_machines(self) -> list[str]:
        deadline = time.monotonic() + self.wait
        while True:
            await self._refresh()
            alive = [address for address in self._registry.workers if self._is_alive(address)]
            if alive:
                return alive
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"Split: there was no machine for {self.wait:g} s. Start a machine, then call again. The parts continue from "
                    "the last fetched state."
                )
            await asyncio.sleep(POLL_INTERVAL)

    async def place_parts(self, parts: Mapping[int, bytes], may_move: bool) -> None:
        """Install each part without a machine on the machine with the fewest parts, and add it to `uninitialized`.

        With `may_move`, a part on a shared machine moves to a machine without parts.
        """
        while True:
            alive = await self._wait_for_machines()
            for address in [a for a in self._actors if a not in alive]:
                self._mark_lost(address)
            if may_move and (moving_part := self._part_to_move(alive)) is not None:
                await self._remove(moving_part)
            missing_parts = [part for part in parts if part not in self.addresses]
            if not missing_parts:
                return
            for part in missing_parts:
                address = min(alive, key=lambda a: sum(other == a for other in self.addresses.values()))
                try:
                    await self._install(part, address, parts[part])
                except LostError:
                    break

    def _part_to_move(self, alive: list[str]) -> int | None:
        """Return a part on a shared machine if there is a machine without parts."""
        part_addresses = list(self.addresses.values())
        if not set(alive) - set(part_addresses):
            return None
        parts_on_shared_machines = [part for part, address in self.addresses.items() if part_addresses.count(address) > 1]
        return max(parts_on_shared_machines, default=None)

    async def _remove(self, part: int) -> None:
        address = self.addresses.pop(part)
        _log.info("part %d moves away from %s", part, address)
        with suppress(LostError):
            unwrap(await self._call_actor(address, "drop", part))

    async def _install(self, part: int, address: str, pickled: bytes) -> None:
        if address not in self._actors:
            self._actors[address] = future = self.client.submit(
                PartActor, actor=True, workers=[address], allow_other_workers=False, pure=False, key=f"split-{uuid.uuid4().hex}"
            )
            await self._await_result(address, asyncio.ensure_future(future.result()))
        _log.debug("part %d (%d bytes) is sent to %s", part, len(pickled), address)
        unwrap(await self._call_actor(address, "install", part, pickled))
        _log.info("part %d runs on %s", part, address)
        self.addresses[part] = address
        self.uninitialized.add(part)

    # --------------------------------------------------------------------------------------------- calls

    async def call(self, part: int, attempt: int, method: str, *args: Any) -> Any:
        """Call a method of a part. Raise a LostError if its machine is lost."""
        if part not in self.addresses:
            raise LostError
        return unwrap(await self._call_actor(self.addresses[part], "call", part, attempt, method, *args))

    @property
    def peers(self) -> dict[int, tuple[str, str]]:
        """For each part, the address of its machine, and the key of the actor."""
        return {part: (address, self._actors[address].key) for part, address in self.addresses.items()}

    async def pass_through(self, part: int, request: PassRequest) -> PassResult:
        """Run a pass through a part. Raise a LostError if its machine, or a machine that it sends to, is lost."""
        if part not in self.addresses:
            raise LostError
        response = await self._call_actor(self.addresses[part], "pass_through", part, request)
        if response[0] == "lost":
            self._mark_lost(request.peers[response[1]][0])
            raise LostError
        pass_result: PassResult = unwrap(response)
        return pass_result

    async def _call_actor(self, address: str, method: str, *args: object) -> Any:
        if address not in self._actors or self._actors[address].status not in ("finished", "pending"):
            self._mark_lost(address)
            raise LostError
        actor = Actor(self.client, address, self._actors[address])
        return await self._await_result(address, asyncio.ensure_future(actor.call(method, *args)))

    async def _await_result(self, address: str, task: asyncio.Future[Any]) -> Any:
        """Wait for the result of a call. Raise a LostError if the machine is lost meanwhile."""
        try:
            while not (await asyncio.wait({task}, timeout=POLL_INTERVAL))[0]:
                await self._refresh()
                if address not in self._actors or not self._is_alive(address):
                    self._mark_lost(address)
                    raise LostError
            return task.result()
        except (OSError, KeyError) as error:  # a KeyError if another process has its address
            if task.done() and not task.cancelled() and task.exception() is error:
                self._mark_lost(address)
                raise LostError from error
            raise
        finally:
            task.cancel()

    async def close(self) -> None:
        """Drop all parts."""
        for address in list(self._actors):
            self._release(address)
            _log.info("%s is released", address)
