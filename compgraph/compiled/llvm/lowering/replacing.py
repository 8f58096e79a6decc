"""Elements that are replaced by others: by limits, by numbers for nan, and in sums by what changes nothing.

Where NumPy warns of slices without elements, these steps divide 0 by 0, so that NumPy is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from .... import ops
from .. import elementwise
from ..steps import Place, dense
from . import folding
from .folding import axes_of, reduced
from .placing import Placing, fits

_OPTION = "an operand or an option is not known to the compiler"
_BITS = "exact=True asks for NumPy's bits"
_NOTHING = "there is nothing to reduce"
Maker = Callable[[Placing, Any], str]


def _own(lowered: Placing, item: Any) -> Place:
    found = lowered.places[item] = dense(np.asarray(item.raw_value).dtype, np.shape(item.raw_value), item)
    return found


def _mapped(lowered: Placing, name: str, *operands: Any, like: Place, dtype: Any = None, computed: Any = None) -> Place:
    """A step's result, of the shape of another array, and of its dtype if no other is named."""
    out = dense(dtype or like.buffer.dtype, like.shape)
    lowered.map(name, operands, out, computed or (None if dtype is None else like.buffer.dtype))
    return out


# --------------------------------------------------------------------------------------------- element by element


def _clipped(lowered: Placing, item: Any) -> str:
    """``minimum(maximum(x, low), high)``. Of zeros of both signs, NumPy's `clip` by two numbers keeps that of `x`."""
    x, *limits = (lowered.operand(a) if a is not None else None for a in item.args)
    dtype = np.asarray(item.raw_value).dtype
    known = [(name, limit) for name, limit in zip(("maximum", "minimum"), limits, strict=False) if limit is not None]
    if item.options or not isinstance(x, Place) or len(limits) != 2 or not known:
        return _OPTION
    if len(known) != sum(a is not None for a in item.args[1:]) or not elementwise.can_compute("maximum", dtype):
        return _OPTION
    if not all(fits(limit, dtype) for _, limit in known):
        return "a limit is not a number of the dtype of the result"
    if len(known) == 1:
        name, limit = known[0]
        lowered.map(name, (x, limit), _own(lowered, item))
        return ""
    if lowered.is_exact and dtype.kind == "f" and any(isinstance(limit, Place) and limit.shape for _, limit in known):
        return _BITS
    between = dense(dtype, np.shape(item.raw_value))
    (first, low), (second, high) = known
    lowered.map(first, (low, x), between)
    lowered.map(second, (high, between), _own(lowered, item))
    return ""


def _finite(lowered: Placing, item: Any) -> str:
    """``nan_to_num``: numbers for nan and the infinities."""
    x, dtype, options = lowered.place(item.args[0]), np.asarray(item.raw_value).dtype, item.options
    if x is None or len(item.args) > 1 or not {"nan", "posinf", "neginf"}.issuperset(options) or dtype.kind != "f":
        return _OPTION
    limits = np.finfo(dtype)
    numbers = [options.get("nan", 0.0), options.get("posinf"), options.get("neginf")]
    numbers[1:] = [most if n is None else n for n, most in zip(numbers[1:], (limits.max, limits.min), strict=True)]
    if not all(isinstance(n, (int, float, np.generic)) for n in numbers):
        return _OPTION
    tests = [("isnan", (x,)), ("equal", (x, np.inf)), ("equal", (x, -np.inf))]
    found = x
    for number, (name, operands) in zip(numbers, tests, strict=True):
        is_it = _mapped(lowered, name, *operands, like=x, dtype=np.dtype(bool))
        found = _mapped(lowered, "where", is_it, number, found, like=x)
    lowered.map("copy", (found,), _own(lowered, item))
    return ""


def _rounded(lowered: Placing, item: Any) -> str:
    """``round``: the nearest whole number of units, as NumPy scales to these and back."""
    x, dtype = lowered.place(item.args[0]), np.asarray(item.raw_value).dtype
    digits: Any = item.options.get("decimals", 0)
    if x is None or len(item.args) > 1 or not {"decimals"}.issuperset(item.options) or dtype.kind != "f":
        return _OPTION
    if not isinstance(digits, (int, np.integer)) or abs(int(digits)) > 22 or x.buffer.dtype != dtype:  # 10 ** 22 is exact
        return _OPTION
    unit = 10.0 ** abs(int(digits))
    if digits == 0:
        lowered.map("rint", (x,), _own(lowered, item))
        return ""
    there, back = ("multiply", "divide") if int(digits) > 0 else ("divide", "multiply")
    whole = _mapped(lowered, "rint", _mapped(lowered, there, x, unit, like=x), like=x)
    lowered.map(back, (whole, unit), _own(lowered, item))
    return ""


def _xlogy(lowered: Placing, item: Any) -> str:
    """``x * log(y)``, and 0 where `x` is, unless `y` is nan."""
    x, y = map(lowered.operand, item.args)
    dtype = np.asarray(item.raw_value).dtype
    if x is None or y is None or item.options or dtype.kind != "f" or lowered.is_exact:
        return _BITS if lowered.is_exact else _OPTION
    own = _own(lowered, item)
    is_zero = _mapped(lowered, "equal", x, 0, like=own, dtype=np.dtype(bool))
    is_nan = _mapped(lowered, "isnan", y, like=own, dtype=np.dtype(bool))
    instead = _mapped(lowered, "where", is_nan, y, 1, like=own)
    lowered.map("multiply", (x, _mapped(lowered, "log", _mapped(lowered, "where", is_zero, instead, y, like=own), like=own)), own)
    return ""


# --------------------------------------------------------------------------------------------- sums of some elements


def _asked(item: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Operands and options of an item, those that are operands given by keyword among the options."""
    function = item.function
    if not isinstance(function, ops.Keyworded):
        return item.args, item.options
    cut = len(item.args) - len(function.names)
    return item.args[:cut], {**item.options, **dict(zip(function.names, item.args[cut:], strict=True))}


def _partly(operation: str, whole: Maker | None) -> Maker:
    """A reduction with ``where=`` or ``initial=``; `whole` makes those without."""

    def make(lowered: Placing, item: Any) -> str:
        args, options = _asked(item)
        mask, initial = options.get("where", True), options.get("initial", np._NoValue)
        if whole is not None and mask is True and initial is np._NoValue:
            return whole(lowered, item)
        operand, dtype = lowered.place(args[0]), np.asarray(item.raw_value).dtype
        if operand is None or len(args) > 1 or not {"axis", "keepdims", "dtype", "where", "initial"}.issuperset(options):
            return _OPTION
        gone = axes_of(item, len(operand.shape))
        if dtype.kind not in "iuf" or (lowered.is_exact and dtype.kind == "f"):
            return _BITS if lowered.is_exact else f"{item.opname} of {dtype} is not compiled"
        if 0 in operand.shape or not gone:
            return _NOTHING
        initial = None if initial is np._NoValue or initial is None else lowered.operand(initial)
        if (initial is None and options.get("initial", np._NoValue) is not np._NoValue) or not fits(initial or 0, dtype):
            return _OPTION
        kept = _masked(lowered, operand, mask, {"add": 0, "mean": 0, "multiply": 1}.get(operation, initial), dtype)
        if isinstance(kept, str):
            return kept
        numbers, is_there = kept
        if operation == "mean":
            return _mean_of(lowered, item, numbers, is_there, gone)
        total = folding.shown(reduced(lowered, operation, numbers, gone), item)
        name, operands = ("copy", (total,)) if initial is None else (operation, (initial, total))
        lowered.map(name, operands, _own(lowered, item))
        return ""

    return make


def _masked(lowered: Placing, operand: Place, mask: Any, instead: Any, dtype: Any) -> Any:
    """An array with another number where a mask is not, and the mask; or why there is none."""
    x = operand if operand.buffer.dtype == dtype else lowered.copied(operand, dtype)
    if mask is True:
        return x, None
    seen = lowered.place(mask) if isinstance(mask, np.ndarray) else None
    if seen is None or seen.buffer.dtype.kind != "b" or instead is None:
        return _OPTION
    if np.broadcast_shapes(seen.shape, x.shape) != x.shape:
        return _OPTION
    return _mapped(lowered, "where", seen, x, instead, like=x), seen


def _mean_of(lowered: Placing, item: Any, kept: Place, is_there: Place | None, gone: frozenset[int]) -> str:
    """The sum of what was kept by the number of elements that are there."""
    if kept.buffer.dtype.kind != "f" or is_there is None:
        return "means of these numbers are not compiled"
    sums = reduced(lowered, "add", kept, gone), _count(lowered, is_there, kept, gone)
    lowered.map("divide", [folding.shown(p, item) for p in sums], _own(lowered, item))
    return ""


def _count(lowered: Placing, is_there: Place, like: Place, gone: frozenset[int]) -> Place:
    """How many elements are there, of an array of the shape of another."""
    ones = _mapped(lowered, "copy", is_there, like=like, dtype=np.dtype(np.int64), computed=np.dtype(bool))
    return reduced(lowered, "add", ones, gone)


# --------------------------------------------------------------------------------------------- without nan


def _without_nan(operation: str, whole: Maker) -> Maker:
    """A reduction that leaves nan out; `whole` makes that of integers, of which none is nan."""

    def make(lowered: Placing, item: Any) -> str:
        operand, dtype = lowered.place(item.args[0]), np.asarray(item.raw_value).dtype
        if operand is None or len(item.args) > 1 or not folding.is_plain(item.options, {"axis", "keepdims", "ddof"}):
            return _OPTION
        if operand.buffer.dtype.kind != "f":
            return whole(lowered, item)
        gone = axes_of(item, len(operand.shape))
        if 0 in operand.shape or not gone or operand.buffer.dtype != dtype:
            return _NOTHING
        if lowered.is_exact:
            return _BITS
        instead = {"multiply": 1, "maximum": -np.inf, "minimum": np.inf}.get(operation, 0)
        is_nan = _mapped(lowered, "isnan", operand, like=operand, dtype=np.dtype(bool))
        kept = _mapped(lowered, "where", is_nan, instead, operand, like=operand)
        if operation in ("add", "multiply"):
            total = reduced(lowered, operation, kept, gone)
            lowered.map("copy", (folding.shown(total, item),), _own(lowered, item))
            return ""
        is_there = _mapped(lowered, "logical_not", is_nan, like=operand, dtype=np.dtype(bool), computed=np.dtype(bool))
        if operation == "mean":
            return _mean_of(lowered, item, kept, is_there, gone)
        count = _count(lowered, is_there, operand, gone)
        if operation in ("maximum", "minimum"):
            return _extreme(lowered, item, reduced(lowered, operation, kept, gone), count)
        return _spread(lowered, item, (operand, is_nan, kept), count, gone, operation)

    return make


def _extreme(lowered: Placing, item: Any, best: Place, count: Place) -> str:
    """The greatest or least; nan, with a warning of NumPy's, where there is none."""
    best, count = folding.shown(best, item), folding.shown(count, item)
    one = dense(best.buffer.dtype, best.shape)
    lowered.map("divide", (count, count), one)
    lowered.map("multiply", (best, one), _own(lowered, item))
    return ""


def _spread(
    lowered: Placing, item: Any, given: tuple[Place, Place, Place], count: Place, gone: frozenset[int], operation: str
) -> str:
    """The variance, or its root."""
    delta, (operand, is_nan, kept) = item.options.get("ddof", 0), given
    if delta not in (0, 1):
        return _OPTION
    mean = _mapped(lowered, "divide", reduced(lowered, "add", kept, gone), count, like=count, dtype=operand.buffer.dtype,
                   computed=operand.buffer.dtype)  # fmt: skip
    apart = _mapped(lowered, "subtract", operand, mean, like=operand)
    square = _mapped(lowered, "where", is_nan, 0, _mapped(lowered, "square", apart, like=operand), like=operand)
    total, count = (folding.shown(p, item) for p in (reduced(lowered, "add", square, gone), count))
    left = _mapped(lowered, "maximum", _mapped(lowered, "subtract", count, int(delta), like=count), 0, like=count)
    own = _own(lowered, item)
    if operation == "var":
        lowered.map("divide", (total, left), own)
    else:
        lowered.map("sqrt", (_mapped(lowered, "divide", total, left, like=own),), own)
    return ""


_PARTLY = {np.sum: "add", np.prod: "multiply", np.max: "maximum", np.min: "minimum", np.mean: "mean"}
_PARTLY |= {np.add.reduce: "add", np.multiply.reduce: "multiply", np.maximum.reduce: "maximum", np.minimum.reduce: "minimum"}
_LEFT_OUT = {
    np.nansum: ("add", np.sum), np.nanprod: ("multiply", np.prod), np.nanmean: ("mean", np.mean), np.nanmax: ("maximum", np.max),
    np.nanmin: ("minimum", np.min), np.nanvar: ("var", np.var), np.nanstd: ("std", np.std),
}  # fmt: skip
KINDS: dict[Any, Maker] = {
    np.clip: _clipped,
    np.round: _rounded,
    scipy.special.xlogy: _xlogy,
    ops.function_named("nan_to_num"): _finite,
    **{function: _partly(name, folding.KINDS[function]) for function, name in _PARTLY.items()},
    **{function: _without_nan(name, folding.KINDS[whole]) for function, (name, whole) in _LEFT_OUT.items()},
}
VARYING = frozenset({"where", "initial"})  # keywords of these functions that may be nodes
KEYWORDED: dict[Any, Maker] = {function: _partly(name, None) for function, name in _PARTLY.items()}
