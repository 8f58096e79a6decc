"""The machines on which parts live: who is there, who has fallen, and calls that end in any case."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
import uuid
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from .stage import Machine

LOOK = 0.25  # seconds after which a call that has not ended looks whether its machine lives
ANSWER = 5.0  # seconds in which the scheduler has to answer, and for which a machine that could not be reached is left alone
SILENT = 3.0  # seconds without a heartbeat, of which there are two a second, that are no sign of anything
GONE = 10.0  # seconds without an answer after which the scheduler is taken for gone


class LostError(Exception):
    """The machine of a part cannot be reached any more."""


class RemoteError(Exception):
    """Where in a part something was raised."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


def unwrapped(told: tuple[Any, ...]) -> Any:
    """What a machine told, or raise what was raised there."""
    if told[0] == "ok":
        return told[1]
    _, error, text = told
    raise error from RemoteError(text)


class Here:
    """All parts in this process, one after the other."""

    def __init__(self) -> None:
        self._machine = Machine()
        self.address: dict[int, str] = {}
        self.fresh: set[int] = set()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """What a coroutine of calls gives; in a thread of its own, since that of a notebook runs a loop already."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(contextvars.copy_context().run, asyncio.run, coroutine).result()

    async def count(self) -> int:
        """How many machines there are."""
        return 1

    async def settle(self, parts: Mapping[int, bytes], may_move: bool) -> None:
        """Take in the parts that are not here yet."""
        for part in set(parts).difference(self.address):
            unwrapped(self._machine.install(part, parts[part]))
            self.address[part] = "this process"
            self.fresh.add(part)

    async def call(self, part: int, epoch: int, method: str, *args: Any) -> Any:
        """Call a method of a part."""
        return unwrapped(self._machine.call(part, epoch, method, args))

    async def close(self) -> None:
        """Let go of all parts."""
        self._machine.parts.clear()
        self.address.clear()


class Machines:
    """The workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    wait : float
        For how many seconds one waits for a machine if there is none, and for a sign of life of one that works.

    Attributes
    ----------
    address : dict
        Where each part lives.
    fresh : set
        The parts that were taken in anew and have no state yet.
    """

    def __init__(self, client: Any, wait: float) -> None:
        self.client, self.wait = client, wait
        self.address: dict[int, str] = {}
        self.fresh: set[int] = set()
        self._actors: dict[str, tuple[Any, Any]] = {}
        self._living: dict[str, tuple[float, float]] = {}  # when the scheduler last heard of each, and since when we know that
        self._left: dict[str, float] = {}  # who could not be reached: until when nobody tries again
        self._looked = -1e9
        self._failing: float | None = None  # since when the scheduler does not answer
        self._looking: asyncio.Lock | None = None

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """What a coroutine gives, which is run where the client runs its own; given up, and ended, if this is interrupted."""
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
            ended.wait(ANSWER)
            raise

    # ------------------------------------------------------------------------------------- who is there

    async def _look(self, age: float = LOOK) -> None:
        """Ask the scheduler who is there, unless that is known from a moment ago."""
        if self._looking is None:
            self._looking = asyncio.Lock()
        async with self._looking:
            now = time.monotonic()
            if now - self._looked < age:
                return
            try:
                found = await asyncio.wait_for(self.client.scheduler.identity(n_workers=-1), ANSWER)
            except OSError as error:
                self._failing = now if self._failing is None else self._failing
                if time.monotonic() - self._failing > GONE or self.client.status == "closed":
                    raise ConnectionError(
                        "the scheduler does not answer any more, so nobody knows which machines are there; the state after the "
                        "last steps that were kept is in `kept_state_dict()`: start a cluster, make another Split, and load it"
                    ) from error
                self._looked = time.monotonic()
                return
            self._looked, self._failing = time.monotonic(), None
            self._note(found["workers"], self._looked)

    def _note(self, workers: Mapping[str, Any], now: float) -> None:
        before, self._living = self._living, {}
        for address, worker in workers.items():
            heard, since = before.get(address, (None, now))
            self._living[address] = (worker["last_seen"], since if worker["last_seen"] == heard else now)

    def _is_alive(self, address: str) -> bool:
        if address not in self._living or self._left.get(address, 0) > time.monotonic():
            return False
        return time.monotonic() - self._living[address][1] < max(self.wait, SILENT)

    def _lose(self, address: str) -> None:
        self._left[address] = time.monotonic() + ANSWER
        future, _ = self._actors.pop(address, (None, None))
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
            alive = [address for address in self._living if self._is_alive(address)]
            if alive:
                return alive
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"there was no machine for {self.wait:g} s; the parts go on once there is one, from the state that was kept"
                )
            await asyncio.sleep(LOOK)

    async def settle(self, parts: Mapping[int, bytes], may_move: bool) -> None:
        """Find a machine for each part that has none that lives, the one with fewest parts; such parts are then `fresh`.

        If it `may_move`, a part that shares its machine goes to one that has none.
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
        taken = list(self.address.values())
        if not set(alive) - set(taken):
            return None
        return next((part for part, where in sorted(self.address.items(), reverse=True) if taken.count(where) > 1), None)

    async def _let_go(self, part: int) -> None:
        where = self.address.pop(part)
        with suppress(LostError):
            unwrapped(await self._asked(where, "drop", part))

    async def _install(self, part: int, where: str, shipped: bytes) -> None:
        if where not in self._actors:
            future = self.client.submit(
                Machine, actor=True, workers=[where], allow_other_workers=False, pure=False, key=f"split-{uuid.uuid4().hex}"
            )
            self._actors[where] = future, None
            actor = await self._ended(where, asyncio.ensure_future(_result_of(future)))
            self._actors[where] = future, actor
        unwrapped(await self._asked(where, "install", part, shipped))
        self.address[part] = where
        self.fresh.add(part)

    # --------------------------------------------------------------------------------------------- calls

    async def call(self, part: int, epoch: int, method: str, *args: Any) -> Any:
        """Call a method of a part; raises a LostError if its machine falls."""
        if part not in self.address:
            raise LostError
        return unwrapped(await self._asked(self.address[part], "call", part, epoch, method, args))

    async def _asked(self, address: str, method: str, *args: Any) -> Any:
        if address not in self._actors:
            raise LostError
        try:
            call = getattr(self._actors[address][1], method)
        except RuntimeError as error:  # dask's own word for a worker that is gone
            self._lose(address)
            raise LostError from error
        return await self._ended(address, asyncio.ensure_future(_result_of(call(*args))))

    async def _ended(self, address: str, task: asyncio.Future[Any]) -> Any:
        """The result of a call, as long as the machine lives."""
        try:
            while not (await asyncio.wait({task}, timeout=LOOK))[0]:
                await self._look()
                if address not in self._actors or not self._is_alive(address):
                    self._lose(address)
                    raise LostError
            return task.result()
        except OSError as error:
            if task.done() and not task.cancelled() and task.exception() is error:
                self._lose(address)
                raise LostError from error
            raise
        finally:
            task.cancel()

    async def close(self) -> None:
        """Let go of all parts."""
        for address in list(self._actors):
            self._lose(address)


async def _result_of(awaitable: Any) -> Any:
    return await awaitable
