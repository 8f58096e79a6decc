"""Rules of polynomials, represented by their coefficients or their roots; linear interpolation and evenly spaced grids."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from compgraph.array_types import Array
from compgraph.bind import bind
from compgraph.guards import evaluate_guarded
from compgraph.ops import ensure_array

from ..rules import general, linear, record_getitem, scatter, unbroadcast


def _polyval_x(g: NDArray[Any], out: NDArray[Any], p: NDArray[Any], x: NDArray[Any]) -> Any:
    degrees = np.reshape(np.arange(len(p) - 1, 0, -1), (-1, *[1] * (np.ndim(p) - 1)))
    return g * np.polyval(p[:-1] * degrees, x)


def _polyval_p(g: NDArray[Any], out: NDArray[Any], p: NDArray[Any], x: NDArray[Any]) -> Any:
    """Multiply by the power of x of each coefficient; a coefficient may be an array that broadcasts against x."""
    degrees = np.reshape(np.arange(len(p) - 1, -1, -1), (-1, *[1] * out.ndim))
    terms = g * ensure_array(x) ** degrees
    return np.reshape(unbroadcast(terms, (len(p), *[1] * (out.ndim + 1 - p.ndim), *p.shape[1:])), p.shape)


def _convolve(a: NDArray[Any], b: NDArray[Any]) -> Any:
    """Return the coefficients of a product: the sum of the rows of the outer product, with row k shifted by k positions."""
    n, m = len(a), len(b)
    padded = np.concatenate([np.outer(a, b), np.zeros((n, n), b.dtype)], axis=1)
    return np.sum(np.reshape(np.ravel(padded)[: n * (n + m - 1)], (n, n + m - 1)), axis=0)


def _correlate(a: NDArray[Any], b: NDArray[Any]) -> Any:
    """Compute ``sum of a[k + j] b[j]`` for each k: the transpose of a convolution with b."""
    return _convolve(a, b[::-1])[len(b) - 1 : len(a)]


def _pad_leading(p: NDArray[Any], length: int) -> Any:
    """Prepend zeros to coefficients."""
    return np.concatenate([np.zeros(length - len(p), p.dtype), p])


def _strip_leading(p: NDArray[Any]) -> tuple[int, Any]:
    """Return the number of leading zeros of a polynomial and its other coefficients; the last coefficient always remains."""
    p = np.ravel(p)
    num_zeros = evaluate_guarded("how many leading zeros a polynomial has", _leading_zeros, p)
    return num_zeros, p[num_zeros:]


def _leading_zeros(p: NDArray[Any]) -> int:
    nonzero_indices = np.flatnonzero(p)
    return int(nonzero_indices[0]) if nonzero_indices.size else len(p) - 1


def _polymul_a(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    return np.reshape(_pad_leading(_correlate(g, _strip_leading(b)[1]), a.size), a.shape)


def _polymul_tangent(t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    return _convolve(np.ravel(t)[_strip_leading(a)[0] :], _strip_leading(b)[1])


polyval_grad = general("polyval", _polyval_p, _polyval_x).tangent(lambda t, out, p, x: np.polyval(t, x), _polyval_x)
polymul_grad = general("polymul", _polymul_a, lambda g, out, a, b: _polymul_a(g, out, b, a)).tangent(
    _polymul_tangent, lambda t, out, a, b: _polymul_tangent(t, out, b, a)
)


# polydiv(u, v) is (q, r) with u = conv(q, v) + r, and leading zeros of r are removed.


def _polydiv_u(g: Any, out: NDArray[Any], u: Array, v: Array) -> Any:
    """Solve with the transposed triangular matrix: the same division with the order of all coefficients reversed."""
    u, v = np.ravel(u), np.ravel(v)
    gq, gr = g
    from_remainder = np.zeros_like(u) if gr is None else _pad_leading(gr, len(u))
    if len(u) < len(v):
        return from_remainder
    total = -_correlate(from_remainder, v)
    if gq is not None:
        total = total + gq
    padding = np.zeros(len(v) - 1, total.dtype)
    quotient = np.polydiv(np.concatenate([total[::-1], padding]), v)[0]
    return from_remainder + np.concatenate([quotient[::-1], padding])


def _polydiv_v(g: NDArray[Any], out: Any, u: Array, v: NDArray[Any]) -> Any:
    if np.size(u) < np.size(v):
        return np.zeros_like(v)
    return np.reshape(-_correlate(_polydiv_u(g, out, u, v), out[0]), v.shape)


def _polydiv_tangent(t: Array, out: Any, u: object, v: Array) -> Any:
    t, v = np.ravel(t), np.ravel(v)
    if len(t) < len(v):
        return np.zeros_like(out[0]), t[len(t) - len(out[1]) :]
    quotient = np.polydiv(t, v)[0]
    return quotient, (t - _convolve(quotient, v))[len(t) - len(out[1]) :]


def _polydiv_v_tangent(t: NDArray[Any], out: tuple[Any, ...], u: Array, v: NDArray[Any]) -> Any:
    if np.size(u) < np.size(v):
        return np.zeros_like(out[0]), np.zeros_like(out[1])
    return _polydiv_tangent(-_convolve(out[0], np.ravel(t)), out, u, v)


polydiv_grad = (
    general("polydiv", lambda g, out, u, v: np.reshape(_polydiv_u(g, out, u, v), u.shape), _polydiv_v)
    .tangent(_polydiv_tangent, _polydiv_v_tangent)
    .not_batchable()
)


def _polyder(g: NDArray[Any], out: NDArray[Any], p: NDArray[Any], m: int = 1) -> Any:
    lowered = g * np.polyder(np.ones(len(p)), m)
    return np.concatenate([lowered, np.zeros(len(p) - len(lowered), g.dtype)])


def _polyint(g: NDArray[Any], out: NDArray[Any], p: NDArray[Any], m: int = 1, k: Array | tuple[int, ...] | None = None) -> Any:
    return g[: len(p)] * np.polyint(np.ones(len(p)), m)[: len(p)]


# The terms of the constants of integration are k[i] x**(m - 1 - i) / (m - 1 - i)!. A single constant is repeated.


def _inverse_factorials(m: int) -> Any:
    """Return ``1 / (m - 1 - i)!`` for i from 0 to m - 1."""
    return 1 / np.cumprod(np.maximum(np.arange(m), 1.0))[::-1]


def _polyint_k(g: NDArray[Any], out: NDArray[Any], p: object, m: int = 1, k: Any = None) -> Any:
    cotangents = g[len(out) - m :] * _inverse_factorials(m)
    num_constants = np.size(k)
    if num_constants == 1:
        return np.sum(cotangents)
    return np.concatenate([cotangents, np.zeros(num_constants - m, out.dtype)])


def _polyint_k_tangent(t: NDArray[Any], out: NDArray[Any], p: object, m: int = 1, k: object = None) -> Any:
    return np.concatenate([np.zeros(len(out) - m, out.dtype), np.ravel(t)[:m] * _inverse_factorials(m)])


def _monic_from_roots(roots: Any) -> Any:
    """Compute ``numpy.poly``, but complex for complex roots: NumPy returns real coefficients for conjugate pairs."""
    factors = [np.concatenate([np.ones(1, roots.dtype), -roots[i : i + 1]]) for i in range(len(roots))]
    return functools.reduce(_convolve, factors, np.ones(1, roots.dtype))


def _characteristic_derivatives(out: NDArray[Any], a: NDArray[Any]) -> list[Any]:
    """Return the derivatives of the coefficients of a characteristic polynomial, ``-(a**k + c[1] a**(k-1) + ... + c[k]).T``.

    They are the coefficients of the adjugate of ``x - a`` (Faddeev and LeVerrier), so repeated eigenvalues are allowed.
    """
    identity = np.eye(a.shape[0])
    adjugate_coefficients = [identity]
    for k in range(1, a.shape[0]):
        adjugate_coefficients.append(np.matmul(a, adjugate_coefficients[-1]) + out[k] * identity)
    return [-np.transpose(b) for b in adjugate_coefficients]


def _poly(g: NDArray[Any], out: NDArray[Any], roots: NDArray[Any]) -> Any:
    """Contract with the derivatives: with respect to a root, minus the polynomial of the other roots."""
    if roots.ndim == 2:
        return sum(g[k + 1] * slope for k, slope in enumerate(_characteristic_derivatives(out, roots)))
    flat_roots = np.ravel(roots)
    if flat_roots.size < 2:
        return -g[1:] if flat_roots.size else np.zeros_like(flat_roots)
    others = [np.concatenate([flat_roots[:i], flat_roots[i + 1 :]]) for i in range(flat_roots.size)]
    return np.stack([-np.sum(g[1:] * _monic_from_roots(other_roots)) for other_roots in others])


def _poly_tangent(t: NDArray[Any], out: Any, roots: Any) -> Any:
    if roots.ndim == 2:
        coefficient_tangents = [np.sum(slope * t) for slope in _characteristic_derivatives(out, roots)]
        return np.stack([np.zeros_like(coefficient_tangents[0]), *coefficient_tangents])
    flat_roots, t = np.ravel(roots), np.ravel(t)
    if flat_roots.size < 2:
        return np.concatenate([np.zeros(1), -t]) if flat_roots.size else _poly(t, out, roots) + 0.0
    others = [np.concatenate([flat_roots[:i], flat_roots[i + 1 :]]) for i in range(flat_roots.size)]
    slopes = np.stack([np.concatenate([np.zeros(1), -_monic_from_roots(other_roots)]) for other_roots in others])
    return np.sum(t[:, None] * slopes, axis=0)


def _roots(g: NDArray[Any], out: NDArray[Any], p: NDArray[Any]) -> Any:
    """Contract with the derivatives of the roots: minus the change of the polynomial at a root, divided by its slope."""
    powers = out[:, None] ** np.arange(len(p) - 1, -1, -1)
    return np.sum((-g / np.polyval(np.polyder(p), out))[:, None] * powers, axis=0)


polyder_grad = linear("polyder", _polyder)
polyint_grad = general("polyint", _polyint, _polyint_k).tangent(
    lambda t, out, p, m=1, k=None: np.polyint(t, m), _polyint_k_tangent
)
poly_grad = general("poly", _poly).tangent(_poly_tangent)
roots_grad = general("roots", _roots).tangent(lambda t, out, p: -np.polyval(t, out) / np.polyval(np.polyder(p), out))


def _weighted_sum_along(g: NDArray[Any], weights: NDArray[Any], axis: int) -> Any:
    """Return the weighted sum of the cotangent along an axis."""
    return np.sum(g * np.reshape(weights, (-1, *[1] * (g.ndim - 1 - axis % g.ndim))), axis=axis)


def _grid_fractions(num: int, endpoint: bool) -> tuple[Any, int]:
    """Return the position of each grid point from 0 to 1, and the number of steps."""
    steps = int(num) - 1 if endpoint else int(num)
    return np.arange(num) / max(steps, 1), steps


def _linspace(sign: int, g: NDArray[Any], out: NDArray[Any], num: Any, endpoint: Any, retstep: object, axis: int) -> Any:
    """Return the cotangent of start (-1) or stop (1) from those of the grid and of the step."""
    shares, steps = _grid_fractions(num, endpoint)
    points, step = g if retstep else (g, None)
    grid = out[0] if retstep else out
    total = np.zeros(())
    if points is not None and grid.dtype.kind in "fc":
        total = total + _weighted_sum_along(points, shares if sign > 0 else 1 - shares, axis)
    return total if step is None else total + step * (sign / steps)


linspace_grad = linear(
    "linspace",
    lambda g, out, start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0: _linspace(
        -1, g, out, num, endpoint, retstep, axis
    ),
    lambda g, out, start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0: _linspace(
        1, g, out, num, endpoint, retstep, axis
    ),
)


def _geomspace(position: int) -> tuple[Any, Any]:
    """Return the formulas of start (0) or stop (1) for both modes: each point is ``start**(1 - share) * stop**share``."""

    def formula(
        g: NDArray[Any],
        out: Array,
        *knots: Any,
        num: int = 50,
        endpoint: bool = True,
        dtype: DTypeLike | None = None,
        axis: int = 0,
    ) -> Any:
        shares, _ = _grid_fractions(num, endpoint)
        return _weighted_sum_along(g * out, shares if position else 1 - shares, axis) / knots[position]

    def tangent(
        t: Array, out: Array, *knots: Any, num: int = 50, endpoint: bool = True, dtype: DTypeLike | None = None, axis: int = 0
    ) -> Any:
        shares, _ = _grid_fractions(num, endpoint)
        axis_position = axis % out.ndim
        relative_tangent = np.broadcast_to(t / knots[position], out.shape[:axis_position] + out.shape[axis_position + 1 :])
        weights = np.reshape(shares if position else 1 - shares, (-1, *[1] * (out.ndim - 1 - axis_position)))
        return np.expand_dims(relative_tangent, axis) * weights * out

    return formula, tangent


_geomspace_start, _geomspace_stop = _geomspace(0), _geomspace(1)
geomspace_grad = general("geomspace", _geomspace_start[0], _geomspace_stop[0]).tangent(_geomspace_start[1], _geomspace_stop[1])


# --------------------------------------------------------------------------------------- interpolation


class _PiecewiseLine:
    """The piecewise linear function of ``interp``, and the position of the points on it.

    Attributes
    ----------
    order : array
        The position in `xp` of each knot, in ascending order; periodic data has one more knot at either end.
    left_positions, right_positions : array
        The positions in `xp` of the knots to the left and right of each point.
    share : array or Node
        The position of the point between left and right knot, from 0 to 1.
    slope : array or Node
        The slope at the point; at a knot, the mean of both sides.
    below, above : array
        Whether the point has the value of `left` or `right`.
    """

    def __init__(self, x: NDArray[Any], xp: Any, fp: object, left: Any = None, right: Any = None, period: Any = None) -> None:
        xp, fp = (a if hasattr(a, "dtype") else np.asarray(a) for a in (xp, fp))
        self.order = np.arange(xp.shape[0])
        knots = xp
        if period is not None:
            order = np.argsort(xp % abs(period))
            self.order = np.concatenate([order[-1:], order, order[:1]])
            offsets = np.concatenate([[-1], np.zeros(len(order)), [1]]) * abs(period)
            x, knots = np.remainder(x, abs(period)), record_getitem(np.remainder(xp, abs(period)), self.order) + offsets
        last = knots.shape[0] - 1
        left_index, right_index = (np.searchsorted(knots, x, side=side) for side in ("left", "right"))
        low = np.clip(right_index - 1, 0, max(last - 1, 0))
        high = np.minimum(low + 1, last)
        self.left_positions, self.right_positions = record_getitem(self.order, low), record_getitem(self.order, high)
        length = record_getitem(knots, high) - record_getitem(knots, low)
        self.share = np.clip((x - record_getitem(knots, low)) / np.where(length == 0, 1, length), 0, 1)
        lengths = np.diff(knots)
        slopes = np.diff(record_getitem(fp, self.order)) / np.where(lengths == 0, 1, lengths)
        slopes = np.concatenate([np.zeros(1), slopes, np.zeros(1)])  # constant outside of the knots
        slope = (record_getitem(slopes, left_index) + record_getitem(slopes, right_index)) / 2
        self.slope = np.where(np.isnan(x), np.nan, slope)
        self.below = (x < knots[0]) & (left is not None and period is None)
        self.above = (x > knots[-1]) & (right is not None and period is None)

    def scatter_to_knots(self, g: NDArray[Any], like: Any) -> Any:
        """Add the cotangents of the points, weighted, at their knots to zeros like `like`."""
        g = np.real(g) if np.iscomplexobj(g) and not np.iscomplexobj(like) else g
        updates = (g * (1 - self.share), self.left_positions, g * self.share, self.right_positions)
        return bind(scatter, (like, *updates), {"index_counts": (1, 1)})

    def interpolate(self, t: NDArray[Any]) -> Any:
        """Interpolate values at the knots."""
        return record_getitem(t, self.left_positions) * (1 - self.share) + record_getitem(t, self.right_positions) * self.share

    def mask_outside(self, g: NDArray[Any]) -> Any:
        """Return zero where a point has the value of `left` or `right`."""
        return np.where(self.below | self.above, 0, g)


def _interp_x(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], *others: object, **options: object) -> Any:
    return g * _PiecewiseLine(x, *others, **options).slope


def _interp_xp(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], xp: Any, *others: object, **options: object) -> Any:
    line = _PiecewiseLine(x, xp, *others, **options)
    return line.scatter_to_knots(-g * line.slope, xp)


def _interp_xp_tangent(t: NDArray[Any], out: NDArray[Any], x: NDArray[Any], xp: Any, *others: object, **options: object) -> Any:
    line = _PiecewiseLine(x, xp, *others, **options)
    return -line.slope * line.interpolate(t)


def _interp_fp(
    g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], xp: Array, fp: Any, *others: object, **options: object
) -> Any:
    line = _PiecewiseLine(x, xp, fp, *others, **options)
    return line.scatter_to_knots(line.mask_outside(g), fp)


def _interp_fp_tangent(t: NDArray[Any], out: NDArray[Any], *operands: Any, **options: Any) -> Any:
    line = _PiecewiseLine(*operands, **options)
    return line.mask_outside(line.interpolate(t))


def _interp_left(g: NDArray[Any], out: NDArray[Any], *operands: Any, **options: Any) -> Any:
    return np.where(_PiecewiseLine(*operands, **options).below, g, 0)


def _interp_right(g: NDArray[Any], out: NDArray[Any], *operands: Any, **options: Any) -> Any:
    return np.where(_PiecewiseLine(*operands, **options).above, g, 0)


interp_grad = general("interp", _interp_x, _interp_xp, _interp_fp, _interp_left, _interp_right).tangent(
    _interp_x, _interp_xp_tangent, _interp_fp_tangent, _interp_left, _interp_right
)
