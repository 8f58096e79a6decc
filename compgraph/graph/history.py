"""Histories that were lost, since NumPy made a view or copy of a node without asking, and are found again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import operations
from .context import recording_on
from .hollow import copies, hollow_body
from .node import Node, ndarray, new_view, require_history, restorers
from .record import record

_set_state: Callable[..., None] = ndarray.__setstate__


def restored(node: Any) -> bool:
    """Record, late, what has a history that is plain to see: all of a node, as ``np.r_`` and ``np.c_`` take it.

    It is a view of a node with axes in front, or a copy in another dtype (see `copies`).
    """
    there = new_view(node, ndarray)
    source, is_copy = node.base, False
    if not isinstance(source, Node):
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
    if is_copy:  # what it holds is no number
        hollow_out(node)
    return True


restorers.append(restored)


def hollow_out(node: Any) -> None:
    """Give a node whose body holds numbers one that refuses, since they are not all there is to them."""
    body = hollow_body(np.asarray(node.plain))
    _set_state(node, (1, node.shape, body.dtype, False, body.ravel().tolist()))


def recover(error: AttributeError, *operands: Any) -> None:
    """After an AttributeError: return if an operand without history was its reason and has found it, else raise."""
    lost = [a for a in operands if isinstance(a, Node) and not hasattr(a, "plain")]
    if not lost:
        raise error
    require_history(*lost)
