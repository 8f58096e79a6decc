"""Rules of reductions: the partial derivatives of the result with respect to each element.

In ``weights(out, x, axis, ...)``, `out` keeps its reduced axes with length one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compgraph.array_types import Axis, Operand
from compgraph.graph import to_values
from compgraph.ops import ensure_array

from ..rules import Formula, reduction
from .corners import as_norm, safe_quotient, with_corners
from .cumulative import replace_nan


def _mask(where: bool) -> Any:
    """Return 1 for selected elements and 0 for others; None if all are selected."""
    return None if where is True else np.where(where, 1, 0)


def _mask_weights(weights: Any, where: Any) -> Any:
    """Set the weights of unselected elements to 0."""
    return weights if where is True else weights * _mask(where)


def _count(x: Any, axis: Axis, where: Any) -> Any:
    """Return the number of elements that contribute to each result."""
    if where is not True:
        if isinstance(where, (tuple, int, float)) and np.any(np.not_equal(where, np.not_equal(where, 0))):
            raise ValueError(f"where={where} contains numbers other than 0 and 1, which NumPy adds to the count. Pass booleans")
        return np.sum(_mask(where) * np.ones_like(x), axis=axis, keepdims=True)
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return math.prod(x.shape[i] for i in axes) if x.ndim else 1


def _sum(out: object, x: object, axis: Axis = None, where: bool = True, **_: object) -> Any:
    return _mask(where)


def _divide_by_count(number: float, count: Operand) -> Any:
    """Divide a number by a count; infinite for 0, as in NumPy, even for Python numbers."""
    return number / count if np.ndim(count) or count else math.inf


def _mean(out: object, x: object, axis: Axis = None, where: bool = True, **_: object) -> Any:
    return _mask_weights(_divide_by_count(1, _count(x, axis, where)), where)


def _equals_initial(initial: Any, out: Any) -> Any:
    """Return 1 where a reduction equals its initial value, in its own precision."""
    return np.equal(ensure_array(initial).astype(out.dtype), out).astype(out.dtype)


def _shares(
    is_not_extreme: Any,
    out: object,
    x: Any,
    axis: Axis,
    where: ArrayLike = True,
    initial: NDArray[Any] | None = None,
    **_: object,
) -> Any:
    """Return even shares for all elements that equal the result: those where `is_not_extreme` is false, and `initial`."""
    is_extreme = _mask_weights(np.logical_not(is_not_extreme).astype(x.dtype), where)
    count = np.add.reduce(is_extreme, axis=axis, keepdims=True)
    return is_extreme / np.maximum(count if initial is None else count + _equals_initial(initial, out), 1)


def _max(out: Any, x: Any, axis: Any = None, **options: Any) -> Any:
    return _shares(x < out, out, x, axis, **options)


def _min(out: Any, x: Any, axis: Any = None, **options: Any) -> Any:
    return _shares(x > out, out, x, axis, **options)


def _center(x: Any, axis: Axis, where: Any, mean: Any) -> Any:
    """Return the conjugated deviation of x from its mean; zero for unselected elements."""
    if mean is None:
        mean = np.mean(x, axis=axis, keepdims=True, where=where)
    return _mask_weights(np.conjugate(x - mean), where)


def _var(
    out: object,
    x: Any,
    axis: Axis = None,
    ddof: object = 0,
    correction: Any = None,
    where: Any = True,
    mean: object = None,
    **_: object,
) -> Any:
    freedom = _count(x, axis, where) - (ddof if correction is None else correction)
    return _center(x, axis, where, mean) * _divide_by_count(2, np.maximum(freedom, 0) if np.ndim(freedom) else max(freedom, 0))


def _std_numerator(x: Any, axis: Axis = None, where: Any = True, mean: Any = None, **options: object) -> Any:
    """Return half the partial derivatives of the variance; exactly 0 for equal elements, despite rounding of their mean."""
    if mean is None:
        x = x - np.mean(x, axis=axis, keepdims=True, where=where)
    return 0.5 * _var(None, x, axis, where=where, mean=mean, **options)


def _std_length(out: Any, x: Any, axis: Axis = None, where: Any = True, mean: Any = None, **_: object) -> Any:
    """Return the standard deviation; 1 for single elements, whose deviation is always 0."""
    is_single = np.asarray(to_values(_count(x, axis, where))) <= 1 if mean is None else False
    return np.where(is_single, 1, out) if np.any(is_single) else out


def _std(out: object, x: object, axis: Axis = None, **options: object) -> Any:
    """Divide half the partial derivatives of the variance by the standard deviation; 0 where that is 0."""
    return safe_quotient(_std_numerator(x, axis, **options), _std_length(out, x, axis, **options), "std")


def _prod(out: object, x: Any, axis: Axis = None, where: ArrayLike = True, initial: ArrayLike = 1, **_: object) -> Any:
    """Return the product of all other elements, exact also if some are zero."""
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(i % x.ndim for i in axes) if x.ndim else ()
    last = tuple(range(x.ndim - len(axes), x.ndim))
    x = x if where is True else np.where(where, x, 1)
    trailing = np.moveaxis(x, axes, last)
    flat = np.reshape(trailing, (*trailing.shape[: x.ndim - len(axes)], -1 if x.size else math.prod(x.shape[i] for i in axes)))
    others = _exclusive_products(flat) * _exclusive_products(flat[..., ::-1])[..., ::-1]
    return _mask_weights(np.moveaxis(np.reshape(others, trailing.shape), last, axes) * initial, where)


def _exclusive_products(x: Any) -> Any:
    """Return the product of the elements before each along the last axis, by recursive doubling."""
    ones = np.ones((*x.shape[:-1], 1), x.dtype)
    products = np.concatenate([ones, x], axis=-1)[..., :-1]
    reach = 1
    while reach < x.shape[-1]:
        padding = np.ones((*x.shape[:-1], reach), x.dtype)
        products = products * np.concatenate([padding, products[..., :-reach]], axis=-1)
        reach *= 2
    return products


def _negate_weights(weights: Formula) -> Formula:
    """Return the weights of the operand ``mean``, which is subtracted from every element."""
    return lambda *operands, **options: -weights(*operands, **options)


_var_mean, _std_mean = _negate_weights(_var), _negate_weights(_std)

# Weights of the initial value of a reduction.


def _sum_initial(*_: object, **__: object) -> Any:
    return None


def _prod_initial(out: object, x: Any, axis: Axis = None, where: Any = True, **_: object) -> Any:
    return np.prod(x, axis=axis, keepdims=True, where=where)


def _extremum_initial(is_not_extreme: Any, out: Any, x: Any, axis: Axis, initial: Any, where: object = True, **_: object) -> Any:
    """Return the share of the initial value; see `_shares`."""
    count = np.add.reduce(_mask_weights(np.logical_not(is_not_extreme).astype(x.dtype), where), axis=axis, keepdims=True)
    is_initial = _equals_initial(initial, out)
    return is_initial / np.maximum(count + is_initial, 1)


def _max_initial(out: Any, x: Any, axis: Axis = None, **options: object) -> Any:
    return _extremum_initial(x < out, out, x, axis, **options)


def _min_initial(out: Any, x: Any, axis: Axis = None, **options: object) -> Any:
    return _extremum_initial(x > out, out, x, axis, **options)


def _selection_mask(*_: object, where: bool = True, **__: object) -> Any:
    """Return which elements are selected."""
    return where


def _is_masked(node: Any) -> bool:
    """Whether only some elements are selected."""
    return "where" in node.options or "where" in getattr(node.function, "names", ())


sum_grad = reduction("sum", _sum, initial=_sum_initial).selects_elements(makes_zeros=_is_masked).with_formula("1")
mean_grad = reduction("mean", _mean).selects_elements(makes_zeros=_is_masked).with_formula("1 / n")
max_grad = with_corners(reduction("max", _max, initial=_max_initial), _max).selects_elements()
min_grad = with_corners(reduction("min", _min, initial=_min_initial), _min).selects_elements()
prod_grad = reduction("prod", _prod, initial=_prod_initial).selects_elements(_selection_mask, _is_masked).with_formula("y / a")
var_grad = reduction("var", _var, None, _var_mean).selects_elements(_selection_mask, _is_masked)
std_grad = as_norm(reduction("std", _std, None, _std_mean), _std_numerator, _std_length).selects_elements(
    _selection_mask, _is_masked
)


# --------------------------------------------------------------------------- reductions that skip nan


def _skip_nan(weights: Formula, fill: float = 0) -> Formula:
    """Return the weights of a reduction that skips nan."""

    def weights_without_nan(out: Any, x: Any, where: Any = True, **options: object) -> Any:
        return weights(out, replace_nan(x, fill), where=_not_nan(x, where=where), **options)

    return weights_without_nan


def _not_nan(x: Any, *_: object, where: Any = True, **__: object) -> Any:
    """Return which elements a reduction that skips nan selects."""
    return np.logical_and(where, np.logical_not(np.isnan(x)))


nansum_grad = reduction("nansum", _skip_nan(_sum), initial=_sum_initial).selects_elements()
nanprod_grad = reduction("nanprod", _skip_nan(_prod, 1), initial=_skip_nan(_prod_initial, 1)).selects_elements(_not_nan)
nanmean_grad = reduction("nanmean", _skip_nan(_mean)).selects_elements()
nanvar_grad = reduction("nanvar", _skip_nan(_var), None, _skip_nan(_var_mean)).selects_elements(_not_nan)
nanstd_grad = reduction("nanstd", _skip_nan(_std), None, _skip_nan(_std_mean)).selects_elements(_not_nan)
nanmax_grad = reduction("nanmax", _skip_nan(_max), initial=_skip_nan(_max_initial)).selects_elements()
nanmin_grad = reduction("nanmin", _skip_nan(_min), initial=_skip_nan(_min_initial)).selects_elements()
