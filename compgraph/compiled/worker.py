"""The compiler thread, which runs while calls use NumPy: one per process, one job after the other.

A child process does not have this thread. So a fork waits a little until no thread compiles. If one still does, the compiler of
the child is in an unknown state and is never called: existing programs run, everything else runs as NumPy.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  (it and logging register functions for forks; during one it would be too late)
import gc
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any

from ..context import reset_after_fork

_jobs: queue.SimpleQueue[tuple[Context, Callable[[], None]] | None] = queue.SimpleQueue()
_thread: threading.Thread | None = None
_starting = reset_after_fork(threading.Lock())
tracing = reset_after_fork(threading.RLock())  # one function is traced and compiled at a time
importing = reset_after_fork(threading.RLock())  # held while the back end is imported: a child would wait for the import forever
compiling: list[Any] = [tracing]  # locks that are held while code is compiled, in the order in which they are taken
was_interrupted = False  # whether a thread compiled when this process, or one it descends from, was forked
PATIENCE, IMPORT_PATIENCE = 1.0, 20.0  # seconds that a fork waits for a compilation, or for an import
_held: dict[int, list[Any]] = {}  # locks that a thread holds while it forks
_gave_up = -PATIENCE  # when a fork last waited in vain
_is_paused = False  # whether the collector of garbage waits for a trace
generation = 0  # counts processes: what was submitted before a fork is done by nobody


def submit(context: Context, job: Callable[[], None]) -> None:
    """Have a job done by the thread, in a context; jobs do not raise."""
    global _thread
    with _starting:
        if _thread is None:
            _thread = threading.Thread(target=_work, args=(_jobs,), name="compgraph compiler", daemon=True)
            _thread.start()
            atexit.register(_stop, _jobs, _thread)
    _jobs.put((context, job))


def _work(jobs: queue.SimpleQueue[tuple[Context, Callable[[], None]] | None]) -> None:
    while True:
        found = jobs.get()
        if found is None:
            return
        context, job = found
        context.run(job)
        del context, job, found  # they hold arrays


@contextmanager
def collecting_later() -> Iterator[None]:
    """Have Python look for garbage only afterwards: a trace makes many objects that live, and would be looked at each time."""
    global _is_paused
    was_enabled = gc.isenabled()
    _is_paused = _is_paused or was_enabled
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:  # not within another such context, which does it
            _is_paused = False
            gc.enable()


def _stop(jobs: queue.SimpleQueue[tuple[Context, Callable[[], None]] | None], thread: threading.Thread) -> None:
    """Let the job at work end, and no other begin, before the interpreter ends under it."""
    while not jobs.empty():
        jobs.get()
    jobs.put(None)
    thread.join(timeout=10)


def _before_fork() -> None:
    """Wait until no thread compiles, and let none begin until the process has forked."""
    global _gave_up
    held = _held[threading.get_ident()] = []
    begun = time.monotonic()
    until = begun + (PATIENCE if begun - _gave_up > PATIENCE else 0)  # of the processes of a pool, only the first one waits
    for lock in compiling:
        if not lock.acquire(timeout=max(until - time.monotonic(), 0)):
            if importing.acquire(timeout=IMPORT_PATIENCE):
                held.append(importing)
            _gave_up = time.monotonic()
            return
        held.append(lock)


def _after_fork() -> None:
    for lock in reversed(_held.pop(threading.get_ident(), [])):
        lock.release()


def _forked() -> None:
    global _thread, _jobs, generation, was_interrupted, _is_paused
    _thread, _jobs, generation = None, queue.SimpleQueue(), generation + 1
    was_interrupted = was_interrupted or _held.get(threading.get_ident()) != compiling
    _held.clear()
    if _is_paused:  # by a thread that the child does not have
        _is_paused = False
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_forked)
