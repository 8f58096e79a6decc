"""Lowering of operations that replace elements: clip, nan_to_num, masked reductions and reductions without nan.

Where NumPy warns of empty slices, these steps compute 0 / 0, which makes the program fall back to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from .... import ops
from .. import elementwise_ops
from ..buffer_ir import BufferView, dense_view
from . import reductions
from .lowering_state import EMPTY, EXACT_BITS, UNSUPPORTED, LoweringState, casts_like_numpy
from .reductions import append_reduction, reduced_axes

LowerItem = Callable[[LoweringState, Any], str]


def _map_like(
    state: LoweringState, name: str, *operands: Any, like: BufferView, dtype: Any = None, computed: Any = None
) -> BufferView:
    """Append an elementwise operation; return its result, with the shape, and by default the dtype, of `like`."""
    out = dense_view(dtype or like.buffer.dtype, like.shape)
    state.append_map(name, operands, out, computed or (None if dtype is None else like.buffer.dtype))
    return out


# --------------------------------------------------------------------------------------------- elementwise


def _clip(state: LoweringState, item: Any) -> str:
    """Lower ``minimum(maximum(x, low), high)``. With two scalar limits, NumPy's `clip` keeps the sign of zeros of `x`."""
    x, *limits = (state.operand(a) if a is not None else None for a in item.args)
    dtype = np.asarray(item.raw_value).dtype
    known = [(name, limit) for name, limit in zip(("maximum", "minimum"), limits, strict=False) if limit is not None]
    if item.options or not isinstance(x, BufferView) or len(limits) != 2 or not known:
        return UNSUPPORTED
    if len(known) != sum(a is not None for a in item.args[1:]) or not elementwise_ops.can_compute("maximum", dtype):
        return UNSUPPORTED
    if not all(casts_like_numpy(limit, dtype) for _, limit in known):
        return "a limit does not have the dtype of the result"
    if len(known) == 1:
        name, limit = known[0]
        state.append_map(name, (x, limit), state.result(item))
        return ""
    if state.is_exact and dtype.kind == "f" and any(isinstance(limit, BufferView) and limit.shape for _, limit in known):
        return EXACT_BITS
    between = dense_view(dtype, np.shape(item.raw_value))
    (first, low), (second, high) = known
    state.append_map(first, (low, x), between)
    state.append_map(second, (high, between), state.result(item))
    return ""


def _nan_to_num(state: LoweringState, item: Any) -> str:
    """Lower ``nan_to_num``."""
    x, dtype, options = state.view(item.args[0]), np.asarray(item.raw_value).dtype, item.options
    if x is None or len(item.args) > 1 or not {"nan", "posinf", "neginf"}.issuperset(options) or dtype.kind != "f":
        return UNSUPPORTED
    limits = np.finfo(dtype)
    numbers = [options.get("nan", 0.0), options.get("posinf"), options.get("neginf")]
    numbers[1:] = [most if n is None else n for n, most in zip(numbers[1:], (limits.max, limits.min), strict=True)]
    if not all(isinstance(n, (int, float, np.generic)) for n in numbers):
        return UNSUPPORTED
    tests = [("isnan", (x,)), ("equal", (x, np.inf)), ("equal", (x, -np.inf))]
    result = x
    for number, (name, operands) in zip(numbers, tests, strict=True):
        is_it = _map_like(state, name, *operands, like=x, dtype=np.dtype(bool))
        result = _map_like(state, "where", is_it, number, result, like=x)
    state.append_map("copy", (result,), state.result(item))
    return ""


def _round(state: LoweringState, item: Any) -> str:
    """Lower ``round`` to decimals, scaled as NumPy does."""
    x, dtype = state.view(item.args[0]), np.asarray(item.raw_value).dtype
    digits: Any = item.options.get("decimals", 0)
    if x is None or len(item.args) > 1 or not {"decimals"}.issuperset(item.options) or dtype.kind != "f":
        return UNSUPPORTED
    if not isinstance(digits, (int, np.integer)) or abs(int(digits)) > 22 or x.buffer.dtype != dtype:  # 10 ** 22 is exact
        return UNSUPPORTED
    unit = 10.0 ** abs(int(digits))
    if digits == 0:
        state.append_map("rint", (x,), state.result(item))
        return ""
    there, back = ("multiply", "divide") if int(digits) > 0 else ("divide", "multiply")
    whole = _map_like(state, "rint", _map_like(state, there, x, unit, like=x), like=x)
    state.append_map(back, (whole, unit), state.result(item))
    return ""


def _xlogy(state: LoweringState, item: Any) -> str:
    """Lower ``x * log(y)``, 0 where `x` is 0 unless `y` is nan."""
    x, y = map(state.operand, item.args)
    dtype = np.asarray(item.raw_value).dtype
    if x is None or y is None or item.options or dtype.kind != "f" or state.is_exact:
        return EXACT_BITS if state.is_exact else UNSUPPORTED
    own = state.result(item)
    is_zero = _map_like(state, "equal", x, 0, like=own, dtype=np.dtype(bool))
    is_nan = _map_like(state, "isnan", y, like=own, dtype=np.dtype(bool))
    instead = _map_like(state, "where", is_nan, y, 1, like=own)
    state.append_map(
        "multiply", (x, _map_like(state, "log", _map_like(state, "where", is_zero, instead, y, like=own), like=own)), own
    )
    return ""


# --------------------------------------------------------------------------------------------- masked reductions


def _operands_and_options(item: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the operands and options of an item, with operands passed by keyword among the options."""
    function = item.function
    if not isinstance(function, ops.Keyworded):
        return item.args, item.options
    cut = len(item.args) - len(function.names)
    return item.args[:cut], {**item.options, **dict(zip(function.names, item.args[cut:], strict=True))}


def _masked_reduction(operation: str, whole: LowerItem | None) -> LowerItem:
    """Return the lowering of a reduction with ``where=`` or ``initial=``; `whole` lowers it without these."""

    def make(state: LoweringState, item: Any) -> str:
        args, options = _operands_and_options(item)
        mask, initial = options.get("where", True), options.get("initial", np._NoValue)
        if whole is not None and mask is True and initial is np._NoValue:
            return whole(state, item)
        operand, dtype = state.view(args[0]), np.asarray(item.raw_value).dtype
        if operand is None or len(args) > 1 or not {"axis", "keepdims", "dtype", "where", "initial"}.issuperset(options):
            return UNSUPPORTED
        gone = reduced_axes(item, len(operand.shape))
        if dtype.kind not in "iuf" or (state.is_exact and dtype.kind == "f"):
            return EXACT_BITS if state.is_exact else f"{item.opname} of {dtype} is not compiled"
        if 0 in operand.shape or not gone:
            return EMPTY
        initial = None if initial is np._NoValue or initial is None else state.operand(initial)
        if (initial is None and options.get("initial", np._NoValue) is not np._NoValue) or not casts_like_numpy(
            initial or 0, dtype
        ):
            return UNSUPPORTED
        kept = _apply_mask(state, operand, mask, {"add": 0, "mean": 0, "multiply": 1}.get(operation, initial), dtype)
        if isinstance(kept, str):
            return kept
        numbers, is_there = kept
        if operation == "mean":
            return _masked_mean(state, item, numbers, is_there, gone)
        total = reductions.with_item_shape(append_reduction(state, operation, numbers, gone), item)
        name, operands = ("copy", (total,)) if initial is None else (operation, (initial, total))
        state.append_map(name, operands, state.result(item))
        return ""

    return make


def _apply_mask(state: LoweringState, operand: BufferView, mask: Any, instead: Any, dtype: Any) -> Any:
    """Return an array with `instead` where a mask is False, and the mask; or the reason if not supported."""
    x = operand if operand.buffer.dtype == dtype else state.copy_of(operand, dtype)
    if mask is True:
        return x, None
    seen = state.view(mask) if isinstance(mask, np.ndarray) else None
    if seen is None or seen.buffer.dtype.kind != "b" or instead is None:
        return UNSUPPORTED
    if np.broadcast_shapes(seen.shape, x.shape) != x.shape:
        return UNSUPPORTED
    return _map_like(state, "where", seen, x, instead, like=x), seen


def _masked_mean(state: LoweringState, item: Any, kept: BufferView, is_there: BufferView | None, gone: frozenset[int]) -> str:
    """Divide the sum of the selected elements by their number."""
    if kept.buffer.dtype.kind != "f" or is_there is None:
        return "means of this dtype are not compiled"
    sums = append_reduction(state, "add", kept, gone), _count_selected(state, is_there, kept, gone)
    state.append_map("divide", [reductions.with_item_shape(p, item) for p in sums], state.result(item))
    return ""


def _count_selected(state: LoweringState, is_there: BufferView, like: BufferView, gone: frozenset[int]) -> BufferView:
    """Return the number of selected elements along the reduced axes."""
    ones = _map_like(state, "copy", is_there, like=like, dtype=np.dtype(np.int64), computed=np.dtype(bool))
    return append_reduction(state, "add", ones, gone)


# --------------------------------------------------------------------------------------------- reductions without nan


def _nan_reduction(operation: str, whole: LowerItem) -> LowerItem:
    """Return the lowering of a reduction that ignores nan; `whole` lowers it for integers."""

    def make(state: LoweringState, item: Any) -> str:
        operand, dtype = state.view(item.args[0]), np.asarray(item.raw_value).dtype
        if operand is None or len(item.args) > 1 or not reductions.has_known_options(item.options, {"axis", "keepdims", "ddof"}):
            return UNSUPPORTED
        if operand.buffer.dtype.kind != "f":
            return whole(state, item)
        gone = reduced_axes(item, len(operand.shape))
        if 0 in operand.shape or not gone or operand.buffer.dtype != dtype:
            return EMPTY
        if state.is_exact:
            return EXACT_BITS
        instead = {"multiply": 1, "maximum": -np.inf, "minimum": np.inf}.get(operation, 0)
        is_nan = _map_like(state, "isnan", operand, like=operand, dtype=np.dtype(bool))
        kept = _map_like(state, "where", is_nan, instead, operand, like=operand)
        if operation in ("add", "multiply"):
            total = append_reduction(state, operation, kept, gone)
            state.append_map("copy", (reductions.with_item_shape(total, item),), state.result(item))
            return ""
        is_there = _map_like(state, "logical_not", is_nan, like=operand, dtype=np.dtype(bool), computed=np.dtype(bool))
        if operation == "mean":
            return _masked_mean(state, item, kept, is_there, gone)
        count = _count_selected(state, is_there, operand, gone)
        if operation in ("maximum", "minimum"):
            return _nan_extremum(state, item, append_reduction(state, operation, kept, gone), count)
        return _nan_variance(state, item, (operand, is_nan, kept), count, gone, operation)

    return make


def _nan_extremum(state: LoweringState, item: Any, best: BufferView, count: BufferView) -> str:
    """Lower an extremum; nan with NumPy's warning if all elements are nan."""
    best, count = reductions.with_item_shape(best, item), reductions.with_item_shape(count, item)
    one = dense_view(best.buffer.dtype, best.shape)
    state.append_map("divide", (count, count), one)
    state.append_map("multiply", (best, one), state.result(item))
    return ""


def _nan_variance(
    state: LoweringState,
    item: Any,
    operand_views: tuple[BufferView, BufferView, BufferView],
    count: BufferView,
    gone: frozenset[int],
    operation: str,
) -> str:
    """Lower the variance, or its square root."""
    delta, (operand, is_nan, kept) = item.options.get("ddof", 0), operand_views
    if delta not in (0, 1):
        return UNSUPPORTED
    mean = _map_like(state, "divide", append_reduction(state, "add", kept, gone), count, like=count, dtype=operand.buffer.dtype,
                   computed=operand.buffer.dtype)  # fmt: skip
    apart = _map_like(state, "subtract", operand, mean, like=operand)
    square = _map_like(state, "where", is_nan, 0, _map_like(state, "square", apart, like=operand), like=operand)
    total, count = (reductions.with_item_shape(p, item) for p in (append_reduction(state, "add", square, gone), count))
    left = _map_like(state, "maximum", _map_like(state, "subtract", count, int(delta), like=count), 0, like=count)
    own = state.result(item)
    if operation == "var":
        state.append_map("divide", (total, left), own)
    else:
        state.append_map("sqrt", (_map_like(state, "divide", total, left, like=own),), own)
    return ""


_REDUCTIONS = {np.sum: "add", np.prod: "multiply", np.max: "maximum", np.min: "minimum", np.mean: "mean"}
_REDUCTIONS |= {np.add.reduce: "add", np.multiply.reduce: "multiply", np.maximum.reduce: "maximum", np.minimum.reduce: "minimum"}
_NAN_REDUCTIONS = {
    np.nansum: ("add", np.sum), np.nanprod: ("multiply", np.prod), np.nanmean: ("mean", np.mean), np.nanmax: ("maximum", np.max),
    np.nanmin: ("minimum", np.min), np.nanvar: ("var", np.var), np.nanstd: ("std", np.std),
}  # fmt: skip
LOWERINGS: dict[Any, LowerItem] = {
    np.clip: _clip,
    np.round: _round,
    scipy.special.xlogy: _xlogy,
    ops.function_by_opname("nan_to_num"): _nan_to_num,
    **{function: _masked_reduction(name, reductions.LOWERINGS[function]) for function, name in _REDUCTIONS.items()},
    **{function: _nan_reduction(name, reductions.LOWERINGS[whole]) for function, (name, whole) in _NAN_REDUCTIONS.items()},
}
NODE_KEYWORDS = frozenset({"where", "initial"})  # keyword operands that may be nodes
KEYWORD_LOWERINGS: dict[Any, LowerItem] = {function: _masked_reduction(name, None) for function, name in _REDUCTIONS.items()}
