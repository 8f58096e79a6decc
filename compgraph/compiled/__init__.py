"""The compiler: `jit`, which traces functions of arrays, and the LLVM backend."""

from __future__ import annotations

import importlib
from typing import Any

from .jit import jit
from .node_calls import record_by

__all__ = ["Bound", "Jitted", "backend", "jit", "record_by"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'compgraph.compiled' has no attribute {name!r}")
    return getattr(importlib.import_module(".jitted", __name__), name)  # imported on first use, to keep `import compgraph` fast
