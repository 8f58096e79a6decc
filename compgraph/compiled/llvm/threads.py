"""Pieces of one computation, done by several threads at the same time.

The thread that asks does pieces itself until none is left. Threads of a pool help it: they are made when first asked for, and
wait for jobs between. A job therefore ends even if no thread comes to help, so that calls from several threads at once never wait
for each other. Machine code runs without Python's lock.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ...context import reset_after_fork

_jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
_threads: list[threading.Thread] = []
_starting = reset_after_fork(threading.Lock())


def processors() -> int:
    """How many processors this process may run on."""
    count = getattr(os, "process_cpu_count", None)
    if count is not None:
        return count() or 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(function: Callable[..., int], given: Sequence[Any], count: int, threads: int, held: Any) -> int:
    """Do all pieces of a computation.

    Parameters
    ----------
    function : callable
        Machine code: does a piece, and gives the flags that the processor raised. It is called with `given` and the number of
        the piece.
    given : sequence of object
        What it is given before the number.
    count : int
        How many pieces there are.
    threads : int
        How many threads do them, this one among them.
    held : object
        What keeps alive the memory that the function reads and writes.

    Returns
    -------
    int
        The flags that some piece raised.
    """
    helpers = min(threads, count) - 1
    if helpers < 1:
        flags = 0
        for piece in range(count):
            flags |= function(*given, piece)
        return flags
    job = Job(function, given, count, held)
    try:
        _ask(job, helpers)
        job.work()
    finally:
        job.close()  # an interrupt too leaves when nobody is at work any more
    return job.flags()


class Job:
    """A computation in pieces, while threads are at it; see `run`."""

    def __init__(self, function: Callable[..., int], given: Sequence[Any], count: int, held: Any) -> None:
        self._function, self._given, self._count, self._held = function, given, count, held
        self._pieces = itertools.count()  # whoever takes a number does that piece
        self._flags: list[int] = []
        self._errors: list[BaseException] = []
        self._entered: list[None] = []
        self._left: list[None] = []
        self._is_closed = False
        self._changed = threading.Lock()  # released where a helper leaves
        self._changed.acquire()

    def work(self) -> None:
        """Do pieces until none is left."""
        flags, function, given, count = 0, self._function, self._given, self._count
        for piece in self._pieces:
            if piece >= count or self._is_closed:
                break
            flags |= function(*given, piece)
        self._flags.append(flags)

    def help(self) -> None:
        """Work, in a thread of the pool."""
        self._entered.append(None)  # before the job is looked at, so that `close` waits for whoever saw it open
        try:
            self.work()
        except BaseException as error:
            self._errors.append(error)
        finally:
            self._left.append(None)
            with contextlib.suppress(RuntimeError):  # nobody has waited since the last one left
                self._changed.release()

    def close(self) -> None:
        """Let no piece begin any more, and wait for those that have begun, whatever interrupts."""
        interrupt: BaseException | None = None
        while True:
            try:
                self._is_closed = True
                while len(self._left) < len(self._entered):
                    self._changed.acquire()
                break
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def flags(self) -> int:
        """The flags of all threads; an error of a helper's is raised."""
        if self._errors:
            raise self._errors[0]
        found = 0
        for flags in self._flags:
            found |= flags
        return found


def _ask(job: Job, helpers: int) -> None:
    """Have threads of the pool help with a job."""
    if len(_threads) < helpers:
        with _starting:
            while len(_threads) < helpers:
                thread = threading.Thread(target=_help, args=(_jobs,), name="compgraph program", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # no more threads can be made: fewer help
                    break
                if not _threads:
                    atexit.register(_stop, _jobs, _threads)
                _threads.append(thread)
    for _ in range(helpers):
        _jobs.put(job)


def _help(jobs: queue.SimpleQueue[Job | None]) -> None:
    while True:
        job = jobs.get()
        if job is None:
            return
        job.help()
        del job  # it holds arrays


def _stop(jobs: queue.SimpleQueue[Job | None], threads: list[threading.Thread]) -> None:
    """Let the pieces at work end before the interpreter ends under them."""
    for _ in threads:
        jobs.put(None)
    for thread in threads:
        thread.join(timeout=10)


def _forked() -> None:
    global _threads, _jobs
    _threads, _jobs = [], queue.SimpleQueue()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
