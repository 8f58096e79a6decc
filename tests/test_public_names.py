"""Every public name of version 0.1.0, as it was before its modules had rooms, is where it was."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

NAMES: dict[str, list[str]] = json.loads(Path(__file__).with_name("public_names.json").read_text())


@pytest.mark.parametrize("module", NAMES)
def test_no_public_name_is_gone(module: str) -> None:
    found = importlib.import_module(module)
    assert not [name for name in NAMES[module] if not hasattr(found, name)]
    assert not {*NAMES[module]} - {*dir(found)}
