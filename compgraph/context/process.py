"""Locks that are free in a child process, whatever thread held them when the process forked."""

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
_adding = threading.Lock()


def reset_after_fork(lock: Lock) -> Lock:
    """The same lock, set free in each child process, where the thread that may have held it does not exist."""
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
# lock. Whoever holds this one therefore takes no other lock, and imports nothing; else two threads could wait for each other.
callbacks_lock = reset_after_fork(threading.RLock())


def import_lazily(module: str) -> Any:
    """A module, imported now if it was not before.

    Its code runs in an empty context: what holds for the code that needs it first, within a derivative say, holds not for
    the module's own.
    """
    return contextvars.Context().run(importlib.import_module, module)


_counts: dict[str, Iterator[int]] = {}
_counts_lock = reset_after_fork(threading.Lock())


def automatic_name(stem: str) -> str:
    """The next of ``stem_0``, ``stem_1``, ... in this process."""
    with _counts_lock:
        return f"{stem}_{next(_counts.setdefault(stem, itertools.count()))}"


def restart_names() -> None:
    """Start the counts of automatic names anew."""
    _counts.clear()
