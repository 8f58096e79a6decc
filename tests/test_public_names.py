"""Every public name of version 0.1.0, as it was before its modules had rooms, is where it was."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

import compgraph

NAMES: dict[str, list[str]] = json.loads(Path(__file__).with_name("public_names.json").read_text())


RENAMED: dict[str, str] = vars(compgraph)["_RENAMED"]


@pytest.mark.parametrize("old", RENAMED)
def test_renamed_names_warn(old: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"compgraph.{old} is now compgraph.{RENAMED[old]}"):
        assert getattr(compgraph, old) is getattr(compgraph, RENAMED[old])


def test_public_names_exist() -> None:
    modules = {name: importlib.import_module(name) for name in NAMES}
    names = {(module, RENAMED.get(name, name)) for module, found in NAMES.items() for name in found}
    assert {(module, name) for module, name in names if hasattr(modules[module], name)} == names
    assert {(module, name) for module, found in modules.items() for name in dir(found)} >= names
