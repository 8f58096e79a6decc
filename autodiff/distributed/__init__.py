"""Derivatives and training on more than one machine, by dask.distributed.

A loss over shards of the data (`DataParallel`), a graph whose parts stand on different machines (`Split`), and data larger than
memory (`value_and_grad` of dask arrays). Needs ``pip install "compgraph[distributed]"``; nothing of it is imported by
``import autodiff``.
"""

from __future__ import annotations

import importlib
from typing import Any

# Where each public name stands; it is imported when it is first asked for.
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
