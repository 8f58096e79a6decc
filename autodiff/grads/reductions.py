"""Rules of reductions, cumulative sums and products, differences, and one-dimensional convolutions.

The weights of a reduction are the partial derivatives of the result with respect to each element. In
``weights(out, x, axis, ...)``, `out` keeps its reduced axes with length one. Weights of None are ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compgraph.array_types import Array, Axis, Operand
from compgraph.graph import to_values
from compgraph.ops import ensure_array
from compgraph.values import Value

from ..rules import Formula, elementwise, general, linear, multilinear, reduction
from .corners import as_norm, safe_quotient, with_corners


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
    x: Array,
    axis: Axis,
    where: ArrayLike = True,
    initial: NDArray[Any] | None = None,
    **_: object,
) -> Any:
    """Return even shares for all elements that equal the result: those where `is_not_extreme` is false, and `initial`.

    The mask is negated because comparisons with nan are false: all elements share a result of nan.
    """
    is_extreme = _mask_weights(np.logical_not(is_not_extreme).astype(x.dtype), where)
    count = np.add.reduce(is_extreme, axis=axis, keepdims=True)
    return is_extreme / np.maximum(count if initial is None else count + _equals_initial(initial, out), 1)


def _max(out: Any, x: Array, axis: Any = None, **options: Any) -> Any:
    return _shares(x < out, out, x, axis, **options)


def _min(out: Any, x: Array, axis: Any = None, **options: Any) -> Any:
    return _shares(x > out, out, x, axis, **options)


def _center(x: Array, axis: Axis, where: Any, mean: Any) -> Any:
    """Return the conjugated deviation of x from its mean; zero for unselected elements."""
    if mean is None:
        mean = np.mean(x, axis=axis, keepdims=True, where=where)
    return _mask_weights(np.conjugate(x - mean), where)


def _var(
    out: object,
    x: Array,
    axis: Axis = None,
    ddof: object = 0,
    correction: object = None,
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


def _prod(out: object, x: Array, axis: Axis = None, where: ArrayLike = True, initial: ArrayLike = 1, **_: object) -> Any:
    """Return the product of all other elements, exact also if some are zero."""
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(i % x.ndim for i in axes) if x.ndim else ()
    last = tuple(range(x.ndim - len(axes), x.ndim))
    x = x if where is True else np.where(where, x, 1)
    trailing = np.moveaxis(x, axes, last)
    flat = np.reshape(trailing, (*trailing.shape[: x.ndim - len(axes)], -1 if x.size else math.prod(x.shape[i] for i in axes)))
    others = _exclusive_products(flat) * _exclusive_products(flat[..., ::-1])[..., ::-1]
    return _mask_weights(np.moveaxis(np.reshape(others, trailing.shape), last, axes) * initial, where)


def _exclusive_products(x: Array) -> Any:
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


def _prod_initial(out: object, x: Array, axis: Axis = None, where: Any = True, **_: object) -> Any:
    return np.prod(x, axis=axis, keepdims=True, where=where)


def _extremum_initial(
    is_not_extreme: Any, out: Any, x: Array, axis: Axis, initial: object, where: object = True, **_: object
) -> Any:
    """Return the share of the initial value; see `_shares`."""
    count = np.add.reduce(_mask_weights(np.logical_not(is_not_extreme).astype(x.dtype), where), axis=axis, keepdims=True)
    is_initial = _equals_initial(initial, out)
    return is_initial / np.maximum(count + is_initial, 1)


def _max_initial(out: NDArray[Any], x: Array, axis: Axis = None, **options: object) -> Any:
    return _extremum_initial(x < out, out, x, axis, **options)


def _min_initial(out: Array, x: Array, axis: Axis = None, **options: object) -> Any:
    return _extremum_initial(x > out, out, x, axis, **options)


def _selection_mask(*_: object, where: bool = True, **__: object) -> Any:
    """Return which elements are selected."""
    return where


def _is_masked(node: Value) -> bool:
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


def _not_nan(x: Array, *_: object, where: Any = True, **__: object) -> Any:
    """Return which elements a reduction that skips nan selects."""
    return np.logical_and(where, np.logical_not(np.isnan(x)))


nansum_grad = reduction("nansum", _skip_nan(_sum), initial=_sum_initial).selects_elements()
nanprod_grad = reduction("nanprod", _skip_nan(_prod, 1), initial=_skip_nan(_prod_initial, 1)).selects_elements(_not_nan)
nanmean_grad = reduction("nanmean", _skip_nan(_mean)).selects_elements()
nanvar_grad = reduction("nanvar", _skip_nan(_var), None, _skip_nan(_var_mean)).selects_elements(_not_nan)
nanstd_grad = reduction("nanstd", _skip_nan(_std), None, _skip_nan(_std_mean)).selects_elements(_not_nan)
nanmax_grad = reduction("nanmax", _skip_nan(_max), initial=_skip_nan(_max_initial)).selects_elements()
nanmin_grad = reduction("nanmin", _skip_nan(_min), initial=_skip_nan(_min_initial)).selects_elements()


# ---------------------------------------------------------------------------------------------- helpers


def _slice_along(x: NDArray[Any], axis: int, *bounds: int | None) -> Any:
    """Compute ``x[..., start:stop:step, ...]`` along an axis."""
    return x[(slice(None),) * axis + (slice(*bounds),)]


def _flip(x: NDArray[Any], axis: int) -> Any:
    return _slice_along(x, axis, None, None, -1)


def _shift(x: NDArray[Any], axis: int, distance: int, fill: float) -> Any:
    """Shift `x` along an axis and fill the vacated positions; the shape stays."""
    shape = (*x.shape[:axis], min(distance, x.shape[axis]), *x.shape[axis + 1 :])
    return np.concatenate([np.full(shape, fill, x.dtype), _slice_along(x, axis, 0, max(x.shape[axis] - distance, 0))], axis=axis)


def _linear_recurrence(factors: NDArray[Any], terms: NDArray[Any], axis: int) -> Any:
    """Solve ``y[i] = factors[i] * y[i - 1] + terms[i]`` by recursive doubling."""
    distance = 1
    while distance < terms.shape[axis]:
        terms = terms + factors * _shift(terms, axis, distance, 0)
        factors = factors * _shift(factors, axis, distance, 1)
        distance *= 2
    return terms


def _line_and_axis(x: NDArray[Any], out: NDArray[Any], axis: Any) -> tuple[Any, int]:
    """Return the array and the axis that NumPy accumulates along: the flattened array by default."""
    return (np.ravel(x), 0) if axis is None or x.ndim == 0 else (x, axis % out.ndim)


def replace_nan(x: NDArray[Any], value: float) -> Any:
    """Replace nan by a value."""
    return np.where(np.isnan(x), value, x)


# ----------------------------------------------------------------------------------------------- sums


def _cumsum(
    g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], axis: Any = None, include_initial: bool = False, **_: object
) -> Any:
    """Sum the cotangents of all partial sums that contain each element."""
    line_axis = 0 if axis is None else axis % out.ndim
    g = _slice_along(g, line_axis, 1, None) if include_initial else g
    return np.reshape(_flip(np.cumsum(_flip(g, line_axis), axis=line_axis), line_axis), x.shape)


cumsum_grad = linear("cumsum", _cumsum).moves_elements()
cumulative_sum_grad = linear("cumulative_sum", _cumsum).moves_elements()
nancumsum_grad = (
    general("nancumsum", lambda g, out, x, **options: np.where(np.isnan(x), 0, _cumsum(g, out, x, **options)))
    .tangent(lambda t, out, x, **options: np.cumsum(np.where(np.isnan(x), 0, t), **options))
    .selects_elements()
)

# ------------------------------------------------------------------------------------------- products


def _cumprod(
    g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], axis: Axis = None, include_initial: bool = False, **_: object
) -> Any:
    """Multiply the product before each element by the cotangents of the later products, without division."""
    line, line_axis = _line_and_axis(x, out, axis)
    out, g = (_slice_along(a, line_axis, 1, None) if include_initial else a for a in (out, g))
    suffix = _linear_recurrence(_shift(_flip(line, line_axis), line_axis, 1, 1), _flip(g, line_axis), line_axis)
    return np.reshape(_shift(out, line_axis, 1, 1) * _flip(suffix, line_axis), x.shape)


def _cumprod_tangent(
    t: NDArray[Any], out: NDArray[Any], x: NDArray[Any], axis: Axis = None, include_initial: bool = False, **_: object
) -> Any:
    line, line_axis = _line_and_axis(x, out, axis)
    products = _slice_along(out, line_axis, 1, None) if include_initial else out
    tangent = _linear_recurrence(line, _shift(products, line_axis, 1, 1) * np.reshape(t, line.shape), line_axis)
    if not include_initial:
        return tangent
    return np.concatenate([np.zeros_like(_slice_along(out, line_axis, 0, 1)), tangent], axis=line_axis)


cumprod_grad = general("cumprod", _cumprod).tangent(_cumprod_tangent)
cumulative_prod_grad = general("cumulative_prod", _cumprod).tangent(_cumprod_tangent)
nancumprod_grad = (
    general("nancumprod", lambda g, out, x, **options: np.where(np.isnan(x), 0, _cumprod(g, out, replace_nan(x, 1), **options)))
    .tangent(lambda t, out, x, **options: _cumprod_tangent(np.where(np.isnan(x), 0, t), out, replace_nan(x, 1), **options))
    .selects_elements(lambda x, **_: np.logical_not(np.isnan(x)))
)

# ---------------------------------------------------------------------------------------- differences
# ediff1d prepends `to_begin` to the differences and appends `to_end`.


def _ediff1d(
    g: NDArray[Any],
    out: Array,
    x: NDArray[Any],
    to_end: NDArray[Any] | None = None,
    to_begin: Array | tuple[float, ...] | None = None,
) -> Any:
    start, stop = _difference_slice(x, to_begin)
    zero = np.zeros(1, out.dtype)
    from_next, from_previous = np.concatenate([g[start:stop], zero]), np.concatenate([zero, g[start:stop]])
    return np.reshape((from_previous - from_next)[: x.size], x.shape)


def _difference_slice(x: NDArray[Any], to_begin: Any) -> tuple[int, int]:
    """Return start and stop of the differences in the result."""
    start = 0 if to_begin is None else np.size(to_begin)
    return start, start + max(np.size(x) - 1, 0)


def _ediff1d_tangent(t: NDArray[Any], out: NDArray[Any], x: NDArray[Any], to_end: object = None, to_begin: object = None) -> Any:
    start, stop = _difference_slice(x, to_begin)
    return _pad_zeros(np.ediff1d(t), start, out.shape[0] - stop, out)


def _pad_zeros(part: NDArray[Any], before: int, after: int, out: NDArray[Any]) -> Any:
    return np.concatenate([np.zeros(before, out.dtype), part, np.zeros(after, out.dtype)])


def _ediff1d_end(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], to_end: Any = None, to_begin: Any = None) -> Any:
    return np.reshape(g[_difference_slice(x, to_begin)[1] :], np.shape(to_end))


def _ediff1d_begin(
    g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], to_end: NDArray[Any] | None = None, to_begin: Any = None
) -> Any:
    return np.reshape(g[: np.size(to_begin)], np.shape(to_begin))


def _ediff1d_end_tangent(t: NDArray[Any], out: NDArray[Any], x: NDArray[Any], to_end: Any = None, to_begin: object = None) -> Any:
    return _pad_zeros(np.ravel(t), out.shape[0] - np.size(to_end), 0, out)


def _ediff1d_begin_tangent(
    t: NDArray[Any], out: NDArray[Any], x: NDArray[Any], to_end: object = None, to_begin: Any = None
) -> Any:
    return _pad_zeros(np.ravel(t), 0, out.shape[0] - np.size(to_begin), out)


ediff1d_grad = general("ediff1d", _ediff1d, _ediff1d_end, _ediff1d_begin).tangent(
    _ediff1d_tangent, _ediff1d_end_tangent, _ediff1d_begin_tangent
)
# unwrap adds whole periods, which are constant.
unwrap_grad = elementwise("unwrap", lambda g, out, p, **_: g)

# --------------------------------------------------------------------------------------- convolutions
# convolve(a, v)[n] = sum over k of a[k] v[n - k]; the mode cuts the ends. correlate(a, v) is convolve(a, conj(v[::-1])), but cuts
# different ends if v is longer.


def _pad_to_full(g: NDArray[Any], a: NDArray[Any], v: NDArray[Any], is_correlation: bool = False) -> Any:
    """Pad the cotangent of a convolution to that of the mode "full"."""
    return _pad_zeros(g, *_cut_sizes(g, a, v, is_correlation), g)


def _cut_sizes(out: NDArray[Any], a: NDArray[Any], v: NDArray[Any], is_correlation: bool) -> tuple[int, int]:
    """Return how many elements the mode of a convolution cuts at both ends."""
    shorter, longer = sorted((np.size(a), np.size(v)))
    num_cut = shorter + longer - 1 - out.shape[0]
    before = (shorter - 1) // 2 if out.shape[0] == longer else num_cut // 2
    if is_correlation and np.size(v) > np.size(a):
        before = num_cut - before
    return before, num_cut - before


def _correlate_full(g: NDArray[Any], other: NDArray[Any]) -> Any:
    """Return the cotangent of one operand, given that of the full convolution and the other operand."""
    return np.convolve(g, np.ravel(other)[::-1], "valid")


convolve_grad = multilinear(
    "convolve",
    lambda g, out, a, v, mode="full": np.reshape(_correlate_full(_pad_to_full(g, a, v), v), np.shape(a)),
    lambda g, out, a, v, mode="full": np.reshape(_correlate_full(_pad_to_full(g, a, v), a), np.shape(v)),
).moves_elements()
correlate_grad = multilinear(
    "correlate",
    lambda g, out, a, v, mode="valid": np.convolve(_pad_to_full(g, a, v, is_correlation=True), np.conjugate(v), "valid"),
    lambda g, out, a, v, mode="valid": np.conjugate(_correlate_full(_pad_to_full(g, a, v, is_correlation=True), a))[::-1],
).moves_elements()
