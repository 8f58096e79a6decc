"""Values at scattered points: radial functions, and triangles. In which triangle a place lies is a choice."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate
import scipy.spatial

from ...interception import original_of
from ..steps import column, floating, hold_nodes, plain

# Radial functions by the square of the distance, where that is not 0; and their values there.
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


class Radial:
    """The methods of an ``RBFInterpolator`` that is made of nodes."""

    def __call__(self, x: Any) -> Any:
        """The values at places."""
        return radial_call(self, x)


def radial(
    self: Any, y: Any, d: Any, neighbors: Any = None, smoothing: Any = 0.0, kernel: str = "thin_plate_spline",
    epsilon: Any = None, degree: Any = None,
) -> None:  # fmt: skip
    """The making of an ``RBFInterpolator`` (G. E. Fasshauer, *Meshfree Approximation Methods with MATLAB*, 2007, ch. 6)."""
    if neighbors is not None:
        raise TypeError("scipy.interpolate.RBFInterpolator: neighbors= solves a system for each place; leave it out")
    y, d, smoothing = floating(y), floating(d), floating(smoothing)
    scale = epsilon if epsilon is None else plain(epsilon)
    begin = original_of(scipy.interpolate.RBFInterpolator.__init__)
    given = plain(smoothing)
    begin(self, plain(y), plain(d), None, given if given.ndim else float(given), kernel, scale, degree)
    self.y, self._nodes_epsilon = y, 1.0 if epsilon is None else epsilon
    count, extra = y.shape[0], len(self.powers)
    values = np.reshape(d, (count, -1))
    tail = _monomials(self, y)
    matrix = _radial(self, y, y) + np.eye(count) * np.broadcast_to(smoothing, (count,))
    whole = np.concatenate([
        np.concatenate([matrix, tail], axis=1), np.concatenate([np.transpose(tail), np.zeros((extra, extra))], axis=1)
    ])  # fmt: skip
    self._coeffs = np.linalg.solve(whole, np.concatenate([values, np.zeros((extra, values.shape[1]))]))
    hold_nodes(self, Radial)


def _radial(self: Any, x: Any, y: Any) -> Any:
    q = np.sum((x[:, None] - y) ** 2, axis=-1) * getattr(self, "_nodes_epsilon", self.epsilon) ** 2
    kernel, at_zero = KERNELS[self.kernel]
    if self.kernel in SMOOTH:
        return kernel(q)
    zero = plain(q) == 0
    return np.where(zero, at_zero, kernel(np.where(zero, 1.0, q)))


def _monomials(self: Any, x: Any) -> Any:
    """Monomials; where they are shifted to, and how they are scaled, does not change what they span."""
    moved = (x - plain(self._shift)) / plain(self._scale)
    return np.prod(moved[:, None] ** np.asarray(self.powers), axis=-1)


def radial_call(self: Any, x: Any) -> Any:
    """``RBFInterpolator.__call__``."""
    x = floating(x)
    if x.ndim != 2 or x.shape[1] != self.y.shape[1]:
        raise ValueError(f"`x` must be a 2-dimensional array, of {self.y.shape[1]} columns.")
    if self.neighbors is not None:
        raise TypeError("scipy.interpolate.RBFInterpolator: with neighbors= it cannot be asked at nodes; leave it out")
    coefficients = self._coeffs
    if coefficients.dtype.kind != "c" and self.d_dtype is not float and np.dtype(self.d_dtype).kind == "c":
        coefficients = coefficients.view(complex)
    basis = np.concatenate([_radial(self, x, self.y), _monomials(self, x)], axis=1)
    return np.reshape(basis @ coefficients, (x.shape[0], *self.d_shape))


# ------------------------------------------------------------------------------------------ triangles


def griddata(points: Any, values: Any, xi: Any, method: str = "linear", fill_value: Any = np.nan, rescale: bool = False) -> Any:
    """``scipy.interpolate.griddata``."""
    points, values = _coordinates(points), floating(values)
    line = points.ndim < 2 or points.shape[-1] == 1
    if line and method in ("nearest", "linear", "cubic"):
        points = np.ravel(points)
        xi = xi[0] if isinstance(xi, tuple) else xi
        fill = "extrapolate" if method == "nearest" else fill_value
        return scipy.interpolate.interp1d(points, values, kind=method, axis=0, bounds_error=False, fill_value=fill)(xi)
    if method not in ("nearest", "linear"):
        raise TypeError(
            f"scipy.interpolate.griddata: method={method!r} is not recorded in more dimensions; use 'linear', or RBFInterpolator"
        )
    xi = _coordinates(xi)
    shape, flat = xi.shape[:-1], np.reshape(xi, (-1, xi.shape[-1]))
    scale = np.ptp(plain(points), axis=0) if rescale else np.ones(points.shape[-1])
    scale = np.where(scale > 0, scale, 1.0)
    known, asked = plain(points) / scale, plain(flat) / scale
    if method == "nearest":
        found = values[scipy.spatial.KDTree(known).query(asked)[1]]
    else:
        found = _in_triangles(points, values, flat, scipy.spatial.Delaunay(known), asked, fill_value)
    return np.reshape(found, shape + values.shape[1:])


def _coordinates(x: Any) -> Any:
    return np.stack(np.broadcast_arrays(*map(floating, x)), axis=-1) if isinstance(x, tuple) else floating(x)


def _in_triangles(points: Any, values: Any, x: Any, triangles: Any, asked: Any, fill_value: Any) -> Any:
    """The values of linear functions on triangles: those at the corners, weighted by barycentric coordinates."""
    where = triangles.find_simplex(asked)
    corners = triangles.simplices[where]
    base = points[corners[:, -1]]
    edges = np.swapaxes(points[corners[:, :-1]] - base[:, None], -1, -2)
    first = np.linalg.solve(edges, (x - base)[..., None])[..., 0]
    weights = np.concatenate([first, 1 - np.sum(first, axis=-1, keepdims=True)], axis=-1)
    found = np.einsum("xc,xc...->x...", weights, values[corners])
    beyond = where < 0
    return np.where(column(beyond, found.ndim), fill_value, found) if np.any(beyond) else found
