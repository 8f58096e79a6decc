"""The machines of a cluster as the client knows them: who is there, how fast they are, and when each was last heard of."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import numpy as np
from distributed import protocol

from .log import Log
from .machine import Machine

_protocol: Any = protocol  # of which nothing is typed
LOOK_EVERY = 1.0  # seconds from one look at who is there to the next
ANSWER_WITHIN = 5.0  # a scheduler that takes longer is asked again
SCHEDULER_WITHIN = {"running": 20.0}  # after which it is given up, by the client's state: it may be busy, and answer later
GONE_WITHIN = 5.0  # after which it is given up if the connection to it is broken
READY_WITHIN = 60.0  # a machine imports, and reads the loss
AGAIN_AFTER = 5.0  # a machine that fell, or was not ready, is tried again
SLOWEST = 1e6  # bytes a second; a machine that takes data more slowly is not waited for
KEPT_OF_SPEED = 0.7  # a measurement counts 0.3, the one before it 0.21, and so on


class Actor:
    """A `Machine` in another process, asked through one client and no other.

    Dask's own handle takes whichever client is current, and waits for one that fell to come back.
    """

    def __init__(self, client: Any, address: str, made: Any) -> None:
        self._client, self._address, self._made = client, address, made  # it stands there as long as `made` does

    async def call(self, method: str, *args: Any) -> Any:
        """What a method returns there."""
        asked = {"function": method, "actor": self._made.key, "args": [_protocol.to_serialize(x) for x in args], "kwargs": {}}
        if self._client.direct_to_workers:
            answer = await self._client.rpc(self._address).actor_execute(**asked)
        else:
            answer = await self._client.scheduler.proxy(worker=self._address, msg={"op": "actor_execute", **asked})
        if answer["status"] != "OK":
            raise answer["exception"]
        return answer["result"]


class Member:
    """One machine: what runs there, its speed, and what it holds.

    Attributes
    ----------
    address, name : str
        Where it stands, and what its cluster calls it.
    speed : float or None
        Rows a second, once it was measured.
    busy : asyncio.Task or None
        What it was asked and has not answered, perhaps in an earlier step.
    held : set of str
        The arrays that were left with it.
    heard : float
        When there was the last sign of life.
    """

    def __init__(self, address: str, name: str, actor: Actor) -> None:
        self.address, self.name, self.actor = address, name, actor
        self.speed: float | None = None
        self.is_new = True
        self.busy: asyncio.Task[Any] | None = None
        self.held: set[str] = set()
        self.seen = 0.0  # by the scheduler, on its clock
        self.heard = time.monotonic()

    def measured(self, rows: int, took: float) -> None:
        """Learn from a share; the first is not representative, since it loads libraries."""
        self.heard = time.monotonic()
        speed = rows / max(took, 1e-6)
        if self.is_new:
            self.is_new = False
        else:
            self.speed = speed if self.speed is None else KEPT_OF_SPEED * self.speed + (1 - KEPT_OF_SPEED) * speed


class Machines:
    """The machines of a client's cluster. All but what is made at first runs on the client's loop."""

    def __init__(self, client: Any, loss: bytes, owner: str, kept: dict[str, np.ndarray], log: Log) -> None:
        self.client, self.loss, self.owner, self.kept, self.log = client, loss, owner, kept, log
        self.members: dict[str, Member] = {}
        self.step = 0
        self.refused: tuple[str, BaseException] | None = None  # who could not be made ready, and why
        self._joining: dict[str, asyncio.Task[None]] = {}
        self._again: dict[str, float] = {}
        self._looking: asyncio.Task[None] | None = None
        self._looked = -np.inf
        self._silent_since: float | None = None  # when the scheduler was asked first of what it has not answered

    @property
    def free(self) -> list[Member]:
        """Those that wait for work."""
        return [m for m in self.members.values() if m.busy is None]

    @property
    def is_joining(self) -> bool:
        """Whether some are being made ready."""
        return bool(self._joining)

    def speeds(self, members: list[Member]) -> list[float]:
        """Their speeds; of one that was not measured yet, that of the others."""
        known = [m.speed for m in self.members.values() if m.speed is not None]
        usual = float(np.mean(known)) if known else 1.0
        return [usual if m.speed is None else m.speed for m in members]

    # ------------------------------------------------------------------------------------------------ who is there

    def begin(self, step: int) -> None:
        """Begin a step; what was not heard between steps, when nobody listened, is no fault."""
        self.step = step
        now = time.monotonic()
        for member in self.members.values():
            member.heard = now
        if now - self._looked > 2 * ANSWER_WITHIN:
            self._silent_since = None

    def tick(self) -> None:
        """Look who is there, if it is time to, without waiting for the answer.

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
        silent = 0.0 if self._silent_since is None else time.monotonic() - self._silent_since
        if self.client.status in ("closed", "closing") or silent > SCHEDULER_WITHIN.get(self.client.status, GONE_WITHIN):
            raise ConnectionError(
                f"DataParallel: the scheduler does not answer (client {self.client.status}, silent for {silent:.0f} s). The "
                "parameters are as they were before this step: start a cluster, and go on with a new client"
            )

    async def look(self) -> None:
        """Look who is there now, and wait until all who are were made ready, or refused."""
        await self._look()
        if self._joining:
            await asyncio.wait(list(self._joining.values()), timeout=READY_WITHIN)

    async def _look(self) -> None:
        asked = time.monotonic()
        try:
            info = await asyncio.wait_for(self.client.scheduler.identity(n_workers=-1), ANSWER_WITHIN)
        except Exception:  # it did not answer; how long for is asked in `tick`
            self._silent_since = self._silent_since or asked
            return
        self._silent_since = None
        workers = {a: w for a, w in info["workers"].items() if w.get("status", "running") == "running"}
        for address in set(self.members) - set(workers):
            self.lose(address, "lost: it left the cluster")
        for address, worker in workers.items():
            member = self.members.get(address)
            if member is not None:
                if member.seen != worker["last_seen"]:
                    member.seen, member.heard = worker["last_seen"], time.monotonic()
            elif address not in self._joining and self._again.get(address, 0) <= time.monotonic():
                self._joining[address] = asyncio.ensure_future(self._join(address, str(worker.get("name", address))))

    async def _join(self, address: str, name: str) -> None:
        """Make a machine ready, in the background."""
        try:
            made = self.client.submit(Machine, self.loss, self.owner, actor=True, workers=[address], pure=False)
            error = await asyncio.wait_for(made.exception(), READY_WITHIN)
            if error is not None:
                raise error
            member = Member(address, name, Actor(self.client, address, made))
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
        """Give all machines what is to be left with them."""
        await self.look()
        await asyncio.gather(*[self._give(m) for m in list(self.members.values())], return_exceptions=True)

    async def _give(self, member: Member) -> None:
        for key, array in list(self.kept.items()):
            if key not in member.held:
                within = READY_WITHIN + array.nbytes / SLOWEST
                await asyncio.wait_for(member.actor.call("keep", key, array), within)
                member.held.add(key)

    def lose(self, address: str, fault: str) -> None:
        """Go on without a machine."""
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
        """Let all machines go."""
        for task in [*self._joining.values(), *[m.busy for m in self.members.values() if m.busy], self._looking]:
            if task is not None:
                task.cancel()
        self.members.clear()


def _last_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().rpartition(chr(10))[2]}"
