"""Lists that hold nodes, in calls outside of operators: which calls record them.

At the top level nodes are arrays that hold their numbers, so NumPy converts a list of them without calling any protocol. From the
first variable on, NumPy functions that convert lists look for nodes in them. Calls from library code convert as they always do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..context import is_recording
from ..frames import is_internal
from ..tracing import is_tracing
from ..values import Value, is_operator_tracer
from .exchanged import PLAIN
from .libraries import is_library

opened: set[Any] = set()  # the open interceptions of all threads: not empty while a function is differentiated
_DEPTH = 64  # of nested lists, as deep as arrays have axes
_SEQUENCES = (list, tuple)
_POLYNOMIALS = os.path.join(os.path.dirname(np.__file__), "polynomial")


class _Users(dict[str, bool]):
    """By filename: whether lists in a call from there are recorded. True for user code and NumPy's polynomials."""

    def __missing__(self, filename: str) -> bool:
        self[filename] = answer = not is_library(filename) or filename.startswith(_POLYNOMIALS)
        return answer


_users = _Users()


class _Switch:
    """Whether lists are recorded at the top level: from the first variable on, unless `cg.interception` is off."""

    __slots__ = ("is_on",)

    def __init__(self) -> None:
        self.is_on = False


recorded = _Switch()


def holds_node(value: Any, depth: int = _DEPTH) -> bool:
    """Whether a list or tuple holds a node, at any depth. The classes of the elements are compared first, which is fast."""
    if PLAIN.issuperset(kinds := set(map(type, value))):
        return False
    if any(issubclass(kind, Value) for kind in kinds):
        return is_tracing() or not any(isinstance(v, Value) and is_operator_tracer(v) for v in value)
    return depth > 0 and any(isinstance(v, _SEQUENCES) and holds_node(v, depth - 1) for v in value)


def records_lists(filename: str, values: Iterable[Any]) -> bool:
    """Whether a call from a file, with these values to be converted, is to be recorded."""
    return (
        recorded.is_on
        and _users[filename]
        and is_recording()
        and any(isinstance(v, _SEQUENCES) and holds_node(v) for v in values)
    )


def is_users(filename: str) -> bool:
    """Whether lists in a call from a file are recorded at the top level; those in NumPy's own calls are, too."""
    return recorded.is_on and (_users[filename] or is_internal(filename))
