"""The C functions of ``scipy.ndimage`` as operations that return new arrays.

An array is extended beyond its ends by one of the modes, and each element of the result is a sum over a neighborhood. The
derivatives consist of the same few operations: `extend_array` and its transpose `fold_array`, filters, and interpolation.
"""

from __future__ import annotations

import functools
import importlib
import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...protocols import primitive

NEAREST, WRAP, REFLECT, MIRROR, CONSTANT, GRID_WRAP, GRID_CONSTANT = range(7)


def c_module() -> Any:
    """SciPy's module in C."""
    return importlib.import_module("scipy.ndimage._nd_image")


def positions(n: int, before: int, after: int, mode: int) -> Any:
    """For each element of an extended line, its index in the original line; -1 for a constant."""
    j = np.arange(-before, n + after)
    if mode in (CONSTANT, GRID_CONSTANT):
        return np.where((j >= 0) & (j < n), j, -1)
    if mode == NEAREST or n == 1:
        return np.clip(j, 0, n - 1)
    if mode in (WRAP, GRID_WRAP):
        return j % n
    period = 2 * n if mode == REFLECT else 2 * n - 2
    j = j % period
    return np.where(j < n, j, period - j - (mode == REFLECT))


@primitive(opname="ndimage_extended")
def extend_array(x: NDArray[Any], *, axis: int, before: int, after: int, mode: int) -> Any:
    """Extend an array along an axis; with zeros in the mode "constant"."""
    indices = positions(x.shape[axis], before, after, mode)
    extended_array = np.take(x, indices, axis)
    extended_array[(slice(None),) * (axis % x.ndim) + (indices < 0,)] = 0
    return extended_array


def ends_of(size: int, origin: int) -> dict[str, int]:
    """The numbers of elements by which weights of a given size extend a line at both ends."""
    return {"before": size // 2 + origin, "after": size - size // 2 - 1 - origin}


def extend(x: NDArray[Any], axis: int, ends: dict[str, int], mode: int, cval: float) -> Any:
    """Extend an array beyond both ends of an axis, by `cval` in the constant modes."""
    extended_array = extend_array(x, axis=axis, mode=mode, **ends)
    if mode not in (CONSTANT, GRID_CONSTANT) or not cval:
        return extended_array
    outside = positions(x.shape[axis], ends["before"], ends["after"], mode) < 0
    return np.where(np.reshape(outside, (-1, *[1] * (x.ndim - 1 - axis % x.ndim))), cval, extended_array)


@primitive(opname="ndimage_folded")
def fold_array(g: NDArray[Any], *, axis: int, before: int, after: int, mode: int) -> Any:
    """The transpose of `extend_array`: elements beyond the ends are added to the elements that they copy."""
    moved = np.moveaxis(g, axis, 0)
    n = moved.shape[0] - before - after
    indices = positions(n, before, after, mode)
    result = moved[before : before + n].copy()
    beyond = np.concatenate([np.arange(before), np.arange(before + n, before + n + after)])
    beyond = beyond[indices[beyond] >= 0]
    np.add.at(result, indices[beyond], moved[beyond])
    return np.moveaxis(result, 0, axis)


@primitive(opname="ndimage_correlate1d")
def correlate1d(
    x: NDArray[Any], weights: NDArray[Any], *, axis: int, mode: int, cval: float, origin: int, dtype: DTypeLike | None
) -> Any:
    """As ``scipy.ndimage.correlate1d``."""
    output = np.empty(x.shape, dtype)
    c_module().correlate1d(x, np.ascontiguousarray(weights, np.float64), axis % x.ndim, output, mode, cval, origin)
    return output


@primitive(opname="ndimage_correlate")
def correlate(
    x: NDArray[Any], weights: NDArray[Any], *, mode: int, cval: float, origins: tuple[int, ...], dtype: DTypeLike | None
) -> Any:
    """As ``scipy.ndimage.correlate``."""
    output = np.empty(x.shape, dtype)
    c_module().correlate(x, np.ascontiguousarray(weights, np.float64), output, mode, cval, origins)
    return output


@primitive(opname="ndimage_uniform_filter1d")
def uniform_filter1d(
    x: NDArray[Any], *, size: int, axis: int, mode: int, cval: float, origin: int, dtype: DTypeLike | None
) -> Any:
    """As ``scipy.ndimage.uniform_filter1d``."""
    output = np.empty(x.shape, dtype)
    c_module().uniform_filter1d(x, size, axis % x.ndim, output, mode, cval, origin)
    return output


@primitive(opname="ndimage_spline_filter1d")
def spline_filter1d(x: NDArray[Any], *, order: int, axis: int, mode: int) -> Any:
    """As ``scipy.ndimage.spline_filter1d``: the coefficients of the spline through the elements of each line."""
    return _spline_filter(x, order, axis, mode)


def _spline_filter(x: NDArray[Any], order: int, axis: int, mode: int) -> Any:
    output = np.empty(x.shape, np.float64)
    c_module().spline_filter1d(x, order, axis % x.ndim, output, mode)
    return output


_POLES = {  # M. Unser, "Splines: a perfect fit for signal and image processing" (1999), table 1
    2: (math.sqrt(8) - 3,),
    3: (math.sqrt(3) - 2,),
    4: (
        math.sqrt(664 - math.sqrt(438976)) + math.sqrt(304) - 19,
        math.sqrt(664 + math.sqrt(438976)) - math.sqrt(304) - 19,
    ),
    5: (
        math.sqrt(67.5 - math.sqrt(4436.25)) + math.sqrt(26.25) - 6.5,
        math.sqrt(67.5 + math.sqrt(4436.25)) - math.sqrt(26.25) - 6.5,
    ),
}


@primitive(opname="ndimage_spline_filter1d_back")
def spline_filter1d_back(g: NDArray[Any], *, order: int, axis: int, mode: int) -> Any:
    """The transpose of `spline_filter1d` for a line that is reflected at its ends.

    Mathematically the filter is its own transpose. But some versions of SciPy compute the first element from one that was
    already overwritten, which affects short lines. For these, the steps of the filter are transposed in reverse order.
    """
    g = np.moveaxis(np.array(g, np.float64), axis, 0)
    n = len(g)
    if n > 1 and (_is_symmetric() or max(map(abs, _POLES[order])) ** (2 * n) < 1e-18):
        return _spline_filter(np.moveaxis(g, 0, axis), order, axis, mode)
    for z in reversed(_POLES[order] if n > 1 else ()):
        g *= (1 - z) * (1 - 1 / z)
        g = _transpose_pole_filter(g, z)
    return np.moveaxis(g, 0, axis)


@functools.cache
def _is_symmetric() -> bool:
    """Whether SciPy's filter of a reflected line is its own transpose."""
    matrix = _spline_filter(np.eye(3), 5, 0, REFLECT)
    return bool(np.allclose(matrix, matrix.T, rtol=0, atol=1e-9))


def _transpose_pole_filter(g: NDArray[Any], z: float) -> Any:
    """The transpose of the filter of one pole: of its backward pass, its forward pass, and its initialization."""
    n = len(g)
    for i in range(n - 1):
        g[i + 1] += z * g[i]
        g[i] *= -z
    g[n - 1] *= z / (z - 1)
    for i in range(n - 1, 0, -1):
        g[i - 1] += z * g[i]
    first = g[0].copy()
    g[0] = 0
    g += np.reshape(_first_element(n, z), (n, *[1] * (g.ndim - 1))) * first
    return g


def _first_element(n: int, z: float) -> Any:
    """The weights of the line in the first element of the forward pass, in SciPy's order of summation."""
    unit = np.eye(n)
    total = unit[0] + z**n * unit[n - 1]
    for i in range(1, n):
        total = total + z**i * (unit[i] + z**n * (unit[n - 1 - i] if i < n - 1 else total))
    return total * z / (1 - z ** (2 * n)) + unit[0]


@primitive(opname="ndimage_interpolated")
def interpolate(
    c: NDArray[Any], coordinates: NDArray[Any], *, order: int, mode: int, cval: float, padding: int, dtype: DTypeLike | None
) -> Any:
    """As ``scipy.ndimage.map_coordinates`` for spline coefficients `c`, padded at each end by `padding`."""
    output = np.empty(coordinates.shape[1:], dtype)
    points = np.ascontiguousarray(coordinates, np.float64)
    c_module().geometric_transform(c, None, points, None, None, output, order, mode, cval, padding, None, None)
    return output
