"""Locks that are open in a child process, whatever thread held them when the process forked."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, TypeVar

Lock = TypeVar("Lock", bound=Any)

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_adding = threading.Lock()


def renewed(lock: Lock) -> Lock:
    """The same lock, made anew in each child process: the thread that may hold it is not there."""
    with _adding:
        _locks.add(lock)
    return lock


def _renew() -> None:
    _adding._at_fork_reinit()  # type: ignore[attr-defined]
    for lock in list(_locks.data):  # type: ignore[attr-defined]  # the references: the set itself might have been at work
        found = lock()
        if found is not None:
            found._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

# The one lock that callbacks of weak references take. They run wherever memory is asked for, in threads that may hold any other
# lock: so that no two threads wait for each other, whoever holds this one asks for no other, and imports nothing.
callbacks_lock = renewed(threading.RLock())
