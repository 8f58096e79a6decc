"""Public names: those of version 0.1.0 remain, and `dir` lists the documented ones."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

import autodiff
import compgraph

DOCS = Path(__file__).parents[1] / "docs"
NAMES: dict[str, list[str]] = json.loads(Path(__file__).with_name("public_names.json").read_text())


RENAMED: dict[str, str] = vars(compgraph)["_RENAMED"]


@pytest.mark.parametrize("old", RENAMED)
def test_renamed_names_warn(old: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"compgraph.{old} is now compgraph.{RENAMED[old]}"):
        assert getattr(compgraph, old) is getattr(compgraph, RENAMED[old])


def test_public_names_exist() -> None:
    modules = {name: importlib.import_module(name) for name in NAMES}
    names = {(module, RENAMED.get(name, name)) for module, namespace in NAMES.items() for name in namespace}
    assert {(module, name) for module, name in names if hasattr(modules[module], name)} == names
    assert {(module, name) for module, namespace in modules.items() for name in dir(namespace)} >= names


def documented_names(module: str) -> set[str]:
    """The names of a module on the pages of the reference."""
    blocks = [b for page in (DOCS / "reference").glob("*.md") for b in page.read_text().split("```{eval-rst}\n")[1:]]
    listed = [block.partition("```")[0] for block in blocks if f".. currentmodule:: {module}\n" in block]
    return {name for block in listed for name in re.findall(r"^(?:   |\.\. py:data:: )(\w+)$", block, re.MULTILINE)}


def recorded_functions() -> set[str]:
    """NumPy functions that the page on NumPy calls recorded."""
    rows = re.findall(r"^\| `np\.(\w+)` \| (.*) \|$", (DOCS / "numpy.md").read_text(), re.MULTILINE)
    return {name for name, policy in rows if policy in ("by rule", "composed", "piecewise constant")}


def test_dir_lists_documented_names() -> None:
    assert {*dir(autodiff)} == documented_names("autodiff")
    assert {*dir(compgraph)} == documented_names("compgraph") | recorded_functions()


@pytest.mark.parametrize("module", [autodiff, compgraph])
def test_listed_names_are_attributes(module: ModuleType) -> None:
    assert [name for name in dir(module) if not hasattr(module, name)] == []
    assert dir(module) == sorted({*dir(module)})


def test_renamed_rules_warn() -> None:
    with pytest.warns(DeprecationWarning, match=r"autodiff\.grads\.laid_grad is now autodiff\.grads\.scatter_to_buffer_grad"):
        assert autodiff.grads.laid_grad is autodiff.grads.scatter_to_buffer_grad
