"""Automatic names: ``add_0``, ``add_1``, ... counted for the whole process."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

from .locks import reset_after_fork

_counts: dict[str, Iterator[int]] = {}
_counts_lock = reset_after_fork(threading.Lock())


def automatic_name(stem: str) -> str:
    """The next of ``stem_0``, ``stem_1``, ... in this process."""
    with _counts_lock:
        return f"{stem}_{next(_counts.setdefault(stem, itertools.count()))}"


def restart_names() -> None:
    """Start the counts of automatic names anew."""
    _counts.clear()
