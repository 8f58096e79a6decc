"""Every public name of version 0.1.0, as it was before its modules had rooms, is where it was."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

NAMES: dict[str, list[str]] = json.loads(Path(__file__).with_name("public_names.json").read_text())


def test_no_public_name_is_gone() -> None:
    modules = {name: importlib.import_module(name) for name in NAMES}
    names = {(module, name) for module, found in NAMES.items() for name in found}
    assert {(module, name) for module, name in names if hasattr(modules[module], name)} == names
    assert {(module, name) for module, found in modules.items() for name in dir(found)} >= names
