"""Other array libraries as engines: JAX, PyTorch, CuPy and the array API standard run recorded programs."""

from __future__ import annotations

import importlib
from typing import Any

from .imported import ImportedFunction, from_jax, from_torch

_LAZY = dict.fromkeys(("EngineJitted", "to_jax", "to_torch"), "engine_functions")  # imported on first use
__all__ = ["EngineJitted", "ImportedFunction", "from_jax", "from_torch", "to_jax", "to_torch"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
