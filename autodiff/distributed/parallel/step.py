"""One step on the machines: grains are dealt out, and again where a machine is lost or silent, until all have been summed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .grains import Run, Sums, assign_grains
from .machine import Failed, Part, Request, Share, ShareSums, Warned
from .machines import Machines, Member

_log = logging.getLogger(__name__)
LEAST_PATIENCE = 0.5  # seconds before a machine is overtaken: the system may delay a short step
UNKNOWN = 1.0  # seconds that a share is expected to take where nothing was measured yet
MOST = 5  # machines lost on the same grains after which the loss is blamed
TICK = 0.1


class PendingShare(NamedTuple):
    """A request to a machine: the task that waits for the answer, the grains, since when, and how many seconds it should take."""

    task: asyncio.Task[Any]
    member: Member
    run: Run
    begun: float
    expected: float


class Step:
    """One step: the sums over all grains of a batch.

    Parameters
    ----------
    machines : Machines
        The machines.
    request : Request
        The computation.
    pieces : callable
        ``pieces(first, last)`` gives those rows of the batch.
    bounds : list of int
        The rows at which the grains begin, and the end.
    patience, wait : float
        See `DataParallel`.

    Attributes
    ----------
    parts : dict
        Sums at nodes of the tree.
    dtype : dtype
        The dtype of the value.
    warned : list
        The warnings.
    failed : tuple or None
        The machine on which the loss raised an error, and the error.
    """

    def __init__(
        self, machines: Machines, request: Request, pieces: Callable[[int, int], list[Any]], bounds: list[int], patience: float,
        wait: float,
    ) -> None:  # fmt: skip
        self.machines, self.request, self.pieces, self.bounds = machines, request, pieces, bounds
        self.patience, self.wait, self.log = patience, wait, machines.log
        self.needed = [piece.key for piece in pieces(0, 1) if isinstance(piece, Part)]
        count = len(bounds) - 1
        self.open: list[Run] = [(0, count)]
        self.is_there = np.zeros(count, bool)
        self.times_lost = np.zeros(count, int)
        self.asked: list[PendingShare] = []
        self.overtaken: set[asyncio.Task[Any]] = set()
        self.parts: dict[Run, Sums] = {}
        self.dtype: Any = None
        self.warned: Warned = []
        self.failed: tuple[str, Failed] | None = None

    async def run(self) -> None:
        """Take the step, until all grains are in `parts`, or an error of the loss is in `failed`.

        The error is not raised here: a SystemExit would end the client's event loop.
        """
        self.begun = time.monotonic()
        while not self.is_there.all() and self.failed is None:
            self.machines.tick()
            self._deal()
            if self.asked:
                await asyncio.wait([a.task for a in self.asked], timeout=TICK, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(TICK / 10)
            for job in [a for a in self.asked if a.task.done()]:
                self.asked.remove(job)
                self._answered(job)
            self._overtake()
            self._require_life()
        for job in self.asked:  # its late answer is dropped, and it takes part again then
            self._note(job, "late: others were done before")

    # ------------------------------------------------------------------------------------------------ asking

    def _deal(self) -> None:
        """Deal the open grains to machines that wait for work, and keep shares for those that soon will."""
        for _ in range(len(self.open)):
            free = self.machines.free
            if not free:
                return
            run = self.open.pop(0)
            soon = [a.member for a in self.asked if a.task not in self.overtaken]
            speeds = self.machines.speeds([*free, *soon])
            shares = [*zip([*free, *[None] * len(soon)], assign_grains(run, speeds, len(self.bounds) - 1), speeds, strict=True)]
            for member, share, speed in shares:
                if share[0] == share[1]:
                    continue
                if member is None:
                    self.open.append(share)
                else:
                    self._ask(member, share, speed)

    def _ask(self, member: Member, run: Run, speed: float) -> None:
        rows = self._rows(run)
        known = any(m.speed is not None for m in self.machines.members.values())
        task = asyncio.ensure_future(self._call(member, run))
        member.busy = task
        task.add_done_callback(lambda _: _is_free(member, task))
        self.asked.append(PendingShare(task, member, run, self.log.now(), len(rows) / speed if known else UNKNOWN))

    async def _call(self, member: Member, run: Run) -> ShareSums | Failed:
        """Send a machine the arrays that it lacks, then the request; return its answer."""
        for key in self.needed:
            if key not in member.stored_keys:
                await self.machines.keep(member, key)
        gone = sorted(member.stored_keys - set(self.machines.kept))
        member.stored_keys -= set(gone)
        rows = self._rows(run)
        pieces = self.pieces(rows.start, rows.stop)
        _log.debug("step %d: rows %d to %d are sent to %s", self.machines.step, rows.start, rows.stop - 1, member.address)
        response = await member.actor.call("sums", Share(self.request, pieces, self.bounds, run, gone))
        if isinstance(response, ShareSums):
            member.measured(len(rows), response.took)
        return response  # type: ignore[no-any-return]

    def _rows(self, run: Run) -> range:
        return range(self.bounds[run[0]], self.bounds[run[1]])

    # ------------------------------------------------------------------------------------------------ answers

    def _answered(self, job: PendingShare) -> None:
        try:
            response = job.task.result()
        except (Exception, asyncio.CancelledError) as error:  # the machine is lost; an error of the loss comes as an answer
            self._lost(job, error)
            return
        if isinstance(response, Failed):
            self._note(job, f"error: {response.text.strip().rpartition(chr(10))[2]:.200}")
            self.failed = job.member.address, response
            return
        self._note(job, "overtaken" if job.task in self.overtaken else "")
        if not self.is_there[slice(*job.run)].all():
            self.parts.update({node: list(map(_writeable, sums)) for node, sums in response.sums.items()})
            self.is_there[slice(*job.run)] = True
            self.dtype = response.dtype
            self.warned += response.warned

    def _lost(self, job: PendingShare, error: BaseException) -> None:
        """A machine was lost: others compute its grains, unless they do already."""
        if isinstance(error, asyncio.CancelledError):
            error = ConnectionError("it left the cluster")
        self._note(job, f"lost: {error}")
        self.machines.lose(job.member.address, f"lost: {error}")
        part = slice(*job.run)
        self.times_lost[part] += 1
        if self.times_lost.max() >= MOST:
            raise RuntimeError(
                f"DataParallel: {MOST} machines were lost, one after the other, on rows {self._rows(job.run)} of the batch. "
                f"Do they run out of memory, or does the loss end its process? (the last one: {error})"
            ) from error
        if job.task not in self.overtaken and not self.is_there[part].all():
            rows = self._rows(job.run)
            _log.info("step %d: rows %d to %d are computed by other machines", self.machines.step, rows.start, rows.stop - 1)
            self.open.append(job.run)

    # ------------------------------------------------------------------------------------------------ silence

    def _overtake(self) -> None:
        """Give machines that wait for work the grains that others should have answered long ago."""
        for job in self.asked:
            longest = max(self.patience * job.expected, LEAST_PATIENCE)
            if job.task in self.overtaken or self.log.now() - job.begun < longest or not self.machines.free:
                continue
            if not self.is_there[slice(*job.run)].all():
                self.overtaken.add(job.task)
                self.open.append(job.run)
                self.log.note(self.machines.step, job.member.address, f"overtaken: silent for {longest:.2g} s")
                self._deal()

    def _require_life(self) -> None:
        """Raise if no machine can answer: the loss cannot be loaded, or none gave a sign of life for `wait` seconds."""
        members = self.machines.members.values()
        if not members and self.machines.refused is not None and not self.machines.is_joining:
            address, error = self.machines.refused
            raise RuntimeError(f"DataParallel: {address} cannot load the loss: {error}") from error
        silent = time.monotonic() - max([self.begun, *(m.last_reply for m in members)])
        if silent > self.wait:
            what = f"no sign of life of any of {len(members)} machines" if members else "no machine"
            lost = f" (in this step {self.times_lost.max()} were lost on the same grains)" if self.times_lost.any() else ""
            raise TimeoutError(
                f"DataParallel: {what} for {self.wait:g} s{lost}. The parameters are as they were before this step, which can be "
                "taken again when there are machines"
            )

    def _note(self, job: PendingShare, fault: str) -> None:
        self.log.add(self.machines.step, job.member.address, self._rows(job.run), job.begun, self.log.now(), fault)


def _is_free(member: Member, task: asyncio.Task[Any]) -> None:
    """Mark a machine that has answered as free, perhaps after the step was over."""
    if member.busy is task:
        member.busy = None
    if not task.cancelled():
        task.exception()  # marks it as retrieved, because late answers are dropped


def _writeable(x: np.ndarray) -> np.ndarray:
    return x if x.flags.writeable else x.copy()
