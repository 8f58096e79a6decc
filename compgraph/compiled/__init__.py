"""The compiler: `jit`, which traces functions of arrays, the LLVM backend, and other array libraries as engines."""

from __future__ import annotations

import importlib
from typing import Any

from .call_signatures import set_call_recorder
from .compile_errors import CompileWarning
from .engines import ImportedFunction, from_jax, from_torch
from .jit import jit

# Names that are imported on first use, to keep `import compgraph` fast.
_LAZY = {
    "Bound": "jitted", "Jitted": "jitted", "backend": "jitted", "to_jax": "engines", "to_torch": "engines",
    "cache_folder": "llvm.disk_cache", "cached_files": "llvm.disk_cache", "processors": "llvm.thread_pool",
}  # fmt: skip
__all__ = [
    "Bound", "CompileWarning", "ImportedFunction", "Jitted", "backend", "cache_folder", "cached_files", "from_jax",
    "from_torch", "jit", "processors", "set_call_recorder", "to_jax", "to_torch",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'compgraph.compiled' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
