"""What is known of a function of the user, kept by the function itself, so that it goes when the function does.

A table would keep every function for ever, and a table of weak references would not let go either: what is known (a rule)
refers to the function. Kept by the function it is a cycle, which the garbage collector finds; a graph that uses the
function keeps all that is known of it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

_PREFIX = "__compgraph_"


def keep(function: Any, what: str, value: Any) -> bool:
    """Let a function keep something; False if it cannot, because it is no function of Python's own kind."""
    if function.__class__ is not FunctionType:
        return False
    # functools.wraps hands attributes on to other functions, of which nothing is known by that
    function.__dict__[f"{_PREFIX}{what}__"] = function, value
    return True


def kept(function: Any, what: str) -> Any:
    """What a function keeps; None if it keeps nothing of that kind."""
    if function.__class__ is not FunctionType:
        return None
    owner, value = function.__dict__.get(f"{_PREFIX}{what}__", (None, None))
    return value if owner is function else None


# What is known of callables that can keep nothing: how it is asked for, and how it is entered where they are unpickled.
KNOWN_ELSEWHERE: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {}


def known_elsewhere(function: Any) -> dict[str, Any]:
    """What others know of a callable that can keep nothing itself."""
    if function.__class__ is FunctionType:
        return {}
    found = {what: ask(function) for what, (ask, _) in KNOWN_ELSEWHERE.items()}
    return {what: value for what, value in found.items() if value is not None}
