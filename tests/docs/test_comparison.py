"""The comparison page: this package's column equals the outcome of its programs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "comparison.md").read_text()


@pytest.fixture(scope="module")
def comparing() -> Any:
    """The program that writes the tables."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        spec = importlib.util.spec_from_file_location("comparing", ROOT / "benchmarks" / "comparing.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


def test_comparison_page_matches_program_results(comparing: Any) -> None:
    for name, table in comparing.tables({"compgraph"}).items():
        shown = PAGE.split(f"<!-- {name}: begin -->")[1].split(f"<!-- {name}: end -->")[0].strip().splitlines()
        for line, written in zip(table.splitlines(), shown, strict=True):
            assert line.split(" | ")[:2] == written.split(" | ")[:2], name


def test_comparison_unchanged_programs_are_right(comparing: Any) -> None:
    for title, source in comparing.UNCHANGED.items():
        assert comparing.program_cell("compgraph", source) == "yes", title
    for title, source in comparing.LEAVING.items():
        assert comparing.program_cell("compgraph", source) in ("yes", "wrong, warns (LeakWarning)"), title


def test_comparison_wrong_result_is_reported(comparing: Any) -> None:
    wrong = "def f(x): return np.sum(ad.stop_gradient(x) * x) if isinstance(x, cg.Node) else np.sum(x * x)"
    assert comparing.program_cell("compgraph", wrong) == "**wrong, silently**"
    raising = "def f(x): return [][0] if isinstance(x, cg.Node) else np.sum(x)"
    assert comparing.program_cell("compgraph", raising) == "raises IndexError"


def test_comparison_signs_of_outcomes(comparing: Any) -> None:
    assert [*map(comparing.sign, ("yes", "**wrong, silently**", "wrong, warns (LeakWarning)", "no", "2-4j"))] == [
        "✓", "**!!**", "(!)", "no", "2-4j"
    ]  # fmt: skip
    assert [*map(comparing.sign, ("raises TypeError", "raises ZeroDivisionError", "raises error"))] == ["✗¹", "✗¹⁰", "✗ error"]
