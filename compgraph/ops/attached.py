"""What is known of a user's function (its opname, its rule): an attribute of the function, so that both are freed together.

A table would keep every function for ever. So would a table with weak keys, since a rule refers to its function. As an
attribute the rule and the function are a cycle, which the garbage collector frees; a graph that uses the function keeps both.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

_PREFIX = "__compgraph_"


def keep(function: Any, what: str, value: Any) -> bool:
    """Attach a value to a function, under the name `what`; False if the callable is no plain Python function."""
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


# For callables that `keep` refuses: what is known -> (how it is asked for, how it is entered where the callable is unpickled).
KNOWN_ELSEWHERE: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {}


def known_elsewhere(function: Any) -> dict[str, Any]:
    """What is known of a callable that `keep` refuses, as the entries of `KNOWN_ELSEWHERE` tell."""
    if type(function) is FunctionType:
        return {}
    found = {what: ask(function) for what, (ask, _) in KNOWN_ELSEWHERE.items()}
    return {what: value for what, value in found.items() if value is not None}
