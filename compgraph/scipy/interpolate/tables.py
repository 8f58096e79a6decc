"""Tables: ``interp1d``, and values on a regular grid. Between which entries a place lies is a choice without a derivative."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.interpolate

from ...interception import original_of
from ..steps import array, column, floating, hold_nodes, plain
from . import bsplines

# ------------------------------------------------------------------------------------------ along one axis


class Table:
    """The methods of an ``interp1d`` that is made of nodes."""

    def __call__(self, x: Any) -> Any:
        """The values at places."""
        return looked_up(self, x)


def table(
    self: Any, x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True, bounds_error: Any = None,
    fill_value: Any = np.nan, assume_sorted: bool = False,
) -> None:  # fmt: skip
    """The making of an ``interp1d``."""
    x, y = floating(x), floating(y)
    fill = tuple(map(plain, fill_value)) if isinstance(fill_value, tuple) else fill_value
    fill = fill if isinstance(fill, (str, tuple)) else plain(fill)[()]
    begin = original_of(scipy.interpolate.interp1d.__init__)
    begin(self, plain(x), plain(y), kind, axis, True, bounds_error, fill, assume_sorted)
    if not assume_sorted:
        order = np.argsort(plain(x), kind="mergesort")
        x, y = x[order], np.take(y, order, axis=axis)
    self.x, self.y = x, y
    if self._kind == "spline":
        flat = np.moveaxis(y, self.axis, 0)
        if np.any(np.isnan(plain(flat))) or np.any(np.isnan(plain(x))):
            raise ValueError("scipy.interpolate.interp1d: a spline of nodes cannot have nan among its points and values")
        self._spline = bsplines.interpolating(x, np.reshape(flat, (len(x), -1)), self._spline.k)
    hold_nodes(self, Table)
    if isinstance(fill_value, tuple):
        self._fill_value_below, self._fill_value_above = map(array, fill_value)
    elif not isinstance(fill_value, str):
        self._fill_value_below = self._fill_value_above = array(fill_value)


def looked_up(self: Any, x: Any) -> Any:
    """``interp1d.__call__``."""
    x = floating(x)
    flat, numbers = np.ravel(x), plain(x).ravel()
    y = np.moveaxis(array(self.y), self.axis, 0)
    found = _along_table(self, flat, y)
    if not self._extrapolate:
        ends = plain(self.x)
        for which, word, fill in (
            (numbers < ends[0], "below", self._fill_value_below),
            (numbers > ends[-1], "above", self._fill_value_above),
        ):
            if not np.any(which):
                continue
            if self.bounds_error:
                raise ValueError(f"A value ({numbers[which][0]}) in x_new is {word} the interpolation range's limits.")
            fill = np.reshape(array(fill), (-1,)) if y.ndim == 1 else fill
            found = np.where(column(which, found.ndim), fill[0] if y.ndim == 1 else fill, found)
    found = np.reshape(found, x.shape + y.shape[1:])
    order = list(range(x.ndim, x.ndim + self.axis)) + list(range(x.ndim))
    order += list(range(x.ndim + self.axis, found.ndim))
    return np.transpose(found, order) if self.axis and x.ndim else found


def _along_table(self: Any, x: Any, y: Any) -> Any:
    points, numbers, last = self.x, plain(x), len(self.x) - 1
    if self._kind == "spline":
        spline = self._spline
        found = bsplines.value(spline.t, spline.c, spline.k, x, 0, True)
        return np.reshape(found, (len(numbers), *y.shape[1:]))
    if self._kind in ("nearest", "nearest-up"):
        halves = plain(points) / 2.0
        where = np.searchsorted(halves[1:] + halves[:-1], numbers, side=self._side)
        return y[np.clip(where, 0, last)]
    if self._kind in ("previous", "next"):
        shifted = np.nextafter(plain(points), np.inf if self._ind else -np.inf)
        where = np.clip(np.searchsorted(shifted, numbers, side=self._side), 1 - self._ind, last + 1 - self._ind)
        return y[where + self._ind - 1]
    where = np.clip(np.searchsorted(plain(points), numbers), 1, last)
    slope = (y[where] - y[where - 1]) / column(points[where] - points[where - 1], y.ndim)
    return slope * column(x - points[where - 1], y.ndim) + y[where - 1]


# ------------------------------------------------------------------------------------------ regular grids


class Grid:
    """The methods of a ``RegularGridInterpolator`` that is made of nodes."""

    grid = property(lambda self: self._grid)
    values = property(lambda self: self._values)

    def __call__(self, xi: Any, method: Any = None, *, nu: Any = None) -> Any:
        """The values at places."""
        return on_grid(self, xi, method, nu=nu)


_METHODS = ("linear", "nearest")


def _require(method: str) -> None:
    if method not in _METHODS:
        raise TypeError(
            f"scipy.interpolate on regular grids: method={method!r} is not recorded; use 'linear', or make_interp_spline along "
            "one axis after the other"
        )


def grid(
    self: Any, points: Any, values: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan,
    *, solver: Any = None, solver_args: Any = None,
) -> None:  # fmt: skip
    """The making of a ``RegularGridInterpolator``."""
    _require(method)
    values, points = floating(values), [floating(p) for p in points]
    fill = fill_value if fill_value is None else plain(fill_value)[()]
    begin = original_of(scipy.interpolate.RegularGridInterpolator.__init__)
    begin(self, [plain(p) for p in points], plain(values), method, bounds_error, fill, solver=solver, solver_args=solver_args)
    turned = self._descending_dimensions
    self._grid = tuple([np.flip(p) if k in turned else p for k, p in enumerate(points)])
    self._values = np.flip(values, axis=turned) if turned else values
    self.fill_value = fill_value
    hold_nodes(self, Grid)


def _places(xi: Any, count: int) -> Any:
    """Places along a last axis, from an array, or from one array for each coordinate."""
    if isinstance(xi, tuple):
        parts = np.broadcast_arrays(*[floating(x) for x in xi])
        return np.stack(parts, axis=-1)
    xi = floating(xi)
    return np.reshape(xi, (-1, 1)) if count == 1 and xi.ndim == 1 else xi


def on_grid(self: Any, xi: Any, method: Any = None, *, nu: Any = None) -> Any:
    """``RegularGridInterpolator.__call__``."""
    method = self.method if method is None else method
    _require(method)
    points, values, count = self._grid, self._values, len(self._grid)
    xi = _places(xi, count)
    if xi.shape[-1] != count or nu is not None:
        raise ValueError(f"The requested sample points xi have dimension {xi.shape[-1]}, the grid {count}; nu= must be None")
    shape, flat = xi.shape[:-1], np.reshape(xi, (-1, count))
    numbers = plain(flat)
    beyond = np.zeros(len(numbers), bool)
    cells, ways = [], []
    for k, p in enumerate(map(plain, points)):
        beyond |= (numbers[:, k] < p[0]) | (numbers[:, k] > p[-1])
        cells.append(np.clip(np.searchsorted(p, numbers[:, k], side="right") - 1, 0, len(p) - 2))
        ways.append((flat[:, k] - points[k][cells[k]]) / (points[k][cells[k] + 1] - points[k][cells[k]]))
    if self.bounds_error and np.any(beyond):
        raise ValueError("One of the requested xi is out of bounds")
    rank = values.ndim - count + 1
    if method == "nearest":
        found = values[tuple([np.where(plain(s) <= 0.5, i, i + 1) for i, s in zip(cells, ways, strict=True)])]
    else:
        found = 0
        for corner in itertools.product((0, 1), repeat=count):
            weight: Any = 1.0
            for s, up in zip(ways, corner, strict=True):
                weight = weight * (s if up else 1 - s)
            found = found + values[tuple([i + up for i, up in zip(cells, corner, strict=True)])] * column(weight, rank)
    if not self.bounds_error and self.fill_value is not None and np.any(beyond):
        found = np.where(column(beyond, rank), self.fill_value, found)
    lost = np.any(np.isnan(numbers), axis=-1)
    found = np.where(column(lost, rank), np.nan, found) if np.any(lost) else found
    return np.reshape(found, shape + values.shape[count:])


def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
) -> Any:
    """``scipy.interpolate.interpn``."""
    _require(method)
    made = object.__new__(scipy.interpolate.RegularGridInterpolator)
    grid(made, points, values, method, bounds_error, fill_value)
    return made(xi)
