"""The README's code runs, and says what it says."""

from __future__ import annotations

import contextvars
import re
from pathlib import Path
from typing import Any

import pytest

import compgraph as cg

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_each_block_runs_as_it_stands(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself: with no name that another block made."""
    monkeypatch.chdir(tmp_path)
    cg.reset()
    names: dict[str, Any] = {"__name__": "readme"}
    contextvars.Context().run(exec, compile(block, "README.md", "exec"), names)


def test_the_first_draws_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[0], "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out.startswith("f = -8.01481664426")
    assert (tmp_path / "f.svg").read_text().count("<svg") == 1
    assert len(BLOCKS) >= 5


def test_its_first_lines_are_the_two_commands() -> None:
    first, second = re.findall(r"```\n(pip [^\n]*)\n```", README)
    assert first == 'pip install ".[examples]" && python examples/mnist.py'
    assert second == 'pip install ".[test]" && pytest'
