"""Lowering of operations that replace elements: clip, nan_to_num, masked reductions and reductions without nan.

Where NumPy warns of empty slices, these steps compute 0 / 0, which makes the program fall back to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .... import ops
from ....values import Value
from .. import elementwise_ops
from ..buffer_ir import BufferView, dense_view
from . import reductions
from .lowering_state import EMPTY, EXACT_BITS, UNSUPPORTED, LoweringState, casts_like_numpy, operands_and_options
from .reductions import append_reduction, reduced_axes

LowerItem = Callable[[LoweringState, Any], str]


# --------------------------------------------------------------------------------------------- elementwise


def _clip(state: LoweringState, item: Value) -> str:
    """Lower ``minimum(maximum(x, low), high)``. With two scalar limits, NumPy's `clip` keeps the sign of zeros of `x`."""
    x, *limits = (state.operand(a) if a is not None else None for a in item.args)
    dtype = np.asarray(item.raw_value).dtype
    bounds = [(name, limit) for name, limit in zip(("maximum", "minimum"), limits, strict=False) if limit is not None]
    if item.options or not isinstance(x, BufferView) or len(limits) != 2 or not bounds:
        return UNSUPPORTED
    if len(bounds) != sum(a is not None for a in item.args[1:]) or not elementwise_ops.can_compute("maximum", dtype):
        return UNSUPPORTED
    if not all(casts_like_numpy(limit, dtype) for _, limit in bounds):
        return "a limit does not have the dtype of the result"
    if len(bounds) == 1:
        name, limit = bounds[0]
        state.append_map(name, (x, limit), state.allocate_result(item))
        return ""
    if state.is_exact and dtype.kind == "f" and any(isinstance(limit, BufferView) and limit.shape for _, limit in bounds):
        return EXACT_BITS
    lower_clipped = dense_view(dtype, np.shape(item.raw_value))
    (first, low), (second, high) = bounds
    state.append_map(first, (low, x), lower_clipped)
    state.append_map(second, (high, lower_clipped), state.allocate_result(item))
    return ""


def _nan_to_num(state: LoweringState, item: Value) -> str:
    """Lower ``nan_to_num``."""
    x, dtype, options = state.view(item.args[0]), np.asarray(item.raw_value).dtype, item.options
    if x is None or len(item.args) > 1 or not {"nan", "posinf", "neginf"}.issuperset(options) or dtype.kind != "f":
        return UNSUPPORTED
    limits = np.finfo(dtype)
    numbers = [options.get("nan", 0.0), options.get("posinf"), options.get("neginf")]
    numbers[1:] = [limit if n is None else n for n, limit in zip(numbers[1:], (limits.max, limits.min), strict=True)]
    if not all(isinstance(n, (int, float, np.generic)) for n in numbers):
        return UNSUPPORTED
    tests = [("isnan", (x,)), ("equal", (x, np.inf)), ("equal", (x, -np.inf))]
    result = x
    for number, (name, operands) in zip(numbers, tests, strict=True):
        is_matching = state.map_like(name, *operands, like=x, dtype=np.dtype(bool))
        result = state.map_like("where", is_matching, number, result, like=x)
    state.append_map("copy", (result,), state.allocate_result(item))
    return ""


def _round(state: LoweringState, item: Value) -> str:
    """Lower ``round`` to decimals, scaled as NumPy does."""
    x, dtype = state.view(item.args[0]), np.asarray(item.raw_value).dtype
    digits: Any = item.options.get("decimals", 0)
    if x is None or len(item.args) > 1 or not {"decimals"}.issuperset(item.options) or dtype.kind != "f":
        return UNSUPPORTED
    if not isinstance(digits, (int, np.integer)) or abs(int(digits)) > 22 or x.buffer.dtype != dtype:  # 10 ** 22 is exact
        return UNSUPPORTED
    factor = 10.0 ** abs(int(digits))
    if digits == 0:
        state.append_map("rint", (x,), state.allocate_result(item))
        return ""
    scale, unscale = ("multiply", "divide") if int(digits) > 0 else ("divide", "multiply")
    rounded = state.map_like("rint", state.map_like(scale, x, factor, like=x), like=x)
    state.append_map(unscale, (rounded, factor), state.allocate_result(item))
    return ""


# --------------------------------------------------------------------------------------------- masked reductions


def _masked_reduction(operation: str, lower_unmasked: LowerItem | None) -> LowerItem:
    """Return the lowering of a reduction with ``where=`` or ``initial=``; `lower_unmasked` lowers it without these."""

    def lower(state: LoweringState, item: Value) -> str:
        args, options = operands_and_options(item)
        mask, initial = options.get("where", True), options.get("initial", np._NoValue)
        if lower_unmasked is not None and mask is True and initial is np._NoValue:
            return lower_unmasked(state, item)
        operand, dtype = state.view(args[0]), np.asarray(item.raw_value).dtype
        if operand is None or len(args) > 1 or not {"axis", "keepdims", "dtype", "where", "initial"}.issuperset(options):
            return UNSUPPORTED
        reduction_axes = reduced_axes(item, len(operand.shape))
        if dtype.kind not in "iuf" or (state.is_exact and dtype.kind == "f"):
            return EXACT_BITS if state.is_exact else f"{item.opname} of {dtype} is not compiled"
        if 0 in operand.shape or not reduction_axes:
            return EMPTY
        start = None  # the value of `initial`
        if initial is not np._NoValue:
            start = None if initial is None else state.operand(initial)
            if start is None or not casts_like_numpy(start, dtype):
                return UNSUPPORTED
        masked = _apply_mask(state, operand, mask, {"add": 0, "mean": 0, "multiply": 1}.get(operation, start), dtype)
        if isinstance(masked, str):
            return masked
        numbers, is_selected = masked
        if operation == "mean":
            return _masked_mean(state, item, numbers, is_selected, reduction_axes)
        total = reductions.with_item_shape(append_reduction(state, operation, numbers, reduction_axes), item)
        name, operands = ("copy", (total,)) if start is None else (operation, (start, total))
        state.append_map(name, operands, state.allocate_result(item))
        return ""

    return lower


def _apply_mask(state: LoweringState, operand: BufferView, mask: object, fill_value: Any, dtype: np.dtype[Any]) -> Any:
    """Return an array with `fill_value` where a mask is False, and the mask; or the reason if not supported."""
    x = operand if operand.buffer.dtype == dtype else state.copy_of(operand, dtype)
    if mask is True:
        return x, None
    mask_view = state.view(mask) if isinstance(mask, np.ndarray) else None
    if mask_view is None or mask_view.buffer.dtype.kind != "b" or fill_value is None:
        return UNSUPPORTED
    if np.broadcast_shapes(mask_view.shape, x.shape) != x.shape:
        return UNSUPPORTED
    return state.map_like("where", mask_view, x, fill_value, like=x), mask_view


def _masked_mean(
    state: LoweringState, item: object, filled: BufferView, is_selected: BufferView | None, reduction_axes: frozenset[int]
) -> str:
    """Divide the sum of the selected elements by their number."""
    if filled.buffer.dtype.kind != "f" or is_selected is None:
        return f"means of {filled.buffer.dtype} are not compiled"
    sums = append_reduction(state, "add", filled, reduction_axes), _count_selected(state, is_selected, filled, reduction_axes)
    state.append_map("divide", [reductions.with_item_shape(p, item) for p in sums], state.allocate_result(item))
    return ""


def _count_selected(
    state: LoweringState, is_selected: BufferView, like: BufferView, reduction_axes: frozenset[int]
) -> BufferView:
    """Return the number of selected elements along the reduced axes."""
    ones = state.map_like("copy", is_selected, like=like, dtype=np.dtype(np.int64), compute_dtype=np.dtype(bool))
    return append_reduction(state, "add", ones, reduction_axes)


# --------------------------------------------------------------------------------------------- reductions without nan


def _nan_reduction(operation: str, lower_without_nan: LowerItem) -> LowerItem:
    """Return the lowering of a reduction that ignores nan; `lower_without_nan` lowers it for dtypes without nan."""

    def lower(state: LoweringState, item: Value) -> str:
        operand, dtype = state.view(item.args[0]), np.asarray(item.raw_value).dtype
        if operand is None or len(item.args) > 1 or not reductions.has_known_options(item.options, {"axis", "keepdims", "ddof"}):
            return UNSUPPORTED
        if operand.buffer.dtype.kind != "f":
            return lower_without_nan(state, item)
        reduction_axes = reduced_axes(item, len(operand.shape))
        if 0 in operand.shape or not reduction_axes or operand.buffer.dtype != dtype:
            return EMPTY
        if state.is_exact:
            return EXACT_BITS
        fill_value = {"multiply": 1, "maximum": -np.inf, "minimum": np.inf}.get(operation, 0)
        is_nan = state.map_like("isnan", operand, like=operand, dtype=np.dtype(bool))
        filled = state.map_like("where", is_nan, fill_value, operand, like=operand)
        if operation in ("add", "multiply"):
            total = append_reduction(state, operation, filled, reduction_axes)
            state.append_map("copy", (reductions.with_item_shape(total, item),), state.allocate_result(item))
            return ""
        is_selected = state.map_like("logical_not", is_nan, like=operand, dtype=np.dtype(bool), compute_dtype=np.dtype(bool))
        if operation == "mean":
            return _masked_mean(state, item, filled, is_selected, reduction_axes)
        count = _count_selected(state, is_selected, operand, reduction_axes)
        if operation in ("maximum", "minimum"):
            return _nan_extremum(state, item, append_reduction(state, operation, filled, reduction_axes), count)
        return _nan_variance(state, item, (operand, is_nan, filled), count, reduction_axes, operation)

    return lower


def _nan_extremum(state: LoweringState, item: object, best: BufferView, count: BufferView) -> str:
    """Lower an extremum; nan with NumPy's warning if all elements are nan."""
    best, count = reductions.with_item_shape(best, item), reductions.with_item_shape(count, item)
    one_or_nan = dense_view(best.buffer.dtype, best.shape)
    state.append_map("divide", (count, count), one_or_nan)
    state.append_map("multiply", (best, one_or_nan), state.allocate_result(item))
    return ""


def _nan_variance(
    state: LoweringState,
    item: Value,
    operand_views: tuple[BufferView, BufferView, BufferView],
    count: BufferView,
    reduction_axes: frozenset[int],
    operation: str,
) -> str:
    """Lower the variance, or its square root."""
    ddof, (operand, is_nan, filled) = item.options.get("ddof", 0), operand_views
    if ddof not in (0, 1):
        return UNSUPPORTED
    dtype, total = operand.buffer.dtype, append_reduction(state, "add", filled, reduction_axes)
    mean = state.map_like("divide", total, count, like=count, dtype=dtype, compute_dtype=dtype)
    deviation = state.map_like("subtract", operand, mean, like=operand)
    square = state.map_like("where", is_nan, 0, state.map_like("square", deviation, like=operand), like=operand)
    total, count = (reductions.with_item_shape(p, item) for p in (append_reduction(state, "add", square, reduction_axes), count))
    divisor = state.map_like("maximum", state.map_like("subtract", count, int(ddof), like=count), 0, like=count)
    out = state.allocate_result(item)
    if operation == "var":
        state.append_map("divide", (total, divisor), out)
    else:
        state.append_map("sqrt", (state.map_like("divide", total, divisor, like=out),), out)
    return ""


_REDUCTIONS = {f: name for f, name in reductions.COMBINERS.items() if not name.startswith("logical")} | {np.mean: "mean"}
_NAN_REDUCTIONS = {
    np.nansum: ("add", np.sum), np.nanprod: ("multiply", np.prod), np.nanmean: ("mean", np.mean), np.nanmax: ("maximum", np.max),
    np.nanmin: ("minimum", np.min), np.nanvar: ("var", np.var), np.nanstd: ("std", np.std),
}  # fmt: skip
LOWERINGS: dict[Any, LowerItem] = {
    np.clip: _clip,
    np.round: _round,
    ops.function_by_opname("nan_to_num"): _nan_to_num,
    **{function: _masked_reduction(name, reductions.LOWERINGS[function]) for function, name in _REDUCTIONS.items()},
    **{function: _nan_reduction(name, reductions.LOWERINGS[base]) for function, (name, base) in _NAN_REDUCTIONS.items()},
}
NODE_KEYWORDS = frozenset({"where", "initial"})  # keyword operands that may be nodes
KEYWORD_LOWERINGS: dict[Any, LowerItem] = {function: _masked_reduction(name, None) for function, name in _REDUCTIONS.items()}
