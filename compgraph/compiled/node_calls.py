"""Calls of compiled functions on nodes: the hook with which `autodiff` records each as a single operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_recorder: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] | None = None


def set_call_recorder(recorder: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]) -> None:
    """Set the function ``recorder(jitted, args, kwargs)`` that records calls on nodes."""
    global _recorder
    _recorder = recorder


def record_call(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a compiled function on nodes: through the recorder if one is set, else as NumPy."""
    return jitted.__wrapped__(*args, **kwargs) if _recorder is None else _recorder(jitted, args, kwargs)
