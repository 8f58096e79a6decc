"""Rules of cumulative sums and products, differences, and one-dimensional convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.array_types import Array, Axis

from ..rules import elementwise, general, linear, multilinear

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
    along = 0 if axis is None else axis % out.ndim
    g = _slice_along(g, along, 1, None) if include_initial else g
    return np.reshape(_flip(np.cumsum(_flip(g, along), axis=along), along), x.shape)


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
    line, along = _line_and_axis(x, out, axis)
    out, g = (_slice_along(a, along, 1, None) if include_initial else a for a in (out, g))
    suffix = _linear_recurrence(_shift(_flip(line, along), along, 1, 1), _flip(g, along), along)
    return np.reshape(_shift(out, along, 1, 1) * _flip(suffix, along), x.shape)


def _cumprod_tangent(
    t: NDArray[Any], out: NDArray[Any], x: NDArray[Any], axis: Axis = None, include_initial: bool = False, **_: object
) -> Any:
    line, along = _line_and_axis(x, out, axis)
    products = _slice_along(out, along, 1, None) if include_initial else out
    tangent = _linear_recurrence(line, _shift(products, along, 1, 1) * np.reshape(t, line.shape), along)
    if not include_initial:
        return tangent
    return np.concatenate([np.zeros_like(_slice_along(out, along, 0, 1)), tangent], axis=along)


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
    g: Any, out: Array, x: NDArray[Any], to_end: NDArray[Any] | None = None, to_begin: Array | tuple[float, ...] | None = None
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
