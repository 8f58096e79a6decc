"""Modules that are imported when they are first needed, since ``import compgraph`` shall not wait for them."""

from __future__ import annotations

import contextvars
import importlib
from typing import Any


def import_lazily(module: str) -> Any:
    """A module, imported now if it was not before.

    Its code runs in an empty context: what holds for the code that needs it first, within a derivative say, holds not for
    the module's own.
    """
    return contextvars.Context().run(importlib.import_module, module)
