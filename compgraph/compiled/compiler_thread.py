"""The compiler thread: compiles in the background while calls run as NumPy, one job at a time.

A child process does not inherit this thread. So a fork waits a short time until no thread compiles. If one still does, the
state of the compiler in the child is undefined, and the child never compiles: existing programs run, other calls run as NumPy.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  (it and logging register fork handlers on import)
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
_start_lock = reset_after_fork(threading.Lock())
trace_lock = reset_after_fork(threading.RLock())  # one function is traced and compiled at a time
import_lock = reset_after_fork(threading.RLock())  # held while the backend is imported, because a fork during it would deadlock
compile_locks: list[Any] = [trace_lock]  # locks held while compiling, in locking order
forked_while_compiling = False  # whether a thread compiled while this process or an ancestor was forked
FORK_TIMEOUT, IMPORT_FORK_TIMEOUT = 1.0, 20.0  # seconds that a fork waits for a compilation, or for an import
_held_locks: dict[int, list[Any]] = {}  # locks held by a forking thread
_last_timeout = -FORK_TIMEOUT  # time of the last fork that timed out
_is_paused = False  # whether garbage collection is paused for a trace
generation = 0  # counts forks: jobs submitted before a fork are lost


def submit(context: Context, job: Callable[[], None]) -> None:
    """Run a job in the compiler thread, in a context; the job must not raise."""
    global _thread
    with _start_lock:
        if _thread is None:
            _thread = threading.Thread(target=_run_jobs, args=(_jobs,), name="compgraph compiler", daemon=True)
            _thread.start()
            atexit.register(_stop, _jobs, _thread)
    _jobs.put((context, job))


def _run_jobs(jobs: queue.SimpleQueue[tuple[Context, Callable[[], None]] | None]) -> None:
    while True:
        entry = jobs.get()
        if entry is None:
            return
        context, job = entry
        context.run(job)
        del context, job, entry  # they hold arrays


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Context in which garbage collection is paused, because each collection would traverse the many objects of a trace."""
    global _is_paused
    was_enabled = gc.isenabled()
    _is_paused = _is_paused or was_enabled
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:  # otherwise an outer context enables it
            _is_paused = False
            gc.enable()


def _stop(jobs: queue.SimpleQueue[tuple[Context, Callable[[], None]] | None], thread: threading.Thread) -> None:
    """Discard waiting jobs, and wait for the running one, before the interpreter exits."""
    while not jobs.empty():
        jobs.get()
    jobs.put(None)
    thread.join(timeout=10)


def _before_fork() -> None:
    """Wait until no thread compiles, and block new compilations until the process has forked."""
    global _last_timeout
    acquired = _held_locks[threading.get_ident()] = []
    start = time.monotonic()
    deadline = start + (FORK_TIMEOUT if start - _last_timeout > FORK_TIMEOUT else 0)  # only the first process of a pool waits
    for lock in compile_locks:
        if not lock.acquire(timeout=max(deadline - time.monotonic(), 0)):
            if import_lock.acquire(timeout=IMPORT_FORK_TIMEOUT):
                acquired.append(import_lock)
            _last_timeout = time.monotonic()
            return
        acquired.append(lock)


def _after_fork() -> None:
    for lock in reversed(_held_locks.pop(threading.get_ident(), [])):
        lock.release()


def _after_fork_in_child() -> None:
    global _thread, _jobs, generation, forked_while_compiling, _is_paused
    _thread, _jobs, generation = None, queue.SimpleQueue(), generation + 1
    forked_while_compiling = forked_while_compiling or _held_locks.get(threading.get_ident()) != compile_locks
    _held_locks.clear()
    if _is_paused:  # the child does not have the thread that would enable it
        _is_paused = False
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
