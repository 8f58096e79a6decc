"""The machines of a cluster as the client knows them: which there are, how fast they are, and when each was last heard of."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import numpy as np

from ..cluster import Actor, WorkerRegistry
from .log import Log
from .machine import Machine

_log = logging.getLogger(__name__)
LOOK_EVERY = 1.0  # seconds from one request for the list of workers to the next
READY_WITHIN = 60.0  # seconds for a machine to import, and to load the loss
AGAIN_AFTER = 5.0  # seconds after which a machine that was lost, or not ready, is tried again
SLOWEST = 1e6  # bytes a second; a machine that receives data more slowly is given up
KEPT_OF_SPEED = 0.7  # a measurement counts 0.3, the one before it 0.21, and so on


class Member:
    """One machine: its actor, its speed, and its arrays.

    Attributes
    ----------
    address, name : str
        Its address, and its name in the cluster.
    speed : float or None
        Rows per second; None until measured.
    busy : asyncio.Task or None
        The unanswered request, perhaps of an earlier step.
    stored_keys : set of str
        The arrays stored with it.
    last_reply : float
        The time of the last sign of life.
    """

    def __init__(self, address: str, name: str, actor: Actor) -> None:
        self.address, self.name, self.actor = address, name, actor
        self.speed: float | None = None
        self.is_new = True
        self.busy: asyncio.Task[Any] | None = None
        self.stored_keys: set[str] = set()
        self.last_reply = time.monotonic()

    def measured(self, rows: int, took: float) -> None:
        """Update the speed by a share; the first is ignored, since it loads libraries."""
        self.last_reply = time.monotonic()
        speed = rows / max(took, 1e-6)
        if self.is_new:
            self.is_new = False
        else:
            self.speed = speed if self.speed is None else KEPT_OF_SPEED * self.speed + (1 - KEPT_OF_SPEED) * speed


class Machines:
    """The machines of a client's cluster. All but the constructor runs on the client's event loop."""

    def __init__(self, client: Any, loss: bytes, owner: str, kept: dict[str, np.ndarray], log: Log, backend: Any) -> None:
        self.client, self.loss, self.owner, self.kept, self.log, self.backend = client, loss, owner, kept, log, backend
        self.members: dict[str, Member] = {}
        self.step = 0
        self.refused: tuple[str, BaseException] | None = None  # the last machine that could not load the loss, and why
        self._joining: dict[str, asyncio.Task[None]] = {}
        self._again: dict[str, float] = {}
        self._looking: asyncio.Task[None] | None = None
        self._looked = -np.inf
        self._registry = WorkerRegistry(
            client,
            "DataParallel",
            "The parameters are as they were before this step: start a cluster, and continue with a new client",
        )

    @property
    def free(self) -> list[Member]:
        """The machines that wait for work."""
        return [m for m in self.members.values() if m.busy is None]

    @property
    def is_joining(self) -> bool:
        """Whether machines are being made ready."""
        return bool(self._joining)

    def speeds(self, members: list[Member]) -> list[float]:
        """Their speeds; for one that was not measured yet, the mean of the others."""
        known = [m.speed for m in self.members.values() if m.speed is not None]
        usual = float(np.mean(known)) if known else 1.0
        return [usual if m.speed is None else m.speed for m in members]

    # ------------------------------------------------------------------------------------------------ who is there

    def begin(self, step: int) -> None:
        """Begin a step. Silence since the last step is not a fault, because no answer was expected."""
        self.step = step
        now = time.monotonic()
        for member in self.members.values():
            member.last_reply = now

    def tick(self) -> None:
        """Ask for the list of workers, if it is time to, without waiting for the answer.

        Raises
        ------
        ConnectionError
            If the scheduler has not answered for a while.
        """
        if self._looking is not None and self._looking.done():
            self._looking = None
        due = time.monotonic() - self._looked > (LOOK_EVERY if self.members else 0.1)
        if self._looking is None and due:
            self._looked = time.monotonic()
            self._looking = asyncio.ensure_future(self._look())
        self._registry.require_scheduler()

    async def look(self) -> None:
        """Ask for the list of workers, and wait until all on it are ready, or were refused."""
        await self._look()
        if self._joining:
            await asyncio.wait(list(self._joining.values()), timeout=READY_WITHIN)

    async def _look(self) -> None:
        if not await self._registry.refresh():
            return
        workers = {a: w for a, w in self._registry.workers.items() if w.get("status", "running") == "running"}
        for address in set(self.members) - set(workers):
            self.lose(address, "lost: it left the cluster")
        for address, worker in workers.items():
            member = self.members.get(address)
            if member is not None:
                member.last_reply = max(member.last_reply, self._registry.last_reply[address])
            elif address not in self._joining and self._again.get(address, 0) <= time.monotonic():
                self._joining[address] = asyncio.ensure_future(self._join(address, str(worker.get("name", address))))

    async def _join(self, address: str, name: str) -> None:
        """Make a machine ready, in the background."""
        try:
            future = self.client.submit(
                Machine, self.loss, self.owner, None, self.backend, actor=True, workers=[address], pure=False
            )
            error = await asyncio.wait_for(future.exception(), READY_WITHIN)
            if error is not None:
                raise error
            member = Member(address, name, Actor(self.client, address, future))
            failed = await asyncio.wait_for(member.actor.call("ready"), READY_WITHIN)
            if failed is not None:
                raise ImportError(failed.text)
            await self._give(member)
            self.members[address] = member
            self.refused = None
            self._note(address, "joined")
        except Exception as error:
            if isinstance(error, ImportError):
                self.refused = address, error
            self._again[address] = time.monotonic() + AGAIN_AFTER
            self._note(address, f"lost: it could not be made ready ({_last_line(error)})")
        finally:
            self._joining.pop(address, None)

    async def give(self) -> None:
        """Send all machines the kept arrays that they do not hold."""
        await self.look()
        await asyncio.gather(*[self._give(m) for m in list(self.members.values())], return_exceptions=True)

    async def _give(self, member: Member) -> None:
        for key, array in list(self.kept.items()):
            if key not in member.stored_keys:
                within = READY_WITHIN + array.nbytes / SLOWEST
                await asyncio.wait_for(self.keep(member, key), within)

    async def keep(self, member: Member, key: str) -> None:
        """Send a machine a kept array."""
        array = self.kept[key]
        _log.debug("array %s (%d bytes) is sent to %s", key, array.nbytes, member.address)
        await member.actor.call("keep", key, array)
        member.stored_keys.add(key)

    def lose(self, address: str, fault: str) -> None:
        """Drop a machine, and note why."""
        member = self.members.pop(address, None)
        if member is None:
            return
        self._again[address] = time.monotonic() + AGAIN_AFTER
        if member.busy is not None:
            member.busy.cancel()
        self._note(address, fault)

    def _note(self, address: str, fault: str) -> None:
        self.log.note(self.step, address, fault)

    async def release(self) -> None:
        """Drop all machines, and cancel their requests."""
        for task in [*self._joining.values(), *[m.busy for m in self.members.values() if m.busy], self._looking]:
            if task is not None:
                task.cancel()
        _log.info("%d machines are released", len(self.members))
        self.members.clear()


def _last_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().rpartition(chr(10))[2]}"
