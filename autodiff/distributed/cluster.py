"""A cluster as its client knows it: its workers, whether the scheduler answers, and actors called through that client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from distributed import protocol

_protocol: Any = protocol  # untyped
ANSWER_WITHIN = 5.0  # seconds; after this time the request is repeated
SCHEDULER_WITHIN = {"running": 20.0}  # seconds after which it is given up, by the client's status: a busy one may answer later
GONE_WITHIN = 5.0  # seconds, if the connection to it is broken


class Roll:
    """The workers of a cluster, as the scheduler last listed them; each request to it has a time limit.

    It is used on the client's event loop alone.

    Parameters
    ----------
    client : distributed.Client
        A client of the cluster.
    who, advice : str
        The beginning and the end of the error message if the scheduler is lost.

    Attributes
    ----------
    workers : dict
        The scheduler's latest data of each worker, by address.
    heard : dict
        The time of the last sign of life of each (``time.monotonic``).
    looked : float
        The time of the last request to the scheduler.
    """

    def __init__(self, client: Any, who: str, advice: str) -> None:
        self.client, self._who, self._advice = client, who, advice
        self.workers: dict[str, Any] = {}
        self.heard: dict[str, float] = {}
        self.looked = -1e9
        self._silent_since: float | None = None  # when the first unanswered request was sent
        self._one_at_a_time: asyncio.Lock | None = None

    async def look(self, age: float = 0.0) -> bool:
        """List the workers, unless that was done within `age` seconds; return whether the scheduler answered the last request."""
        if self._one_at_a_time is None:
            self._one_at_a_time = asyncio.Lock()
        async with self._one_at_a_time:
            request_time = time.monotonic()
            if request_time - self.looked > max(age, 0.0):
                if request_time - self.looked > 2 * ANSWER_WITHIN:
                    self._silent_since = None  # there was no request meanwhile
                await self._ask(request_time)
                self.looked = time.monotonic()
        return self._silent_since is None

    async def _ask(self, request_time: float) -> None:
        try:
            identity = await asyncio.wait_for(self.client.scheduler.identity(n_workers=-1), ANSWER_WITHIN)
        except Exception:  # no answer; `require_scheduler` decides after how long it is lost
            self._silent_since = request_time if self._silent_since is None else self._silent_since
            return
        self._silent_since = None
        self._note(identity["workers"])

    def _note(self, workers: Mapping[str, Any]) -> None:
        """A worker was heard of if the scheduler's clock shows another time for it than before."""
        now = time.monotonic()
        before, self.workers = self.workers, dict(workers)
        is_silent = {a for a, w in workers.items() if a in before and before[a]["last_seen"] == w["last_seen"]}
        self.heard = {address: self.heard[address] if address in is_silent else now for address in workers}

    def require_scheduler(self) -> None:
        """Raise a ConnectionError if the scheduler has not answered for a while, or the client is closed."""
        status = self.client.status
        silent = 0.0 if self._silent_since is None else time.monotonic() - self._silent_since
        if status in ("closed", "closing") or silent > SCHEDULER_WITHIN.get(status, GONE_WITHIN):
            where = getattr(self.client.scheduler, "address", "an address that is gone")
            raise ConnectionError(
                f"{self._who}: the scheduler at {where} does not answer any more (client {status}, silent for {silent:.0f} s). "
                f"{self._advice}"
            )


class Actor:
    """An object in another process, called through one client and no other.

    Dask's own handle takes whichever client is current, and waits for a lost worker to return.
    """

    def __init__(self, client: Any, address: str, future: Any) -> None:
        self._client, self._address, self._future = client, address, future  # the object lives as long as the future

    async def call(self, method: str, *args: Any) -> Any:
        """Call a method there; return its result."""
        request = {"function": method, "actor": self._future.key, "args": [_protocol.to_serialize(x) for x in args], "kwargs": {}}
        if self._client.direct_to_workers:
            response = await self._client.rpc(self._address).actor_execute(**request)
        else:
            response = await self._client.scheduler.proxy(worker=self._address, msg={"op": "actor_execute", **request})
        if response["status"] != "OK":
            raise response["exception"]
        return response["result"]
