"""Expansions: functions expressed by operations that are compiled.

Each function here takes the arguments of an operation and returns its value by other operations, or None if it has no such steps
for these arguments. Its steps are recorded and lowered in turn. Values have NumPy's bits, except where stated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .... import ops
from ....array_types import Array, Axis
from ....bind import bind
from ....values import ConstantNode, Value

MAX_SEARCHED = 2**13  # elements that are binned by one search each; NumPy bins more of them faster, because it sorts first


def _constant_values(operand: object) -> NDArray[Any] | None:
    """Return the values of a constant; None for other operands."""
    if isinstance(operand, Value):
        operand = operand.raw_value if isinstance(operand, ConstantNode) and not operand.memory else None
    return None if operand is None else np.array(operand)


def _gather(table: object, index: object) -> Any:
    """``table[index]``, recorded also if only the index is a node."""
    return bind(ops.getitem, (table, index))


def _digitize(x: object, bins: object, right: bool = False) -> Any:
    """``np.digitize`` in increasing bins, or in decreasing ones that are constant."""
    values, side = np.asarray(bins.raw_value if isinstance(bins, Value) else bins), {"side": "left" if right else "right"}
    if values.ndim != 1 or np.isnan(values).any():
        return None
    if bool(np.all(values[:-1] <= values[1:])):
        return bind(np.searchsorted, (bins, x), side)
    constant_bins = _constant_values(bins)
    return None if constant_bins is None else len(values) - bind(np.searchsorted, (constant_bins[::-1].copy(), x), side)


def _interp(
    x: Any, xp: Any, fp: object, left: float | None = None, right: float | None = None, period: float | None = None
) -> Any:
    """``np.interp`` at increasing knots."""
    x, knots, values = (a if isinstance(a, Value) else np.asarray(a) for a in (x, xp, fp))
    if isinstance(left, Value) or isinstance(right, Value) or isinstance(period, Value):
        return None
    if any(a.dtype.kind not in "iuf" for a in (x, knots, values)) or knots.size < 2 or not x.size:
        return None
    x, knots, values = (a if a.dtype == np.float64 else a.astype(np.float64) for a in (x, knots, values))
    if period is not None:
        period, left, right = abs(float(period)), None, None
        x, knots = np.remainder(x, period), np.remainder(knots, period)
        order = np.argsort(knots)
        knots, values = _gather(knots, order), _gather(values, order)
        knots = np.concatenate([knots[-1:] - period, knots, knots[:1] + period])
        values = np.concatenate([values[-1:], values, values[:1]])
    last, count_below = knots.shape[0] - 1, bind(np.searchsorted, (knots, x), {"side": "right"})
    low = np.minimum(np.maximum(count_below, 1), last) - 1
    x_low, x_high = _gather(knots, low), _gather(knots, low + 1)
    y_low, y_high = _gather(values, low), _gather(values, low + 1)
    slope = (y_high - y_low) / (x_high - x_low)
    y = slope * (x - x_low) + y_low
    y_from_high = slope * (x - x_high) + y_high  # NumPy's value where a knot is infinite
    y_from_high = np.where(np.logical_and(np.isnan(y_from_high), y_low == y_high), y_low, y_from_high)
    y = np.where(np.isnan(y), y_from_high, y)
    y = np.where(x == x_low, y_low, y)
    y = np.where(x < knots[0], values[0] if left is None else float(left), y)
    at_or_after_last = np.where(x > knots[last], values[last] if right is None else float(right), values[last])
    y = np.where(count_below > last, at_or_after_last, y)
    return np.where(np.isnan(x), x, y)


def _histogram(
    recorded_outputs: Sequence[Any], a: Any, *, bins: Any = 10, range: Any = None, density: object = None, weights: Any = None
) -> tuple[Any, Any] | None:
    """``np.histogram`` with edges that are constant. Sums of weights have another order than NumPy's."""
    edges = np.asarray(recorded_outputs[1])
    a, weights = (None if x is None else np.ravel(x) if isinstance(x, Value) else np.ravel(np.asarray(x)) for x in (a, weights))
    if a.dtype.kind not in "iuf" or (weights is not None and weights.dtype.kind not in "iuf"):
        return None
    if np.ndim(bins) == 0 and not _are_distinct_edges(bins, range, edges):
        return None
    if np.ndim(bins) and weights is None and a.size > MAX_SEARCHED:
        return None
    count = len(edges) - 1
    is_inside = np.logical_and(a >= edges[0], a <= edges[-1])
    if np.ndim(bins) == 0:
        index = _position_among_even_edges(np.where(is_inside, a, edges[0]), edges)
    else:
        position = bind(np.searchsorted, (edges, a), {"side": "right"}) - 1
        index = np.where(a == edges[-1], count - 1, position)
    index = np.where(is_inside, index, count)
    operands = (index,) if weights is None else (index, weights)
    totals = bind(ops.NUMPY.bincount, operands, {"minlength": count + 1})[:count]
    if weights is not None and weights.dtype != np.float64:
        totals = totals.astype(weights.dtype)
    return totals / np.diff(edges).astype(float) / np.sum(totals) if density else totals, edges


def _position_among_even_edges(a: Array, edges: NDArray[Any]) -> Any:
    """Return the position of the bin of each element, which is between the first and the last edge: NumPy's steps."""
    a, last = a.astype(edges.dtype), len(edges) - 2
    index = np.minimum((((a - edges[0]) / (edges[-1] - edges[0])) * (last + 1)).astype(np.int64), last)
    index = index - (a < _gather(edges, index))
    return index + np.logical_and(a >= _gather(edges, index + 1), index != last)


def _are_distinct_edges(bins: object, range: object, edges: NDArray[Any]) -> bool:
    """Return whether evenly spaced edges are constant, and so distant that rounding moves no element by more than one bin."""
    if isinstance(bins, str) or range is None or edges.dtype.kind != "f":
        return False
    return bool(np.min(np.diff(edges)) > 16 * np.spacing(np.max(np.abs(edges))))


# --------------------------------------------------------------------------------------------- order statistics


def _sorted_rows(x: Array, axis: Axis) -> tuple[Any, list[int]]:
    """Merge the axes of a reduction into a last axis, and sort along it; return the rows and the axes."""
    axes = sorted(k % x.ndim for k in (range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)))
    other_axes = [k for k in range(x.ndim) if k not in axes]
    lengths = tuple(x.shape[k] for k in other_axes)
    return np.sort(np.reshape(np.transpose(x, [*other_axes, *axes]), (*lengths, prod(x.shape[k] for k in axes)))), axes


def _finish_statistic(result: Array, rows: NDArray[Any], axes: list[int], q_axes: int, keepdims: object) -> Any:
    """Replace the results of rows with nan, which sorting puts last, by nan; restore the reduced axes if `keepdims`."""
    if rows.dtype.kind == "f":
        result = np.where(np.isnan(rows[..., -1]), np.nan, result)
    return np.expand_dims(result, tuple(k + q_axes for k in axes)) if keepdims is True else result


def _median(x: Array, axis: Axis = None, overwrite_input: bool = False, keepdims: object = False) -> Any:
    """``np.median``, as the mean of the middle elements of sorted rows; the sign of zeros may differ."""
    if not x.size or x.dtype.kind not in "iufb" or overwrite_input or not isinstance(keepdims, (bool, type(np._NoValue))):
        return None
    rows, axes = _sorted_rows(x, axis)
    count = rows.shape[-1]
    values = rows if rows.dtype.kind == "f" else rows.astype(float)
    result = values[..., count // 2]
    if count % 2 == 0:
        result = (values[..., count // 2 - 1] + result) / 2
    return _finish_statistic(result, rows, axes, 0, keepdims)


def _quantile(scale: int) -> Callable[..., Any]:
    """Return the expansion of ``np.quantile`` or, in percent, of ``np.percentile``: the steps are NumPy's, after a sort."""

    def expand(
        x: Array, q: NDArray[Any] | float, axis: Axis = None, method: str = "linear", keepdims: object = False, **options: Any
    ) -> Any:
        is_default = method == "linear" and options.get("weights") is None and {"weights"}.issuperset(options)
        if not x.size or x.dtype.kind not in "iuf" or not is_default or not isinstance(keepdims, (bool, type(np._NoValue))):
            return None
        quantiles = np.asarray(q) if scale == 1 else np.true_divide(q, scale)
        if quantiles.dtype.kind not in "iuf" or quantiles.ndim > 1 or not quantiles.size:
            return None
        rows, axes = _sorted_rows(x, axis)
        last = rows.shape[-1] - 1
        position = last * quantiles
        lower = np.floor(position).astype(np.intp)
        low, high = rows[..., lower], rows[..., np.minimum(lower + 1, last)]
        result = low if position.dtype.kind in "iu" else _interpolate(low, high, position - lower, type(q) in (int, float))
        result = np.moveaxis(result, -1, 0) if quantiles.ndim else result
        return _finish_statistic(result, rows, axes, quantiles.ndim, keepdims)

    return expand


def _interpolate(low: NDArray[Any], high: NDArray[Any], weight: NDArray[Any], is_weak: bool) -> Any:
    """Return ``low + (high - low) * weight``, from the other end where the weight is at least 1/2, as NumPy does."""
    change = high - low
    factors = (float(weight), float(1 - weight)) if is_weak else (weight, 1 - weight)
    from_low, from_high = low + change * factors[0], high - change * factors[1]
    is_high = weight >= 0.5
    return np.where(is_high, from_high, from_low) if weight.ndim else from_high if is_high else from_low


def _row_weights(out: Array, x: Array, *, skips: bool, options: dict[str, Any], **others: Any) -> Any:
    """The weights of rows in derivatives of order statistics, whose function consists of recorded steps unless it skips nan."""
    if skips or not x.size or options.get("weights") is not None:
        return None
    return ops.function_by_opname("row_weights")(out, x, skips=skips, options=options, **others)


# --------------------------------------------------------------------------------------------- products


def _cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """``np.cross`` of vectors of three elements."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = (np.moveaxis(x, k, -1) for x, k in ((a, axisa), (b, axisb)))
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        return None
    (a0, a1, a2), (b0, b1, b2) = ([x[..., k] for k in range(3)] for x in (a, b))
    product = np.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], -1)
    return np.moveaxis(product, -1, axisc)


def _kron(a: Any, b: Any) -> Any:
    """``np.kron``: an outer product whose axes are interleaved."""
    a, b = (x if isinstance(x, Value) else np.asarray(x) for x in (a, b))
    ndim = max(a.ndim, b.ndim)
    a, b = (np.reshape(x, (1,) * (ndim - x.ndim) + x.shape) for x in (a, b))
    shape = tuple(m * n for m, n in zip(a.shape, b.shape, strict=True))
    rows = [n for length in a.shape for n in (length, 1)]
    columns = [n for length in b.shape for n in (1, length)]
    return np.reshape(np.reshape(a, rows) * np.reshape(b, columns), shape)


def _delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """``np.delete`` at constant positions."""
    if isinstance(obj, Value):
        return None
    if axis is None:
        arr, axis = np.ravel(arr), 0
    return np.take(arr, np.delete(np.arange(arr.shape[axis]), obj), axis=axis)


def _sinc(x: Any) -> Any:
    """``np.sinc``; the sine has the rounding of the compiled one."""
    if x.dtype.kind != "f":
        return None
    scaled = np.pi * np.where(x == 0, np.finfo(x.dtype).tiny, x)
    return np.sin(scaled) / scaled


def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """``np.convolve`` of vectors; the sums are in another order."""
    if not isinstance(mode, str) or a.ndim != 1 or v.ndim != 1 or np.result_type(a, v).kind != "f":
        return None
    a, v = (a, v) if a.size >= v.size else (v, a)
    return bind(ops.function_by_opname("conv"), (a, v), {"padding": mode})


numpy = ops.NUMPY
EXPANSIONS: dict[Any, Callable[..., Any]] = {
    numpy.digitize: _digitize,
    numpy.interp: _interp,
    numpy.cross: _cross,
    numpy.kron: _kron,
    ops.function_by_opname("delete"): _delete,
}
INEXACT_EXPANSIONS: dict[Any, Callable[..., Any]] = {
    numpy.sinc: _sinc,
    numpy.convolve: _convolve,
    ops.function_by_opname("median"): _median,
    ops.function_by_opname("quantile"): _quantile(1),
    ops.function_by_opname("percentile"): _quantile(100),
}
# Functions with several outputs; the first argument has the recorded outputs.
INEXACT_OUTPUT_EXPANSIONS: dict[Any, Callable[..., Any]] = {numpy.histogram: _histogram}
# Functions of derivatives, by their recorded names.
NAMED_EXPANSIONS: dict[str, Callable[..., Any]] = {"row_weights": _row_weights}


def expansion_of(function: Any, is_exact: bool) -> Callable[..., Any] | None:
    """Return the expansion of a function, or None; `is_exact` leaves out those without NumPy's bits."""
    name = getattr(function, "__name__", "").removeprefix("_")
    if name in NAMED_EXPANSIONS and ops.function_by_opname(name) is function:
        return NAMED_EXPANSIONS[name]
    return EXPANSIONS.get(function) or (None if is_exact else INEXACT_EXPANSIONS.get(function))
