"""Replacements of compiled functions of regular grids: ``_rgi_cython``, and the conversion of points in ``_interpnd``.

The cell that contains a point is a choice without a derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tools import floating, plain


def find_indices(grid: Sequence[NDArray[Any]], xi: NDArray[Any]) -> tuple[NDArray[np.intp], list[Any]]:
    """The cell that contains each point, and how far it is from the first corner, by axis."""
    cells, distances = [], []
    for points, x in zip(grid, xi, strict=True):
        cell = np.clip(np.searchsorted(plain(points), plain(x), side="right") - 1, 0, len(points) - 2)
        cells.append(cell)
        distances.append((x - points[cell]) / (points[cell + 1] - points[cell]))
    return np.stack(cells), distances


def evaluate_linear_2d(
    values: NDArray[Any], cells: NDArray[np.intp], distances: Sequence[NDArray[Any]], grid: object, out: object
) -> Any:
    """Bilinear interpolation in the cells of a grid of two axes."""
    i, j = cells
    s, t = distances
    return (
        values[i, j] * (1 - s) * (1 - t) + values[i, j + 1] * (1 - s) * t
        + values[i + 1, j] * s * (1 - t) + values[i + 1, j + 1] * s * t
    )  # fmt: skip


def ndim_coords_from_arrays(points: Any, ndim: int | None = None) -> Any:
    """Points along a last axis, from an array, or from one array for each coordinate."""
    if isinstance(points, tuple) and len(points) == 1:
        points = points[0]
    if isinstance(points, tuple):
        return np.stack(np.broadcast_arrays(*map(floating, points)), axis=-1)
    points = floating(points)
    if points.ndim > 1:
        return points
    return np.reshape(points, (-1, 1) if ndim in (None, 1) else (-1, ndim))


def make_ndbspl(*args: object, **options: object) -> None:
    """Raise: splines along several axes solve a system by sparse matrices."""
    raise TypeError(
        "scipy.interpolate on regular grids: method='slinear', 'cubic' and 'quintic' are not recorded. Use 'linear', or "
        "make_interp_spline along one axis after the other"
    )
