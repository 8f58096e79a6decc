"""Data of a user's function (its opname, its rule), stored as attributes of the function, so that all are freed together.

A table would keep every function alive, even with weak keys, because a rule refers to its function. As an attribute, the rule
forms a cycle with the function, which the garbage collector frees.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

_PREFIX = "__compgraph_"


def attach(function: Callable[..., Any], key: str, value: object) -> bool:
    """Attach a value to a function, under the name `key`; return False if the callable is not a plain Python function."""
    if type(function) is not FunctionType:
        return False
    # The owner is stored too, because functools.wraps copies attributes to functions that they do not describe.
    function.__dict__[f"{_PREFIX}{key}__"] = function, value
    return True


def get_attached(function: object, key: str) -> Any:
    """The value that `attach` attached to a function under the name `key`, or None."""
    if type(function) is not FunctionType:
        return None
    owner, value = function.__dict__.get(f"{_PREFIX}{key}__", (None, None))
    return value if owner is function else None


# Registries of callables that `attach` rejects: name of the data -> (look it up, register it after unpickling).
EXTERNAL_REGISTRIES: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {}


def external_data(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the data of a callable that `attach` rejects, from `EXTERNAL_REGISTRIES`."""
    if type(function) is FunctionType:
        return {}
    data = {key: read(function) for key, (read, _) in EXTERNAL_REGISTRIES.items()}
    return {key: value for key, value in data.items() if value is not None}
