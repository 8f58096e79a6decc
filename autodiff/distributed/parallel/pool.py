"""The machines of a cluster, as the client sees them: their actors, speeds, stored arrays and last replies."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import numpy as np

from ..cluster import Actor, WorkerRegistry
from .actor import LossActor
from .log import Log

_log = logging.getLogger(__name__)
REFRESH_INTERVAL = 1.0  # seconds between requests for the list of workers
STARTUP_TIMEOUT = 60.0  # seconds in which a machine must import and load the loss
RETRY_DELAY = 5.0  # seconds until a lost machine is tried again
MIN_BANDWIDTH = 1e6  # bytes per second; a machine that receives data more slowly counts as lost
SPEED_DECAY = 0.7  # exponential moving average: the last measurement has weight 0.3, the one before it 0.21


class Member:
    """One machine: its actor, speed and stored arrays.

    Attributes
    ----------
    address, name : str
        The address of the worker, and its name in the cluster.
    speed : float or None
        Rows per second; None before the first measurement.
    pending_request : asyncio.Task or None
        The unanswered request, perhaps of an earlier step.
    stored_keys : set of str
        The keys of the arrays stored with it.
    last_reply : float
        The time of the last reply or heartbeat (``time.monotonic``).
    """

    def __init__(self, address: str, name: str, actor: Actor) -> None:
        self.address, self.name, self.actor = address, name, actor
        self.speed: float | None = None
        self.is_new = True
        self.pending_request: asyncio.Task[Any] | None = None
        self.stored_keys: set[str] = set()
        self.last_reply = time.monotonic()

    def update_speed(self, rows: int, seconds: float) -> None:
        """Update the speed by the duration of a share. The first share is ignored, because it loads libraries."""
        self.last_reply = time.monotonic()
        speed = rows / max(seconds, 1e-6)
        if self.is_new:
            self.is_new = False
        else:
            self.speed = speed if self.speed is None else SPEED_DECAY * self.speed + (1 - SPEED_DECAY) * speed


class ActorPool:
    """The machines of a client's cluster. All methods except the constructor run on the client's event loop."""

    def __init__(
        self, client: Any, loss: bytes, client_process: str, arrays: dict[str, np.ndarray], log: Log, backend: Any
    ) -> None:
        self.client, self.loss, self.client_process, self.backend = client, loss, client_process, backend
        self.arrays, self.log = arrays, log
        self.members: dict[str, Member] = {}
        self.step = 0
        self.load_failure: tuple[str, BaseException] | None = None  # the last machine that could not load the loss, and its error
        self._joining: dict[str, asyncio.Task[None]] = {}
        self._retry_times: dict[str, float] = {}
        self._refresh_task: asyncio.Task[None] | None = None
        self._refresh_time = -np.inf
        self._registry = WorkerRegistry(
            client,
            "DataParallel",
            "The parameters are unchanged by this step. Start a cluster, and continue with a new client.",
        )

    @property
    def idle_members(self) -> list[Member]:
        """The idle machines."""
        return [m for m in self.members.values() if m.pending_request is None]

    @property
    def is_joining(self) -> bool:
        """Whether machines are starting up."""
        return bool(self._joining)

    def speeds(self, members: list[Member]) -> list[float]:
        """Return the speeds of some machines; for one without a measurement, the mean of all measured ones."""
        measured_speeds = [m.speed for m in self.members.values() if m.speed is not None]
        default = float(np.mean(measured_speeds)) if measured_speeds else 1.0
        return [default if m.speed is None else m.speed for m in members]

    # ------------------------------------------------------------------------------------------------- membership

    def begin_step(self, step: int) -> None:
        """Begin a step, and reset the time of the last replies, because no reply was expected between steps."""
        self.step = step
        now = time.monotonic()
        for member in self.members.values():
            member.last_reply = now

    def poll(self) -> None:
        """Request the list of workers if it is older than `REFRESH_INTERVAL`, without waiting for the reply.

        Raises
        ------
        ConnectionError
            If the scheduler is silent for too long.
        """
        if self._refresh_task is not None and self._refresh_task.done():
            self._refresh_task = None
        is_due = time.monotonic() - self._refresh_time > (REFRESH_INTERVAL if self.members else 0.1)
        if self._refresh_task is None and is_due:
            self._refresh_time = time.monotonic()
            self._refresh_task = asyncio.ensure_future(self._refresh())
        self._registry.require_scheduler()

    async def refresh(self) -> None:
        """Update the list of workers, and wait until each of them is ready or has failed to start."""
        await self._refresh()
        if self._joining:
            await asyncio.wait(list(self._joining.values()), timeout=STARTUP_TIMEOUT)

    async def _refresh(self) -> None:
        if not await self._registry.refresh():
            return
        workers = {a: w for a, w in self._registry.workers.items() if w.get("status", "running") == "running"}
        for address in set(self.members) - set(workers):
            self.drop(address, "lost: it left the cluster")
        for address, worker in workers.items():
            member = self.members.get(address)
            if member is not None:
                member.last_reply = max(member.last_reply, self._registry.last_heartbeat[address])
            elif address not in self._joining and self._retry_times.get(address, 0) <= time.monotonic():
                self._joining[address] = asyncio.ensure_future(self._join(address, str(worker.get("name", address))))

    async def _join(self, address: str, name: str) -> None:
        """Start an actor on a machine, and send it the stored arrays."""
        try:
            future = self.client.submit(
                LossActor, self.loss, self.client_process, None, self.backend, actor=True, workers=[address], pure=False
            )
            error = await asyncio.wait_for(future.exception(), STARTUP_TIMEOUT)
            if error is not None:
                raise error
            member = Member(address, name, Actor(self.client, address, future))
            failure = await asyncio.wait_for(member.actor.call("load"), STARTUP_TIMEOUT)
            if failure is not None:
                raise ImportError(failure.text)
            await self._send_missing_arrays(member)
            self.members[address] = member
            self.load_failure = None
            self._log_event(address, "joined")
        except Exception as error:
            if isinstance(error, ImportError):
                self.load_failure = address, error
            self._retry_times[address] = time.monotonic() + RETRY_DELAY
            self._log_event(address, f"lost: it could not be made ready ({_last_line(error)})")
        finally:
            self._joining.pop(address, None)

    async def send_arrays(self) -> None:
        """Send each machine the arrays that it lacks."""
        await self.refresh()
        await asyncio.gather(*[self._send_missing_arrays(m) for m in list(self.members.values())], return_exceptions=True)

    async def _send_missing_arrays(self, member: Member) -> None:
        for key, array in list(self.arrays.items()):
            if key not in member.stored_keys:
                timeout = STARTUP_TIMEOUT + array.nbytes / MIN_BANDWIDTH
                await asyncio.wait_for(self.send_array(member, key), timeout)

    async def send_array(self, member: Member, key: str) -> None:
        """Send an array to a machine, which stores it."""
        array = self.arrays[key]
        _log.debug("array %s (%d bytes) is sent to %s", key, array.nbytes, member.address)
        await member.actor.call("store", key, array)
        member.stored_keys.add(key)

    def drop(self, address: str, event: str) -> None:
        """Drop a machine, and log the reason."""
        member = self.members.pop(address, None)
        if member is None:
            return
        self._retry_times[address] = time.monotonic() + RETRY_DELAY
        if member.pending_request is not None:
            member.pending_request.cancel()
        self._log_event(address, event)

    def _log_event(self, address: str, event: str) -> None:
        self.log.add_event(self.step, address, event)

    async def release(self) -> None:
        """Drop all machines, and cancel their requests."""
        for task in [
            *self._joining.values(),
            *[m.pending_request for m in self.members.values() if m.pending_request],
            self._refresh_task,
        ]:
            if task is not None:
                task.cancel()
        _log.info("%d machines are released", len(self.members))
        self.members.clear()


def _last_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().rpartition(chr(10))[2]}"
