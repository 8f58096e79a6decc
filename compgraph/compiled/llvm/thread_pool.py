"""Thread pool: runs the tiles of one computation in several threads.

The calling thread and pool threads run tiles until all are done. The pool starts on first use. A job finishes even if
no pool thread helps, so concurrent calls never wait for each other. Machine code runs without the GIL.
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
_start_lock = reset_after_fork(threading.Lock())


def processors() -> int:
    """Return the number of processors available to the process."""
    count = getattr(os, "process_cpu_count", None)
    if count is not None:
        return count() or 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_tiles(
    function: Callable[..., int], arguments: Sequence[Any], count: int, threads: int, keepalive: tuple[Any, ...]
) -> int:
    """Run all tiles of a computation.

    Parameters
    ----------
    function : callable
        Machine code that runs a tile and returns the processor's flags. Its arguments are `arguments` and the tile's index.
    arguments : sequence of object
        The first arguments.
    count : int
        The number of tiles.
    threads : int
        The number of threads, including this one.
    keepalive : object
        Keeps the memory that the function accesses alive.

    Returns
    -------
    int
        The union of the flags of all tiles.
    """
    helpers = min(threads, count) - 1
    if helpers < 1:
        flags = 0
        for tile in range(count):
            flags |= function(*arguments, tile)
        return flags
    job = Job(function, arguments, count, keepalive)
    try:
        _submit(job, helpers)
        job.work()
    finally:
        job.close()  # also after an interrupt, wait until all threads have stopped
    return job.flags()


class Job:
    """A tiled computation in progress; see `run_tiles`."""

    def __init__(self, function: Callable[..., int], arguments: Sequence[Any], count: int, keepalive: tuple[Any, ...]) -> None:
        self._function, self._arguments, self._count, self._keepalive = function, arguments, count, keepalive
        self._tiles = itertools.count()  # threads draw the indices of tiles from one counter
        self._flags: list[int] = []
        self._errors: list[BaseException] = []
        self._helpers_started: list[None] = []
        self._helpers_finished: list[None] = []
        self._is_closed = False
        self._helper_exit = threading.Lock()  # released when a helper finishes
        self._helper_exit.acquire()

    def work(self) -> None:
        """Run tiles until all are started."""
        flags, function, arguments, count = 0, self._function, self._arguments, self._count
        for tile in self._tiles:
            if tile >= count or self._is_closed:
                break
            flags |= function(*arguments, tile)
        self._flags.append(flags)

    def help(self) -> None:
        """Run tiles in a pool thread."""
        self._helpers_started.append(None)  # before `_is_closed` is read, so that `close` waits for threads that read False
        try:
            self.work()
        except BaseException as error:
            self._errors.append(error)
        finally:
            self._helpers_finished.append(None)
            with contextlib.suppress(RuntimeError):  # released already: nothing has waited since the last helper finished
                self._helper_exit.release()

    def close(self) -> None:
        """Start no further tiles, and wait for running ones, even if interrupted."""
        interrupt: BaseException | None = None
        while True:
            try:
                self._is_closed = True
                while len(self._helpers_finished) < len(self._helpers_started):
                    self._helper_exit.acquire()
                break
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def flags(self) -> int:
        """Return the flags of all threads; raise an error of a helper."""
        if self._errors:
            raise self._errors[0]
        all_flags = 0
        for flags in self._flags:
            all_flags |= flags
        return all_flags


def _submit(job: Job, helpers: int) -> None:
    """Submit a job to the pool, which is started or enlarged if necessary."""
    if len(_threads) < helpers:
        with _start_lock:
            while len(_threads) < helpers:
                thread = threading.Thread(target=_run_jobs, args=(_jobs,), name="compgraph program", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system's limit is reached: fewer threads help
                    break
                if not _threads:
                    atexit.register(_stop, _jobs, _threads)
                _threads.append(thread)
    for _ in range(helpers):
        _jobs.put(job)


def _run_jobs(jobs: queue.SimpleQueue[Job | None]) -> None:
    """Help with jobs until None arrives: the loop of a pool thread."""
    while True:
        job = jobs.get()
        if job is None:
            return
        job.help()
        del job  # it references arrays


def _stop(jobs: queue.SimpleQueue[Job | None], threads: list[threading.Thread]) -> None:
    """Wait for running tiles before the interpreter exits."""
    for _ in threads:
        jobs.put(None)
    for thread in threads:
        thread.join(timeout=10)


def _after_fork_in_child() -> None:
    global _threads, _jobs
    _threads, _jobs = [], queue.SimpleQueue()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
