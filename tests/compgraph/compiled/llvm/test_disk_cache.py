"""The cache of compiled programs: only what this user stored is loaded, and damaged files are replaced."""

from __future__ import annotations

import hashlib
import os
import stat
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compgraph as cg

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this platform does not tell owners, so nothing is cached")

X = np.array([1.0, -2.0, 0.5])
FUNCTIONS = [lambda x: x * 2 + 1, lambda x: x * 3 - 1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "parent" / "cache"
    monkeypatch.setenv("COMPGRAPH_CACHE", str(place))
    mask = os.umask(0)  # the mode must not depend on it
    yield place
    os.umask(mask)


def run_all() -> None:
    """Compile each function anew, and compare."""
    for function in FUNCTIONS:
        np.testing.assert_array_equal(cg.jit(function).compile(X)(X), function(X))


def programs(place: Path) -> list[Path]:
    return sorted(place.glob("*.o"))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_disk_cache_is_private_and_reused(folder: Path) -> None:
    run_all()
    assert mode_of(folder) == 0o700
    assert [mode_of(path) for path in folder.iterdir()] == [0o600] * 3
    before = [path.stat().st_ino for path in programs(folder)]
    run_all()
    assert [path.stat().st_ino for path in programs(folder)] == before
    assert len(before) == 2


def old_format(code: bytes) -> bytes:
    return b"compgraph object code 1\n" + hashlib.sha256(code).digest() + code


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda code: b"",
    "short": lambda code: code[:20],
    "cut off": lambda code: code[:-100],
    "one bit": lambda code: code[:-50] + bytes([code[-50] ^ 1]) + code[-49:],
    "random": lambda code: np.random.default_rng(0).bytes(5000),
    "hashed garbage": lambda code: old_format(b"\x7fELF" + bytes(5000)),
    "hash without the secret": lambda code: hashlib.sha256(code[32:]).digest() + code[32:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_disk_cache_replaces_damaged_file(damage: str, folder: Path) -> None:
    run_all()
    whole = [path.read_bytes() for path in programs(folder)]
    for path, content in zip(programs(folder), whole, strict=True):
        path.write_bytes(DAMAGES[damage](content))
    run_all()
    assert [path.read_bytes() for path in programs(folder)] == whole


def test_disk_cache_rejects_file_of_another_program(folder: Path) -> None:
    run_all()
    first, second = programs(folder)
    whole = first.read_bytes(), second.read_bytes()
    first.write_bytes(whole[1])
    second.write_bytes(whole[0])
    run_all()
    assert (first.read_bytes(), second.read_bytes()) == whole


@pytest.mark.parametrize("what", ["link", "dangling link", "pipe", "folder", "shared file"])
def test_disk_cache_rejects_unsafe_file(what: str, folder: Path, tmp_path: Path) -> None:
    run_all()
    path = programs(folder)[0]
    content = path.read_bytes()
    other = tmp_path / "other"
    if what == "shared file":
        path.chmod(0o666)
    else:
        path.unlink()
    if what in ("link", "dangling link"):
        path.symlink_to(other)
        if what == "link":
            other.write_bytes(content)
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    run_all()
    if what != "folder":  # replaced; the target of a link stays
        assert path.read_bytes() == content
        assert stat.S_ISREG(path.lstat().st_mode)
        assert mode_of(path) == 0o600
        assert other.exists() == (what == "link")


@pytest.mark.parametrize("what", ["short", "missing", "other", "link", "shared"])
def test_disk_cache_rejects_programs_of_another_secret(what: str, folder: Path, tmp_path: Path) -> None:
    run_all()
    secret = folder / "secret"
    content, before = secret.read_bytes(), [path.read_bytes() for path in programs(folder)]
    if what == "shared":
        secret.chmod(0o622)
    elif what in ("short", "other"):
        secret.write_bytes(b"a" if what == "short" else bytes(len(content)))
    else:
        secret.unlink()
        if what == "link":
            (tmp_path / "other").write_bytes(content)
            secret.symlink_to(tmp_path / "other")
    run_all()
    after = [path.read_bytes() for path in programs(folder)]
    assert not set(before) & set(after)
    assert mode_of(secret) == 0o600
    run_all()
    assert [path.read_bytes() for path in programs(folder)] == after


@pytest.mark.parametrize("what", ["others", "group", "link", "owner"])
def test_disk_cache_rejects_shared_folder_and_warns_once(what: str, folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    if what == "link":
        (tmp_path / "real").mkdir(mode=0o700)
        folder.parent.mkdir()
        folder.symlink_to(tmp_path / "real")
    else:
        folder.mkdir(parents=True)
        folder.chmod({"others": 0o702, "group": 0o770, "owner": 0o700}[what])
    if what == "owner":
        user = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_all()
    assert [str(folder) in str(warning.message) for warning in caught] == [True]
    assert list(folder.iterdir()) == []


def test_disk_cache_without_writable_folder_compiles(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.parent.mkdir()
    folder.write_text("a file")
    run_all()
    monkeypatch.setenv("COMPGRAPH_CACHE", "/proc/compgraph")
    run_all()
    assert folder.read_text() == "a file"
