"""The table of claims: each row names a test, and every named test and file exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "sources.md").read_text()
NAMED = sorted(set(re.findall(r"`((?:tests|examples)/[^`]+)`", PAGE)))


def claims() -> list[list[str]]:
    """The cells of each row of the tables that have a column of tests."""
    rows: list[list[str]] = []
    columns = 0
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else []
        if not cells:
            columns = 0
        elif columns == 0:
            columns = len(cells) if cells[-1] == "test" else -1
        elif columns > 0 and set(line) - set("|-"):
            assert len(cells) == columns, line
            rows.append(cells)
    return rows


def functions(path: Path) -> set[str]:
    """Names of a module's functions and methods."""
    body = ast.parse(path.read_text()).body
    inner = [item for part in body if isinstance(part, ast.ClassDef) for item in part.body]
    return {item.name for item in (*body, *inner) if isinstance(item, ast.FunctionDef)}


def missing(named: str) -> str | None:
    """The name of a file, or of a test in it, if it does not exist."""
    place, _, test = named.partition("::")
    path = ROOT / place
    if not path.is_file():
        return place
    return named if test and test not in functions(path) else None


def test_sources_named_tests_exist() -> None:
    assert len(NAMED) > 40
    assert [named for named in NAMED if missing(named)] == []


def test_sources_every_claim_has_test() -> None:
    assert len(claims()) > 40
    for cells in claims():
        assert all(cells), cells
        assert re.search(r"`tests/\S+\.py(::test_\w+)?`", cells[-1]), cells


def test_sources_missing_file_or_test_is_detected() -> None:
    assert missing("tests/docs/test_nothing.py") == "tests/docs/test_nothing.py"
    assert missing("tests/docs/test_sources.py::test_nothing") == "tests/docs/test_sources.py::test_nothing"
    assert missing("tests/docs/test_sources.py::test_sources_missing_file_or_test_is_detected") is None
