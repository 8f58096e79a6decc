"""Rules of what runs along a line: sums and products that accumulate, differences, convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rules import elementwise, general, linear, multilinear

# ------------------------------------------------------------------------------------------------ tools


def _part(x: Any, axis: int, *bounds: int | None) -> Any:
    """``x[..., start:stop:step, ...]`` along an axis."""
    return x[(slice(None),) * axis + (slice(*bounds),)]


def _backward(x: Any, axis: int) -> Any:
    return _part(x, axis, None, None, -1)


def _shifted(x: Any, axis: int, reach: int, fill: float) -> Any:
    """`x` moved along an axis, the places it leaves filled; the shape stays."""
    shape = (*x.shape[:axis], min(reach, x.shape[axis]), *x.shape[axis + 1 :])
    return np.concatenate([np.full(shape, fill, x.dtype), _part(x, axis, 0, max(x.shape[axis] - reach, 0))], axis=axis)


def _recurrence(factors: Any, terms: Any, axis: int) -> Any:
    """The solution of ``y[i] = factors[i] * y[i - 1] + terms[i]``, by a scan that doubles its reach."""
    reach = 1
    while reach < terms.shape[axis]:
        terms = terms + factors * _shifted(terms, axis, reach, 0)
        factors = factors * _shifted(factors, axis, reach, 1)
        reach *= 2
    return terms


def _line(x: Any, out: Any, axis: Any) -> tuple[Any, int]:
    """What NumPy accumulates along which axis: all elements in a row where none is given."""
    return (np.ravel(x), 0) if axis is None or x.ndim == 0 else (x, axis % out.ndim)


def without_nan(x: Any, value: float) -> Any:
    """`x` with another value where it is not a number."""
    return np.where(np.isnan(x), value, x)


# ----------------------------------------------------------------------------------------------- sums


def _cumsum(g: Any, out: Any, x: Any, axis: Any = None, include_initial: Any = False, **_: Any) -> Any:
    """Each element is in all the sums from its own on."""
    along = 0 if axis is None else axis % out.ndim
    g = _part(g, along, 1, None) if include_initial else g
    return np.reshape(_backward(np.cumsum(_backward(g, along), axis=along), along), x.shape)


cumsum_grad = linear("cumsum", _cumsum).moving()
cumulative_sum_grad = linear("cumulative_sum", _cumsum).moving()
nancumsum_grad = (
    general("nancumsum", lambda g, out, x, **options: np.where(np.isnan(x), 0, _cumsum(g, out, x, **options)))
    .tangent(lambda t, out, x, **options: np.cumsum(np.where(np.isnan(x), 0, t), **options))
    .selecting()
)

# ------------------------------------------------------------------------------------------- products


def _cumprod(g: Any, out: Any, x: Any, axis: Any = None, include_initial: Any = False, **_: Any) -> Any:
    """The product before the element, times what the adjoints of the products from it on make; nothing is divided."""
    line, along = _line(x, out, axis)
    out, g = (_part(a, along, 1, None) if include_initial else a for a in (out, g))
    later = _recurrence(_shifted(_backward(line, along), along, 1, 1), _backward(g, along), along)
    return np.reshape(_shifted(out, along, 1, 1) * _backward(later, along), x.shape)


def _cumprod_tangent(t: Any, out: Any, x: Any, axis: Any = None, include_initial: Any = False, **_: Any) -> Any:
    line, along = _line(x, out, axis)
    made = _part(out, along, 1, None) if include_initial else out
    found = _recurrence(line, _shifted(made, along, 1, 1) * np.reshape(t, line.shape), along)
    if not include_initial:
        return found
    return np.concatenate([np.zeros_like(_part(out, along, 0, 1)), found], axis=along)


cumprod_grad = general("cumprod", _cumprod).tangent(_cumprod_tangent)
cumulative_prod_grad = general("cumulative_prod", _cumprod).tangent(_cumprod_tangent)
nancumprod_grad = (
    general("nancumprod", lambda g, out, x, **options: np.where(np.isnan(x), 0, _cumprod(g, out, without_nan(x, 1), **options)))
    .tangent(lambda t, out, x, **options: _cumprod_tangent(np.where(np.isnan(x), 0, t), out, without_nan(x, 1), **options))
    .selecting(lambda x, **_: np.logical_not(np.isnan(x)))
)

# ---------------------------------------------------------------------------------------- differences
# ediff1d puts other numbers before and behind the differences.


def _ediff1d(g: Any, out: Any, x: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    start, stop = _differences(x, to_begin)
    nothing = np.zeros(1, out.dtype)
    falls, rises = np.concatenate([g[start:stop], nothing]), np.concatenate([nothing, g[start:stop]])
    return np.reshape((rises - falls)[: x.size], x.shape)


def _differences(x: Any, to_begin: Any) -> tuple[int, int]:
    """Where among the results the differences stand."""
    start = 0 if to_begin is None else np.size(to_begin)
    return start, start + max(np.size(x) - 1, 0)


def _ediff1d_tangent(t: Any, out: Any, x: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    start, stop = _differences(x, to_begin)
    return _in_zeros(np.ediff1d(t), start, out.shape[0] - stop, out)


def _in_zeros(part: Any, before: int, behind: int, out: Any) -> Any:
    return np.concatenate([np.zeros(before, out.dtype), part, np.zeros(behind, out.dtype)])


def _ediff1d_end(g: Any, out: Any, x: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    return np.reshape(g[_differences(x, to_begin)[1] :], np.shape(to_end))


def _ediff1d_begin(g: Any, out: Any, x: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    return np.reshape(g[: np.size(to_begin)], np.shape(to_begin))


def _ediff1d_end_tangent(t: Any, out: Any, x: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    return _in_zeros(np.ravel(t), out.shape[0] - np.size(to_end), 0, out)


def _ediff1d_begin_tangent(t: Any, out: Any, x: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    return _in_zeros(np.ravel(t), 0, out.shape[0] - np.size(to_begin), out)


ediff1d_grad = general("ediff1d", _ediff1d, _ediff1d_end, _ediff1d_begin).tangent(
    _ediff1d_tangent, _ediff1d_end_tangent, _ediff1d_begin_tangent
)
# What unwrap adds are whole periods.
unwrap_grad = elementwise("unwrap", lambda g, out, p, **_: g)

# --------------------------------------------------------------------------------------- convolutions
# convolve(a, v)[n] = sum over k of a[k] v[n - k], of which the mode cuts the ends; correlate(a, v) is
# convolve(a, conj(v[::-1])), but cuts the middle of other results where v is the longer one.


def _whole(g: Any, a: Any, v: Any, turned: bool = False) -> Any:
    """The adjoint of a convolution of which nothing is cut."""
    return _in_zeros(g, *_ends(g, a, v, turned), g)


def _ends(out: Any, a: Any, v: Any, turned: bool) -> tuple[int, int]:
    """How much of a convolution was cut at both ends."""
    shorter, longer = sorted((np.size(a), np.size(v)))
    cut = shorter + longer - 1 - out.shape[0]
    before = (shorter - 1) // 2 if out.shape[0] == longer else cut // 2
    if turned and np.size(v) > np.size(a):
        before = cut - before
    return before, cut - before


def _convolved(g: Any, other: Any) -> Any:
    """The adjoint of one operand."""
    return np.convolve(g, np.ravel(other)[::-1], "valid")


convolve_grad = multilinear(
    "convolve",
    lambda g, out, a, v, mode="full": np.reshape(_convolved(_whole(g, a, v), v), np.shape(a)),
    lambda g, out, a, v, mode="full": np.reshape(_convolved(_whole(g, a, v), a), np.shape(v)),
).moving()
correlate_grad = multilinear(
    "correlate",
    lambda g, out, a, v, mode="valid": np.convolve(_whole(g, a, v, turned=True), np.conjugate(v), "valid"),
    lambda g, out, a, v, mode="valid": np.conjugate(_convolved(_whole(g, a, v, turned=True), a))[::-1],
).moving()
