"""Lowering of reductions, searches, cumulative operations and sorts."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from .... import ops
from ....values import Value
from .. import elementwise_ops, numpy_sorting
from ..buffer_ir import BufferView, Reduce, Scan, Search, Sort, c_strides, dense_view
from .lowering_state import EMPTY, EXACT_BITS, UNSUPPORTED, LoweringState

_BOOLEAN_EXTREMA = {"maximum": "logical_or", "minimum": "logical_and"}
MAX_UNROLLED, MIN_UNROLLED_RESULTS = 16, 8  # largest length of an axis of an unrolled search, and smallest number of results
MAX_SEARCHED = 2**22  # elements per searched slice, because their indices are stored
# Functions that reduce along the first axis by default.
_FIRST_AXIS_DEFAULT = frozenset(ufunc.reduce for ufunc, method in ops.FOLDS if method == "reduce")


def reduced_axes(item: Value, count: int) -> frozenset[int]:
    """Return the axes that an item reduces."""
    axis = item.options.get("axis", 0 if item.function in _FIRST_AXIS_DEFAULT else None)
    axes = range(count) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return frozenset(int(a) % count for a in axes) if count else frozenset()


def append_reduction(
    state: LoweringState, operation: str, operand: BufferView, reduction_axes: frozenset[int], item: object = None
) -> BufferView:
    """Append a reduction; return its result, with strides of 0 along the reduced axes."""
    shape = tuple(n for k, n in enumerate(operand.shape) if k not in reduction_axes)
    result = dense_view(operand.buffer.dtype, shape, item)
    result_strides = iter(result.strides)
    strides = tuple(0 if k in reduction_axes else next(result_strides) for k in range(len(operand.shape)))
    out = BufferView(result.buffer, 0, operand.shape, strides)
    state.steps.append(Reduce(operation, operand, reduction_axes, out))
    return out


def _assign_buffer(state: LoweringState, item: Value, view: BufferView) -> str:
    """Make a dense buffer the value of an item."""
    view.buffer.node = item
    state.views[item] = with_item_shape(view, item)
    return ""


def _reduction(operation: str) -> Any:
    """Return the lowering of a reduction; the elements are converted to the dtype of the result."""

    def lower(state: LoweringState, item: Value) -> str:
        name, operand, dtype = operation, state.view(item.args[0]), np.asarray(item.raw_value).dtype
        if operand is None or len(item.args) > 1 or not has_known_options(item.options, {"axis", "keepdims", "dtype"}):
            return UNSUPPORTED
        if name == "mean" and dtype.kind != "f":
            return f"means of {dtype} are not compiled"
        if state.is_exact and dtype.kind == "f":  # the sign of zero extrema depends on NumPy's vector width
            return EXACT_BITS
        if dtype.kind == "b":
            name = _BOOLEAN_EXTREMA.get(name, name)
        reduction_axes = reduced_axes(item, len(operand.shape))
        if 0 in operand.shape:
            return _reduce_empty(state, item, name)
        if all(operand.shape[k] == 1 for k in reduction_axes):
            return _reduce_unit_axes(state, item, name, drop_reduced_axes(operand, reduction_axes, item))
        if operand.buffer.dtype != dtype:
            operand = state.copy_of(operand, dtype)
        return _assign_buffer(state, item, append_reduction(state, name, operand, reduction_axes, item))

    return lower


def has_known_options(options: dict[str, Any], supported: set[str]) -> bool:
    """Return whether all options are among `supported`, or have their defaults."""
    others = {name: value for name, value in options.items() if name not in supported}
    defaults = {"where": (True,), "out": (None,), "initial": (np._NoValue,)}
    return all(any(value is default for default in defaults.get(name, ())) for name, value in others.items())


def _reduce_empty(state: LoweringState, item: object, name: str) -> str:
    identity = getattr(getattr(np, name), "identity", None)
    if identity is None:
        return EMPTY
    out = state.allocate_result(item)
    state.append_map("copy", (identity,), out)
    return ""


def drop_reduced_axes(view: BufferView, reduction_axes: frozenset[int], item: Value) -> BufferView:
    """Return an array with the shape of an item: its reduced axes have length 1, or strides of 0."""
    shape = np.shape(item.raw_value)
    strides = [s for k, s in enumerate(view.strides) if k not in reduction_axes or len(shape) == len(view.shape)]
    return BufferView(view.buffer, view.offset, shape, tuple(strides))


def _reduce_unit_axes(state: LoweringState, item: object, name: str, operand: BufferView) -> str:
    """Lower a reduction along axes of length 1: a copy; sums begin with 0, which removes the sign of -0."""
    out = state.allocate_result(item)
    if name in ("add", "mean") and out.buffer.dtype.kind == "f":
        state.append_map("add", (operand, 0.0), out)
    else:
        state.append_map("copy", (operand,), out, operand.buffer.dtype)
    return ""


def _ptp(state: LoweringState, item: Value) -> str:
    """Lower ``ptp``: the maximum minus the minimum."""
    operand, dtype = state.view(item.args[0]), np.asarray(item.raw_value).dtype
    if (
        operand is None
        or len(item.args) > 1
        or not has_known_options(item.options, {"axis", "keepdims"})
        or operand.buffer.dtype != dtype
    ):
        return UNSUPPORTED
    reduction_axes = reduced_axes(item, len(operand.shape))
    if 0 in operand.shape or not reduction_axes or dtype.kind == "b":
        return EMPTY
    if state.is_exact and dtype.kind == "f":
        return EXACT_BITS
    greatest, least = (
        with_item_shape(append_reduction(state, name, operand, reduction_axes), item) for name in ("maximum", "minimum")
    )
    out = state.allocate_result(item)
    state.append_map("subtract", (greatest, least), out)
    return ""


def with_item_shape(view: BufferView, item: Any) -> BufferView:
    """Return a dense buffer as an array with the shape of an item."""
    shape = np.shape(item.raw_value)
    return BufferView(view.buffer, 0, shape, c_strides(shape))


def _variance(is_root: bool) -> Any:
    """Return the lowering of the variance, or of its root."""

    def lower(state: LoweringState, item: Value) -> str:
        operand, dtype = state.view(item.args[0]), np.asarray(item.raw_value).dtype
        if operand is None or len(item.args) > 1 or not has_known_options(item.options, {"axis", "keepdims", "ddof"}):
            return UNSUPPORTED
        if state.is_exact:
            return EXACT_BITS
        reduction_axes, ddof = reduced_axes(item, len(operand.shape)), item.options.get("ddof", 0)
        count = prod(operand.shape[k] for k in reduction_axes)
        if not reduction_axes or 0 in operand.shape or not isinstance(ddof, (int, float)) or count - ddof <= 0:
            return EMPTY
        if dtype.kind != "f":
            return f"variances of {operand.buffer.dtype} are not compiled"
        operand = operand if operand.buffer.dtype == dtype else state.copy_of(operand, dtype)
        mean, deviation, square = (
            append_reduction(state, "mean", operand, reduction_axes),
            dense_view(dtype, operand.shape),
            dense_view(dtype, operand.shape),
        )
        state.append_map("subtract", (operand, mean), deviation)
        state.append_map("square", (deviation,), square)
        total = with_item_shape(append_reduction(state, "add", square, reduction_axes), item)
        out = state.allocate_result(item)
        if is_root:
            divided = dense_view(dtype, out.shape)
            state.append_map("divide", (total, float(count - ddof)), divided)
            state.append_map("sqrt", (divided,), out)
        else:
            state.append_map("divide", (total, float(count - ddof)), out)
        return ""

    return lower


def _norm(state: LoweringState, item: Any) -> str:
    """Lower ``linalg.norm`` of vectors, and the Frobenius norm."""
    operand, dtype, options = state.view(item.args[0]), np.asarray(item.raw_value).dtype, item.options
    if operand is None or len(item.args) > 1 or not {"ord", "axis", "keepdims"}.issuperset(options):
        return UNSUPPORTED
    order, reduction_axes = options.get("ord"), reduced_axes(item, len(operand.shape))
    names = {1: ("absolute", "add"), np.inf: ("absolute", "maximum"), -np.inf: ("absolute", "minimum"), 2: ("square", "add")}
    is_frobenius = order is None or (order == "fro" and len(reduction_axes) == 2)
    if not is_frobenius and (len(reduction_axes) != 1 or not isinstance(order, (int, float)) or order not in names):
        return "norms of this order are not compiled"
    if 0 in operand.shape or not reduction_axes or dtype.kind != "f":
        return EMPTY
    if state.is_exact:
        return EXACT_BITS
    operand = operand if operand.buffer.dtype == dtype else state.copy_of(operand, dtype)
    elementwise_name, reduction_name = names[2] if is_frobenius else names[order]
    terms = dense_view(dtype, operand.shape)
    state.append_map(elementwise_name, (operand,), terms)
    total = with_item_shape(append_reduction(state, reduction_name, terms, reduction_axes), item)
    out = state.allocate_result(item)
    state.append_map("sqrt" if elementwise_name == "square" else "copy", (total,), out)
    return ""


def _arg_extremum(extreme: str) -> Any:
    """Return the lowering of ``argmax`` or ``argmin``: the smallest index of an element that equals the extremum or is nan."""

    def lower(state: LoweringState, item: Value) -> str:
        operand = state.view(item.args[0])
        if operand is None or len(item.args) > 1 or not has_known_options(item.options, {"axis", "keepdims"}):
            return UNSUPPORTED
        reduction_axes, dtype = reduced_axes(item, len(operand.shape)), operand.buffer.dtype
        count = prod(operand.shape[k] for k in reduction_axes)
        if 0 in operand.shape or np.asarray(item.raw_value).dtype != np.int64 or count > MAX_SEARCHED:
            return "the searched array is empty or too large"
        if not reduction_axes:
            out = state.views[item] = dense_view(np.int64, np.shape(item.raw_value), item)
            state.append_map("copy", (0,), out)
            return ""
        if (
            len(reduction_axes) == 1
            and count <= MAX_UNROLLED
            and prod(np.shape(item.raw_value)) >= MIN_UNROLLED_RESULTS
            and dtype.kind != "b"
        ):
            return _unrolled_arg_extremum(
                state, item, operand, min(reduction_axes), "less_equal" if extreme == "maximum" else "greater_equal"
            )
        best = append_reduction(state, _BOOLEAN_EXTREMA[extreme] if dtype.kind == "b" else extreme, operand, reduction_axes)
        is_match = dense_view(bool, operand.shape)
        state.append_map("equal", (operand, best), is_match, dtype)
        if dtype.kind == "f":
            is_nan, is_equal, is_match = dense_view(bool, operand.shape), is_match, dense_view(bool, operand.shape)
            state.append_map("isnan", (operand,), is_nan, dtype)
            state.append_map("logical_or", (is_equal, is_nan), is_match)
        flat_indices = np.arange(count).reshape([n if k in reduction_axes else 1 for k, n in enumerate(operand.shape)])
        candidate_indices = dense_view(np.int64, operand.shape)
        state.append_map("where", (is_match, state.external(flat_indices), count), candidate_indices)
        return _assign_buffer(state, item, append_reduction(state, "minimum", candidate_indices, reduction_axes, item))

    return lower


def _unrolled_arg_extremum(state: LoweringState, item: Value, operand: BufferView, axis: int, name: str) -> str:
    """Lower a search along a short axis as selections, where nan precedes all numbers."""
    dtype, shape = operand.buffer.dtype, (*operand.shape[:axis], *operand.shape[axis + 1 :])
    strides = (*operand.strides[:axis], *operand.strides[axis + 1 :])
    best = BufferView(operand.buffer, operand.offset, shape, strides)
    best_index: Any = 0
    for k in range(1, operand.shape[axis]):
        other = BufferView(operand.buffer, operand.offset + k * operand.strides[axis], shape, strides)
        is_not_better, is_better, next_best, next_index = (dense_view(kind, shape) for kind in (bool, bool, dtype, np.int64))
        state.append_map(name, (other, best), is_not_better, dtype)
        state.append_map("logical_not", (is_not_better,), is_better)
        if dtype.kind == "f":
            is_number, is_better_number = dense_view(bool, shape), dense_view(bool, shape)
            state.append_map("equal", (best, best), is_number, dtype)
            state.append_map("logical_and", (is_better, is_number), is_better_number)
            is_better = is_better_number
        state.append_map("where", (is_better, other, best), next_best)
        state.append_map("where", (is_better, k, best_index), next_index)
        best, best_index = next_best, next_index
    out = state.views[item] = dense_view(np.int64, np.shape(item.raw_value), item)
    state.append_map("copy", (with_item_shape(best_index, item) if isinstance(best_index, BufferView) else best_index,), out)
    return ""


def _scan(operation: str, default_axis: object) -> Any:
    """Return the lowering of a cumulative operation."""

    def lower(state: LoweringState, item: Value) -> str:
        operand, dtype = state.view(item.args[0]), np.asarray(item.raw_value).dtype
        if operand is None or len(item.args) > 1 or not has_known_options(item.options, {"axis", "dtype"}):
            return UNSUPPORTED
        if not elementwise_ops.can_compute(operation, dtype):
            return f"cumulative {operation} of {dtype} is not compiled"
        axis = item.options.get("axis", default_axis)
        if axis is None:
            operand, axis = state.ravel(operand), 0
        if 0 in operand.shape or not operand.shape or operand.shape != np.shape(item.raw_value):
            return EMPTY
        out = state.views[item] = dense_view(dtype, operand.shape, item)
        state.steps.append(Scan(operation, (operand,), int(axis) % len(operand.shape), out))
        return ""

    return lower


# The operation that combines elements, by function: sums, products, extrema, ``any`` and ``all``, as functions and as folds.
COMBINERS: dict[Any, str] = {
    function: ufunc.__name__
    for (ufunc, method), folded in ops.FOLDS.items()
    if method == "reduce"
    for function in (folded, ufunc.reduce)
}

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

    def lower(state: LoweringState, item: Value) -> str:
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
            result_view = _move_axis(out, last, axis)
            if item.memory:
                state.append_map("copy", (result_view,), result, is_write=True)
            else:
                state.views[item] = result_view
        return ""

    return lower


def _searchsorted(state: LoweringState, item: Value) -> str:
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
    if state.is_constant(table):
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
    """Convert an operand to an array, unless it is a node."""
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


LOWERINGS: dict[Any, Any] = {
    **{function: _reduction(name) for function, name in COMBINERS.items()},
    np.mean: _reduction("mean"), np.ptp: _ptp,
    np.var: _variance(is_root=False), np.std: _variance(is_root=True),
    np.linalg.norm: _norm, np.argmax: _arg_extremum("maximum"), np.argmin: _arg_extremum("minimum"),
    **{f: _scan(ufunc.__name__, None) for (ufunc, method), f in ops.FOLDS.items() if method == "accumulate"},
    ops.NUMPY.cumulative_sum: _scan("add", None), ops.NUMPY.cumulative_prod: _scan("multiply", None),
    **{ops.ufunc_method(f, "accumulate"): _scan(f.__name__, 0) for f in (np.add, np.multiply, np.maximum, np.minimum)},
    np.sort: _sort("sort"),
    np.argsort: _sort("argsort"),
    ops.NUMPY.searchsorted: _searchsorted,
}  # fmt: skip
