"""Finds the history of a view or copy that NumPy made of a node without asking the node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import operations
from .context import recording_on
from .hollow import copies, refusing_body
from .node import Value, ndarray, new_view, require_history, restorers
from .record import record

_set_state: Callable[..., None] = ndarray.__setstate__


def restored(node: Any) -> bool:
    """Record a whole node's view or copy late, and say whether that could be done; ``np.r_`` and ``np.c_`` make such ones.

    `node` has to be a view with axes of length 1 in front, or a copy, of any dtype and with or without such axes (see
    `hollow.copies`).
    """
    there = new_view(node, ndarray)
    source, is_copy = node.base, False
    if not isinstance(source, Value):
        source, is_copy = copies.source_of(there), True
    if source is None or (not hasattr(source, "plain") and not restored(source)):
        return False
    whole = new_view(source, ndarray)
    added = there.ndim - whole.ndim
    if added < 0 or there.shape != (1,) * added + whole.shape:
        return False
    is_view = there.__array_interface__["data"] == whole.__array_interface__["data"] and there.dtype == whole.dtype
    if not is_copy and not (is_view and added and there.strides[added:] == whole.strides):
        return False
    with recording_on():
        made = record(operations.astype, (source,), {"dtype": there.dtype, "copy": True}) if is_copy else source
        made = record(np.expand_dims, (made,), {"axis": tuple(range(added))}) if added else made
    node.__class__ = made.__class__
    for kind in type(made).__mro__:
        for slot in getattr(kind, "__slots__", ()):
            if hasattr(made, slot):
                setattr(node, slot, getattr(made, slot))
    if is_copy:  # its memory holds NaNs that name the source, not numbers
        hollow_out(node)
    return True


restorers.append(restored)


def hollow_out(node: Any) -> None:
    """Make a node hollow in place: the array it is no longer holds numbers, and refuses; `plain` keeps them."""
    plain = np.asarray(node.plain)
    body = refusing_body(plain.shape, plain.dtype)
    _set_state(node, (1, node.shape, body.dtype, False, body.ravel().tolist()))


def recover(error: AttributeError, *operands: Any) -> None:
    """After an AttributeError: return if it came of an operand without history, and that has been found now; else raise."""
    lost = [a for a in operands if isinstance(a, Value) and not hasattr(a, "plain")]
    if not lost:
        raise error
    require_history(*lost)
