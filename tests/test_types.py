"""Types that type checkers infer in users' code."""

from __future__ import annotations

import ast
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import compgraph

ROOT = Path(compgraph.__file__).resolve().parent.parent
PROGRAM = Path(__file__).parent / "support" / "typed_program.py"
MAX_ANY = 0.148  # share of the parameters of both packages
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


def test_few_parameters_are_any() -> None:
    annotations = [
        parameter.annotation
        for package in ("compgraph", "autodiff")
        for path in (ROOT / package).rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for parameter in ast.walk(function.args)
        if isinstance(parameter, ast.arg) and parameter.arg not in ("self", "cls")
    ]
    untyped = [each for each in annotations if each is None or (isinstance(each, ast.Name) and each.id == "Any")]
    assert len(untyped) <= MAX_ANY * len(annotations)
