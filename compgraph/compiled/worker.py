"""The thread that compiles while calls go on as NumPy: one for the process, one job after the other."""

from __future__ import annotations

import atexit
import gc
import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context

from ..graph.context import renewed

_jobs: queue.SimpleQueue[tuple[Context, Callable[[], None]] | None] = queue.SimpleQueue()
_thread: threading.Thread | None = None
_starting = renewed(threading.Lock())
tracing = renewed(threading.RLock())  # one function is traced and compiled at a time
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


def _forked() -> None:
    global _thread, _jobs, generation, _is_paused
    _thread, _jobs, generation = None, queue.SimpleQueue(), generation + 1
    if _is_paused:  # by a thread that the child does not have
        _is_paused = False
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
