"""Interpolation in several dimensions: on regular grids, by radial functions, and on triangulations.

The choice of the grid cell or triangle that contains a point has no derivative.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.interpolate
import scipy.spatial
from numpy.typing import NDArray

from ...array_types import Array
from ..tools import to_column, to_double, to_numpy

# ------------------------------------------------------------------------------------------ regular grids


def find_indices(grid: Sequence[NDArray[Any]], xi: NDArray[Any]) -> tuple[NDArray[np.intp], list[Any]]:
    """Replacement of ``_rgi_cython.find_indices``: by axis, the cell of each point and its relative position in it."""
    cells, distances = [], []
    for points, x in zip(grid, xi, strict=True):
        cell = np.clip(np.searchsorted(to_numpy(points), to_numpy(x), side="right") - 1, 0, len(points) - 2)
        cells.append(cell)
        distances.append((x - points[cell]) / (points[cell + 1] - points[cell]))
    return np.stack(cells), distances


def evaluate_linear_2d(
    values: NDArray[Any], cells: NDArray[np.intp], distances: Sequence[NDArray[Any]], grid: object, out: object
) -> Any:
    """Replacement of ``_rgi_cython.evaluate_linear_2d``: bilinear interpolation in the cells of a grid."""
    i, j = cells
    s, t = distances
    return (
        values[i, j] * (1 - s) * (1 - t) + values[i, j + 1] * (1 - s) * t
        + values[i + 1, j] * s * (1 - t) + values[i + 1, j + 1] * s * t
    )  # fmt: skip


def ndim_coords_from_arrays(points: Any, ndim: int | None = None) -> Any:
    """Replacement of ``_interpnd._ndim_coords_from_arrays``: points with coordinates along the last axis."""
    if isinstance(points, tuple) and len(points) == 1:
        points = points[0]
    if isinstance(points, tuple):
        return np.stack(np.broadcast_arrays(*map(to_double, points)), axis=-1)
    points = to_double(points)
    if points.ndim > 1:
        return points
    return np.reshape(points, (-1, 1) if ndim in (None, 1) else (-1, ndim))


def make_ndbspl(*args: object, **options: object) -> None:
    """Replacement of ``_ndbspline.make_ndbspl``: raise, because it solves a sparse system in compiled code."""
    raise TypeError(
        "scipy.interpolate on regular grids: method='slinear', 'cubic' and 'quintic' are not recorded. Use 'linear', or "
        "make_interp_spline along each axis"
    )


# ------------------------------------------------------------------------------------------ radial functions

# Radial functions of the squared distance, where it is not 0, and their values at 0.
KERNELS: dict[str, tuple[Any, float]] = {
    "linear": (lambda q: -np.sqrt(q), 0.0),
    "thin_plate_spline": (lambda q: 0.5 * q * np.log(q), 0.0),
    "cubic": (lambda q: q * np.sqrt(q), 0.0),
    "quintic": (lambda q: -q * q * np.sqrt(q), 0.0),
    "multiquadric": (lambda q: -np.sqrt(q + 1), -1.0),
    "inverse_multiquadric": (lambda q: 1 / np.sqrt(q + 1), 1.0),
    "inverse_quadratic": (lambda q: 1 / (q + 1), 1.0),
    "gaussian": (lambda q: np.exp(-q), 1.0),
}
SMOOTH = ("multiquadric", "inverse_multiquadric", "inverse_quadratic", "gaussian")


def get_backend(xp: object) -> Any:
    """Replacement of ``_rbfinterp._get_backend``, whose functions are compiled."""
    return SimpleNamespace(
        _monomial_powers=_monomial_powers,
        _build_and_solve_system=_build_and_solve_system,
        compute_interpolation=compute_interpolation,
    )


def _monomial_powers(ndim: int, degree: int, xp: object) -> NDArray[np.int64]:
    return importlib.import_module("scipy.interpolate._rbfinterp_np")._monomial_powers(ndim, degree, np)  # type: ignore[no-any-return]


def _build_and_solve_system(
    y: NDArray[Any], d: NDArray[Any], smoothing: NDArray[Any], kernel: str, epsilon: object, powers: NDArray[Any], xp: object
) -> tuple[Any, Any, Any]:
    """Return the shift and scale of the monomials, and the coefficients of the interpolant.

    G. E. Fasshauer, *Meshfree Approximation Methods with MATLAB*, 2007, ch. 6.
    """
    low, high = np.min(to_numpy(y), axis=0), np.max(to_numpy(y), axis=0)
    shift, scale = (high + low) / 2, np.where(high > low, (high - low) / 2, 1.0)
    tail = _monomials(y, powers, shift, scale)
    matrix = _radial(y, y, kernel, epsilon) + np.eye(y.shape[0]) * smoothing
    zeros = np.zeros((len(powers), len(powers)))
    system = np.concatenate([np.concatenate([matrix, tail], axis=1), np.concatenate([np.transpose(tail), zeros], axis=1)])
    rhs = np.concatenate([d, np.zeros((len(powers), d.shape[1]))])
    return shift, scale, np.linalg.solve(system, rhs)


def compute_interpolation(
    x: NDArray[Any],
    y: NDArray[Any],
    kernel: str,
    epsilon: object,
    powers: NDArray[Any],
    shift: NDArray[Any],
    scale: NDArray[Any],
    coeffs: NDArray[Any],
    xp: object,
) -> Any:
    """The values of an interpolant at points."""
    basis = np.concatenate([_radial(x, y, kernel, epsilon), _monomials(x, powers, shift, scale)], axis=1)
    return basis @ coeffs


def _radial(x: NDArray[Any], y: NDArray[Any], name: str, epsilon: Any) -> Any:
    q = np.sum((x[:, None] - y) ** 2, axis=-1) * epsilon**2
    kernel, at_zero = KERNELS[name]
    if name in SMOOTH:
        return kernel(q)
    is_zero = to_numpy(q) == 0
    return np.where(is_zero, at_zero, kernel(np.where(is_zero, 1.0, q)))


def _monomials(x: NDArray[Any], powers: NDArray[Any], shift: NDArray[Any], scale: NDArray[Any]) -> Any:
    return np.prod(((x - shift) / scale)[:, None] ** powers, axis=-1)


# ------------------------------------------------------------------------------------------ triangulations


def griddata(points: Any, values: Any, xi: Any, method: str = "linear", fill_value: Any = np.nan, rescale: bool = False) -> Any:
    """``scipy.interpolate.griddata``."""
    points, values = ndim_coords_from_arrays(points), to_double(values)
    is_one_dimensional = points.ndim < 2 or points.shape[-1] == 1
    if is_one_dimensional and method in ("nearest", "linear", "cubic"):
        points = np.ravel(points)
        xi = xi[0] if isinstance(xi, tuple) else xi
        fill = "extrapolate" if method == "nearest" else fill_value
        return scipy.interpolate.interp1d(points, values, kind=method, axis=0, bounds_error=False, fill_value=fill)(xi)
    if method not in ("nearest", "linear"):
        raise TypeError(
            f"scipy.interpolate.griddata: method={method!r} is not recorded in several dimensions. Use method='linear'"
        )
    xi = ndim_coords_from_arrays(xi)
    shape, flat = xi.shape[:-1], np.reshape(xi, (-1, xi.shape[-1]))
    scale = np.ptp(to_numpy(points), axis=0) if rescale else np.ones(points.shape[-1])
    scale = np.where(scale > 0, scale, 1.0)
    sites, queries = to_numpy(points) / scale, to_numpy(flat) / scale
    if method == "nearest":
        interpolated_values = values[scipy.spatial.KDTree(sites).query(queries)[1]]
    else:
        triangles = scipy.spatial.Delaunay(sites)
        interpolated_values = _interpolate_in_triangles(points, values, flat, triangles, queries, fill_value)
    return np.reshape(interpolated_values, shape + values.shape[1:])


def _interpolate_in_triangles(points: Any, values: Any, x: Any, triangles: Any, queries: Array, fill_value: float) -> Any:
    """Interpolate linearly in triangles: the values at the corners, weighted by barycentric coordinates."""
    simplex = triangles.find_simplex(queries)
    corners = triangles.simplices[simplex]
    base = points[corners[:, -1]]
    edges = np.swapaxes(points[corners[:, :-1]] - base[:, None], -1, -2)
    first = np.linalg.solve(edges, (x - base)[..., None])[..., 0]
    weights = np.concatenate([first, 1 - np.sum(first, axis=-1, keepdims=True)], axis=-1)
    interpolated_values = np.einsum("xc,xc...->x...", weights, values[corners])
    is_outside = simplex < 0
    return (
        np.where(to_column(is_outside, interpolated_values.ndim), fill_value, interpolated_values)
        if np.any(is_outside)
        else interpolated_values
    )
