"""Derivatives and training on several machines (workers of a Dask cluster).

`DataParallel` evaluates a loss over shards of the data, `Split` a graph whose parts are on different machines, and
`value_and_grad` a loss over dask arrays larger than memory. They need ``pip install "compgraph[distributed]"``.
``import autodiff`` does not import this package.
"""

from __future__ import annotations

import importlib
from typing import Any

# The module of each public name. Modules are imported on first use, so that importing this package does not need Dask.
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
    except ImportError as error:
        raise ImportError(f'{__name__}.{name} needs dask.distributed: pip install "compgraph[distributed]"') from error
    return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return [*_PUBLIC]
