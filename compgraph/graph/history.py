"""Finds the history of a view or copy that NumPy made of a node without asking the node."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bind import bind
from ..context import recording_on
from ..values import Value, history_recoverers, ndarray, new_view, require_history


def _recover_view(node: Any) -> bool:
    """Record a view of a whole node late, and say whether that could be done; ``np.r_`` and ``np.c_`` make such ones.

    `node` has to be a view with axes of length 1 in front.
    """
    there, source = new_view(node, ndarray), node.base
    if not isinstance(source, Value) or (not hasattr(source, "raw_value") and not _recover_view(source)):
        return False
    whole = new_view(source, ndarray)
    added = there.ndim - whole.ndim
    is_same = there.__array_interface__["data"] == whole.__array_interface__["data"] and there.dtype == whole.dtype
    if added <= 0 or there.shape != (1,) * added + whole.shape or not is_same or there.strides[added:] != whole.strides:
        return False
    with recording_on():
        made = bind(np.expand_dims, (source,), {"axis": tuple(range(added))})
    node.__class__ = type(made)
    for kind in type(made).__mro__:
        for slot in getattr(kind, "__slots__", ()):
            if hasattr(made, slot):
                setattr(node, slot, getattr(made, slot))
    return True


history_recoverers.append(_recover_view)


def recover_history(error: AttributeError, *operands: Any) -> None:
    """After an AttributeError: return if it came of an operand without history, and that has been found now; else raise."""
    lost = [a for a in operands if isinstance(a, Value) and not hasattr(a, "raw_value")]
    if not lost:
        raise error
    require_history(*lost)
