"""Rules of reductions: the partial derivatives of the result with respect to each element.

``weights(out, x, axis, ...)``: `out` has kept its reduced axes, with length one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compgraph.graph import to_values
from compgraph.ops import ensure_array

from ..rules import Formula, reduction
from .corners import of_lengths, quotient, with_corners
from .cumulative import without_nan


def _mask(where: Any) -> Any:
    """1 where an element takes part, 0 elsewhere; None if all do."""
    return None if where is True else np.where(where, 1, 0)


def _masked(weights: Any, where: Any) -> Any:
    """Weights, and 0 for elements that take no part."""
    return weights if where is True else weights * _mask(where)


def _count(x: Any, axis: Any, where: Any) -> Any:
    """How many elements each result is made of."""
    if where is not True:
        if isinstance(where, (tuple, int, float)) and np.any(np.not_equal(where, np.not_equal(where, 0))):
            raise ValueError(f"where={where} is a mask whose numbers NumPy adds up for the count; write it as booleans")
        return np.sum(_mask(where) * np.ones_like(x), axis=axis, keepdims=True)
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return math.prod(x.shape[i] for i in axes) if x.ndim else 1


def _sum(out: Any, x: Any, axis: Any = None, where: Any = True, **_: Any) -> Any:
    return _mask(where)


def _per(number: float, count: Any) -> Any:
    """A number divided by a count; infinite if that is 0, as for NumPy, also where Python would raise."""
    return number / count if np.ndim(count) or count else math.inf


def _mean(out: Any, x: Any, axis: Any = None, where: Any = True, **_: Any) -> Any:
    return _masked(_per(1, _count(x, axis, where)), where)


def _begins(initial: Any, out: Any) -> Any:
    """1 where a reduction is still what it began with, in its own precision."""
    return np.equal(ensure_array(initial).astype(out.dtype), out).astype(out.dtype)


def _shares(losing: Any, out: Any, x: Any, axis: Any, where: Any = True, initial: Any = None, **_: Any) -> Any:
    """Even shares for all elements that do not lose; `initial` is one more competitor."""
    winning = _masked(np.logical_not(losing).astype(x.dtype), where)
    winners = np.add.reduce(winning, axis=axis, keepdims=True)
    return winning / np.maximum(winners if initial is None else winners + _begins(initial, out), 1)


def _max(out: Any, x: Any, axis: Any = None, **options: Any) -> Any:
    return _shares(x < out, out, x, axis, **options)


def _min(out: Any, x: Any, axis: Any = None, **options: Any) -> Any:
    return _shares(x > out, out, x, axis, **options)


def _central(x: Any, axis: Any, where: Any, mean: Any) -> Any:
    """x less its mean, zero where masked."""
    if mean is None:
        mean = np.mean(x, axis=axis, keepdims=True, where=where)
    return _masked(np.conjugate(x - mean), where)


def _var(
    out: Any, x: Any, axis: Any = None, ddof: Any = 0, correction: Any = None, where: Any = True, mean: Any = None, **_: Any
) -> Any:
    freedom = _count(x, axis, where) - (ddof if correction is None else correction)
    return _central(x, axis, where, mean) * _per(2, np.maximum(freedom, 0) if np.ndim(freedom) else max(freedom, 0))


def _deviation(x: Any, axis: Any = None, where: Any = True, mean: Any = None, **options: Any) -> Any:
    """Half the partial derivatives of the variance; 0 where all elements are equal, also if their mean is off by a rounding."""
    if mean is None:
        x = x - np.mean(x, axis=axis, keepdims=True, where=where)
    return 0.5 * _var(None, x, axis, where=where, mean=mean, **options)


def _spread_out(out: Any, x: Any, axis: Any = None, where: Any = True, mean: Any = None, **_: Any) -> Any:
    """The deviation; 1 where it is that of a single element from itself, which is always 0."""
    single = np.asarray(to_values(_count(x, axis, where))) <= 1 if mean is None else False
    return np.where(single, 1, out) if np.any(single) else out


def _std(out: Any, x: Any, axis: Any = None, **options: Any) -> Any:
    """Those of the variance, halved, over the deviation; 0 where that is 0."""
    return quotient(_deviation(x, axis, **options), _spread_out(out, x, axis, **options), "std")


def _prod(out: Any, x: Any, axis: Any = None, where: Any = True, initial: Any = 1, **_: Any) -> Any:
    """The product of all the other elements, exact where some are zero."""
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(i % x.ndim for i in axes) if x.ndim else ()
    last = tuple(range(x.ndim - len(axes), x.ndim))
    x = x if where is True else np.where(where, x, 1)
    moved = np.moveaxis(x, axes, last)
    flat = np.reshape(moved, (*moved.shape[: x.ndim - len(axes)], -1 if x.size else math.prod(x.shape[i] for i in axes)))
    others = _before(flat) * _before(flat[..., ::-1])[..., ::-1]
    return _masked(np.moveaxis(np.reshape(others, moved.shape), last, axes) * initial, where)


def _before(x: Any) -> Any:
    """The product of the elements before each along the last axis, by a scan that doubles its reach."""
    ones = np.ones((*x.shape[:-1], 1), x.dtype)
    products = np.concatenate([ones, x], axis=-1)[..., :-1]
    reach = 1
    while reach < x.shape[-1]:
        padding = np.ones((*x.shape[:-1], reach), x.dtype)
        products = products * np.concatenate([padding, products[..., :-reach]], axis=-1)
        reach *= 2
    return products


def _less(weights: Formula) -> Formula:
    """The weights of a mean that is given: it is taken from every element."""
    return lambda *operands, **options: -weights(*operands, **options)


_var_mean, _std_mean = _less(_var), _less(_std)

# What a reduction begins with.


def _sum_initial(*_: Any, **__: Any) -> Any:
    return None


def _prod_initial(out: Any, x: Any, axis: Any = None, where: Any = True, **_: Any) -> Any:
    return np.prod(x, axis=axis, keepdims=True, where=where)


def _extremum_initial(losing: Any, out: Any, x: Any, axis: Any, initial: Any, where: Any = True, **_: Any) -> Any:
    """Its share beside all elements that do not lose."""
    winners = np.add.reduce(_masked(np.logical_not(losing).astype(x.dtype), where), axis=axis, keepdims=True)
    begins = _begins(initial, out)
    return begins / np.maximum(winners + begins, 1)


def _max_initial(out: Any, x: Any, axis: Any = None, **options: Any) -> Any:
    return _extremum_initial(x < out, out, x, axis, **options)


def _min_initial(out: Any, x: Any, axis: Any = None, **options: Any) -> Any:
    return _extremum_initial(x > out, out, x, axis, **options)


def _part(*_: Any, where: Any = True, **__: Any) -> Any:
    """Which elements take part."""
    return where


def _is_masked(node: Any) -> bool:
    """Whether only some elements take part."""
    return "where" in node.options or "where" in getattr(node.function, "names", ())


sum_grad = reduction("sum", _sum, initial=_sum_initial).selecting(begins=_is_masked).said("1")
mean_grad = reduction("mean", _mean).selecting(begins=_is_masked).said("1 / n")
max_grad = with_corners(reduction("max", _max, initial=_max_initial), _max).selecting()
min_grad = with_corners(reduction("min", _min, initial=_min_initial), _min).selecting()
prod_grad = reduction("prod", _prod, initial=_prod_initial).selecting(_part, _is_masked).said("y / a")
var_grad = reduction("var", _var, None, _var_mean).selecting(_part, _is_masked)
std_grad = of_lengths(reduction("std", _std, None, _std_mean), _deviation, _spread_out).selecting(_part, _is_masked)


# ---------------------------------------------------------------------- reductions that pass over nan


def _over_nan(weights: Formula, fill: float = 0) -> Formula:
    """The weights of a reduction in which elements that are not numbers take no part."""

    def present(out: Any, x: Any, where: Any = True, **options: Any) -> Any:
        return weights(out, without_nan(x, fill), where=np.logical_and(where, np.logical_not(np.isnan(x))), **options)

    return present


def _present(x: Any, *_: Any, where: Any = True, **__: Any) -> Any:
    """Which elements take part."""
    return np.logical_and(where, np.logical_not(np.isnan(x)))


nansum_grad = reduction("nansum", _over_nan(_sum), initial=_sum_initial).selecting()
nanprod_grad = reduction("nanprod", _over_nan(_prod, 1), initial=_over_nan(_prod_initial, 1)).selecting(_present)
nanmean_grad = reduction("nanmean", _over_nan(_mean)).selecting()
nanvar_grad = reduction("nanvar", _over_nan(_var), None, _over_nan(_var_mean)).selecting(_present)
nanstd_grad = reduction("nanstd", _over_nan(_std), None, _over_nan(_std_mean)).selecting(_present)
nanmax_grad = reduction("nanmax", _over_nan(_max), initial=_over_nan(_max_initial)).selecting()
nanmin_grad = reduction("nanmin", _over_nan(_min), initial=_over_nan(_min_initial)).selecting()
