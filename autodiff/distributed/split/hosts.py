"""The machines on which parts live: which there are, which were lost, and calls that end even if theirs is lost."""

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
from .parts import LostError, Machine, Order, PassResult, Resident, unwrap

_log = logging.getLogger(__name__)
LOOK = 0.25  # seconds after which a call that has not ended checks whether its machine is alive
LEFT_ALONE = 5.0  # seconds for which a machine that could not be reached is not tried again
SILENT = 3.0  # seconds without a heartbeat (there are two a second) that do not mean a machine is lost


class Here:
    """All parts in this process, one after the other."""

    def __init__(self) -> None:
        self._machine = Machine()
        self.address: dict[int, str] = {}
        self.fresh: set[int] = set()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """The result of a coroutine of calls. It runs in a thread of its own, since that of a notebook has a running loop."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(contextvars.copy_context().run, asyncio.run, coroutine).result()

    async def count(self) -> int:
        """How many machines there are."""
        return 1

    async def settle(self, parts: Mapping[int, bytes], may_move: bool) -> None:
        """Install the parts that are not here yet."""
        for part in set(parts).difference(self.address):
            unwrap(self._machine.install(part, parts[part]))
            self.address[part] = "this process"
            self.fresh.add(part)

    async def call(self, part: int, epoch: int, method: str, *args: object) -> Any:
        """Call a method of a part."""
        return unwrap(self._machine.call(part, epoch, method, *args))

    @property
    def peers(self) -> dict[int, tuple[str, str]]:
        """Where each part lives, for the others."""
        return {part: (where, "") for part, where in self.address.items()}

    async def pass_through(self, part: int, order: Order) -> PassResult:
        """Run a pass through a part."""
        pass_result: PassResult = unwrap(await self._machine.pass_through(part, order))
        return pass_result

    async def close(self) -> None:
        """Drop all parts."""
        self._machine.parts.clear()
        self.address.clear()


class Machines:
    """The workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
        A client of the cluster.
    wait : float
        The seconds to wait if no machine is available, and for a sign of life of a working one.

    Attributes
    ----------
    address : dict
        The machine of each part.
    fresh : set
        The parts that were newly installed and have no state yet.
    """

    def __init__(self, client: Any, wait: float) -> None:
        self.client, self.wait = client, wait
        self.address: dict[int, str] = {}
        self.fresh: set[int] = set()
        self._actors: dict[str, Any] = {}  # the futures of what runs there
        self._left: dict[str, float] = {}  # machines that could not be reached: until when they are not tried again
        self._registry = WorkerRegistry(
            client,
            "Split",
            "The state that was kept last is in `kept_state_dict()`: start a cluster, make another Split, and load it",
        )

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """The result of a coroutine, run on the client's event loop; it is cancelled if this call is interrupted."""
        ended = threading.Event()

        async def running() -> Any:
            try:
                return await coroutine
            finally:
                ended.set()

        future = asyncio.run_coroutine_threadsafe(running(), self.client.loop.asyncio_loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            ended.wait(LEFT_ALONE)
            raise

    # ------------------------------------------------------------------------------------- who is there

    async def _look(self) -> None:
        """Request the workers from the scheduler, unless the last request was a moment ago."""
        await self._registry.refresh(LOOK)
        self._registry.require_scheduler()

    def _is_alive(self, address: str) -> bool:
        now = time.monotonic()
        if address not in self._registry.workers or self._left.get(address, 0) > now:
            return False
        return now - self._registry.last_reply[address] < max(self.wait, SILENT)

    def _lose(self, address: str) -> None:
        if address in self._actors:
            _log.warning("%s is lost, with parts %s", address, [part for part, where in self.address.items() if where == address])
        self._left[address] = time.monotonic() + LEFT_ALONE
        self._release(address)

    def _release(self, address: str) -> None:
        future = self._actors.pop(address, None)
        if future is not None:
            future.release()
        self.address = {part: where for part, where in self.address.items() if where != address}

    # ---------------------------------------------------------------------------------- where parts live

    async def count(self) -> int:
        """How many machines there are; waits for the first."""
        return len(await self._alive())

    async def _alive(self) -> list[str]:
        deadline = time.monotonic() + self.wait
        while True:
            await self._look()
            alive = [address for address in self._registry.workers if self._is_alive(address)]
            if alive:
                return alive
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"there was no machine for {self.wait:g} s; the parts continue from the kept state as soon as a machine joins"
                )
            await asyncio.sleep(LOOK)

    async def settle(self, parts: Mapping[int, bytes], may_move: bool) -> None:
        """Install each part without a living machine on the one with fewest parts; such parts are then `fresh`.

        With `may_move`, a part that shares its machine moves to one that has none.
        """
        while True:
            alive = await self._alive()
            for address in [a for a in self._actors if a not in alive]:
                self._lose(address)
            if may_move and (crowded := self._crowded(alive)) is not None:
                await self._let_go(crowded)
            missing = [part for part in parts if part not in self.address]
            if not missing:
                return
            for part in missing:
                where = min(alive, key=lambda a: sum(other == a for other in self.address.values()))
                try:
                    await self._install(part, where, parts[part])
                except LostError:
                    break

    def _crowded(self, alive: list[str]) -> int | None:
        """A part that could have a machine for itself."""
        part_addresses = list(self.address.values())
        if not set(alive) - set(part_addresses):
            return None
        return next((part for part, where in sorted(self.address.items(), reverse=True) if part_addresses.count(where) > 1), None)

    async def _let_go(self, part: int) -> None:
        where = self.address.pop(part)
        _log.info("part %d moves away from %s", part, where)
        with suppress(LostError):
            unwrap(await self._call_actor(where, "drop", part))

    async def _install(self, part: int, where: str, shipped: bytes) -> None:
        if where not in self._actors:
            self._actors[where] = future = self.client.submit(
                Resident, actor=True, workers=[where], allow_other_workers=False, pure=False, key=f"split-{uuid.uuid4().hex}"
            )
            await self._ended(where, asyncio.ensure_future(future.result()))
        _log.debug("part %d (%d bytes) is sent to %s", part, len(shipped), where)
        unwrap(await self._call_actor(where, "install", part, shipped))
        _log.info("part %d runs on %s", part, where)
        self.address[part] = where
        self.fresh.add(part)

    # --------------------------------------------------------------------------------------------- calls

    async def call(self, part: int, epoch: int, method: str, *args: object) -> Any:
        """Call a method of a part; raises a LostError if its machine is lost."""
        if part not in self.address:
            raise LostError
        return unwrap(await self._call_actor(self.address[part], "call", part, epoch, method, *args))

    @property
    def peers(self) -> dict[int, tuple[str, str]]:
        """Where each part lives, for the others: the address of the machine, and the key of its actor."""
        return {part: (where, self._actors[where].key) for part, where in self.address.items()}

    async def pass_through(self, part: int, order: Order) -> PassResult:
        """Run a pass through a part; raises a LostError if its machine, or one that it has to reach, is lost."""
        if part not in self.address:
            raise LostError
        response = await self._call_actor(self.address[part], "pass_through", part, order)
        if response[0] == "lost":
            self._lose(order.peers[response[1]][0])
            raise LostError
        passed: PassResult = unwrap(response)
        return passed

    async def _call_actor(self, address: str, method: str, *args: object) -> Any:
        if address not in self._actors or self._actors[address].status not in ("finished", "pending"):
            self._lose(address)
            raise LostError
        actor = Actor(self.client, address, self._actors[address])
        return await self._ended(address, asyncio.ensure_future(actor.call(method, *args)))

    async def _ended(self, address: str, task: asyncio.Future[Any]) -> Any:
        """The result of a call, as long as the machine lives."""
        try:
            while not (await asyncio.wait({task}, timeout=LOOK))[0]:
                await self._look()
                if address not in self._actors or not self._is_alive(address):
                    self._lose(address)
                    raise LostError
            return task.result()
        except (OSError, KeyError) as error:  # a KeyError if another process has its address by now
            if task.done() and not task.cancelled() and task.exception() is error:
                self._lose(address)
                raise LostError from error
            raise
        finally:
            task.cancel()

    async def close(self) -> None:
        """Drop all parts."""
        for address in list(self._actors):
            self._release(address)
            _log.info("%s is released", address)
