"""Statistics and differences.

NumPy's own implementations fill buffers; these do the same with operations that are recorded, to the same bits.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .tools import ensure_array, is_node, plain_of

Function = Callable[..., Any]


def sparing(function: Function) -> Function:
    """The function with ``overwrite_input=True`` refused: it would reorder the elements of a node."""

    @functools.wraps(function)
    def spared(*args: Any, overwrite_input: Any = False, **options: Any) -> Any:
        if overwrite_input:
            raise TypeError(
                f"np.{function.__name__}: overwrite_input= would write into a node, which the graph needs as it is; leave it out"
            )
        return function(*args, **options)

    return spared


# ------------------------------------------------------------------------------------ NumPy's in steps


def _along(x: Any, axis: int, *bounds: int | None) -> Any:
    """A slice along an axis."""
    return x[(slice(None),) * axis + (slice(*bounds),)]


def _spacings(f: Any, spacing: tuple[Any, ...], axes: tuple[int, ...]) -> list[Any]:
    """For each axis the distance between its points: one number, or a vector."""
    if not spacing:
        return [1.0] * len(axes)
    if len(spacing) == 1 and np.ndim(spacing[0]) == 0:
        return [spacing[0]] * len(axes)
    if len(spacing) != len(axes):
        raise TypeError("invalid number of arguments")
    return [_distances(points, f.shape[axis]) for points, axis in zip(spacing, axes, strict=True)]


def _distances(points: Any, length: int) -> Any:
    """The distances between points on an axis; one number if they are plain and all equal."""
    points = ensure_array(points)
    if points.ndim == 0:
        return points
    if points.ndim != 1:
        raise ValueError("distances must be either scalars or 1d")
    if points.shape[0] != length:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    steps = np.diff(points.astype(float) if points.dtype.kind in "iu" else points)
    return steps[0] if not is_node(points) and (steps == steps[0]).all() else steps


def _edge(points: list[Any], near: Any, far: Any, order: int, sign: int) -> Any:
    """The one-sided difference at an edge, of `order` 1 or 2.

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


def _slope(f: Any, axis: int, steps: Any, order: int) -> Any:
    """The derivative of `f` along an axis: central differences inside, one-sided ones of `order` at the edges."""
    count = f.shape[axis]
    if count < order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required."
        )
    before, here, behind = _along(f, axis, None, -2), _along(f, axis, 1, -1), _along(f, axis, 2, None)
    if np.ndim(steps) == 0:
        inside = (behind - before) / (2.0 * steps)
        ends = [(steps, steps)] * 2
    else:
        left, right = (np.reshape(part, (-1, *[1] * (f.ndim - 1 - axis))) for part in (steps[:-1], steps[1:]))
        inside = -right / (left * (left + right)) * before + (right - left) / (left * right) * here
        inside = inside + left / (right * (left + right)) * behind
        ends = [(steps[0], steps[min(1, count - 2)]), (steps[-1], steps[max(count - 3, 0)])]
    first = [_along(f, axis, i, i + 1) for i in range(order + 1)]
    last = [_along(f, axis, count - 1 - i, count - i) for i in range(order + 1)]
    parts = [_edge(first, *ends[0], order, 1), inside, _edge(last, *ends[1], order, -1)]
    return np.concatenate([part if part.dtype == f.dtype else part.astype(f.dtype) for part in parts], axis=axis)


def gradient(f: Any, *spacing: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """``numpy.gradient``."""
    f = ensure_array(f)
    axes = range(f.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple([operator.index(i) % f.ndim for i in axes])
    by_numpy: Any = np.gradient
    plain = by_numpy(plain_of(f), *map(plain_of, spacing), axis=axis, edge_order=edge_order)
    f = f.astype(float) if f.dtype.kind in "biu" else f
    derivatives = [_slope(f, i, steps, edge_order) for i, steps in zip(axes, _spacings(f, spacing, axes), strict=True)]
    derivatives = [
        _rounded_as(x, wanted) for x, wanted in zip(derivatives, plain if isinstance(plain, tuple) else (plain,), strict=True)
    ]
    return derivatives[0] if len(derivatives) == 1 else tuple(derivatives)


def _rounded_as(x: Any, wanted: Any) -> Any:
    """`x`, with a constant added that makes its bits NumPy's.

    They differ where coordinates are a node with equal distances: NumPy's formula for these is shorter.
    """
    return x if np.array_equal(plain_of(x), wanted, equal_nan=True) else x + (wanted - plain_of(x))


def _weights(weights: Any, name: str, count: int) -> Any:
    """Weights of observations for a covariance."""
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


def _table(x: Any, dtype: Any, turned: bool) -> Any:
    """Variables in rows."""
    if x.ndim > 2:
        raise ValueError("cov: data has more than 2 dimensions")
    rows = np.reshape(x, (1,) * (2 - x.ndim) + x.shape).astype(dtype)
    return rows.T if turned else rows


def cov(
    m: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None, fweights: Any = None, aweights: Any = None,
    *, dtype: Any = None,
) -> Any:  # fmt: skip
    """``numpy.cov``."""
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    data = [ensure_array(part) for part in (m, y) if part is not None]
    dtype = np.result_type(*[part.dtype for part in data], float) if dtype is None else dtype
    x = _table(data[0], dtype, not rowvar and data[0].ndim != 1)
    if y is not None:
        other = _table(data[1], dtype, False)
        x = np.concatenate((x, other.T if not rowvar and other.shape[0] != 1 else other), axis=0)
    if x.shape[0] == 0:
        return np.dot(x, x.T)
    ddof = (1 if bias == 0 else 0) if ddof is None else ddof
    of_each = [_weights(w, name, x.shape[1]) for w, name in ((fweights, "fweights"), (aweights, "aweights")) if w is not None]
    w = None if not of_each else of_each[0] if len(of_each) == 1 else of_each[0] * of_each[1]
    mean, total = np.average(x, axis=1, weights=w, returned=True)
    freedom: Any = x.shape[1] - ddof if w is None else total[0]
    if w is not None and ddof:
        freedom = freedom - (ddof if aweights is None else ddof * np.sum(w * of_each[-1]) / freedom)
    if freedom <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=4)
        freedom = 0.0
    centred = (x - mean[:, None]).astype(x.dtype, copy=False)
    turned = centred.T if w is None else (centred * w).T
    products = np.dot(centred, np.conjugate(turned) if turned.dtype.kind == "c" else turned)
    return np.squeeze((products * np.true_divide(1, freedom)).astype(products.dtype, copy=False))


def corrcoef(x: Any, y: Any = None, rowvar: Any = True, *, dtype: Any = None) -> Any:
    """``numpy.corrcoef``."""
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    places = np.arange(c.shape[0])
    variances = c[places, places]
    deviations = np.sqrt(np.real(variances) if c.dtype.kind == "c" else variances)
    c = c / deviations[:, None] / deviations[None, :]
    if c.dtype.kind != "c":
        return np.clip(c, -1, 1)
    return np.clip(np.real(c), -1, 1) + 1j * np.clip(np.imag(c), -1, 1)
