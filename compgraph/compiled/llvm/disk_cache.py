"""The cache of compiled programs on disk: object code, keyed by everything that it depends on.

Object code is executed without further checks, so a file is loaded only if this user wrote it. The folder and the files must
belong to the user, no other user can write to them, and symbolic links are not followed. Each file begins with an
authentication code of its key and content, computed with the user's secret in the folder. So a truncated, renamed or foreign
file is ignored. If the disk is full or read-only, the program is compiled again the next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import stat
import tempfile
from pathlib import Path

from ..compile_errors import warn_compile

MAX_FILES = 2000  # the least recently used files are removed
_SECRET, _SECRET_SIZE = "secret", 32
_AUTHENTICATION_SIZE = hashlib.sha256().digest_size
_NAME = re.compile(r"[0-9a-f]{64}\.o")  # the names that `_file_name` returns
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH
_warned_folders: set[Path] = set()  # folders that a warning was issued for


def cache_folder() -> Path:
    """Return the cache folder: ``COMPGRAPH_CACHE``, or ``compgraph`` in the user's cache folder."""
    folder = os.environ.get("COMPGRAPH_CACHE")
    if folder:
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "compgraph"


def cached_files() -> list[Path]:
    """Return the files of compiled programs in the cache folder, without other files in it."""
    return [path for path in cache_folder().glob("*.o") if _NAME.fullmatch(path.name) and not path.is_dir()]


def load(key: str) -> bytes | None:
    """Return the object code that this user stored under a key, or None."""
    folder = _usable_folder()
    secret = None if folder is None else _read(folder / _SECRET)
    if folder is None or secret is None or len(secret) != _SECRET_SIZE:
        return None
    path = folder / _file_name(key)
    content = _read(path)
    if content is None:
        return None
    code = content[_AUTHENTICATION_SIZE:]
    if not hmac.compare_digest(content[:_AUTHENTICATION_SIZE], _authentication_code(secret, key, code)):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return code


def store(key: str, code: bytes) -> bool:
    """Store object code under a key, atomically; return whether that succeeded."""
    with contextlib.suppress(OSError):
        folder = _usable_folder()
        secret = None if folder is None else _load_or_create_secret(folder)
        if folder is not None and secret is not None:
            _write(folder / _file_name(key), _authentication_code(secret, key, code) + code)
            _evict()
            return True
    return False


def _file_name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest() + ".o"


def _authentication_code(secret: bytes, key: str, code: bytes) -> bytes:
    return hmac.digest(secret, hashlib.sha256(key.encode()).digest() + code, "sha256")


def _usable_folder() -> Path | None:
    """Return the folder, created if missing; None, after one warning, if other users could write to it."""
    if not hasattr(os, "geteuid"):  # the platform has no file owners
        return None
    try:
        folder = cache_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = os.lstat(folder)
    except (OSError, RuntimeError):  # not writable, or the user has no home
        return None
    if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & _WRITABLE:
        return folder
    if folder not in _warned_folders:
        _warned_folders.add(folder)
        if not stat.S_ISDIR(status.st_mode):
            reason = "it is a symbolic link; use its target"
        elif status.st_uid != os.geteuid():
            reason = "it belongs to another user"
        else:
            reason = f"other users can write to it; run chmod 700 {folder}"
        warn_compile(f"compgraph.jit does not use the cache {folder}: {reason}, or set COMPGRAPH_CACHE to another folder")
    return None


def _read(path: Path) -> bytes | None:
    """Return the content of a regular file that belongs to the user and that no other user can write, or None."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would block
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & _WRITABLE
            return file.read() if is_own else None
    except OSError:
        return None


def _write(path: Path, content: bytes) -> None:
    """Replace a file atomically; only the user may read it."""
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _load_or_create_secret(folder: Path) -> bytes | None:
    """Return the user's secret, created if missing or damaged."""
    path = folder / _SECRET
    secret = _read(path)
    if secret is None or len(secret) != _SECRET_SIZE:
        _write(path, os.urandom(_SECRET_SIZE))
        secret = _read(path)  # another process may have written concurrently
    return secret


def _evict() -> None:
    """Remove the least recently used files beyond the limit."""
    paths = sorted(cached_files(), key=lambda path: path.lstat().st_mtime)
    for path in paths[: max(len(paths) - MAX_FILES, 0)]:
        path.unlink(missing_ok=True)
