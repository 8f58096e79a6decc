"""Types that type checkers infer in users' code."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import compgraph

ROOT = Path(compgraph.__file__).resolve().parent.parent
PROGRAM = Path(__file__).parent / "support" / "typed_program.py"
CHECKERS = {"mypy": ["mypy", "--strict", "--config-file="], "pyright": ["pyright", "--pythonpath", sys.executable]}


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_typed_program_passes_checkers(checker: str, tmp_path: Path) -> None:
    pytest.importorskip(checker, reason='pip install "compgraph[test]"')
    command = [sys.executable, "-m", *CHECKERS[checker], str(PROGRAM)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert run.returncode == 0, run.stdout + run.stderr


def test_typed_program_runs() -> None:
    runpy.run_path(str(PROGRAM))
