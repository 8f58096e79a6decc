"""Sums, products, extremes along axes, and what goes along one axis in order (items of these kinds become steps)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .... import ops
from .. import elementwise
from ..steps import Place, Reduce, Scan, dense
from .placing import Placing

_OPTION = "an operand or an option is not known to the compiler"
_BITS = "exact=True asks for NumPy's bits"
_OF_BOOLEANS = {"maximum": "logical_or", "minimum": "logical_and"}
_EMPTY: dict[str, Any] = {"add": 0, "multiply": 1, "logical_or": False, "logical_and": True}  # what is left if there is nothing
SHORT, SEVERAL = 16, 8  # lengths of rows that are searched element by element, if there are so many
MOST_NUMBERS = 2**22  # of elements that are searched at once, which are kept
_BY_ROWS = frozenset({np.add.reduce, np.multiply.reduce, np.maximum.reduce, np.minimum.reduce})  # along the first axis


def axes_of(item: Any, count: int) -> frozenset[int]:
    """The axes, of so many, along which an item goes."""
    axis = item.options.get("axis", 0 if item.function in _BY_ROWS else None)
    axes = range(count) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return frozenset(int(a) % count for a in axes) if count else frozenset()


def reduced(lowered: Placing, operation: str, operand: Place, gone: frozenset[int], item: Any = None) -> Place:
    """The result of a reduction, with the shape of the operand and strides of 0 along the axes that go."""
    kept = tuple(n for k, n in enumerate(operand.shape) if k not in gone)
    whole = dense(operand.buffer.dtype, kept, item)
    strides = iter(whole.strides)
    spread = Place(whole.buffer, 0, operand.shape, tuple(0 if k in gone else next(strides) for k in range(len(operand.shape))))
    lowered.steps.append(Reduce(operation, operand, gone, spread))
    return spread


def _settle(lowered: Placing, item: Any, place: Place) -> str:
    """Let a dense buffer, however it was seen, be the value of an item."""
    place.buffer.node = item
    lowered.places[item] = Place(
        place.buffer, 0, np.shape(item.raw_value), dense(place.buffer.dtype, np.shape(item.raw_value)).strides
    )
    return ""


def _folded(operation: str) -> Any:
    def make(lowered: Placing, item: Any) -> str:
        name, plain = operation, np.asarray(item.raw_value)
        operand = lowered.place(item.args[0])
        if operand is None or len(item.args) > 1 or not is_plain(item.options, {"axis", "keepdims", "dtype"}):
            return _OPTION
        dtype = plain.dtype
        if name == "mean" and dtype.kind != "f":
            return f"means of {dtype} are not compiled"
        if lowered.is_exact and dtype.kind == "f":  # the sign of extremes that are zeros depends on NumPy's vectors
            return _BITS
        if dtype.kind == "b":
            name = _OF_BOOLEANS.get(name, name)
        gone = axes_of(item, len(operand.shape))
        if 0 in operand.shape:
            return _of_nothing(lowered, item, name)
        if all(operand.shape[k] == 1 for k in gone):
            return _of_each(lowered, item, name, _without(operand, gone, item))
        if operand.buffer.dtype != dtype:
            operand = lowered.copied(operand, dtype)
        return _settle(lowered, item, reduced(lowered, name, operand, gone, item))

    return make


def is_plain(options: Any, known: set[str]) -> bool:
    """Whether options are known, or say nothing."""
    rest = {name: value for name, value in options.items() if name not in known}
    idle = {"where": (True,), "out": (None,), "initial": (np._NoValue,)}
    return all(any(value is nothing for nothing in idle.get(name, ())) for name, value in rest.items())


def _of_nothing(lowered: Placing, item: Any, name: str) -> str:
    if name not in _EMPTY:
        return "there is nothing to reduce"
    own = lowered.places[item] = dense(np.asarray(item.raw_value).dtype, np.shape(item.raw_value), item)
    lowered.map("copy", (_EMPTY[name],), own)
    return ""


def _without(place: Place, gone: frozenset[int], item: Any) -> Place:
    """An array with the shape of an item, which lacks some of its axes, of length 1, or has them still."""
    shape = np.shape(item.raw_value)
    kept = [s for k, s in enumerate(place.strides) if k not in gone or len(shape) == len(place.shape)]
    return Place(place.buffer, place.offset, shape, tuple(kept))


def _of_each(lowered: Placing, item: Any, name: str, operand: Place) -> str:
    """Where no elements are put together: they themselves; sums begin with 0, which takes the sign of -0."""
    own = lowered.places[item] = dense(np.asarray(item.raw_value).dtype, np.shape(item.raw_value), item)
    if name in ("add", "mean") and own.buffer.dtype.kind == "f":
        lowered.map("add", (operand, 0.0), own)
    else:
        lowered.map("copy", (operand,), own, operand.buffer.dtype)
    return ""


def _truth(operation: str) -> Any:
    def make(lowered: Placing, item: Any) -> str:
        operand = lowered.place(item.args[0])
        if operand is None or len(item.args) > 1 or not is_plain(item.options, {"axis", "keepdims"}):
            return _OPTION
        gone = axes_of(item, len(operand.shape))
        if 0 in operand.shape:
            return _of_nothing(lowered, item, operation)
        if all(operand.shape[k] == 1 for k in gone):
            return _of_each(lowered, item, operation, _without(operand, gone, item))
        if operand.buffer.dtype.kind != "b":
            operand = lowered.copied(operand, np.dtype(bool))
        return _settle(lowered, item, reduced(lowered, operation, operand, gone, item))

    return make


def _spread_of(lowered: Placing, item: Any) -> str:
    """``ptp``: the greatest less the least."""
    operand, dtype = lowered.place(item.args[0]), np.asarray(item.raw_value).dtype
    if operand is None or len(item.args) > 1 or not is_plain(item.options, {"axis", "keepdims"}) or operand.buffer.dtype != dtype:
        return _OPTION
    gone = axes_of(item, len(operand.shape))
    if 0 in operand.shape or not gone or dtype.kind == "b":
        return "there is nothing to reduce"
    if lowered.is_exact and dtype.kind == "f":
        return _BITS
    greatest, least = (shown(reduced(lowered, name, operand, gone), item) for name in ("maximum", "minimum"))
    own = lowered.places[item] = dense(dtype, np.shape(item.raw_value), item)
    lowered.map("subtract", (greatest, least), own)
    return ""


def shown(place: Place, item: Any) -> Place:
    """A dense buffer with the shape of an item."""
    return Place(place.buffer, 0, np.shape(item.raw_value), dense(place.buffer.dtype, np.shape(item.raw_value)).strides)


def _variance(is_root: bool) -> Any:
    def make(lowered: Placing, item: Any) -> str:
        operand, dtype = lowered.place(item.args[0]), np.asarray(item.raw_value).dtype
        if operand is None or len(item.args) > 1 or not is_plain(item.options, {"axis", "keepdims", "ddof"}):
            return _OPTION
        if lowered.is_exact:
            return _BITS
        gone, delta = axes_of(item, len(operand.shape)), item.options.get("ddof", 0)
        count = prod(operand.shape[k] for k in gone)
        if not gone or 0 in operand.shape or not isinstance(delta, (int, float)) or count - delta <= 0:
            return "there is nothing to reduce"
        if dtype.kind != "f":
            return f"variances of {operand.buffer.dtype} are not compiled"
        operand = operand if operand.buffer.dtype == dtype else lowered.copied(operand, dtype)
        mean, apart, square = reduced(lowered, "mean", operand, gone), dense(dtype, operand.shape), dense(dtype, operand.shape)
        lowered.map("subtract", (operand, mean), apart)
        lowered.map("square", (apart,), square)
        total = shown(reduced(lowered, "add", square, gone), item)
        own = lowered.places[item] = dense(dtype, np.shape(item.raw_value), item)
        if is_root:
            divided = dense(dtype, own.shape)
            lowered.map("divide", (total, float(count - delta)), divided)
            lowered.map("sqrt", (divided,), own)
        else:
            lowered.map("divide", (total, float(count - delta)), own)
        return ""

    return make


def _norm(lowered: Placing, item: Any) -> str:
    """``linalg.norm`` of vectors, and that of matrices as if they were one: the root of a sum of squares, a sum, an extreme."""
    operand, dtype, options = lowered.place(item.args[0]), np.asarray(item.raw_value).dtype, item.options
    if operand is None or len(item.args) > 1 or not {"ord", "axis", "keepdims"}.issuperset(options):
        return _OPTION
    order, gone = options.get("ord"), axes_of(item, len(operand.shape))
    names = {1: ("absolute", "add"), np.inf: ("absolute", "maximum"), -np.inf: ("absolute", "minimum"), 2: ("square", "add")}
    is_long = order is None or (order == "fro" and len(gone) == 2)
    if not is_long and (len(gone) != 1 or not isinstance(order, (int, float)) or order not in names):
        return "norms of this order are not compiled"
    if 0 in operand.shape or not gone or dtype.kind != "f":
        return "there is nothing to reduce"
    if lowered.is_exact:
        return _BITS
    operand = operand if operand.buffer.dtype == dtype else lowered.copied(operand, dtype)
    size, fold = names[2] if is_long else names[order]
    sizes = dense(dtype, operand.shape)
    lowered.map(size, (operand,), sizes)
    total = shown(reduced(lowered, fold, sizes, gone), item)
    own = lowered.places[item] = dense(dtype, np.shape(item.raw_value), item)
    lowered.map("sqrt" if size == "square" else "copy", (total,), own)
    return ""


def _search(extreme: str) -> Any:
    """Where the first of the greatest, or least, elements is: the least number of one that is as great, or is nan."""

    def make(lowered: Placing, item: Any) -> str:
        operand = lowered.place(item.args[0])
        if operand is None or len(item.args) > 1 or not is_plain(item.options, {"axis", "keepdims"}):
            return _OPTION
        gone, dtype = axes_of(item, len(operand.shape)), operand.buffer.dtype
        count = prod(operand.shape[k] for k in gone)
        if 0 in operand.shape or np.asarray(item.raw_value).dtype != np.int64 or count > MOST_NUMBERS:
            return "there is nothing to search, or too much"
        if not gone:
            own = lowered.places[item] = dense(np.int64, np.shape(item.raw_value), item)
            lowered.map("copy", (0,), own)
            return ""
        if len(gone) == 1 and count <= SHORT and prod(np.shape(item.raw_value)) >= SEVERAL and dtype.kind != "b":
            return _search_in_short(lowered, item, operand, min(gone), "less_equal" if extreme == "maximum" else "greater_equal")
        best = reduced(lowered, _OF_BOOLEANS[extreme] if dtype.kind == "b" else extreme, operand, gone)
        is_found = dense(bool, operand.shape)
        lowered.map("equal", (operand, best), is_found, dtype)
        if dtype.kind == "f":
            is_nan, is_equal, is_found = dense(bool, operand.shape), is_found, dense(bool, operand.shape)
            lowered.map("isnan", (operand,), is_nan, dtype)
            lowered.map("logical_or", (is_equal, is_nan), is_found)
        numbers = np.arange(count).reshape([n if k in gone else 1 for k, n in enumerate(operand.shape)])
        found = dense(np.int64, operand.shape)
        lowered.map("where", (is_found, lowered.outside(numbers), count), found)
        return _settle(lowered, item, reduced(lowered, "minimum", found, gone, item))

    return make


def _search_in_short(lowered: Placing, item: Any, operand: Place, axis: int, name: str) -> str:
    """The same along a short axis, element by element: another is better if it is not less or equal, as nan is, once."""
    dtype, shape = operand.buffer.dtype, (*operand.shape[:axis], *operand.shape[axis + 1 :])
    strides = (*operand.strides[:axis], *operand.strides[axis + 1 :])
    best = Place(operand.buffer, operand.offset, shape, strides)
    found: Any = 0
    for k in range(1, operand.shape[axis]):
        other = Place(operand.buffer, operand.offset + k * operand.strides[axis], shape, strides)
        is_not, is_better, next_best, next_found = (dense(kind, shape) for kind in (bool, bool, dtype, np.int64))
        lowered.map(name, (other, best), is_not, dtype)
        lowered.map("logical_not", (is_not,), is_better)
        if dtype.kind == "f":
            is_number, is_better_still = dense(bool, shape), dense(bool, shape)
            lowered.map("equal", (best, best), is_number, dtype)
            lowered.map("logical_and", (is_better, is_number), is_better_still)
            is_better = is_better_still
        lowered.map("where", (is_better, other, best), next_best)
        lowered.map("where", (is_better, k, found), next_found)
        best, found = next_best, next_found
    own = lowered.places[item] = dense(np.int64, np.shape(item.raw_value), item)
    lowered.map("copy", (shown(found, item) if isinstance(found, Place) else found,), own)
    return ""


def _scan(operation: str, default: Any) -> Any:
    def make(lowered: Placing, item: Any) -> str:
        operand, dtype = lowered.place(item.args[0]), np.asarray(item.raw_value).dtype
        if operand is None or len(item.args) > 1 or not is_plain(item.options, {"axis", "dtype"}):
            return _OPTION
        if not elementwise.can_compute(operation, dtype):
            return f"{operation} of {dtype} in order is not compiled"
        axis = item.options.get("axis", default)
        if axis is None:
            operand, axis = lowered.raveled(operand), 0
        if 0 in operand.shape or not operand.shape or operand.shape != np.shape(item.raw_value):
            return "there is nothing to reduce"
        own = lowered.places[item] = dense(dtype, operand.shape, item)
        lowered.steps.append(Scan(operation, (operand,), int(axis) % len(operand.shape), own))
        return ""

    return make


def _accumulated(names: Sequence[str]) -> dict[Any, Any]:
    return {ops.ufunc_method(getattr(np, name), "accumulate"): _scan(name, 0) for name in names}


KINDS: dict[Any, Any] = {
    np.sum: _folded("add"), np.add.reduce: _folded("add"), np.prod: _folded("multiply"), np.multiply.reduce: _folded("multiply"),
    np.max: _folded("maximum"), np.maximum.reduce: _folded("maximum"), np.amax: _folded("maximum"),
    np.min: _folded("minimum"), np.minimum.reduce: _folded("minimum"), np.amin: _folded("minimum"), np.mean: _folded("mean"),
    np.any: _truth("logical_or"), np.all: _truth("logical_and"), np.ptp: _spread_of,
    np.var: _variance(is_root=False), np.std: _variance(is_root=True),
    np.linalg.norm: _norm, np.argmax: _search("maximum"), np.argmin: _search("minimum"),
    ops.NUMPY.cumsum: _scan("add", None), ops.NUMPY.cumprod: _scan("multiply", None),
    ops.NUMPY.cumulative_sum: _scan("add", None), ops.NUMPY.cumulative_prod: _scan("multiply", None),
    **_accumulated(("add", "multiply", "maximum", "minimum")),
}  # fmt: skip
