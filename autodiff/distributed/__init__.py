"""Derivatives and training on several machines (workers of a Dask cluster), by dask.distributed.

A loss over shards of the data (`DataParallel`), a graph whose parts live on different machines (`Split`), and data larger than
memory (`value_and_grad` of dask arrays). Needs ``pip install "compgraph[distributed]"``; nothing of it is imported by
``import autodiff``.
"""

from __future__ import annotations

import importlib
from typing import Any

# The module of each public name, imported on first use, so that importing this one does not need Dask.
_PUBLIC: dict[str, str] = {
    "DataParallel": "data_parallel",
    "Split": "split",
    "value_and_grad": "blocks",
}

__all__ = [*_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import distributed  # noqa: F401
    except ImportError as missing:
        raise ImportError(f'{__name__}.{name} needs dask.distributed: pip install "compgraph[distributed]"') from missing
    return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return [*_PUBLIC]
