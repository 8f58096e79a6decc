"""Batching rules of elementwise operations, and of operations along axes: reductions, sorting, transforms, filters."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from compgraph.bind import bind

from ..levels import broadcast_batch, pad_ndim
from .call import (
    RULES_BY_KIND,
    RULES_BY_OPNAME,
    BatchRule,
    Call,
    NoBatchRuleError,
    element_axes,
    flatten_elements,
    shift_axis,
)


def elementwise(call: Call) -> Any:
    """Elementwise operations: operands are padded behind the batch axis, and broadcast."""
    return bind(call.function, tuple(call.aligned()), call.options)


def where(call: Call) -> Any:
    """``np.where(condition, x, y)``; the result shape of ``np.where(condition)`` depends on values."""
    if len(call.values) == 1:
        raise NoBatchRuleError
    return elementwise(call)


def one_batched_operand(position: int) -> BatchRule:
    """The rule of a function that is elementwise in one operand, if that alone is batched."""

    def rule(call: Call) -> Any:
        if call.has_batch_axis != [i == position for i in range(len(call.values))] or call.options.get("axis") is not None:
            raise NoBatchRuleError
        return call.run(call.values)

    return rule


def like(call: Call) -> Any:
    """``np.zeros_like(x)``, ``np.full_like(x, value)`` and others, of the shape of `x` or another."""
    shape = call.options.get("shape")
    x = call.values[0] if call.has_batch_axis[0] else broadcast_batch(call.values[0], call.batch_size)
    ndim = call.ndims[0] if shape is None else np.size(shape)
    others = [
        pad_ndim(v, ndim) if is_batched else v for v, is_batched in zip(call.values[1:], call.has_batch_axis[1:], strict=True)
    ]
    if shape is None:
        return call.run((x, *others))
    return call.run((x, *others), shape=(call.batch_size, *np.atleast_1d(np.asarray(shape, int)).tolist()))


# ----------------------------------------------------------------------------------- reductions, scans, sorting


def reduction(call: Call) -> Any:
    """Reductions over axes of each element; other operands (a mask, a mean) are broadcast against it."""
    ndim = call.ndims[0]
    x = call.values[0] if call.has_batch_axis[0] else broadcast_batch(call.values[0], call.batch_size)
    others = _other_operands(call, ndim)
    axis, changed = call.options.get("axis"), {}
    if not ndim:
        if axis is not None and axis != ():
            shift_axis(axis, max(ndim, 1))  # raises as NumPy does for a number
        if axis != ():
            x, axis = np.reshape(x, (call.batch_size, 1)), 1
            pairs = zip(others, call.has_batch_axis[1:], strict=True)
            others = [np.reshape(v, (call.batch_size, 1)) if is_batched else v for v, is_batched in pairs]
            changed = {"keepdims": False} if call.options.get("keepdims") else {}
    else:
        axis = element_axes(ndim) if axis is None else shift_axis(axis, ndim)
    return call.run((x, *others), axis=axis, **changed)


def _other_operands(call: Call, ndim: int) -> list[Any]:
    """The operands of a reduction after the first, padded to its axes; the initial value cannot be batched."""
    first_named = len(call.values) - len(call.names)
    others = []
    for position in range(1, len(call.values)):
        value = call.values[position]
        if call.has_batch_axis[position]:
            name = call.names[position - first_named] if position >= first_named else None
            if name != "where" and name != "mean":
                raise NoBatchRuleError
            value = pad_ndim(value, ndim)
        others.append(value)
    return others


def argmax(call: Call) -> Any:
    """``np.argmax``, ``np.argmin`` and others: along one axis, or of flattened elements."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis")
    if axis is not None and ndim:
        return call.on_first(x, axis=shift_axis(axis, ndim))
    keepdims = call.options.get("keepdims", False)
    positions = call.on_first(flatten_elements(x), axis=1, **({"keepdims": False} if keepdims else {}))
    return np.reshape(positions, (call.batch_size, *(1,) * ndim)) if keepdims else positions


def cumulative(call: Call) -> Any:
    """``np.cumsum`` and others: along one axis, or of flattened elements."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis")
    if axis is None or not ndim:
        if call.options.get("include_initial") and not ndim:
            raise NoBatchRuleError
        return call.on_first(flatten_elements(x), axis=1)
    return call.on_first(x, axis=shift_axis(axis, ndim))


def ordering(call: Call) -> Any:
    """``np.sort``, ``np.argsort`` and others: along one axis, by default the last."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis", -1)
    if not ndim:
        raise NoBatchRuleError
    return call.on_first(flatten_elements(x), axis=1) if axis is None else call.on_first(x, axis=shift_axis(axis, ndim))


def ufunc_reduce(call: Call) -> Any:
    """``ufunc.reduce`` and ``ufunc.accumulate`` of ufuncs without a function of their own, such as ``np.hypot.reduce``."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis", 0)
    if axis is None or not ndim:
        raise NoBatchRuleError
    return call.on_first(x, axis=shift_axis(axis, ndim))


def axis_or_all(default: int | None) -> BatchRule:
    """The rule of a function along one or several axes; None means all axes of an element."""

    def rule(call: Call) -> Any:
        x, ndim = call.first(), call.ndims[0]
        axis = call.options.get("axis", default)
        if not ndim:
            raise NoBatchRuleError
        return call.on_first(x, axis=element_axes(ndim) if axis is None else shift_axis(axis, ndim))

    return rule


def quantile(call: Call) -> Any:
    """``np.quantile``, ``np.median`` and others, whose result has the axes of `q` first."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis")
    if not ndim or not all(x.shape) or call.options.get("weights") is not None:
        raise NoBatchRuleError
    quantiles = call.on_first(x, axis=element_axes(ndim) if axis is None else shift_axis(axis, ndim))
    return np.moveaxis(quantiles, np.ndim(call.options.get("q", 0)), 0)


# ------------------------------------------------------------------------------------------ transforms, filters


def single_axis(call: Call) -> Any:
    """An operation along one axis, by default the last."""
    x, ndim = call.first(), call.ndims[0]
    return call.on_first(x, axis=shift_axis(call.options.get("axis", -1), ndim))


def matrices(call: Call) -> Any:
    """An operation on stacks of matrices."""
    x = call.first()
    if call.ndims[0] < 2:  # NumPy raises
        raise NoBatchRuleError
    return call.on_first(x)


def transform(call: Call) -> Any:
    """An operation along several axes: by default those of its signature, or the last ``len(s)``, or all."""
    x, ndim = call.first(), call.ndims[0]
    axes, s = call.options.get("axes", _default_axes(call.base)), call.options.get("s")
    if axes is None:
        axes = range(0 if s is None else ndim - np.size(s), ndim)
    return call.on_first(x, axes=shift_axis(tuple(np.atleast_1d(axes).tolist()), ndim))


@functools.cache
def _default_axes(function: Callable[..., Any]) -> Any:
    return inspect.signature(function).parameters["axes"].default


def last_axis(call: Call) -> Any:
    """An operation along the last axis of the first operand, without an option for the axis."""
    return call.on_first(call.first())


def lfilter(call: Call) -> Any:
    """``scipy.signal.lfilter``, if only the signal is batched."""
    if call.has_batch_axis != [False, False, True]:
        raise NoBatchRuleError
    return call.run(call.values, axis=shift_axis(call.options.get("axis", -1), call.ndims[2]))


RULES_BY_KIND |= {
    "elementwise": elementwise, "reduction": reduction, "position": argmax, "cumulative": cumulative, "ordering": ordering,
    "along": single_axis, "matrices": matrices, "transform": transform,
}  # fmt: skip
RULES_BY_OPNAME |= {
    "where": where,
    **dict.fromkeys(("isin", "interp", "digitize"), one_batched_operand(0)),
    **dict.fromkeys(("searchsorted", "polyval"), one_batched_operand(1)),
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like", "full_like"), like),
    **dict.fromkeys(("median", "quantile", "percentile", "nanmedian", "nanquantile", "nanpercentile"), quantile),
    "ufunc_method": ufunc_reduce, "softmax": axis_or_all(-1), "log_softmax": axis_or_all(-1), "logsumexp": axis_or_all(None),
    **dict.fromkeys(("scipy_fft_fht", "scipy_fft_ifht"), last_axis),
    **{f"ndimage_{name}": single_axis for name in ("spline_filter1d", "spline_filter1d_back", "extended", "folded")},
    "scipy_signal_lfilter": lfilter,
}  # fmt: skip
