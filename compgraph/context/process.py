"""Process-wide services: locks that survive a fork, lazy imports, and automatic names."""

from __future__ import annotations

import contextvars
import importlib
import itertools
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any, TypeVar

Lock = TypeVar("Lock", bound=Any)

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_locks_lock = threading.Lock()


def reset_after_fork(lock: Lock) -> Lock:
    """Register a lock to be released in child processes, where the thread that held it does not exist; return it."""
    with _locks_lock:
        _locks.add(lock)
    return lock


def _reset_locks() -> None:
    _locks_lock._at_fork_reinit()  # type: ignore[attr-defined]
    for lock in list(_locks.data):  # type: ignore[attr-defined]  # the references, because the fork may interrupt the set
        live_lock = lock()
        if live_lock is not None:
            live_lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_locks)

# The only lock for callbacks of weak references. These run at any allocation, in threads that may hold any other lock. To avoid
# deadlocks, code that holds this lock takes no other lock and imports nothing.
callbacks_lock = reset_after_fork(threading.RLock())


def import_lazily(module: str) -> Any:
    """Import a module at its first use, which keeps ``import compgraph`` fast.

    The module's code runs in an empty context, so the settings of the code that first needs it do not apply to it.
    """
    return contextvars.Context().run(importlib.import_module, module)


_counts: dict[str, Iterator[int]] = {}
_counts_lock = reset_after_fork(threading.Lock())


def automatic_name(stem: str) -> str:
    """The next of ``stem_0``, ``stem_1``, ... in this process."""
    with _counts_lock:
        return f"{stem}_{next(_counts.setdefault(stem, itertools.count()))}"


def restart_names() -> None:
    """Restart the counts of automatic names."""
    _counts.clear()
