"""Reductions in terms of the array API standard."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from .elementwise import imag, real
from .positions import as_array, flat, is_complex, is_floating, move_elements, number, size_of

Namespace = Any
Array = Any


def reduce_axes(xp: Namespace, name: str, a: Array, axis: Any, keepdims: bool) -> Array:
    """Reduce over some axes; over none if `axis` is an empty tuple."""
    function = getattr(xp, name)
    axis = () if not a.ndim else axis  # NumPy's reductions take the axes 0 and -1 of numbers
    if isinstance(axis, (tuple, list)) and not len(axis):
        a, axis = a[..., None], -1
        keepdims = False
    axis = None if axis is None else normalize_axis_tuple(axis, a.ndim)
    options = {"dtype": a.dtype} if name in ("sum", "prod") else {}
    if name in ("prod", "all", "any") and axis is not None and len(axis) > 1:  # not every library takes several axes
        for k in sorted(axis, reverse=True):
            a = function(a, axis=k, keepdims=bool(keepdims), **options)
        return a
    axis = axis[0] if axis is not None and len(axis) == 1 else axis
    return function(a, axis=axis, keepdims=bool(keepdims), **options)


def select(xp: Namespace, a: Array, where: Any, identity: complex) -> Array:
    """Return an array with the identity of a reduction where `where` is false."""
    if where is None or where is True or where is np._NoValue:
        return a
    mask = where if hasattr(where, "dtype") and not isinstance(where, (np.ndarray, np.generic)) else as_array(xp, where, a)
    return xp.where(mask, a, number(xp, identity, a))


def has_value(value: object) -> bool:
    return value is not None and value is not np._NoValue


Reduction = Callable[..., Array]


def _reduction(name: str, identity: float, combine: str) -> Reduction:
    def reduce(
        xp: Namespace,
        a: Array,
        axis: int | None = None,
        dtype: object = None,
        keepdims: object = False,
        initial: Any = None,
        where: bool = True,
    ) -> Array:
        neutral_value = identity
        if not is_floating(xp, a) and math.isinf(abs(identity)):
            limits = xp.iinfo(a.dtype)
            neutral_value = limits.min if identity < 0 else limits.max
        keepdims = keepdims is not np._NoValue and bool(keepdims)
        initial_value = initial if not has_value(initial) or hasattr(initial, "dtype") else number(xp, initial, a)
        if has_value(initial) and not size_of(a):
            return xp.broadcast_to(initial_value, np.sum(np.empty(a.shape), axis=axis, keepdims=keepdims).shape)
        result = reduce_axes(xp, name, select(xp, a, where, neutral_value), axis, keepdims)
        if not has_value(initial):
            return result
        return getattr(xp, combine)(result, initial_value)

    return reduce


sum_ = _reduction("sum", 0, "add")
prod = _reduction("prod", 1, "multiply")
max_ = _reduction("max", -math.inf, "maximum")
min_ = _reduction("min", math.inf, "minimum")


def _logical_reduction(name: str, identity: bool) -> Reduction:
    def reduce(xp: Namespace, a: Array, axis: int | None = None, keepdims: bool = False, where: bool = True) -> Array:
        return reduce_axes(xp, name, select(xp, a != 0 if a.dtype != xp.bool else a, where, identity), axis, keepdims)

    return reduce


all_, any_ = _logical_reduction("all", True), _logical_reduction("any", False)


def has_nan(xp: Namespace, *arrays: Array) -> Array:
    """Return whether an array contains nan."""
    return functools.reduce(operator.or_, [xp.any(xp.isnan(a)) for a in arrays])


def _count(xp: Namespace, a: Array, axis: tuple[int, ...] | int | None, where: Any) -> Array:
    """Return the number of reduced elements, with ``keepdims=True``."""
    ones = select(xp, xp.ones_like(real(xp, a)), where, 0)
    return sum_(xp, ones, axis=axis, keepdims=True)


def drop_axes(xp: Namespace, x: Array, axis: tuple[int, ...] | int | None, ndim: int, keepdims: object) -> Array:
    """Remove the axes of a reduction computed with ``keepdims=True``, unless `keepdims`."""
    if keepdims and keepdims is not np._NoValue:
        return x
    axes = tuple(range(ndim)) if axis is None else normalize_axis_tuple(axis, ndim)
    return xp.squeeze(x, axis=axes) if axes else x


def mean(
    xp: Namespace,
    a: Array,
    axis: tuple[int, ...] | None = None,
    dtype: type | None = None,
    keepdims: bool = False,
    where: object = True,
) -> Array:
    total = sum_(xp, a, axis=axis, keepdims=True, where=where)
    return drop_axes(xp, total / xp.astype(_count(xp, a, axis, where), total.dtype), axis, a.ndim, keepdims)


def var(
    xp: Namespace, a: Array, axis: Any = None, dtype: object = None, ddof: float = 0, keepdims: Any = False, where: Any = True,
    mean: Any = None, correction: float | None = None,
) -> Array:  # fmt: skip
    ddof = correction if has_value(correction) and correction is not None else ddof
    center = mean if has_value(mean) else _mean(xp, a, axis=axis, keepdims=True, where=where)
    deviations = a - center
    squares = real(xp, deviations) ** 2 + imag(xp, deviations) ** 2 if is_complex(xp, deviations) else deviations * deviations
    total = sum_(xp, squares, axis=axis, keepdims=True, where=where)
    return drop_axes(xp, total / (_count(xp, squares, axis, where) - ddof), axis, a.ndim, keepdims)


_mean = mean


def std(xp: Namespace, a: Array, **options: Any) -> Array:
    return xp.sqrt(var(xp, a, **options))


def _without_nan(reduce: Reduction) -> Reduction:
    def reduced(
        xp: Namespace, a: Array, axis: tuple[int, ...] | int | None = None, where: bool = True, **options: object
    ) -> Array:
        is_number = ~xp.isnan(a) if is_floating(xp, a) else xp.ones_like(a, dtype=xp.bool)
        is_number = select(xp, is_number, where, False)
        return reduce(xp, xp.where(is_number, a, xp.zeros_like(a)), axis=axis, where=is_number, **options)

    return reduced


nansum, nanprod, nanmean = _without_nan(sum_), _without_nan(prod), _without_nan(mean)
nanvar, nanstd = _without_nan(var), _without_nan(std)


def _nan_extremum(reduce: Reduction) -> Reduction:
    def reduced(xp: Namespace, a: Array, axis: int | None = None, keepdims: object = False, **options: object) -> Array:
        keepdims = keepdims is not np._NoValue and keepdims
        extremum = _without_nan(reduce)(xp, a, axis=axis, keepdims=keepdims, **options)
        if not is_floating(xp, a):
            return extremum
        return xp.where(all_(xp, xp.isnan(a), axis=axis, keepdims=keepdims), number(xp, math.nan, a), extremum)

    return reduced


nanmax, nanmin = _nan_extremum(max_), _nan_extremum(min_)


def count_nonzero(xp: Namespace, a: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    return sum_(xp, xp.astype(a != 0 if a.dtype != xp.bool else a, xp.int64), axis=axis, keepdims=keepdims)


def _find_extremum(name: str) -> Reduction:
    def reduce(xp: Namespace, a: Array, axis: int | None = None, keepdims: object = False) -> Array:
        keepdims = keepdims is not np._NoValue and bool(keepdims)
        if a.dtype == xp.bool:
            a = xp.astype(a, xp.int8)
        return getattr(xp, name)(a, axis=None if axis is None else int(axis), keepdims=keepdims)

    return reduce


argmax, argmin = _find_extremum("argmax"), _find_extremum("argmin")


def ptp(xp: Namespace, a: Array, axis: tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    return max_(xp, a, axis=axis, keepdims=keepdims) - min_(xp, a, axis=axis, keepdims=keepdims)


def trace(xp: Namespace, a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: object = None) -> Array:
    return sum_(xp, move_elements(xp, np.diagonal, a, offset, axis1, axis2), axis=-1)


def _cumulative(name: str) -> Reduction:
    def accumulate(
        xp: Namespace, a: Array, axis: int | None = None, dtype: type | None = None, include_initial: bool = False
    ) -> Array:
        if axis is None:
            a, axis = flat(xp, a), 0
        return getattr(xp, name)(a, axis=int(axis), dtype=a.dtype, include_initial=bool(include_initial))

    return accumulate


cumsum = cumulative_sum = _cumulative("cumulative_sum")
cumprod = cumulative_prod = _cumulative("cumulative_prod")


def nancumsum(xp: Namespace, a: Array, **options: object) -> Array:
    return cumsum(xp, xp.where(xp.isnan(a), xp.zeros_like(a), a), **options)


def nancumprod(xp: Namespace, a: Array, **options: object) -> Array:
    return cumprod(xp, xp.where(xp.isnan(a), xp.ones_like(a), a), **options)


def ediff1d(xp: Namespace, ary: Array, to_end: object = None, to_begin: object = None) -> Array:
    vector = flat(xp, ary)
    steps = vector[1:] - vector[:-1] if vector.shape[0] else vector
    parts = [to_begin, steps, to_end]
    return xp.concat([flat(xp, p if hasattr(p, "dtype") else as_array(xp, p, ary, ary.dtype)) for p in parts if p is not None])
