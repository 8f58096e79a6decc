"""Rules of ``scipy.ndimage``.

A linear filter extends each line, and correlates it with the weights where they overlap wholly. Its transpose is the transposed
correlation, with the elements beyond the ends folded back to the elements that they repeat.

The interpolated value at a point is a sum over the coefficients around it, weighted by B-splines of the distances: linear in the
coefficients, and as smooth in the coordinates as the splines (M. Unser, "Splines: a perfect fit for signal and image processing",
1999). Where two pieces of a spline meet, the derivative is that of the right one.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from compgraph.bind import bind
from compgraph.graph import to_values
from compgraph.nn import cross_correlate_back, cross_correlate_kernel
from compgraph.scipy.ndimage import kernels

from ...rules import general, linear, scatter

# -------------------------------------------------------------------------------------------------------- linear filters


def _ends(size: int, origin: int) -> dict[str, int]:
    """Return the extension of a line at both ends for weights of a size."""
    return {"before": size // 2 + origin, "after": size - size // 2 - 1 - origin}


def _lines(x: NDArray[Any], axis: int) -> Any:
    """Reshape an array to lines along an axis, with one channel each."""
    moved = np.moveaxis(x, axis, -1)
    return np.reshape(moved, (-1, 1, moved.shape[-1]))


def _constant(x: NDArray[Any], axis: int, ends: dict[str, int], mode: int, cval: float) -> Any:
    """Return the extended array, including constant values outside."""
    extended_array = kernels.extend_array(x, axis=axis, mode=mode, **ends)
    if mode not in (kernels.CONSTANT, kernels.GRID_CONSTANT) or not cval:
        return extended_array
    outside = kernels.positions(x.shape[axis], ends["before"], ends["after"], mode) < 0
    return np.where(np.reshape(outside, (-1, *[1] * (x.ndim - 1 - axis % x.ndim))), cval, extended_array)


def _back1d(g: NDArray[Any], weights: Any, axis: int, mode: int, origin: int) -> Any:
    """Compute the transpose of a correlation along an axis."""
    ends = _ends(weights.shape[0], origin)
    length = g.shape[axis] + weights.shape[0] - 1
    lines = cross_correlate_back(_lines(g, axis), weights[None, None], np.zeros((1, 1, length)))
    moved = np.reshape(lines, (*np.moveaxis(g, axis, -1).shape[:-1], length))
    return kernels.fold_array(np.moveaxis(moved, -1, axis), axis=axis, mode=mode, **ends)


def _weights1d(
    g: NDArray[Any],
    out: NDArray[Any],
    x: NDArray[Any],
    weights: Any,
    axis: int,
    mode: int,
    cval: float,
    origin: int,
    dtype: DTypeLike | None,
) -> Any:
    whole = _constant(x, axis, _ends(weights.shape[0], origin), mode, cval)
    return cross_correlate_kernel(_lines(whole, axis), _lines(g, axis), np.zeros((1, 1, weights.shape[0])))[0, 0]


def _changed(t: NDArray[Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options for a tangent, which is zero outside."""
    return {**options, "cval": 0.0, "dtype": t.dtype}


ndimage_correlate1d_grad = general(
    "ndimage_correlate1d",
    lambda g, out, x, w, axis, mode, cval, origin, dtype: _back1d(g, w, axis, mode, origin),
    _weights1d,
).tangent(
    lambda t, out, x, w, **options: kernels.correlate1d(t, w, **_changed(t, options)),
    lambda t, out, x, w, **options: kernels.correlate1d(x, t, **{**options, "dtype": t.dtype}),
)


def _uniform(
    g: NDArray[Any],
    out: NDArray[Any],
    x: NDArray[Any],
    size: int,
    axis: int,
    mode: int,
    cval: float,
    origin: int,
    dtype: DTypeLike | None,
) -> Any:
    return _back1d(g, np.full(size, 1 / size, g.dtype), axis, mode, origin)


ndimage_uniform_filter1d_grad = general("ndimage_uniform_filter1d", _uniform).tangent(
    lambda t, out, x, **options: kernels.uniform_filter1d(t, **_changed(t, options))
)


def _back(
    g: NDArray[Any],
    out: NDArray[Any],
    x: NDArray[Any],
    weights: Any,
    mode: int,
    cval: float,
    origins: Any,
    dtype: DTypeLike | None,
) -> Any:
    lengths = [n + m - 1 for n, m in zip(g.shape, weights.shape, strict=True)]
    cotangent = cross_correlate_back(g[None, None], weights[None, None], np.zeros((1, 1, *lengths)))[0, 0]
    for axis in range(g.ndim):
        cotangent = kernels.fold_array(cotangent, axis=axis, mode=mode, **_ends(weights.shape[axis], origins[axis]))
    return cotangent


def _weights(
    g: NDArray[Any],
    out: NDArray[Any],
    x: NDArray[Any],
    weights: Any,
    mode: int,
    cval: float,
    origins: Any,
    dtype: DTypeLike | None,
) -> Any:
    for axis in range(g.ndim):
        x = _constant(x, axis, _ends(weights.shape[axis], origins[axis]), mode, cval)
    return cross_correlate_kernel(x[None, None], g[None, None], np.zeros((1, 1, *weights.shape)))[0, 0]


ndimage_correlate_grad = general("ndimage_correlate", _back, _weights).tangent(
    lambda t, out, x, w, **options: kernels.correlate(t, w, **_changed(t, options)),
    lambda t, out, x, w, **options: kernels.correlate(x, t, **{**options, "dtype": t.dtype}),
)

# ------------------------------------------------------------------------------------------------ ends


ndimage_extended_grad = linear("ndimage_extended", lambda g, out, x, **options: kernels.fold_array(g, **options))
ndimage_folded_grad = linear("ndimage_folded", lambda g, out, x, **options: kernels.extend_array(g, **options))


# --------------------------------------------------------------------------------------------------------------- splines

# The mode in which coefficients are extended beyond the ends.
_SPLINE_MODES = {kernels.CONSTANT: kernels.MIRROR, kernels.WRAP: kernels.MIRROR}


def _end_weights(x: NDArray[Any], axis: int, mode: int) -> Any:
    """1/2 at both ends, where a mirrored line has an element once and all others twice; else 1."""
    n = x.shape[axis]
    weights = np.ones(n, x.dtype)
    if mode in (kernels.MIRROR, kernels.CONSTANT, kernels.GRID_CONSTANT, kernels.WRAP) and n > 1:
        weights[[0, -1]] = 0.5
    return np.reshape(weights, (-1, *[1] * (x.ndim - 1 - axis % x.ndim)))


def _spline_transposed(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], order: int, axis: int, mode: int) -> Any:
    """Compute the transpose of the filter, which is symmetric over a period of the extended line."""
    if mode in (kernels.REFLECT, kernels.NEAREST):
        return kernels.spline_filter1d_back(g, order=order, axis=axis, mode=mode)
    weights = _end_weights(g, axis, mode)
    return weights * kernels.spline_filter1d(g / weights, order=order, axis=axis, mode=mode)


ndimage_spline_filter1d_grad = linear("ndimage_spline_filter1d", _spline_transposed)
ndimage_spline_filter1d_back_grad = linear(
    "ndimage_spline_filter1d_back", lambda g, out, x, **options: kernels.spline_filter1d(g, **options)
)


def _within(x: NDArray[Any], n: int, mode: int) -> tuple[Any, Any, Any]:
    """Factors and summands that bring places into a line of length n, and whether a place lies beyond it for good."""
    beyond = (x < 0) | (x > n - 1)
    one, zero = np.ones_like(x), np.zeros_like(x)
    if mode in (kernels.NEAREST, kernels.GRID_CONSTANT, kernels.CONSTANT):
        return one, zero, beyond & (mode == kernels.CONSTANT)
    if n == 1:
        return zero, zero, beyond & False
    if mode in (kernels.WRAP, kernels.GRID_WRAP):
        period = n - 1 if mode == kernels.WRAP else n
        if mode == kernels.WRAP:
            turns = np.where(x < 0, np.trunc(-x / period) + 1, -np.trunc(x / period))
        else:
            turns = np.where(x < 0, np.trunc((-1 - x) / n) + 1, -np.trunc(x / n))
        return one, np.where(beyond, turns * period, 0.0), beyond & False
    period = 2 * n - 2 if mode == kernels.MIRROR else 2 * n
    folded = x - period * np.floor(x / period)
    is_over = np.where((mode == kernels.MIRROR) & (x < 0), folded > n - 1, folded >= n)  # as in SciPy, for ties of order 0
    turned = beyond & is_over
    shift = np.where(beyond, folded - x, 0.0)
    end = period if mode == kernels.MIRROR else period - 1
    return np.where(turned, -1.0, 1.0), np.where(turned, end - shift, shift), beyond & False


def _b_spline(u: NDArray[Any], order: int, derivative: int = 0) -> Any:
    """A centred B-spline at u, by truncated powers (C. de Boor, "A practical guide to splines", IX)."""
    power = order - derivative
    if power < 0:
        return u * 0.0
    numbers = to_values(u)
    total: Any = 0.0
    for j in range(order + 2):
        place = (order + 1) / 2 - j
        sign = (-1) ** j * math.comb(order + 1, j) / math.factorial(power)
        total = total + np.where(numbers + place >= 0, sign, 0.0) * (u + place) ** power
    return total


class _Places:
    """The interpolation points: for each axis, the indices of coefficients and the distances to them."""

    def __init__(self, c: NDArray[Any], coordinates: Any, order: int, mode: int, padding: int) -> None:
        self.c, self.order, self.mode = c, order, mode
        numbers = np.asarray(to_values(coordinates), np.float64)
        self.outside = np.zeros(numbers.shape[1:], bool)
        self.starts, self.distances, self.signs = [], [], []
        for axis in range(c.ndim):
            sign, shift, beyond = _within(numbers[axis] + padding, c.shape[axis], mode)
            self.outside |= beyond
            shift = shift + sign * padding
            place = sign * numbers[axis] + shift
            start = np.floor(place if order & 1 else place + 0.5).astype(np.int64) - order // 2
            self.starts.append(start)
            self.signs.append(sign)
            self.distances.append(sign * coordinates[axis] + (shift - start))

    def terms(self, slope: int | None = None) -> Any:
        """For each combination of neighbours its weights, and its places among the coefficients.

        With `slope`, the weights are their derivatives by the coordinate along that axis.
        """
        each = []
        for axis in range(self.c.ndim):
            u, derivative = self.distances[axis], int(axis == slope)
            weights = [_b_spline(u - k, self.order, derivative) for k in range(self.order + 1)]
            if derivative:
                weights = [w * self.signs[axis] for w in weights]
            each.append(list(zip(weights, range(self.order + 1), strict=True)))
        for combination in itertools.product(*each):
            weight: Any = np.where(self.outside, 0.0, 1.0)
            flat, there = np.zeros(self.outside.shape, np.int64), ~self.outside
            for axis, (w, k) in enumerate(combination):
                weight = weight * w
                n = self.c.shape[axis]
                places = _folded(self.starts[axis] + k, n, _SPLINE_MODES.get(self.mode, self.mode))
                there = there & (places >= 0)
                flat = flat * n + np.maximum(places, 0)
            yield weight, flat, there

    def value(self, c: NDArray[Any], slope: int | None = None, cval: float = 0.0) -> Any:
        """Return the interpolated values, or their slopes."""
        flat_c = np.ravel(c)
        total: Any = 0.0
        for weight, flat, there in self.terms(slope):
            total = total + weight * np.where(there, flat_c[flat], cval if self.mode == kernels.GRID_CONSTANT else 0.0)
        return total

    def transposed(self, g: NDArray[Any]) -> Any:
        """Scatter each element of `g` to its coefficients: the transpose of the interpolation."""
        pieces, indices = [], []
        for weight, flat, there in self.terms():
            pieces.append(np.ravel(weight * g)[np.ravel(there)])
            indices.append(flat[there])
        total = bind(scatter, (np.ravel(self.c), np.concatenate(pieces), np.concatenate(indices)), {"layout": (1,)})
        return np.reshape(total, self.c.shape)


def _folded(j: NDArray[Any], n: int, mode: int) -> Any:
    """As `kernels.positions`, of any places."""
    before, after = max(0, -int(np.min(j, initial=0))), max(0, int(np.max(j, initial=0)) - n + 1)
    return kernels.positions(n, before, after, mode)[j + before]


def _by_coefficients(
    g: NDArray[Any],
    out: NDArray[Any],
    c: NDArray[Any],
    coordinates: object,
    order: int,
    mode: int,
    cval: float,
    padding: int,
    dtype: DTypeLike | None,
) -> Any:
    return _Places(c, coordinates, order, mode, padding).transposed(g)


def _slopes(
    c: NDArray[Any], coordinates: object, order: int, mode: int, cval: float, padding: int, dtype: DTypeLike | None
) -> Any:
    places = _Places(c, coordinates, order, mode, padding)
    return np.stack([places.value(c, axis, cval) for axis in range(c.ndim)])


ndimage_interpolated_grad = general(
    "ndimage_interpolated", _by_coefficients, lambda g, out, c, at, **options: g * _slopes(c, at, **options)
).tangent(
    lambda t, out, c, at, **options: kernels.interpolate(t, at, **{**options, "cval": 0.0, "dtype": t.dtype}),
    lambda t, out, c, at, **options: np.sum(t * _slopes(c, at, **options), axis=0),
)
