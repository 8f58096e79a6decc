"""Calls of a compiled function on nodes: who makes one operation of each, where somebody does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_recorder: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] | None = None


def record_by(recorder: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]) -> None:
    """Have calls on nodes done by ``recorder(jitted, args, kwargs)``, which makes them nodes."""
    global _recorder
    _recorder = recorder


def recorded(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a compiled function gives where its operations are recorded."""
    return jitted.__wrapped__(*args, **kwargs) if _recorder is None else _recorder(jitted, args, kwargs)
