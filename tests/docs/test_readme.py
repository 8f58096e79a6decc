"""The README's code runs and prints the output in its comments."""

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
def test_readme_block_runs_by_itself(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cg.reset()
    names: dict[str, Any] = {"__name__": "readme"}
    contextvars.Context().run(exec, compile(block, "README.md", "exec"), names)


def block_with(text: str) -> str:
    (block,) = [block for block in BLOCKS if text in block]
    return block


def test_readme_graph_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block_with("f.svg"), "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out.startswith("f = -8.01481664426")
    assert (tmp_path / "f.svg").read_text().count("<svg") == 1
    assert len(BLOCKS) == 3


def test_readme_first_gradient_matches_comment(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block_with("end_of_orbit"), "README.md", "exec"), {"__name__": "readme"})
    assert re.fullmatch(r"\[-0\.5807\d* -0\.1892\d* +0\.2727\d*\]\n", capsys.readouterr().out)


def test_readme_has_the_two_commands() -> None:
    first, second = re.findall(r"```\n(pip [^\n]*)\n```", README)
    assert first == 'pip install ".[examples]" && python examples/mnist.py'
    assert second == 'pip install ".[test]" && pytest'
