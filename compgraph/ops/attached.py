"""Data of a user's function (its opname, its rule), as attributes of the function, so that all are freed together.

A table would keep every function alive; so would a table with weak keys, because a rule refers to its function. As an attribute,
the rule and the function form a cycle, which the garbage collector frees; a graph that uses the function keeps both.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

_PREFIX = "__compgraph_"


def keep(function: Any, what: str, value: Any) -> bool:
    """Attach a value to a function, under the name `what`; return False if the callable is not a plain Python function."""
    if type(function) is not FunctionType:
        return False
    # With its owner, because functools.wraps copies attributes to other functions, which they are not about.
    function.__dict__[f"{_PREFIX}{what}__"] = function, value
    return True


def kept(function: Any, what: str) -> Any:
    """The value that `keep` attached to a function under the name `what`, or None."""
    if type(function) is not FunctionType:
        return None
    owner, value = function.__dict__.get(f"{_PREFIX}{what}__", (None, None))
    return value if owner is function else None


# For callables that `keep` rejects: name of the data -> (how to look it up, how to register it for an unpickled callable).
KNOWN_ELSEWHERE: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {}


def known_elsewhere(function: Any) -> dict[str, Any]:
    """Return the data of a callable that `keep` rejects, by `KNOWN_ELSEWHERE`."""
    if type(function) is FunctionType:
        return {}
    data = {what: read(function) for what, (read, _) in KNOWN_ELSEWHERE.items()}
    return {what: value for what, value in data.items() if value is not None}
