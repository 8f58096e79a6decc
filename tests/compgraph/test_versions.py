"""The version of the packages, and `show_versions`."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from compgraph import versions

pytestmark = pytest.mark.portable

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Packages for work on this one, whose versions a bug report does not need.
TOOLS = {
    *(
        "build",
        "furo",
        "hypothesis",
        "ipykernel",
        "latex2mathml",
        "mypy",
        "myst-nb",
        "nbmake",
        "numpydoc",
        "playwright",
        "pyright",
        "pytest",
    ),
    *("pytest-cov", "pytest-xdist", "ruff", "sphinx", "sphinx-copybutton", "twine"),
}


def test_version_matches_pyproject() -> None:
    assert cg.__version__ == ad.__version__ == PROJECT["version"]


def test_version_is_stated_once() -> None:
    files = [*ROOT.glob("*.toml"), *ROOT.glob("*.cfg"), *ROOT.glob("*.cff"), ROOT / "docs" / "conf.py"]
    files += [path for name in ("compgraph", "autodiff") for path in (ROOT / name).rglob("*.py")]
    statement = re.compile(r"^(?:__)?(?:version|release)(?:__)?\s*[:=]\s*[\"']?\d", re.MULTILINE)
    names = {path.name for path in files if statement.search(path.read_text())}
    assert names == {"pyproject.toml"}


def test_import_computes_no_version() -> None:
    program = "import sys, compgraph, autodiff; print([m for m in ('importlib.metadata', 'tomllib') if m in sys.modules])"
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert process.stdout == "[]\n"


@pytest.mark.parametrize("text", [None, "", "not toml [", '[project]\nname = "other"\nversion = "7"', "[tool]"])
def test_version_without_checkout(text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the package, ``pyproject.toml`` is missing, malformed, or that of another project."""
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.setattr(versions, "__file__", str(tmp_path / "compgraph" / "versions.py"))
    monkeypatch.setattr(importlib.metadata, "version", {"compgraph": "1.2.3"}.__getitem__)
    assert versions._own_version() == "1.2.3"

    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert versions._own_version() == "unknown"


def test_version_of_checkout_precedes_installed_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "compgraph"\nversion = "2.0"')
    monkeypatch.setattr(versions, "__file__", str(tmp_path / "compgraph" / "versions.py"))
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1.2.3")
    assert versions._own_version() == "2.0"


def test_show_versions_lists_distributions_of_extras() -> None:
    required = [*PROJECT["dependencies"], *(each for extra in PROJECT["optional-dependencies"].values() for each in extra)]
    names = {re.match(r"[\w-]+", each)[0] for each in required} | {"distributed"}  # type: ignore[index]  # dask[distributed]
    assert len(set(versions.DISTRIBUTIONS)) == len(versions.DISTRIBUTIONS)
    assert set(versions.DISTRIBUTIONS) == names - {"compgraph"} - TOOLS


def test_show_versions_prints_each_version(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    installed = importlib.metadata.version

    def version(name: str) -> str:
        if name == "sympy":
            raise importlib.metadata.PackageNotFoundError(name)
        return "9.9" if name == "jax" else installed(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    cg.show_versions()
    rows = {line[:18].strip(): line[18:] for line in capsys.readouterr().out.splitlines()}
    assert [*rows] == ["compgraph", "Python", "platform", "processors", "BLAS of NumPy", *versions.DISTRIBUTIONS]
    assert rows["compgraph"] == cg.__version__
    assert rows["Python"].startswith(platform.python_version())
    assert rows["platform"] == platform.platform()
    assert int(rows["processors"]) >= 1
    assert rows["numpy"] == np.__version__
    assert rows["sympy"] == "not installed"
    assert rows["jax"] == "9.9"


def test_show_versions_imports_no_dependency() -> None:
    program = """
import sys, compgraph
compgraph.show_versions()
names = ("scipy", "llvmlite", "sympy", "dask", "distributed", "optree", "graphviz", "pygraphviz", "pandas", "matplotlib", "numba")
print([name for name in names if name in sys.modules])
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert process.stdout.endswith("\n[]\n")
