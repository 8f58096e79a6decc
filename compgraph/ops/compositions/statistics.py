"""Statistics, histograms, polynomial fits and differences.

NumPy's own implementations fill buffers; these return the same bits by recorded operations.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .tools import as_array, ensure_array, is_node, record_call, to_plain

Function = Callable[..., Any]


def without_overwrite_input(function: Function) -> Function:
    """Wrap a function so that it ignores ``overwrite_input=True``, which permits NumPy to reorder the elements of a node."""

    @functools.wraps(function)
    def call(*args: object, overwrite_input: bool = False, **options: object) -> Any:
        return function(*args, **options)

    return call


# ----------------------------------------------------------------------------------------- differences


def _slice_along(x: Any, axis: int, *bounds: int | None) -> Any:
    return x[(slice(None),) * axis + (slice(*bounds),)]


def _spacings(f: Any, spacing: tuple[Any, ...], axes: tuple[int, ...]) -> list[Any]:
    """Return for each axis the distance between its points: one number, or a vector."""
    if not spacing:
        return [1.0] * len(axes)
    if len(spacing) == 1 and np.ndim(spacing[0]) == 0:
        return [spacing[0]] * len(axes)
    if len(spacing) != len(axes):
        raise TypeError("invalid number of arguments")
    return [_distances(points, f.shape[axis]) for points, axis in zip(spacing, axes, strict=True)]


def _distances(points: Any, length: int) -> Any:
    """Return the distances between points on an axis; one number if they are plain and all equal."""
    points = ensure_array(points)
    if points.ndim == 0:
        return points
    if points.ndim != 1:
        raise ValueError("distances must be either scalars or 1d")
    if points.shape[0] != length:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    steps = np.diff(points.astype(float) if points.dtype.kind in "iu" else points)
    return steps[0] if not is_node(points) and (steps == steps[0]).all() else steps


def _edge_difference(points: list[Any], near: Any, far: Any, order: int, sign: int) -> Any:
    """Return the one-sided difference at an edge, of `order` 1 or 2.

    `points` are the values from the edge inwards, `near` and `far` the distances between them, and `sign` is 1 at the
    first edge and -1 at the last. Terms are added in NumPy's order, so that the bits are the same.
    """
    if order == 1:
        return ((points[1] - points[0]) if sign > 0 else (points[0] - points[1])) / near
    if near is far:
        outer, middle, inner = -1.5 / near, 2.0 / near, -0.5 / near
        if sign < 0:
            outer, middle, inner = 1.5 / near, -2.0 / near, 0.5 / near
    elif sign > 0:
        outer, middle = -(2.0 * near + far) / (near * (near + far)), (near + far) / (near * far)
        inner = -near / (far * (near + far))
    else:
        outer, middle = (2.0 * near + far) / (near * (far + near)), -(near + far) / (far * near)
        inner = near / (far * (far + near))
    if sign > 0:
        return outer * points[0] + middle * points[1] + inner * points[2]
    return inner * points[2] + middle * points[1] + outer * points[0]


def _differences_along(f: Any, axis: int, steps: Any, order: int) -> Any:
    """Central differences of `f` along an axis, with one-sided differences of `order` at the edges."""
    count = f.shape[axis]
    if count < order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required."
        )
    before, middle, after = _slice_along(f, axis, None, -2), _slice_along(f, axis, 1, -1), _slice_along(f, axis, 2, None)
    if np.ndim(steps) == 0:
        interior = (after - before) / (2.0 * steps)
        edge_steps = [(steps, steps)] * 2
    else:
        left, right = (np.reshape(part, (-1, *[1] * (f.ndim - 1 - axis))) for part in (steps[:-1], steps[1:]))
        interior = -right / (left * (left + right)) * before + (right - left) / (left * right) * middle
        interior = interior + left / (right * (left + right)) * after
        edge_steps = [(steps[0], steps[min(1, count - 2)]), (steps[-1], steps[max(count - 3, 0)])]
    first = [_slice_along(f, axis, i, i + 1) for i in range(order + 1)]
    last = [_slice_along(f, axis, count - 1 - i, count - i) for i in range(order + 1)]
    parts = [_edge_difference(first, *edge_steps[0], order, 1), interior, _edge_difference(last, *edge_steps[1], order, -1)]
    return np.concatenate([part if part.dtype == f.dtype else part.astype(f.dtype) for part in parts], axis=axis)


def gradient(f: Any, *spacing: object, axis: int | tuple[int, ...] | None = None, edge_order: int = 1) -> Any:
    """``numpy.gradient``."""
    f = ensure_array(f)
    numpy_gradient: Any = np.gradient
    # Raises for invalid axes.
    numpy_result = numpy_gradient(to_plain(f), *map(to_plain, spacing), axis=axis, edge_order=edge_order)
    axes = range(f.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple([operator.index(i) % f.ndim for i in axes])
    f = f.astype(float) if f.dtype.kind in "biu" else f
    derivatives = [
        _differences_along(f, i, steps, edge_order) for i, steps in zip(axes, _spacings(f, spacing, axes), strict=True)
    ]
    derivatives = [
        _match_bits(x, expected)
        for x, expected in zip(derivatives, numpy_result if isinstance(numpy_result, tuple) else (numpy_result,), strict=True)
    ]
    return derivatives[0] if len(derivatives) == 1 else tuple(derivatives)


def _match_bits(x: object, expected: NDArray[Any]) -> Any:
    """Add a constant to `x`, so that its bits equal those of NumPy's result.

    They differ where coordinates are a node with equal spacing, for which NumPy has a shorter formula.
    """
    return x if np.array_equal(to_plain(x), expected, equal_nan=True) else x + (expected - to_plain(x))


# ---------------------------------------------------------------------------------------- correlation


def _check_weights(weights: Any, name: str, count: int) -> Any:
    """Convert weights of observations to an array, and raise for invalid ones, as ``numpy.cov`` does."""
    weights = weights if is_node(weights) else np.asarray(weights, float)
    if weights.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if weights.shape[0] != count:
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    if np.any(weights < 0):
        raise ValueError(f"{name} cannot be negative")
    if name == "fweights" and not np.all(weights == np.around(weights)):
        raise TypeError("fweights must be integer")
    return weights


def _variables_in_rows(x: Any, dtype: DTypeLike | None, transposes: bool) -> Any:
    """Convert observations to a matrix with one row per variable."""
    if x.ndim > 2:
        raise ValueError("cov: data has more than 2 dimensions")
    rows = np.reshape(x, (1,) * (2 - x.ndim) + x.shape).astype(dtype)
    return rows.T if transposes else rows


def cov(
    m: Any,
    y: Any = None,
    rowvar: ArrayLike = True,
    bias: int = False,
    ddof: int | None = None,
    fweights: object = None,
    aweights: NDArray[Any] | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> Any:
    """``numpy.cov``."""
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    data = [ensure_array(part) for part in (m, y) if part is not None]
    dtype = np.result_type(*[part.dtype for part in data], float) if dtype is None else dtype
    x = _variables_in_rows(data[0], dtype, not rowvar and data[0].ndim != 1)
    if y is not None:
        other = _variables_in_rows(data[1], dtype, False)
        x = np.concatenate((x, other.T if not rowvar and other.shape[0] != 1 else other), axis=0)
    if x.shape[0] == 0:
        return np.dot(x, x.T)
    ddof = (1 if bias == 0 else 0) if ddof is None else ddof
    observation_weights = [
        _check_weights(w, name, x.shape[1]) for w, name in ((fweights, "fweights"), (aweights, "aweights")) if w is not None
    ]
    w = functools.reduce(operator.mul, observation_weights) if observation_weights else None
    mean, total = np.average(x, axis=1, weights=w, returned=True)
    degrees_of_freedom: Any = x.shape[1] - ddof if w is None else total[0]
    if w is not None and ddof:
        degrees_of_freedom = degrees_of_freedom - (
            ddof if aweights is None else ddof * np.sum(w * observation_weights[-1]) / degrees_of_freedom
        )
    if degrees_of_freedom <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=4)
        degrees_of_freedom = 0.0
    centered = (x - mean[:, None]).astype(x.dtype, copy=False)
    transposed = centered.T if w is None else (centered * w).T
    products = np.dot(centered, np.conjugate(transposed) if transposed.dtype.kind == "c" else transposed)
    return np.squeeze((products * np.true_divide(1, degrees_of_freedom)).astype(products.dtype, copy=False))


def corrcoef(x: Any, y: Any = None, rowvar: Any = True, *, dtype: DTypeLike | None = None) -> Any:
    """``numpy.corrcoef``."""
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    indices = np.arange(c.shape[0])
    variances = c[indices, indices]
    deviations = np.sqrt(np.real(variances) if c.dtype.kind == "c" else variances)
    c = c / deviations[:, None] / deviations[None, :]
    if c.dtype.kind != "c":
        return np.clip(c, -1, 1)
    return np.clip(np.real(c), -1, 1) + 1j * np.clip(np.imag(c), -1, 1)


# ----------------------------------------------------------------------------------------- histograms


def histogramdd(
    sample: NDArray[Any],
    weights: NDArray[Any] | None = None,
    *,
    bins: tuple[Any, ...],
    range: tuple[Any, ...],
    density: bool | None,
) -> tuple[Any, ...]:
    """``numpy.histogramdd`` of a table, with bins and a range for each column: the counts, then the edges of each column.

    This is the form that is recorded: operands first, options by keyword, outputs in one tuple.
    """
    bin_counts, edges = np.histogramdd(sample, bins, range, density, weights)
    return (bin_counts, *edges)


def _reject_nodes(option: Any, name: str, function: str) -> None:
    """Raise a TypeError if an option is a node or holds one: bins and ranges are plain."""
    if isinstance(option, (list, tuple)):
        for part in option:
            _reject_nodes(part, name, function)
    elif is_node(option):
        raise TypeError(f"np.{function}: {name}= cannot be a node; pass node.value")


def _has_length(option: ArrayLike) -> bool:
    return bool(np.ndim(option)) if isinstance(option, np.ndarray) else hasattr(option, "__len__")


def histogramdd_in_steps(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: object = None) -> Any:
    """``numpy.histogramdd``."""
    _reject_nodes(bins, "bins", "histogramdd")
    _reject_nodes(range, "range", "histogramdd")
    if not is_node(sample) and not isinstance(sample, np.ndarray):
        sample = np.stack([as_array(x) for x in sample])
        sample = sample.T if sample.ndim > 1 else np.reshape(sample, (-1, 1))
    elif sample.ndim != 2:
        sample = np.atleast_2d(sample).T
    count = sample.shape[1]
    bins = bins if _has_length(bins) else (bins,) * count
    if len(bins) != count:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    range = (None,) * count if range is None else range
    if len(range) != count:
        raise ValueError("range argument must have one entry per dimension")
    options = {"bins": tuple(bins), "range": tuple(range), "density": density}
    operands = (sample,) if weights is None else (sample, as_array(weights))
    counts_and_edges = record_call(histogramdd, *operands, **options)
    return counts_and_edges[0], list(counts_and_edges[1:])


def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """``numpy.histogram2d``."""
    _reject_nodes(bins, "bins", "histogram2d")
    if len(x) != len(y):
        raise ValueError("x and y must have the same length.")
    if _has_length(bins) and len(bins) not in (1, 2):
        bins = [np.asarray(bins)] * 2
    bin_counts, edges = histogramdd_in_steps([x, y], bins, range, density, weights)
    return bin_counts, edges[0], edges[1]


# --------------------------------------------------------------------------------------- polynomial fits


def _check_arguments(x: Any, y: Any, deg: Any, w: Any) -> None:
    """Raise for invalid arguments, as ``numpy.polyfit`` does."""
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if x.size == 0:
        raise TypeError("expected non-empty vector for x")
    if y.ndim < 1 or y.ndim > 2:
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    if w is not None and w.ndim != 1:
        raise TypeError("expected a 1-d array for weights")
    if w is not None and w.shape[0] != y.shape[0]:
        raise TypeError("expected w and y to have the same length")


def _cast_like(array: Any, result: Any) -> Any:
    """Cast a result to the dtype of `array`, because NumPy writes it into `array`."""
    return result if result.dtype == array.dtype else result.astype(array.dtype, casting="same_kind")


def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: bool = False) -> Any:
    """``numpy.polyfit``."""
    x, y = ensure_array(x) + 0.0, ensure_array(y) + 0.0
    w = None if w is None else ensure_array(w) + 0.0
    _check_arguments(x, y, deg, w)
    order = int(deg) + 1
    rcond = x.shape[0] * np.finfo(x.dtype).eps if rcond is None else rcond
    powers = np.vander(x, order)
    if w is not None:
        powers, y = _cast_like(powers, powers * w[:, None]), _cast_like(y, y * (w[:, None] if y.ndim == 2 else w))
    scale = np.sqrt(np.sum(powers * powers, axis=0))
    powers = _cast_like(powers, powers / scale)
    c, residuals, rank, s = np.linalg.lstsq(powers, y, rcond)
    c = (c.T / scale).T
    if rank != order and not full:
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=5)
    if full:
        return c, residuals, rank, s, rcond
    return (c, _covariance(powers, scale, residuals, y, cov)) if cov else c


def _covariance(powers: Any, scale: Any, residuals: object, y: Any, cov: bool | str) -> Any:
    """Return the covariance matrix of the coefficients."""
    base = np.linalg.inv(np.dot(powers.T, powers))
    base = _cast_like(base, base / np.outer(scale, scale))
    count, order = powers.shape
    factor: Any = 1
    if cov != "unscaled":
        if count <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = residuals / (count - order)
    return base * factor if y.ndim == 1 else base[:, :, None] * factor
