"""Rules of ``scipy.ndimage``.

A linear filter extends each line, and correlates it with the weights where they overlap completely. Its transpose is the
transposed correlation, whose elements beyond the ends are added to the elements that they repeat.

The interpolated value at a point is a sum over the coefficients around it, weighted by B-splines of the distances. It is linear
in the coefficients, and as smooth in the coordinates as the splines (M. Unser, "Splines: a perfect fit for signal and image
processing", 1999). Where two pieces of a spline meet, the derivative is that of the right one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.bind import bind
from compgraph.graph import to_values
from compgraph.nn import cross_correlate_back, cross_correlate_kernel
from compgraph.scipy.ndimage import kernels

from ...rules import general, linear, scatter

# -------------------------------------------------------------------------------------------------------- linear filters


def _lines(x: NDArray[Any], axis: int) -> Any:
    """Reshape an array to lines along an axis, with one channel each."""
    last = np.moveaxis(x, axis, -1)
    return np.reshape(last, (-1, 1, last.shape[-1]))


def _transposed_correlate1d(g: NDArray[Any], weights: NDArray[Any], axis: int, mode: int, origin: int) -> Any:
    """Compute the transpose of a correlation along an axis."""
    ends = kernels.ends_of(weights.shape[0], origin)
    length = g.shape[axis] + weights.shape[0] - 1
    lines = cross_correlate_back(_lines(g, axis), weights[None, None], np.zeros((1, 1, length)))
    extended = np.moveaxis(np.reshape(lines, (*np.moveaxis(g, axis, -1).shape[:-1], length)), -1, axis)
    return kernels.fold_array(extended, axis=axis, mode=mode, **ends)


def _pull_weights1d(
    g: Any, out: object, x: Any, weights: Any, axis: int, mode: int, cval: float, origin: int, **_: object
) -> Any:
    extended = kernels.extend(x, axis, kernels.ends_of(weights.shape[0], origin), mode, cval)
    return cross_correlate_kernel(_lines(extended, axis), _lines(g, axis), np.zeros((1, 1, weights.shape[0])))[0, 0]


def _tangent_options(t: NDArray[Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that apply a filter to a tangent, which is zero outside of the array."""
    return {**options, "cval": 0.0, "dtype": t.dtype}


ndimage_correlate1d_grad = general(
    "ndimage_correlate1d",
    lambda g, out, x, w, axis, mode, cval, origin, dtype: _transposed_correlate1d(g, w, axis, mode, origin),
    _pull_weights1d,
).tangent(
    lambda t, out, x, w, **options: kernels.correlate1d(t, w, **_tangent_options(t, options)),
    lambda t, out, x, w, **options: kernels.correlate1d(x, t, **{**options, "dtype": t.dtype}),
)


def _uniform(g: NDArray[Any], out: object, x: object, size: int, axis: int, mode: int, origin: int, **_: object) -> Any:
    return _transposed_correlate1d(g, np.full(size, 1 / size, g.dtype), axis, mode, origin)


ndimage_uniform_filter1d_grad = general("ndimage_uniform_filter1d", _uniform).tangent(
    lambda t, out, x, **options: kernels.uniform_filter1d(t, **_tangent_options(t, options))
)


def _pull_correlate(
    g: NDArray[Any], out: object, x: object, weights: NDArray[Any], mode: int, origins: Sequence[int], **_: object
) -> Any:
    lengths = [n + m - 1 for n, m in zip(g.shape, weights.shape, strict=True)]
    cotangent = cross_correlate_back(g[None, None], weights[None, None], np.zeros((1, 1, *lengths)))[0, 0]
    for axis in range(g.ndim):
        cotangent = kernels.fold_array(cotangent, axis=axis, mode=mode, **kernels.ends_of(weights.shape[axis], origins[axis]))
    return cotangent


def _pull_weights(
    g: NDArray[Any], out: object, x: Any, weights: NDArray[Any], mode: int, cval: float, origins: Sequence[int], **_: object
) -> Any:
    for axis in range(g.ndim):
        x = kernels.extend(x, axis, kernels.ends_of(weights.shape[axis], origins[axis]), mode, cval)
    return cross_correlate_kernel(x[None, None], g[None, None], np.zeros((1, 1, *weights.shape)))[0, 0]


ndimage_correlate_grad = general("ndimage_correlate", _pull_correlate, _pull_weights).tangent(
    lambda t, out, x, w, **options: kernels.correlate(t, w, **_tangent_options(t, options)),
    lambda t, out, x, w, **options: kernels.correlate(x, t, **{**options, "dtype": t.dtype}),
)

# -------------------------------------------------------------------------------------------------------- extensions


ndimage_extended_grad = linear("ndimage_extended", lambda g, out, x, **options: kernels.fold_array(g, **options))
ndimage_folded_grad = linear("ndimage_folded", lambda g, out, x, **options: kernels.extend_array(g, **options))


# --------------------------------------------------------------------------------------------------------------- splines

# By mode of interpolation: the mode by which coefficients are extended beyond the ends; the same for other modes.
_SPLINE_MODES = {kernels.CONSTANT: kernels.MIRROR, kernels.WRAP: kernels.MIRROR}


def _end_weights(x: NDArray[Any], axis: int, mode: int) -> Any:
    """Return 1/2 at both ends of mirrored lines, where a period has each end once and all others twice; 1 elsewhere."""
    n = x.shape[axis]
    weights = np.ones(n, x.dtype)
    if mode in (kernels.MIRROR, kernels.CONSTANT, kernels.GRID_CONSTANT, kernels.WRAP) and n > 1:
        weights[[0, -1]] = 0.5
    return np.reshape(weights, (-1, *[1] * (x.ndim - 1 - axis % x.ndim)))


def _spline_transposed(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], order: int, axis: int, mode: int) -> Any:
    """Compute the transpose of the spline filter, which is symmetric on a period of the extended line."""
    if mode in (kernels.REFLECT, kernels.NEAREST):
        return kernels.spline_filter1d_back(g, order=order, axis=axis, mode=mode)
    weights = _end_weights(g, axis, mode)
    return weights * kernels.spline_filter1d(g / weights, order=order, axis=axis, mode=mode)


ndimage_spline_filter1d_grad = linear("ndimage_spline_filter1d", _spline_transposed)
ndimage_spline_filter1d_back_grad = linear(
    "ndimage_spline_filter1d_back", lambda g, out, x, **options: kernels.spline_filter1d(g, **options)
)


def _map_into_line(x: NDArray[Any], n: int, mode: int) -> tuple[Any, Any, Any]:
    """Return ``sign``, ``shift`` and ``outside`` of coordinates.

    ``sign * x + shift`` is within a line of length `n`, except where ``outside`` is true: in constant mode.
    """
    beyond = (x < 0) | (x > n - 1)
    one, zero = np.ones_like(x), np.zeros_like(x)
    if mode in (kernels.NEAREST, kernels.GRID_CONSTANT, kernels.CONSTANT):
        return one, zero, beyond & (mode == kernels.CONSTANT)
    if n == 1:
        return zero, zero, beyond & False
    if mode in (kernels.WRAP, kernels.GRID_WRAP):
        period = n - 1 if mode == kernels.WRAP else n
        if mode == kernels.WRAP:
            num_periods = np.where(x < 0, np.trunc(-x / period) + 1, -np.trunc(x / period))
        else:
            num_periods = np.where(x < 0, np.trunc((-1 - x) / n) + 1, -np.trunc(x / n))
        return one, np.where(beyond, num_periods * period, 0.0), beyond & False
    period = 2 * n - 2 if mode == kernels.MIRROR else 2 * n
    folded = x - period * np.floor(x / period)
    in_second_half = np.where((mode == kernels.MIRROR) & (x < 0), folded > n - 1, folded >= n)  # as in SciPy, for ties of order 0
    is_mirrored = beyond & in_second_half
    shift = np.where(beyond, folded - x, 0.0)
    end = period if mode == kernels.MIRROR else period - 1
    return np.where(is_mirrored, -1.0, 1.0), np.where(is_mirrored, end - shift, shift), beyond & False


def _b_spline(u: NDArray[Any], order: int, derivative: int = 0) -> Any:
    """Return a centered B-spline at u, by truncated powers (C. de Boor, "A practical guide to splines", IX)."""
    power = order - derivative
    if power < 0:
        return u * 0.0
    u_values = to_values(u)
    total: Any = 0.0
    for j in range(order + 2):
        offset = (order + 1) / 2 - j
        factor = (-1) ** j * math.comb(order + 1, j) / math.factorial(power)
        total = total + np.where(u_values + offset >= 0, factor, 0.0) * (u + offset) ** power
    return total


class _Points:
    """The interpolation points: for each axis, the index of the first coefficient around them and the distance to it.

    Attributes
    ----------
    c : array or Node
        The coefficients.
    order, mode : int
        The order of the splines, and the mode at the ends.
    outside : array of bool
        Which points have the value ``cval``.
    starts, distances, signs : list of array
        For each axis: the index of the first coefficient, the distance to it, and the derivative of the distance (1, or -1 where
        the line is mirrored).
    """

    def __init__(self, c: NDArray[Any], coordinates: Any, order: int, mode: int, padding: int) -> None:
        self.c, self.order, self.mode = c, order, mode
        coordinate_values = np.asarray(to_values(coordinates), np.float64)
        self.outside = np.zeros(coordinate_values.shape[1:], bool)
        self.starts, self.distances, self.signs = [], [], []
        for axis in range(c.ndim):
            sign, shift, outside = _map_into_line(coordinate_values[axis] + padding, c.shape[axis], mode)
            self.outside |= outside
            shift = shift + sign * padding
            position = sign * coordinate_values[axis] + shift
            start = np.floor(position if order & 1 else position + 0.5).astype(np.int64) - order // 2
            self.starts.append(start)
            self.signs.append(sign)
            self.distances.append(sign * coordinates[axis] + (shift - start))

    def terms(self, slope: int | None = None) -> Any:
        """Yield for each combination of neighbors along the axes its weights, flat indices of coefficients, and their mask.

        If `slope` is an axis, the weights are replaced by their derivatives with respect to the coordinate along it.
        """
        weights_by_axis = []
        for axis in range(self.c.ndim):
            u, derivative = self.distances[axis], int(axis == slope)
            weights = [_b_spline(u - k, self.order, derivative) for k in range(self.order + 1)]
            if derivative:
                weights = [w * self.signs[axis] for w in weights]
            weights_by_axis.append(list(enumerate(weights)))
        for combination in itertools.product(*weights_by_axis):
            weight: Any = np.where(self.outside, 0.0, 1.0)
            flat_index, exists = np.zeros(self.outside.shape, np.int64), ~self.outside
            for axis, (k, w) in enumerate(combination):
                weight = weight * w
                n = self.c.shape[axis]
                index = _fold_index(self.starts[axis] + k, n, _SPLINE_MODES.get(self.mode, self.mode))
                exists = exists & (index >= 0)
                flat_index = flat_index * n + np.maximum(index, 0)
            yield weight, flat_index, exists

    def interpolate(self, c: NDArray[Any], slope: int | None = None, cval: float = 0.0) -> Any:
        """Return the interpolated values, or their derivatives with respect to the coordinate along the axis `slope`."""
        flat_c = np.ravel(c)
        total: Any = 0.0
        for weight, flat_index, exists in self.terms(slope):
            total = total + weight * np.where(exists, flat_c[flat_index], cval if self.mode == kernels.GRID_CONSTANT else 0.0)
        return total

    def scatter(self, g: NDArray[Any]) -> Any:
        """Add each element of `g`, weighted, to its coefficients: the transpose of the interpolation."""
        updates, indices = [], []
        for weight, flat_index, exists in self.terms():
            updates.append(np.ravel(weight * g)[np.ravel(exists)])
            indices.append(flat_index[exists])
        total = bind(scatter, (np.ravel(self.c), np.concatenate(updates), np.concatenate(indices)), {"index_counts": (1,)})
        return np.reshape(total, self.c.shape)


def _fold_index(index: NDArray[Any], n: int, mode: int) -> Any:
    """Map indices beyond the ends of a line of length `n` to indices within it, by `mode`; to -1 if `mode` has none."""
    before, after = max(0, -int(np.min(index, initial=0))), max(0, int(np.max(index, initial=0)) - n + 1)
    return kernels.positions(n, before, after, mode)[index + before]


def _pull_coefficients(
    g: NDArray[Any], out: object, c: NDArray[Any], coordinates: object, order: int, mode: int, padding: int, **_: object
) -> Any:
    return _Points(c, coordinates, order, mode, padding).scatter(g)


def _slopes(c: NDArray[Any], coordinates: object, order: int, mode: int, cval: float, padding: int, **_: object) -> Any:
    """Return the derivatives of the interpolated values with respect to the coordinates."""
    points = _Points(c, coordinates, order, mode, padding)
    return np.stack([points.interpolate(c, axis, cval) for axis in range(c.ndim)])


ndimage_interpolated_grad = general(
    "ndimage_interpolated", _pull_coefficients, lambda g, out, c, at, **options: g * _slopes(c, at, **options)
).tangent(
    lambda t, out, c, at, **options: kernels.interpolate(t, at, **{**options, "cval": 0.0, "dtype": t.dtype}),
    lambda t, out, c, at, **options: np.sum(t * _slopes(c, at, **options), axis=0),
)
