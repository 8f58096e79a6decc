"""Functions of arrays that run as compiled programs: `jit` in front, and the passes and the backend behind."""

from __future__ import annotations

import importlib
from typing import Any

from .jit import jit
from .outer import record_by

__all__ = ["Bound", "Jitted", "backend", "jit", "record_by"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"compgraph.compiled has no {name!r}")
    return getattr(importlib.import_module(".jitted", __name__), name)  # late, since `import compgraph` shall not wait for it
