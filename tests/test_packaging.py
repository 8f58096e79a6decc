"""Imports of the packages, the examples and the tests are declared in ``pyproject.toml``, with the extra of their use."""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAMES = {
    "scikit-learn": "sklearn",
    "pillow": "PIL",
    "scipy": "scipy",
}  # import names that differ from the installed ones
# Modules that import optional dependencies, and the extra that installs these.
EXTRAS = {
    "compgraph/compiled/llvm": ["jit"],
    "compgraph/printing": ["formulas"],
    "autodiff/distributed": ["distributed"],
    "autodiff/visualize": ["examples"],
    "autodiff/optimizers/step_controller.py": ["examples"],
    "autodiff/distributed/parallel/log.py": ["distributed", "examples"],
    "examples": ["examples", "distributed"],
    "tests": ["test"],
}
# Packages that come with declared ones: pytest, nbmake, scikit-learn, pytest-cov.
WITH_OTHERS = {"tests": {"pluggy", "nbformat", "joblib", "coverage"}}


def declared_names(requirements: list[str]) -> set[str]:
    """The modules that requirements bring."""
    names: set[str] = set()
    for requirement in requirements:
        name, extras = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", requirement).groups()  # type: ignore[union-attr]
        if name == "compgraph":
            names |= declared_names([each for extra in extras.split(",") for each in PROJECT["optional-dependencies"][extra]])
        names.add(NAMES.get(name, name.replace("-", "_")))
        names |= {extra for extra in (extras or "").split(",") if name == "dask"}
    return names


@functools.cache
def imported_names(path: Path) -> set[str]:
    """Third-party packages that a module imports at its top level or within functions."""
    names = set()
    for statement in ast.walk(ast.parse(path.read_text())):
        if isinstance(statement, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            names.add((statement.module or "").partition(".")[0])
    return names - {*sys.stdlib_module_names, "compgraph", "autodiff"}


def modules() -> list[Path]:
    return [path for folder in ("compgraph", "autodiff", "examples", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]


def test_dependencies_imported_are_declared() -> None:
    beside = {path.stem for path in modules() if path.parts[len(ROOT.parts)] in ("examples", "tests")}
    beside |= {"tests", "only_here", "config_within"}  # made by tests
    undeclared = {}
    for path in modules():
        place = path.relative_to(ROOT).as_posix()
        names = declared_names(PROJECT["dependencies"])
        for folder, extras in EXTRAS.items():
            if place.startswith(folder):
                names |= declared_names([f"compgraph[{','.join(extras)}]"]) | WITH_OTHERS.get(folder, set())
        missing = imported_names(path) - names - (beside if place.startswith(("examples", "tests")) else set())
        if missing:
            undeclared[place] = missing
    assert not undeclared


def test_dependencies_declared_are_imported() -> None:
    """Every declared dependency is imported."""
    ours = [path for path in modules() if path.parts[len(ROOT.parts)] in ("compgraph", "autodiff")]
    names: set[str] = set().union(*map(imported_names, ours))
    assert declared_names(PROJECT["dependencies"]) <= names


@pytest.mark.parametrize(("platform", "machine", "has_wheels"), [("linux", "x86_64", True), ("emscripten", "wasm32", False)])
def test_pygraphviz_is_required_where_wheels_exist(platform: str, machine: str, has_wheels: bool) -> None:
    markers = pytest.importorskip("packaging.requirements")
    extras = PROJECT["optional-dependencies"]
    required = [markers.Requirement(each) for each in [*PROJECT["dependencies"], *extras["pictures"]]]
    where = {"sys_platform": platform, "platform_machine": machine, "platform_python_implementation": "CPython"}
    names = {each.name for each in required if each.marker is None or each.marker.evaluate(where)}
    assert ("pygraphviz" in names) is has_wheels
    assert ("optree" in names) is has_wheels
    assert {"numpy", "scipy", "graphviz", "tqdm"} <= names
    assert not [each for each in PROJECT["dependencies"] if each.startswith("pygraphviz")]
    assert {"pygraphviz"} <= declared_names(["compgraph[examples]"]) & declared_names(["compgraph[test]"])
