"""B-splines, the FITPACK interface to splines, and piecewise polynomials.

Values, derivatives, interpolation and least squares of splines use the collocation matrix, computed by the recurrence of Cox and
de Boor for all points at once (C. de Boor, *A Practical Guide to Splines*, revised ed., Springer 2001, ch. IX and X).
Interpolation solves a banded system with that matrix; least squares solves the normal equations. With a bound on the residual
(``s > 0``), FITPACK searches for knots, and the spline has no derivative.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.interpolate
import scipy.linalg
from numpy.typing import NDArray

from .. import banded_matrices
from ..own_classes import class_of_nodes
from ..tools import to_array, to_column, to_double, to_numpy

# ------------------------------------------------------------------------------------------ the basis


def interval_of(t: Any, k: int, x: Any) -> Any:
    """The index of the knot interval that contains each point; the nearest one for points outside the base interval."""
    t = to_numpy(t)
    return np.clip(np.searchsorted(t, to_numpy(x), side="right") - 1, k, _last_interval(t, k))


def _last_interval(t: NDArray[Any], k: int) -> int:
    """The index of the last nonempty knot interval of the base interval."""
    n = len(t) - k - 1
    return int(np.searchsorted(t, t[n], side="left")) - 1


def basis(t: Any, k: int, x: object, interval: Any, nu: int = 0) -> Any:
    """The ``k + 1`` B-splines that are nonzero at each point, or their derivatives: an array of shape ``(len(x), k + 1)``."""

    def knot(offset: int) -> Any:
        return t[interval + offset]

    splines: list[Any] = [np.ones(len(interval))]
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
    return np.stack([f * np.ones(len(interval)) for f in splines], axis=-1)


def evaluate_spline(t: NDArray[Any], c: NDArray[Any], k: int, x: NDArray[Any], nu: int, extrapolate: bool) -> Any:
    """Replacement of the compiled ``_dierckx.evaluate_spline``: values of shape ``(points, columns)``."""
    n = len(t) - k - 1
    interval = interval_of(t, k, x)
    if nu > k:
        values: Any = np.zeros((len(interval), c.shape[1]), c.dtype)
    else:
        values = np.einsum("xj,xjc->xc", basis(t, k, x, interval, nu), c[interval[:, None] + np.arange(-k, 1)])
    ends, points = to_numpy(t), to_numpy(x)
    is_outside = ~((points >= ends[k]) & (points <= ends[n]))
    return values if extrapolate or not np.any(is_outside) else np.where(is_outside[:, None], np.nan, values)


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
    plain_spline = scipy.interpolate.make_interp_spline(to_numpy(x), to_numpy(y), k, plain_t, plain_bc, axis, check_finite)
    axis = axis % y.ndim
    y = np.moveaxis(y, axis, 0)
    ends = (None, None) if bc_type in (None, "not-a-knot", "periodic") else bc_type
    ends = (ends, ends) if isinstance(ends, str) else ends
    t = _knots(x, k, plain_spline, ends, bc_type) if t is None else to_double(t)
    if k == 0 or (k == 1 and plain_t is None):
        return spline_of(t, y, k, axis=axis)
    if bc_type == "periodic":
        return spline_of(t, _periodic_coefficients(x, y, t, k), k, "periodic", axis)
    left, right = (_end_values(end, y.shape[1:]) for end in ends)
    matrix = _collocation(t, k, x, [order for order, _ in left], [order for order, _ in right])
    rows = [*[v[None] for _, v in left], y, *[v[None] for _, v in right]]
    rhs = np.concatenate(rows) if len(rows) > 1 else y
    solution = scipy.linalg.solve_banded((k, k), matrix, np.reshape(rhs, (rhs.shape[0], -1)), check_finite=check_finite)
    return spline_of(t, np.reshape(solution, rhs.shape), k, axis=axis)


def _plain_end(end: list[Any]) -> Any:
    return end if end is None or isinstance(end, str) else [(order, to_numpy(v)) for order, v in end]


def _end_values(end: list[Any] | str | None, shape: tuple[int, ...]) -> list[tuple[int, Any]]:
    """The prescribed derivatives at an end, as pairs of an order and a value."""
    if end is None:
        return []
    if isinstance(end, str):
        return [({"clamped": 1, "natural": 2}[end], np.zeros(shape))]
    return [(order, np.reshape(to_array(v), shape)) for order, v in end]


def _knots(x: Any, k: int, plain_spline: Any, ends: tuple[Any, ...], bc_type: tuple[Any, ...] | str | None) -> Any:
    """The knots that SciPy chooses: data points, or midpoints between them."""
    if k == 0:
        return np.concatenate([x, x[-1:]])
    if bc_type == "periodic":
        if type(x) is np.ndarray:
            return plain_spline.t
        raise TypeError(
            "scipy.interpolate.make_interp_spline: with bc_type='periodic' the points cannot be nodes. Use "
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
    parts, first_columns = [], []
    for order in left:
        interval = interval_of(t, k, x[:1])
        parts.append(basis(t, k, x[:1], interval, order))
        first_columns.append(interval - k)
    interval = interval_of(t, k, x)
    parts.append(basis(t, k, x, interval))
    first_columns.append(interval - k)
    for order in right:
        interval = interval_of(t, k, x[-1:])
        parts.append(basis(t, k, x[-1:], interval, order))
        first_columns.append(interval - k)
    rows = np.concatenate(parts) if len(parts) > 1 else parts[0]
    return _to_bands(rows, np.concatenate(first_columns), n, k, k)


def _to_bands(rows: Any, first_columns: NDArray[Any], n: int, lower: int, upper: int) -> Any:
    """Convert a square matrix to bands, from the elements of each row and their first column."""
    width = rows.shape[1]
    j = np.arange(n)
    i = np.arange(lower + upper + 1)[:, None] - upper + j  # bands[upper + i - j, j] = a[i, j]
    is_inside = (i >= 0) & (i < n)
    i = np.clip(i, 0, n - 1)
    offset = j - first_columns[i]
    is_inside &= (offset >= 0) & (offset < width)
    return np.where(is_inside, rows[i, np.clip(offset, 0, width - 1)], 0.0)


def _periodic_coefficients(x: NDArray[Any], y: Any, t: NDArray[Any], k: int) -> Any:
    """The coefficients of a periodic spline, whose derivatives below the degree are equal at both ends."""
    n = len(t) - k - 1
    rows = []
    for order in range(1, k):
        starts = _to_dense(basis(t, k, x[:1], interval_of(t, k, x[:1]), order), interval_of(t, k, x[:1]) - k, n)
        ends = _to_dense(basis(t, k, x[-1:], interval_of(t, k, x[-1:]), order), interval_of(t, k, x[-1:]) - k, n)
        rows.append(starts - ends)
    interval = interval_of(t, k, x)
    rows.append(_to_dense(basis(t, k, x, interval), interval - k, n))
    rhs = np.concatenate([np.zeros((k - 1, *y.shape[1:])), y])
    solution = np.linalg.solve(np.concatenate(rows), np.reshape(rhs, (n, -1)))
    return np.reshape(solution, rhs.shape)


def _to_dense(rows: Any, first_columns: NDArray[Any], n: int) -> Any:
    """Convert a matrix with `n` columns to a dense array, from the elements of each row and their first column."""
    offset = np.arange(n) - first_columns[:, None]
    is_inside = (offset >= 0) & (offset < rows.shape[1])
    return np.where(is_inside, np.take_along_axis(rows, np.clip(offset, 0, rows.shape[1] - 1), 1), 0.0)


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
    interval = interval_of(t, k, x)
    rows = basis(t, k, x, interval) * w[:, None]
    rhs = np.reshape(y, (y.shape[0], -1)) * w[:, None]
    n = len(t) - k - 1
    matrix = _to_dense(rows, interval - k, n)
    normal = banded_matrices.from_dense(np.transpose(matrix) @ matrix, k, k)
    solution = scipy.linalg.solve_banded((k, k), normal, np.transpose(matrix) @ rhs)
    solution = solution + scipy.linalg.solve_banded((k, k), normal, np.transpose(matrix) @ (rhs - matrix @ solution))
    return spline_of(t, np.reshape(solution, (n, *y.shape[1:])), k, axis=axis)


_KNOT_SEARCH_MESSAGE = (
    "{}: with s > 0 FITPACK searches for knots, and the spline has no derivative. Use s=0 (through all points), "
    "scipy.interpolate.make_lsq_spline with given knots, or make_smoothing_spline with lam="
)
_EXTENSIONS = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}


def splrep(
    x: NDArray[Any],
    y: NDArray[Any],
    w: NDArray[Any] | None = None,
    xb: object = None,
    xe: object = None,
    k: int = 3,
    task: int = 0,
    s: float | None = None,
    t: NDArray[Any] | None = None,
    full_output: int = 0,
    per: int = 0,
    quiet: int = 1,
) -> tuple[Any, Any, int]:
    """``scipy.interpolate.splrep``."""
    options = {"per": per, "full_output": full_output, "xb": xb is not None, "xe": xe is not None}
    for name, is_set in options.items():
        if is_set:
            raise TypeError(f"scipy.interpolate.splrep: {name}= is not recorded. Use make_interp_spline, or CubicSpline")
    if t is None and (s is not None or w is not None) and s != 0:
        raise TypeError(_KNOT_SEARCH_MESSAGE.format("scipy.interpolate.splrep"))
    return _tck(to_double(x), to_double(y), k, None if t is None else to_double(t), w)


def _discard_imaginary(y: NDArray[Any]) -> NDArray[Any]:
    """The real part of complex values, which SciPy's real splines use; the conversion issues NumPy's ComplexWarning."""
    return y.astype(y.real.dtype) if y.dtype.kind == "c" else y


def _tck(x: NDArray[Any], y: NDArray[Any], k: int, inner: NDArray[Any] | None, w: object) -> tuple[Any, Any, int]:
    """The knots, coefficients and degree of the interpolating spline; with inner knots, of the least-squares spline."""
    y = _discard_imaginary(y)
    if inner is None:
        curve = make_interp_spline(x, y, k)
    else:
        knots = np.concatenate([*[x[:1]] * (k + 1), inner, *[x[-1:]] * (k + 1)])
        curve = make_lsq_spline(x, y, knots, k, w)
    return curve.t, np.concatenate([curve.c, np.zeros(k + 1)]), k


# ------------------------------------------------------------------------ replacements of _fitpack_impl


def splev(x: NDArray[Any], tck: Sequence[Any], der: int = 0, ext: int = 0) -> Any:
    """The values of a spline, or of a derivative."""
    t, c, k = tck
    if isinstance(c, (list, tuple)) and np.ndim(c[0]):
        return [splev(x, (t, part, k), der, ext) for part in c]
    if not 0 <= der <= k:
        raise ValueError(f"0<=der={der}<=k={k} must hold")
    if ext not in (0, 1, 2, 3):
        raise ValueError(f"ext = {ext} not in (0, 1, 2, 3) ")
    t, c, x = to_double(t), to_double(c), to_double(x)
    points = np.ravel(x)
    first, last = t[k], t[len(t) - k - 1]
    is_outside = (to_numpy(points) < to_numpy(first)) | (to_numpy(points) > to_numpy(last))
    if ext == 2 and np.any(is_outside):
        raise ValueError("Found x value not in the domain")
    if ext == 3:
        points = np.clip(points, first, last)
    values = evaluate_spline(t, c[:, None], k, points, der, True)[:, 0]
    if ext == 1 and np.any(is_outside):
        values = np.where(is_outside, 0.0, values)
    return np.reshape(values, x.shape)


def splint(a: object, b: object, tck: Sequence[Any], full_output: int = 0) -> Any:
    """The integral of a spline that is zero beyond its knots."""
    if full_output:
        raise TypeError("scipy.interpolate.splint: full_output= returns integrals of the basis, which are not recorded. Omit it")
    t, c, k = tck
    if isinstance(c, (list, tuple)) and np.ndim(c[0]):
        return [splint(a, b, (t, part, k)) for part in c]
    spline = spline_of(to_double(t), to_double(c), k)
    first, last = spline.t[k], spline.t[len(spline.t) - k - 1]
    return spline.integrate(np.clip(to_double(a), first, last), np.clip(to_double(b), first, last), extrapolate=True)


def spalde(x: NDArray[Any], tck: Sequence[Any]) -> Any:
    """All derivatives of a spline at a point."""
    return np.stack([splev(x, tck, nu) for nu in range(tck[2] + 1)])


# ------------------------------------------------------------------------------------------ classes


def _init_spline(
    self: Any,
    x: NDArray[Any],
    y: NDArray[Any],
    inner: NDArray[Any] | None,
    w: object,
    bbox: Sequence[Any],
    k: int,
    ext: int | str,
) -> None:
    if any(end is not None for end in bbox):
        raise TypeError("bbox= is not recorded for a spline that is created from nodes. Use scipy.interpolate.make_interp_spline")
    x, y = to_double(x), to_double(y)
    if np.any(np.diff(to_numpy(x)) <= 0):
        raise ValueError("x must be strictly increasing")
    t, c, k = self._eval_args = _tck(x, y, k, inner, w)
    self._data = (None, None, None, None, None, k, None, len(t), t, c, None, None, None, None)  # as UnivariateSpline._from_tck
    self.ext = _EXTENSIONS.get(ext, ext) if isinstance(ext, str) else ext
    self.__class__ = class_of_nodes(type(self))


def init_univariate_spline(
    self: Any,
    x: NDArray[Any],
    y: NDArray[Any],
    w: object = None,
    bbox: tuple[Any, ...] = (None, None),
    k: int = 3,
    s: float | None = None,
    ext: int | str = 0,
    check_finite: bool = False,
) -> None:
    """``UnivariateSpline.__init__``."""
    if s is None or s != 0:
        raise TypeError(_KNOT_SEARCH_MESSAGE.format("scipy.interpolate.UnivariateSpline"))
    _init_spline(self, x, y, None, w, bbox, k, ext)


def init_interpolated_spline(
    self: Any,
    x: NDArray[Any],
    y: NDArray[Any],
    w: object = None,
    bbox: Sequence[Any] = (None, None),
    k: int = 3,
    ext: int | str = 0,
    check_finite: bool = False,
) -> None:
    """``InterpolatedUnivariateSpline.__init__``."""
    _init_spline(self, x, y, None, w, bbox, k, ext)


def init_lsq_spline(
    self: Any,
    x: NDArray[Any],
    y: NDArray[Any],
    t: NDArray[Any],
    w: object = None,
    bbox: tuple[Any, ...] = (None, None),
    k: int = 3,
    ext: int | str = 0,
    check_finite: bool = False,
) -> None:
    """``LSQUnivariateSpline.__init__``."""
    _init_spline(self, x, y, to_double(t), w, bbox, k, ext)


# ------------------------------------------------------------------------------------------ smoothing


def make_smoothing_spline(x: Any, y: Any, w: Any = None, lam: Any = None, *, axis: int = 0) -> Any:
    """``scipy.interpolate.make_smoothing_spline``, by Reinsch's equations.

    P. J. Green and B. W. Silverman, *Nonparametric Regression and Generalized Linear Models*, 1994, ch. 2: with the second
    derivatives at the inner points ``(R + lam Q' W^-1 Q) g = Q' y`` the values are ``y - lam W^-1 Q g``.
    """
    if lam is None:
        raise TypeError(
            "scipy.interpolate.make_smoothing_spline: without lam= SciPy searches for the parameter, which has no derivative. "
            "Pass a number for lam"
        )
    x, y, lam = to_double(x), _discard_imaginary(to_double(y)), to_array(lam)
    if lam.ndim or x.ndim != 1 or len(x) < 5 or len(x) != y.shape[axis]:
        raise ValueError("make_smoothing_spline: x must be a vector of at least 5 points, as many as y has, and lam a number")
    if np.any(np.diff(to_numpy(x)) <= 0) or to_numpy(lam) < 0:
        raise ValueError("make_smoothing_spline: x must be increasing, and lam not negative")
    axis = axis % y.ndim
    y = np.moveaxis(y, axis, 0)
    inverse_weights = 1 / (np.ones(len(x)) if w is None else to_double(w))
    h = np.diff(x)
    a, b, c = 1 / h[:-1], -(1 / h[:-1] + 1 / h[1:]), 1 / h[1:]  # the columns of Q
    main = (h[:-1] + h[1:]) / 3 + lam * (
        a * a * inverse_weights[:-2] + b * b * inverse_weights[1:-1] + c * c * inverse_weights[2:]
    )
    next_one = h[1:-1] / 6 + lam * (b[:-1] * a[1:] * inverse_weights[1:-2] + c[:-1] * b[1:] * inverse_weights[2:-1])
    next_two = lam * c[:-2] * a[2:] * inverse_weights[2:-2]
    zero = np.zeros(1)
    matrix = np.stack([
        np.concatenate([zero, zero, next_two]), np.concatenate([zero, next_one]), main,
        np.concatenate([next_one, zero]), np.concatenate([next_two, zero, zero]),
    ])  # fmt: skip
    flat = np.reshape(y, (len(x), -1))
    rhs = a[:, None] * flat[:-2] + b[:, None] * flat[1:-1] + c[:, None] * flat[2:]
    g = scipy.linalg.solve_banded((2, 2), matrix, rhs)
    padding = np.zeros((2, flat.shape[1]))
    second_differences = np.concatenate([a[:, None] * g, padding]) + np.concatenate([padding[:1], b[:, None] * g, padding[:1]])
    second_differences = second_differences + np.concatenate([padding, c[:, None] * g])
    values = np.reshape(flat - lam * to_column(inverse_weights, 2) * second_differences, y.shape)
    spline = make_interp_spline(x, values, bc_type="natural")
    spline.axis = axis
    return spline


# ------------------------------------------------------------------------------------------ piecewise polynomials
# Replacements of the compiled ``scipy.interpolate._ppoly``, and of polynomial interpolation.
#
# ``S(x) = sum of c[m, i] (x - breaks[i])^(k - m)`` between ``breaks[i]`` and ``breaks[i + 1]``; in Bernstein's basis
# ``sum of c[a, i] b_a(s)`` with ``s = (x - breaks[i]) / (breaks[i + 1] - breaks[i])`` (de Boor, ch. VII; R. T. Farouki, "The
# Bernstein polynomial basis", Comput. Aided Geom. Des. 29 (2012)). The piece that contains a point is a choice without a
# derivative. Coefficients have the shape ``(k + 1, pieces, columns)``.


def _piece_of(breaks: NDArray[Any], x: NDArray[Any]) -> NDArray[np.intp]:
    """The piece that contains each point: a piece contains its first end, and the last piece both."""
    breaks, x = to_numpy(breaks), to_numpy(x)
    if breaks[0] <= breaks[-1]:
        piece = np.searchsorted(breaks, x, side="right") - 1
    else:
        piece = np.searchsorted(-breaks, -x, side="right") - 1
    return np.clip(piece, 0, len(breaks) - 2)


def _nan_outside(values: Any, breaks: NDArray[Any], x: NDArray[Any], extrapolate: bool) -> Any:
    """Replace values at points outside the breaks by nan, unless these are extrapolated."""
    ends, points = to_numpy(breaks)[[0, -1]], to_numpy(x)
    is_outside = ~((points >= np.min(ends)) & (points <= np.max(ends)))
    return values if extrapolate or not np.any(is_outside) else np.where(to_column(is_outside, 2), np.nan, values)


def _values(c: NDArray[Any], breaks: NDArray[Any], x: NDArray[Any], nu: int, extrapolate: bool) -> Any:
    """The values of a piecewise polynomial, or of its derivative of order `nu`, of shape ``(points, columns)``."""
    piece = _piece_of(breaks, x)
    h = to_column(x - breaks[piece], 2)
    total, power = 0.0 * c[0][piece], 1.0
    for k in range(nu, c.shape[0]):  # in ascending order, as SciPy adds
        total = total + c[c.shape[0] - 1 - k][piece] * power * float(math.perm(k, nu))
        power = power * h
    return _nan_outside(total, breaks, x, extrapolate)


def evaluate(c: NDArray[Any], breaks: NDArray[Any], x: NDArray[Any], nu: int, extrapolate: bool, out: NDArray[Any]) -> None:
    """Write the values of a piecewise polynomial, or of its derivative of order `nu`, into `out`."""
    out[...] = _values(c, breaks, x, nu, extrapolate)


def evaluate_bernstein(
    c: NDArray[Any], breaks: NDArray[Any], x: NDArray[Any], nu: int, extrapolate: bool, out: NDArray[Any]
) -> None:
    """As `evaluate`, for coefficients in Bernstein's basis, by de Casteljau's scheme."""
    for _ in range(nu):
        c = (c.shape[0] - 1) * np.diff(c, axis=0) / to_column(np.diff(breaks), 2) if c.shape[0] > 1 else np.zeros_like(c)
    piece = _piece_of(breaks, x)
    s = to_column((x - breaks[piece]) / (breaks[piece + 1] - breaks[piece]), 2)
    level = [row[piece] for row in c]
    while len(level) > 1:
        level = [(1 - s) * a + s * b for a, b in itertools.pairwise(level)]
    out[...] = _nan_outside(level[0], breaks, x, extrapolate)


def fix_continuity(c: NDArray[Any], breaks: NDArray[Any], order: int) -> None:
    """Set the coefficients of the powers up to `order` such that the derivatives up to this order are continuous."""
    h = to_column(np.diff(breaks)[:-1], 2)
    last = c.shape[0] - 1
    for k in range(order, -1, -1):
        jump: Any = 0.0
        for j in range(last, k, -1):
            jump = (jump + math.comb(j, k) * c[last - j][:-1]) * h
        c[last - k, 1:] = c[last - k, 0] + np.cumsum(jump, axis=0)


def integrate(c: NDArray[Any], breaks: NDArray[Any], a: Any, b: Any, extrapolate: bool, out: NDArray[Any]) -> None:
    """Write the integrals from `a` to `b` into `out`."""
    antiderivative = c / to_column(np.arange(c.shape[0], 0, -1.0), 3)
    area: Any = 0.0
    for coefficient in antiderivative:
        area = (area + coefficient) * to_column(np.diff(breaks), 2)
    start = np.concatenate([np.zeros_like(area[:1]), np.cumsum(area, axis=0)[:-1]])
    first, last = _values(np.concatenate([antiderivative, start[None]]), breaks, np.stack([a, b]), 0, extrapolate)
    out[...] = last - first


def lagrange(x: NDArray[Any], w: NDArray[Any]) -> Any:
    """``scipy.interpolate.lagrange``; SciPy's intermediate ``np.poly1d`` objects drop leading zeros and their derivatives."""
    x, w = to_array(x), to_array(w)
    total = 0.0
    for j in range(len(x)):
        polynomial = np.ones(1)
        for k in range(len(x)):
            if k != j:
                polynomial = np.convolve(polynomial, np.stack([np.ones_like(x[k]), -x[k]])) / (x[j] - x[k])
        total = total + w[j] * polynomial
    return np.poly1d(total)


def _lagrange_derivatives(points: NDArray[Any], values: object, x: NDArray[Any], count: int) -> list[Any]:
    """The interpolating polynomial and its derivatives at `x`, as `count` arrays.

    Derivatives are computed at the points by a differentiation matrix, and interpolated.
    """
    n = len(points)
    is_same = np.eye(n, dtype=bool)
    gaps = np.where(is_same, 1.0, points[:, None] - points)
    scale = 4.0 / np.ptp(to_numpy(points)) if n > 1 else 1.0
    weights = 1 / np.prod(gaps * np.where(is_same, 1.0, scale), axis=1)
    factors = np.where(is_same, 1.0, (x[:, None, None] - points) * scale)  # for each x, its distances to all points but one
    matrix = np.prod(factors, axis=2) * weights
    derivatives = [matrix @ values]
    if count > 1:  # J.-P. Berrut and L. N. Trefethen, "Barycentric Lagrange interpolation", SIAM Rev. 46 (2004), (9.4), (9.5)
        slopes = np.where(is_same, 0.0, weights / (gaps * weights[:, None]))
        slopes = slopes - np.where(is_same, np.sum(slopes, axis=1)[:, None], 0.0)
        for _ in range(count - 1):
            values = slopes @ values
            derivatives.append(matrix @ values)
    return derivatives


def barycentric_evaluate(self: Any, x: NDArray[Any]) -> Any:
    """``BarycentricInterpolator._evaluate``; SciPy copies the values at the points, which loses the derivative there."""
    return _lagrange_derivatives(self.xi, self.yi, x, 1)[0]


def barycentric_derivatives(self: Any, x: NDArray[Any], der: int | None = None, all_lower: bool = True) -> Any:
    """``BarycentricInterpolator._evaluate_derivatives``, replaced for the same reason."""
    derivatives = _lagrange_derivatives(self.xi, self.yi, x, len(self.xi) if der is None else der)
    return np.stack(derivatives) if all_lower else derivatives[-1]
