"""The README's code runs, and says what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def test_its_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "readme"}
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    for block in blocks:
        if "elementwise(" not in block:  # a line of the package itself
            exec(compile(block, "README.md", "exec"), names)
    assert capsys.readouterr().out.startswith("f = -8.01481664426")
    assert (tmp_path / "f.svg").read_text().count("<svg") == 1
    assert len(blocks) >= 5


def test_its_first_lines_are_the_two_commands() -> None:
    first, second = re.findall(r"```\n(pip [^\n]*)\n```", README)
    assert first == "pip install . && python examples/mnist.py"
    assert second == 'pip install ".[test]" && pytest'
