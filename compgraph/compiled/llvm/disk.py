"""The cache of compiled programs on disk: object code, keyed by everything that it depends on.

Object code is run as it is, so a file is loaded only if this user wrote it. The folder and the files must belong to the user, no
other user can write them, and symbolic links are not followed. Each file begins with an authentication code of its key and its
content, computed with the user's secret, which the folder contains. So a file that is truncated, renamed or foreign
is ignored. If the disk is full or read-only, the program is compiled again the next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import stat
import tempfile
import warnings
from pathlib import Path

MOST = 2000  # files; beyond it, the least recently used ones are removed
_SECRET, _SECRET_SIZE = "secret", 32
_CODE_SIZE = hashlib.sha256().digest_size
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH
_refused: set[Path] = set()  # folders with a warning already issued


def folder() -> Path:
    """The folder of the cache: ``COMPGRAPH_CACHE``, or ``compgraph`` in the user's folder of caches."""
    chosen = os.environ.get("COMPGRAPH_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "compgraph"


def load(key: str) -> bytes | None:
    """The object code that this user stored under a key, or None."""
    place = _usable_folder()
    secret = None if place is None else _read(place / _SECRET)
    if place is None or secret is None or len(secret) != _SECRET_SIZE:
        return None
    path = place / _file_name(key)
    found = _read(path)
    if found is None:
        return None
    code = found[_CODE_SIZE:]
    if not hmac.compare_digest(found[:_CODE_SIZE], _authentication(secret, key, code)):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return code


def store(key: str, code: bytes) -> None:
    """Store object code under a key, at once or not at all."""
    with contextlib.suppress(OSError):
        place = _usable_folder()
        secret = None if place is None else _secret(place)
        if place is not None and secret is not None:
            _write(place / _file_name(key), _authentication(secret, key, code) + code)
            _limit(place)


def _file_name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest() + ".o"


def _authentication(secret: bytes, key: str, code: bytes) -> bytes:
    return hmac.digest(secret, hashlib.sha256(key.encode()).digest() + code, "sha256")


def _usable_folder() -> Path | None:
    """The folder, created if it is missing; None, after one warning, where other users could write into it."""
    if not hasattr(os, "geteuid"):  # the platform has no owners of files
        return None
    try:
        place = folder()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.lstat(place)
    except (OSError, RuntimeError):  # not writable, or the user has no home
        return None
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _WRITABLE:
        return place
    if place not in _refused:
        _refused.add(place)
        if not stat.S_ISDIR(found.st_mode):
            why = "it is a symbolic link; name the folder itself"
        elif found.st_uid != os.geteuid():
            why = "it belongs to another user"
        else:
            why = f"other users may write into it; call chmod 700 {place}"
        message = f"compgraph.jit does not use the cache {place}: {why}, or choose another folder by COMPGRAPH_CACHE"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return None


def _read(path: Path) -> bytes | None:
    """The content of a regular file that belongs to the user and that no other user can write, or None."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would block
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            is_own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _WRITABLE
            return file.read() if is_own else None
    except OSError:
        return None


def _write(path: Path, content: bytes) -> None:
    """Replace a file, which only the user may read."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _secret(place: Path) -> bytes | None:
    """The user's secret, created if it is missing or damaged."""
    path = place / _SECRET
    found = _read(path)
    if found is None or len(found) != _SECRET_SIZE:
        _write(path, os.urandom(_SECRET_SIZE))
        found = _read(path)  # another process may have written at the same time
    return found


def _limit(place: Path) -> None:
    found = sorted(place.glob("*.o"), key=lambda path: path.lstat().st_mtime)
    for path in found[: max(len(found) - MOST, 0)]:
        path.unlink(missing_ok=True)
