"""Hashes of scalar nodes, for dictionaries and sets.

``counts[np.argmax(x)] += 1`` and ``np.round(v) in seen`` look for a number, so a scalar node that carries no derivative hashes
as its number does, under a guard. One that carries a derivative raises within an operator: a dictionary would use its number
and lose the derivative. Code of the two packages, and the top level for values with a derivative (``gradient(f)[x]``), use the
identity of a node.
"""

from __future__ import annotations

import functools
from types import MethodType
from typing import Any

import numpy as np

from ..context import is_recording
from ..frames import callee, frame_up, source_lines
from ..tracing import leak_error
from ..values import ACTIVE, SCALARS, Value, describe, require_history
from .escapes import is_within
from .guards import note_guard

_identity = object.__hash__
_internal = source_lines.internal
_Memo = type(functools.lru_cache(abs))


_REFUSED = (
    "hash() of the value: a dictionary, a set or a cache looks for the number of the {}, whose derivative would be lost. Use a "
    "key without a derivative (an index, np.round(x), int(x)), a list with `in`, or x.value"
)


def scalar_hash(self: Any) -> int:
    """The hash of a node that represents a number; that of its identity for an array, and for code of the two packages."""
    frame = frame_up(1)
    if _internal[frame.f_code.co_filename] or self.ndim:
        return _identity(self)
    require_history(self)
    if _has_derivative(self):
        if not is_within(self) or _is_memo(frame):
            return _identity(self)
        if is_recording():
            raise leak_error(frame, text=_REFUSED.format(describe(self)))
    number = key_of(self.raw_value)
    note_guard("hash()", key_of, (self,), number, source_lines.user_frame(2))
    return _identity(self) if number == "nan" else hash(number)


def _has_derivative(node: Any) -> bool:
    """Whether the number of a node loses a derivative: an adjoint can pass the node, or it has a nonzero tangent."""
    while isinstance(node, Value) and node.level:
        if node.derivative() is not None:  # type: ignore[attr-defined]
            return True
        node = node.primal  # type: ignore[attr-defined]
    return type(node) in ACTIVE


def key_of(value: Any) -> Any:
    """The number as which a dictionary finds a scalar; text for nan, which equals nothing."""
    number = np.asarray(value).item()
    return "nan" if number != number else number


def _is_memo(frame: Any) -> bool:
    """Whether a frame calls a function of `functools.lru_cache`, which returns for a node only its result for that node."""
    called = callee(frame)
    return (called.__func__ if type(called) is MethodType else called).__class__ is _Memo


def hash_scalars_by_value() -> None:
    """Install the hash of scalar nodes."""
    for kind in SCALARS:
        kind.__hash__ = scalar_hash
