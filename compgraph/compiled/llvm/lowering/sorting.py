"""Lowering of sorts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import numpy_sorting
from ..buffer_ir import BufferView, Sort, dense_view
from .lowering_state import UNSUPPORTED, LoweringState

_IS_STABLE = {None: False, "quicksort": False, "stable": True, "mergesort": True}


def _move_axis(view: BufferView, source: int, target: int) -> BufferView:
    """Return an array with an axis at another position."""
    order = [k for k in range(len(view.shape)) if k != source]
    order.insert(target, source)
    return BufferView(view.buffer, view.offset, tuple(view.shape[k] for k in order), tuple(view.strides[k] for k in order))


def _sort(operation: str) -> Callable[[LoweringState, Any], str]:
    """Return the lowering of ``np.sort`` or ``np.argsort``."""

    def lower(state: LoweringState, item: Any) -> str:
        view, options = state.view(item.args[0]), dict(item.options)
        axis, kind, stable = options.pop("axis", -1), options.pop("kind", None), options.pop("stable", None)
        if view is None or len(item.args) > 1 or options.pop("order", None) is not None or options or not view.shape:
            return UNSUPPORTED
        if kind not in _IS_STABLE:
            return f"the kind {kind!r} is not compiled"
        if 0 in view.shape:
            state.allocate_result(item)
            return ""
        is_stable, dtype = _IS_STABLE[kind] or bool(stable), view.buffer.dtype
        if not numpy_sorting.is_available(operation, dtype, is_stable):
            return f"NumPy sorts {dtype} by another function"
        view, axis = (state.ravel(view), 0) if axis is None else (view, int(axis) % len(view.shape))
        last = len(view.shape) - 1
        rows = _move_axis(view, axis, last)
        if operation == "argsort" and rows.strides[-1] != 1 and rows.shape[-1] > 1:
            rows = state.copy_of(rows, dtype)
        result = state.allocate_result(item)
        out = result if axis == last else dense_view(result.buffer.dtype, rows.shape)
        state.steps.append(Sort(operation, is_stable, (rows,), out))
        if axis != last:
            moved = _move_axis(out, last, axis)
            if item.memory:
                state.append_map("copy", (moved,), result, is_write=True)
            else:
                state.views[item] = moved
        return ""

    return lower


LOWERINGS: dict[Any, Callable[[LoweringState, Any], str]] = {np.sort: _sort("sort"), np.argsort: _sort("argsort")}
