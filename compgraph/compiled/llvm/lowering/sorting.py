"""Lowering of sorts, and of searches in sorted tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .... import ops
from ....values import Value
from .. import elementwise_ops, numpy_sorting
from ..buffer_ir import BufferView, Search, Sort, dense_view
from .lowering_state import UNSUPPORTED, LoweringState

MAX_CHECKED = 4096  # elements of a table that is always checked
CHECKED_PER_KEY = 32  # elements per key of a longer table; beyond, NumPy is faster
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


def _searchsorted(state: LoweringState, item: Any) -> str:
    """Lower ``np.searchsorted``. In a table that is not sorted, its results depend on the version of NumPy."""
    table, keys = map(_as_array, (*item.args, None)[:2])
    table_view, key_view, side = state.view(table), state.view(keys), item.options.get("side", "left")
    if len(item.args) != 2 or table_view is None or key_view is None or side not in ("left", "right"):
        return UNSUPPORTED
    if not {"side"}.issuperset(item.options) or len(table_view.shape) != 1:
        return UNSUPPORTED
    dtype, (length,) = np.result_type(table.dtype, keys.dtype), table_view.shape
    if not elementwise_ops.is_compilable(dtype):
        return f"a search among {dtype} is not compiled"
    if state.is_fixed(table):
        values = np.asarray(table_view.buffer.node)
        if np.isnan(values).any() or not bool(np.all(values[:-1] <= values[1:])):
            return "the table is not sorted"
    elif length > max(MAX_CHECKED, CHECKED_PER_KEY * key_view.buffer.size):
        return "the table is long; a check that it is sorted takes longer than a search by NumPy"
    else:
        _require_sorted(state, table_view)
    out = state.allocate_result(item)
    if 0 not in out.shape:
        state.steps.append(Search(side, dtype, (table_view, key_view), out))
    return ""


def _as_array(operand: object) -> Any:
    """Return an operand as an array; nodes as they are."""
    return operand if isinstance(operand, Value) else np.asarray(operand)


def _require_sorted(state: LoweringState, table: BufferView) -> None:
    """Append a check that a table is sorted and has no nan; NumPy decides if it fails."""
    if table in state.sorted_tables or table.shape[0] < 2:
        return
    (length,), (stride,) = table.shape, table.strides
    below, above = (BufferView(table.buffer, table.offset + k * stride, (length - 1,), (stride,)) for k in (0, 1))
    is_ordered = dense_view(bool, below.shape)
    state.append_map("less_equal", (below, above), is_ordered, table.buffer.dtype)
    state.append_map("require", (is_ordered,), dense_view(bool, below.shape))
    if not state.is_mutable(table):
        state.sorted_tables.add(table)


LOWERINGS: dict[Any, Callable[[LoweringState, Any], str]] = {
    np.sort: _sort("sort"),
    np.argsort: _sort("argsort"),
    ops.NUMPY.searchsorted: _searchsorted,
}
