"""The page of environment variables lists those that the packages read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import compgraph

ROOT = Path(compgraph.__file__).resolve().parent.parent
PAGE = Path(__file__).resolve().parents[2] / "docs" / "environment.md"


def variables_of(source: str) -> Iterator[str]:
    """Yield the environment variables that a module reads; fail for an unknown way of reading.

    A module may copy all of `os.environ` for a process that it starts.
    """
    tree = ast.parse(source)
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            assert not {alias.name for alias in node.names} & {"environ", "environb", "getenv", "getenvb"}, "import os instead"
        if not re.fullmatch(r"environb?|getenvb?", name):
            continue
        around = parents[node]
        if isinstance(around, ast.Attribute):  # os.environ.get(...)
            assert around.attr == "get", ast.unparse(around)
            around = parents[around]
        if isinstance(around, ast.Call):
            key: ast.expr = around.args[0]
        elif isinstance(around, ast.Compare):  # "NAME" in os.environ
            key = around.left
        elif isinstance(around, ast.Subscript):
            key = around.slice
        else:
            assert isinstance(around, ast.Dict), ast.unparse(around)  # {**os.environ}
            continue
        assert isinstance(key, ast.Constant), ast.unparse(around)
        yield key.value


def test_environment_page_lists_variables() -> None:
    files = [path for package in ("compgraph", "autodiff") for path in (ROOT / package).rglob("*.py")]
    read = {name for path in files for name in variables_of(path.read_text())}
    assert "COMPGRAPH_CACHE" in read
    assert {*re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)} == read


@pytest.mark.parametrize(
    "source",
    [
        'os.environ["A"]',
        'os.environ.get("A")',
        'os.getenv("A", "b")',
        '"A" in os.environ',
        'x = environ.get("A") or os.environ["A"]',
    ],
)
def test_variables_of_detects_each_form(source: str) -> None:
    assert {*variables_of(source)} == {"A"}


@pytest.mark.parametrize("source", ["os.environ[name]", "os.environ.copy()", "f(os.environ)", "from os import environ"])
def test_variables_of_rejects_other_forms(source: str) -> None:
    with pytest.raises(AssertionError):
        assert not {*variables_of(source)}


def test_variables_of_accepts_copy_for_process() -> None:
    assert [*variables_of("{**os.environ, 'A': 'b'}")] == []
