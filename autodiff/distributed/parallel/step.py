"""One step on the machines: shards are assigned, and assigned again if a machine is lost or silent, until all are summed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .actor import FailureReport, RemoteRows, Request, ShareRequest, ShareSums, WarningList
from .pool import ActorPool, Member
from .shards import ShardRange, Sums, assign_shards

_log = logging.getLogger(__name__)
MIN_PATIENCE = 0.5  # minimal seconds until a machine is overtaken, because the system may delay a short step
DEFAULT_SECONDS = 1.0  # expected duration of a share before any measurement
MAX_LOSSES = 5  # machines lost on the same shards until the step fails
POLL_INTERVAL = 0.1  # seconds between checks of the machines


class PendingShare(NamedTuple):
    """An unanswered request: the task that waits for the reply, the machine, the shards, the start, and the expected seconds."""

    task: asyncio.Task[Any]
    member: Member
    shards: ShardRange
    start: float
    expected: float


class Step:
    """One step: the sums over all shards of a batch.

    Parameters
    ----------
    pool : ActorPool
        The machines.
    request : Request
        The computation.
    select_rows : callable
        ``select_rows(first, last)`` returns these rows of each array of the batch.
    bounds : list of int
        The first row of each shard, and the number of rows.
    patience, wait : float
        See `DataParallel`.

    Attributes
    ----------
    partial_sums : dict
        The sums at nodes of the tree.
    dtype : dtype
        The dtype of the value.
    warnings : list
        The warnings of the loss.
    failure : tuple or None
        The machine on which the loss raised an error, and the report of the error.
    """

    def __init__(
        self, pool: ActorPool, request: Request, select_rows: Callable[[int, int], list[Any]], bounds: list[int], patience: float,
        wait: float,
    ) -> None:  # fmt: skip
        self.pool, self.request, self.select_rows, self.bounds = pool, request, select_rows, bounds
        self.patience, self.wait, self.log = patience, wait, pool.log
        self.remote_keys = [rows.key for rows in select_rows(0, 1) if isinstance(rows, RemoteRows)]
        count = len(bounds) - 1
        self.unassigned: list[ShardRange] = [(0, count)]
        self.is_done = np.zeros(count, bool)
        self.times_lost = np.zeros(count, int)
        self.pending: list[PendingShare] = []
        self.overtaken: set[asyncio.Task[Any]] = set()
        self.partial_sums: dict[ShardRange, Sums] = {}
        self.dtype: Any = None
        self.warnings: WarningList = []
        self.failure: tuple[str, FailureReport] | None = None

    async def run(self) -> None:
        """Run the step until `partial_sums` cover all shards, or the loss has raised an error (`failure`).

        The error is not raised here: a SystemExit would end the client's event loop.
        """
        self.start = time.monotonic()
        while not self.is_done.all() and self.failure is None:
            self.pool.poll()
            self._assign()
            if self.pending:
                tasks = [share.task for share in self.pending]
                await asyncio.wait(tasks, timeout=POLL_INTERVAL, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(POLL_INTERVAL / 10)
            for share in [share for share in self.pending if share.task.done()]:
                self.pending.remove(share)
                self._handle_result(share)
            self._overtake_silent()
            self._require_alive()
        for share in self.pending:  # its late reply is dropped; the machine is idle again afterwards
            self._log_share(share, "late: others were done before")

    # -------------------------------------------------------------------------------------------- assignment

    def _assign(self) -> None:
        """Assign shards to idle machines, and reserve shares for busy ones that will soon be idle."""
        for _ in range(len(self.unassigned)):
            idle = self.pool.idle_members
            if not idle:
                return
            shards = self.unassigned.pop(0)
            busy = [pending.member for pending in self.pending if pending.task not in self.overtaken]
            speeds = self.pool.speeds([*idle, *busy])
            shares = [
                *zip([*idle, *[None] * len(busy)], assign_shards(shards, speeds, len(self.bounds) - 1), speeds, strict=True)
            ]
            for member, share, speed in shares:
                if share[0] == share[1]:
                    continue
                if member is None:
                    self.unassigned.append(share)
                else:
                    self._submit(member, share, speed)

    def _submit(self, member: Member, shards: ShardRange, speed: float) -> None:
        rows = self._rows(shards)
        is_measured = any(m.speed is not None for m in self.pool.members.values())
        task = asyncio.ensure_future(self._call(member, shards))
        member.pending_request = task
        task.add_done_callback(lambda _: _mark_idle(member, task))
        self.pending.append(
            PendingShare(task, member, shards, self.log.now(), len(rows) / speed if is_measured else DEFAULT_SECONDS)
        )

    async def _call(self, member: Member, shards: ShardRange) -> ShareSums | FailureReport:
        """Send a machine the arrays that it lacks, then the request; return the reply."""
        for key in self.remote_keys:
            if key not in member.stored_keys:
                await self.pool.send_array(member, key)
        evicted_keys = sorted(member.stored_keys - set(self.pool.arrays))
        member.stored_keys -= set(evicted_keys)
        rows = self._rows(shards)
        arrays = self.select_rows(rows.start, rows.stop)
        _log.debug("step %d: rows %d to %d are sent to %s", self.pool.step, rows.start, rows.stop - 1, member.address)
        response = await member.actor.call("compute_sums", ShareRequest(self.request, arrays, self.bounds, shards, evicted_keys))
        if isinstance(response, ShareSums):
            member.update_speed(len(rows), response.seconds)
        return response  # type: ignore[no-any-return]

    def _rows(self, shards: ShardRange) -> range:
        return range(self.bounds[shards[0]], self.bounds[shards[1]])

    # ------------------------------------------------------------------------------------------------ replies

    def _handle_result(self, share: PendingShare) -> None:
        try:
            response = share.task.result()
        except (Exception, asyncio.CancelledError) as error:  # the machine is lost; an error of the loss is a reply
            self._handle_loss(share, error)
            return
        if isinstance(response, FailureReport):
            self._log_share(share, f"error: {response.text.strip().rpartition(chr(10))[2]:.200}")
            self.failure = share.member.address, response
            return
        self._log_share(share, "overtaken" if share.task in self.overtaken else "")
        if not self.is_done[slice(*share.shards)].all():
            self.partial_sums.update({node: list(map(_as_writeable, sums)) for node, sums in response.sums.items()})
            self.is_done[slice(*share.shards)] = True
            self.dtype = response.dtype
            self.warnings += response.warnings

    def _handle_loss(self, share: PendingShare, error: BaseException) -> None:
        """Drop a lost machine, and assign its shards to others, unless these compute them already."""
        if isinstance(error, asyncio.CancelledError):
            error = ConnectionError("it left the cluster")
        self._log_share(share, f"lost: {error}")
        self.pool.drop(share.member.address, f"lost: {error}")
        shards = slice(*share.shards)
        self.times_lost[shards] += 1
        if self.times_lost.max() >= MAX_LOSSES:
            raise RuntimeError(
                f"DataParallel: {MAX_LOSSES} machines failed in succession on rows {self._rows(share.shards)} of the "
                f"batch. The last error is {error}. Check whether the loss exhausts memory or ends its process."
            ) from error
        if share.task not in self.overtaken and not self.is_done[shards].all():
            rows = self._rows(share.shards)
            _log.info("step %d: rows %d to %d are computed by other machines", self.pool.step, rows.start, rows.stop - 1)
            self.unassigned.append(share.shards)

    # ---------------------------------------------------------------------------------------- silent machines

    def _overtake_silent(self) -> None:
        """Assign to idle machines the shards of machines that are much slower than expected."""
        for share in self.pending:
            time_limit = max(self.patience * share.expected, MIN_PATIENCE)
            if share.task in self.overtaken or self.log.now() - share.start < time_limit or not self.pool.idle_members:
                continue
            if not self.is_done[slice(*share.shards)].all():
                self.overtaken.add(share.task)
                self.unassigned.append(share.shards)
                self.log.add_event(self.pool.step, share.member.address, f"overtaken: silent for {time_limit:.2g} s")
                self._assign()

    def _require_alive(self) -> None:
        """Raise if the loss cannot be loaded, or if there was no machine, or no reply or heartbeat, for `wait` seconds."""
        members = self.pool.members.values()
        if not members and self.pool.load_failure is not None and not self.pool.is_joining:
            address, error = self.pool.load_failure
            raise RuntimeError(f"DataParallel: {address} cannot load the loss: {error}") from error
        silent_seconds = time.monotonic() - max([self.start, *(m.last_reply for m in members)])
        if silent_seconds > self.wait:
            problem = f"no reply from any of {len(members)} machines" if members else "no machine"
            lost = f" (in this step {self.times_lost.max()} failed on the same shards)" if self.times_lost.any() else ""
            raise TimeoutError(
                f"DataParallel: {problem} for {self.wait:g} s{lost}. The parameters are unchanged by this step. Repeat it when "
                "there are machines."
            )

    def _log_share(self, share: PendingShare, fault: str) -> None:
        self.log.add(self.pool.step, share.member.address, self._rows(share.shards), share.start, self.log.now(), fault)


def _mark_idle(member: Member, task: asyncio.Task[Any]) -> None:
    """Mark a machine as idle after its reply, which may arrive after the end of the step."""
    if member.pending_request is task:
        member.pending_request = None
    if not task.cancelled():
        task.exception()  # marks the error as retrieved, because late replies are dropped


def _as_writeable(x: np.ndarray) -> np.ndarray:
    return x if x.flags.writeable else x.copy()
