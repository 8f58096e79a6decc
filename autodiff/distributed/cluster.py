"""A Dask cluster as its client sees it: the workers, the state of the scheduler, and calls of actors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from distributed import protocol

_protocol: Any = protocol  # untyped
RESPONSE_TIMEOUT = 5.0  # seconds until a request to the scheduler is repeated
SCHEDULER_TIMEOUTS = {"running": 20.0}  # seconds until the scheduler counts as lost, by the client's status
DISCONNECTED_TIMEOUT = 5.0  # the same, for any other status of the client


class WorkerRegistry:
    """The workers of a cluster, as the scheduler last listed them.

    Each request to the scheduler has a time limit. `refresh` runs on the client's event loop.

    Parameters
    ----------
    client : distributed.Client
        A client of the cluster.
    caller, advice : str
        The first and last words of the error message if the scheduler is lost.

    Attributes
    ----------
    workers : dict
        The latest record of each worker, by address.
    last_heartbeat : dict
        The time of the last heartbeat of each worker (``time.monotonic``).
    refresh_time : float
        The time of the last request to the scheduler.
    """

    def __init__(self, client: Any, caller: str, advice: str) -> None:
        self.client, self._caller, self._advice = client, caller, advice
        self.workers: dict[str, Any] = {}
        self.last_heartbeat: dict[str, float] = {}
        self.refresh_time = -1e9
        self._silent_since: float | None = None  # when the first unanswered request was sent
        self._lock: asyncio.Lock | None = None

    async def refresh(self, max_age: float = 0.0) -> bool:
        """Update the list of workers if it is older than `max_age` seconds; return whether the last request was answered."""
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            request_time = time.monotonic()
            if request_time - self.refresh_time > max(max_age, 0.0):
                if request_time - self.refresh_time > 2 * RESPONSE_TIMEOUT:
                    self._silent_since = None  # there was no request meanwhile
                await self._request(request_time)
                self.refresh_time = time.monotonic()
        return self._silent_since is None

    async def _request(self, request_time: float) -> None:
        try:
            identity = await asyncio.wait_for(self.client.scheduler.identity(n_workers=-1), RESPONSE_TIMEOUT)
        except Exception:  # `require_scheduler` raises if this persists
            self._silent_since = request_time if self._silent_since is None else self._silent_since
            return
        self._silent_since = None
        self._update(identity["workers"])

    def _update(self, workers: Mapping[str, Any]) -> None:
        """Store the list of workers, with the current time for those whose heartbeat changed on the scheduler."""
        now = time.monotonic()
        previous_workers, self.workers = self.workers, dict(workers)
        silent_workers = {
            a for a, w in workers.items() if a in previous_workers and previous_workers[a]["last_seen"] == w["last_seen"]
        }
        self.last_heartbeat = {address: self.last_heartbeat[address] if address in silent_workers else now for address in workers}

    def require_scheduler(self) -> None:
        """Raise a ConnectionError if the scheduler is silent for too long, or the client is closed."""
        status = self.client.status
        seconds_silent = 0.0 if self._silent_since is None else time.monotonic() - self._silent_since
        if status in ("closed", "closing") or seconds_silent > SCHEDULER_TIMEOUTS.get(status, DISCONNECTED_TIMEOUT):
            address = getattr(self.client.scheduler, "address", "an unknown address")
            raise ConnectionError(
                f"{self._caller}: the scheduler at {address} does not answer (client {status}, "
                f"silent for {seconds_silent:.0f} s). {self._advice}"
            )


class Actor:
    """A handle of an object on a worker (a Dask actor).

    Unlike Dask's own handle, it always uses the given client, and does not wait for a lost worker to return.
    """

    def __init__(self, client: Any, address: str, future: Any) -> None:
        self._client, self._address, self._future = client, address, future  # releasing the future deletes the object

    async def call(self, method: str, *args: Any) -> Any:
        """Call a method on the worker and return its result."""
        request = {"function": method, "actor": self._future.key, "args": [_protocol.to_serialize(x) for x in args], "kwargs": {}}
        if self._client.direct_to_workers:
            response = await self._client.rpc(self._address).actor_execute(**request)
        else:
            response = await self._client.scheduler.proxy(worker=self._address, msg={"op": "actor_execute", **request})
        if response["status"] != "OK":
            raise response["exception"]
        return response["result"]
