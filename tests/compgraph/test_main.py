"""The command ``python -m compgraph``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff.rules import by_function
from compgraph import __main__ as command

pytestmark = pytest.mark.portable

ROOT = Path(__file__).resolve().parents[2]
NAMES = [character * 64 + ".o" for character in "0af"]  # of compiled programs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMPGRAPH_CACHE", str(tmp_path))
    for name in NAMES:
        (tmp_path / name).write_bytes(bytes(2**20))
    return tmp_path


def run(*options: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-W", "error", "-m", "compgraph", *options]
    return subprocess.run(call, capture_output=True, text=True, check=False, cwd=ROOT)


def test_command_prints_versions_and_cache(folder: Path) -> None:
    process = run()
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.startswith(f"compgraph         {cg.__version__}\nPython ")
    assert f"{folder}: 3 files, 3.0 MiB\n" in process.stdout
    assert "python -m compgraph --clear-caches" in process.stdout
    assert [path.name for path in sorted(folder.iterdir())] == NAMES


def test_clear_caches_removes_compiled_programs_only(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    others = ["secret", "notes.o", "0" * 63 + ".o", "0" * 64 + ".txt"]
    for name in others:
        (folder / name).write_text("kept")
    (folder / ("b" * 64 + ".o")).mkdir()
    assert command.main(["--clear-caches"]) == 0
    assert capsys.readouterr().out == f"Removed 3 files from {folder}.\n"
    assert {path.name for path in folder.iterdir()} == {*others, "b" * 64 + ".o"}


def test_clear_caches_removes_what_the_compiler_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("llvmlite")
    if not hasattr(os, "geteuid"):
        pytest.skip("nothing is cached on a platform without file owners")
    place = tmp_path / "cache"
    monkeypatch.setenv("COMPGRAPH_CACHE", str(place))
    for expected in (1, 0):
        if expected:
            cg.jit(lambda x: x * 5 - 1).compile(1.5 * cg.ones(3).value)
        assert command.main(["--clear-caches"]) == 0
        assert f"Removed {expected} file" in capsys.readouterr().out
    assert [path.name for path in place.iterdir()] == ["secret"]


def test_command_creates_no_folder(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    place = folder / "missing"
    monkeypatch.setenv("COMPGRAPH_CACHE", str(place))
    for options in ([], ["--clear-caches"]):
        assert command.main(options) == 0
        assert f"0 files from {place}" in (out := capsys.readouterr().out) or f"{place}: 0 files, 0.0 MiB" in out
        assert not place.exists()


def keep_check(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(command, "CHECKS", {name: command.CHECKS[name]})


def test_self_test_passes() -> None:
    process = run("--self-test")
    assert (process.returncode, process.stderr) == (0, "")
    lines = process.stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [*command.CHECKS]
    assert lines[-1] == "Self-test passed."


def test_self_test_names_missing_packages(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(command, "can_render", lambda: False)
    monkeypatch.delitem(command.CHECKS, "derivatives")
    assert command.self_test()
    out = capsys.readouterr().out
    assert "compilation  skipped: llvmlite is not installed" in out
    assert "drawing      HTML; SVG is skipped: Graphviz is not installed" in out


def test_self_test_detects_wrong_rule(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    keep_check(monkeypatch, "derivatives")
    rule: Any = by_function[np.tanh]
    monkeypatch.setattr(rule, "formulas", (lambda g, out, x: g * (1 - out),))
    assert command.main(["--self-test"]) == 1
    output = capsys.readouterr()
    assert "derivatives  FAILED" in output.out
    assert "Self-test failed: derivatives" in output.out
    assert "AssertionError" in output.err


def test_self_test_detects_uncompiled_function(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("llvmlite")
    keep_check(monkeypatch, "compilation")
    monkeypatch.setattr(command, "PROGRAM", command.PROGRAM.replace("y[0] = x[0]", "y[0] = x[0]; print(end='')"))
    assert command.main(["--self-test"]) == 1
    assert "Self-test failed: compilation." in capsys.readouterr().out


def test_self_test_detects_wrong_picture(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    keep_check(monkeypatch, "drawing")
    monkeypatch.setattr(cg, "visualize_at", lambda node, path: path.write_text("empty"), raising=False)
    assert command.main(["--self-test"]) == 1
    assert "Self-test failed: drawing." in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--unknown"], ["--clear-caches", "--self-test"]])
def test_wrong_options_exit_with_2(options: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        command.main(options)
    assert raised.value.code == 2


def test_help_lists_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        command.main(["--help"])
    assert raised.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: python -m compgraph ")
    assert all(option in out for option in ("--clear-caches", "--self-test"))
