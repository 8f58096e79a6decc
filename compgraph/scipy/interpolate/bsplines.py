"""B-splines: values, derivatives, interpolation and least squares.

All use the collocation matrix, computed by the recurrence of Cox and de Boor for all points at once (C. de Boor, *A Practical
Guide to Splines*, revised ed., Springer 2001, ch. IX and X). Interpolation solves a banded system with that matrix; least squares
solves the normal equations.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import scipy.interpolate
import scipy.linalg
from numpy.typing import NDArray

from .. import banded_matrices
from ..own_classes import class_of_nodes
from ..tools import to_array, to_double, to_numpy

# ------------------------------------------------------------------------------------------ the basis


def interval_of(t: Any, k: int, x: Any) -> Any:
    """The index of the knot interval that contains each point; the nearest one for points outside the base interval."""
    t = to_numpy(t)
    return np.clip(np.searchsorted(t, to_numpy(x), side="right") - 1, k, _last_interval(t, k))


def _last_interval(t: NDArray[Any], k: int) -> int:
    """The index of the last nonempty knot interval of the base interval."""
    n = len(t) - k - 1
    return int(np.searchsorted(t, t[n], side="left")) - 1


def basis(t: Any, k: int, x: object, where: Any, nu: int = 0) -> Any:
    """The ``k + 1`` B-splines that are nonzero at each point, or their derivatives: an array of shape ``(len(x), k + 1)``."""

    def knot(offset: int) -> Any:
        return t[where + offset]

    splines: list[Any] = [np.ones(len(where))]
    for p in range(1, k - nu + 1):  # de Boor, X (5)
        next_splines: list[Any] = [0.0] * (p + 1)
        for j in range(p):
            part = splines[j] / (knot(j + 1) - knot(j + 1 - p))
            next_splines[j] = next_splines[j] + (knot(j + 1) - x) * part
            next_splines[j + 1] = next_splines[j + 1] + (x - knot(j + 1 - p)) * part
        splines = next_splines
    for p in range(k - nu + 1, k + 1):  # de Boor, X (12)
        next_splines = [0.0] * (p + 1)
        for j in range(p):
            part = p * splines[j] / (knot(j + 1) - knot(j + 1 - p))
            next_splines[j] = next_splines[j] - part
            next_splines[j + 1] = next_splines[j + 1] + part
        splines = next_splines
    return np.stack([f * np.ones(len(where)) for f in splines], axis=-1)


def evaluate_spline(t: NDArray[Any], c: NDArray[Any], k: int, x: NDArray[Any], nu: int, extrapolate: bool) -> Any:
    """Replacement of the compiled ``_dierckx.evaluate_spline``: values of shape ``(points, columns)``."""
    n = len(t) - k - 1
    where = interval_of(t, k, x)
    if nu > k:
        values: Any = np.zeros((len(where), c.shape[1]), c.dtype)
    else:
        values = np.einsum("xj,xjc->xc", basis(t, k, x, where, nu), c[where[:, None] + np.arange(-k, 1)])
    ends, points = to_numpy(t), to_numpy(x)
    outside = ~((points >= ends[k]) & (points <= ends[n]))
    return values if extrapolate or not np.any(outside) else np.where(outside[:, None], np.nan, values)


def spline_of(t: object, c: object, k: int, extrapolate: bool | str = True, axis: int = 0) -> Any:
    """Create a ``BSpline`` whose knots or coefficients are nodes."""
    return class_of_nodes(scipy.interpolate.BSpline).construct_fast(t, c, k, extrapolate, axis)


# ------------------------------------------------------------------------------------------ interpolation


def make_interp_spline(
    x: Any,
    y: Any,
    k: Any = 3,
    t: Any = None,
    bc_type: tuple[Any, ...] | str | None = None,
    axis: int = 0,
    check_finite: bool = True,
) -> Any:
    """``scipy.interpolate.make_interp_spline``."""
    x, y, k = to_double(x), to_double(y), operator.index(k)
    plain_bc = bc_type if bc_type is None or isinstance(bc_type, str) else tuple(map(_plain_end, bc_type))
    plain_t = None if t is None else to_numpy(t)
    model = scipy.interpolate.make_interp_spline(to_numpy(x), to_numpy(y), k, plain_t, plain_bc, axis, check_finite)
    axis = axis % y.ndim
    y = np.moveaxis(y, axis, 0)
    ends = (None, None) if bc_type in (None, "not-a-knot", "periodic") else bc_type
    ends = (ends, ends) if isinstance(ends, str) else ends
    t = _knots(x, k, model, ends, bc_type) if t is None else to_double(t)
    if k == 0 or (k == 1 and plain_t is None):
        return spline_of(t, y, k, axis=axis)
    if bc_type == "periodic":
        return spline_of(t, _periodic_coefficients(x, y, t, k), k, "periodic", axis)
    left, right = (_end_values(end, y.shape[1:]) for end in ends)
    matrix = _collocation(t, k, x, [order for order, _ in left], [order for order, _ in right])
    both = [*[v[None] for _, v in left], y, *[v[None] for _, v in right]]
    rows = np.concatenate(both) if len(both) > 1 else y
    solution = scipy.linalg.solve_banded((k, k), matrix, np.reshape(rows, (rows.shape[0], -1)), check_finite=check_finite)
    return spline_of(t, np.reshape(solution, rows.shape), k, axis=axis)


def _plain_end(end: list[Any]) -> Any:
    return end if end is None or isinstance(end, str) else [(order, to_numpy(v)) for order, v in end]


def _end_values(end: list[Any] | str | None, shape: tuple[int, ...]) -> list[tuple[int, Any]]:
    """The prescribed derivatives at an end, as pairs of an order and a value."""
    if end is None:
        return []
    if isinstance(end, str):
        return [({"clamped": 1, "natural": 2}[end], np.zeros(shape))]
    return [(order, np.reshape(to_array(v), shape)) for order, v in end]


def _knots(x: Any, k: int, model: Any, ends: tuple[Any, ...], bc_type: tuple[Any, ...] | str | None) -> Any:
    """The knots that SciPy chooses: data points, or midpoints between them."""
    if k == 0:
        return np.concatenate([x, x[-1:]])
    if bc_type == "periodic":
        if np.array_equal(model.t, to_numpy(model.t)) and type(x) is np.ndarray:
            return model.t
        raise TypeError(
            "scipy.interpolate.make_interp_spline: with bc_type='periodic' the points cannot be nodes; use "
            "CubicSpline(..., bc_type='periodic')"
        )
    first, last = [x[:1]] * (k + 1), [x[-1:]] * (k + 1)
    if k == 1:
        return np.concatenate([x[:1], x, x[-1:]])
    if ends != (None, None):
        return np.concatenate([*first[:-1], x, *last[:-1]])
    half = (k + 1) // 2
    inner = x[half:-half] if k % 2 else ((x[1:] + x[:-1]) / 2)[half:-half]
    return np.concatenate([*first, inner, *last])


def _collocation(t: Any, k: int, x: Any, left: list[int], right: list[int]) -> Any:
    """The collocation matrix as bands: the basis at the points, and its derivatives at both ends."""
    n = len(t) - k - 1
    parts, firsts = [], []
    for order in left:
        where = interval_of(t, k, x[:1])
        parts.append(basis(t, k, x[:1], where, order))
        firsts.append(where - k)
    where = interval_of(t, k, x)
    parts.append(basis(t, k, x, where))
    firsts.append(where - k)
    for order in right:
        where = interval_of(t, k, x[-1:])
        parts.append(basis(t, k, x[-1:], where, order))
        firsts.append(where - k)
    rows = np.concatenate(parts) if len(parts) > 1 else parts[0]
    return _bands(rows, np.concatenate(firsts), n, k, k)


def _bands(rows: Any, firsts: NDArray[Any], n: int, lower: int, upper: int) -> Any:
    """Convert a square matrix to bands, from the elements of each row and their first column."""
    width = rows.shape[1]
    j = np.arange(n)
    i = np.arange(lower + upper + 1)[:, None] - upper + j  # bands[upper + i - j, j] = a[i, j]
    inside = (i >= 0) & (i < n)
    i = np.clip(i, 0, n - 1)
    offset = j - firsts[i]
    inside &= (offset >= 0) & (offset < width)
    return np.where(inside, rows[i, np.clip(offset, 0, width - 1)], 0.0)


def _periodic_coefficients(x: NDArray[Any], y: Any, t: NDArray[Any], k: int) -> Any:
    """The coefficients of a periodic spline, whose derivatives below the degree are equal at both ends."""
    n = len(t) - k - 1
    rows = []
    for order in range(1, k):
        starts = _dense(basis(t, k, x[:1], interval_of(t, k, x[:1]), order), interval_of(t, k, x[:1]) - k, n)
        ends = _dense(basis(t, k, x[-1:], interval_of(t, k, x[-1:]), order), interval_of(t, k, x[-1:]) - k, n)
        rows.append(starts - ends)
    where = interval_of(t, k, x)
    rows.append(_dense(basis(t, k, x, where), where - k, n))
    right = np.concatenate([np.zeros((k - 1, *y.shape[1:])), y])
    solution = np.linalg.solve(np.concatenate(rows), np.reshape(right, (n, -1)))
    return np.reshape(solution, right.shape)


def _dense(rows: Any, firsts: NDArray[Any], n: int) -> Any:
    offset = np.arange(n) - firsts[:, None]
    inside = (offset >= 0) & (offset < rows.shape[1])
    return np.where(inside, np.take_along_axis(rows, np.clip(offset, 0, rows.shape[1] - 1), 1), 0.0)


# ------------------------------------------------------------------------------------------ least squares


def make_lsq_spline(
    x: Any, y: Any, t: Any, k: Any = 3, w: Any = None, axis: int = 0, check_finite: bool = True, *, method: str = "qr"
) -> Any:
    """``scipy.interpolate.make_lsq_spline``, by the normal equations and one step of iterative refinement."""
    x, y, t, k = to_double(x), to_double(y), to_double(t), operator.index(k)
    w = np.ones(len(x)) if w is None else to_double(w)
    scipy.interpolate.make_lsq_spline(to_numpy(x), to_numpy(y), to_numpy(t), k, to_numpy(w), axis, check_finite, method=method)
    axis = axis % y.ndim
    y = np.moveaxis(y, axis, 0)
    where = interval_of(t, k, x)
    rows = basis(t, k, x, where) * w[:, None]
    right = np.reshape(y, (y.shape[0], -1)) * w[:, None]
    n = len(t) - k - 1
    matrix = _dense(rows, where - k, n)
    normal = banded_matrices.banded(np.transpose(matrix) @ matrix, k, k)
    solution = scipy.linalg.solve_banded((k, k), normal, np.transpose(matrix) @ right)
    solution = solution + scipy.linalg.solve_banded((k, k), normal, np.transpose(matrix) @ (right - matrix @ solution))
    return spline_of(t, np.reshape(solution, (n, *y.shape[1:])), k, axis=axis)
