"""Compiled programs on disk: a program that was compiled once, on this processor and by these versions, is not compiled again.

A file has the hash of what it holds before it, so that one that is cut off, or not ours, is not taken. A disk that is full, or
may not be written on, is no error: the program is compiled again the next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

MOST = 2000  # files; beyond it those that were not used for longest go
_MAGIC = b"compgraph object code 1\n"


def folder() -> Path:
    """Where programs are kept: ``COMPGRAPH_CACHE``, or ``compgraph`` in the user's folder of caches."""
    chosen = os.environ.get("COMPGRAPH_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "compgraph"


def kept_path(what: str) -> Path | None:
    """The file for a program, told by all that it hangs on; None where there is no home for it."""
    try:
        return folder() / (hashlib.sha256(what.encode()).hexdigest() + ".o")
    except RuntimeError:  # the user has no home
        return None


def kept(path: Path) -> bytes | None:
    """What was kept in a file; None if there is none that is whole."""
    try:
        found = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    head, code = found[: len(_MAGIC) + 32], found[len(_MAGIC) + 32 :]
    return code if head == _MAGIC + hashlib.sha256(code).digest() else None


def keep(path: Path, code: bytes) -> None:
    """Keep object code in a file, at once or not at all."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(code).digest() + code)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
        _limit(path.parent)


def _limit(place: Path) -> None:
    found = sorted(place.glob("*.o"), key=lambda path: path.stat().st_mtime)
    for path in found[: max(len(found) - MOST, 0)]:
        path.unlink(missing_ok=True)
