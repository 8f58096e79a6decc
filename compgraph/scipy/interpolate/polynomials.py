"""Polynomials through points: Newton's form with divided differences, and Lagrange's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.interpolate

from ...interception import original_of
from ..steps import array, column, floating, hold_nodes, plain
from . import tables


def call(self: Any, x: Any) -> Any:
    """The call of an ``interp1d``, a ``KroghInterpolator`` or a ``BarycentricInterpolator``."""
    if isinstance(self, scipy.interpolate.interp1d):
        return tables.looked_up(self, x)
    return derivative(self, x, 0)


def derivative(self: Any, x: Any, der: int = 1) -> Any:
    """A derivative of the polynomial."""
    x = floating(x)
    rule = _newton if isinstance(self, scipy.interpolate.KroghInterpolator) else _lagrange
    return _laid(self, rule(self, np.ravel(x), der + 1)[der], x.shape)


def derivatives(self: Any, x: Any, der: Any = None) -> Any:
    """All derivatives of the polynomial to an order, along a first axis."""
    x = floating(x)
    rule = _newton if isinstance(self, scipy.interpolate.KroghInterpolator) else _lagrange
    count = len(self.xi) if der is None else der
    return np.stack([_laid(self, part, x.shape) for part in rule(self, np.ravel(x), count)])


def _laid(self: Any, found: Any, shape: tuple[int, ...]) -> Any:
    """Values of shape ``(places, elements)`` in the shape that SciPy gives them."""
    found = np.reshape(found, shape + tuple(self._y_extra_shape))
    if not self._y_axis or not shape:
        return found
    n = len(shape)
    order = list(range(n, n + self._y_axis)) + list(range(n)) + list(range(n + self._y_axis, found.ndim))
    return np.transpose(found, order)


class Polynomial:
    """The methods of a polynomial that is made of nodes."""

    __call__, derivative, derivatives = call, derivative, derivatives

    def _refused(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("a polynomial that is made of nodes is not changed in place; make another through all points")

    set_yi = add_xi = _refused


def _begin(self: Any, xi: Any, yi: Any, axis: int) -> None:
    xi, yi = floating(xi), floating(yi)
    original_of(type(self).__init__)(self, plain(xi), plain(yi), axis)
    self.xi, self.yi = xi, np.reshape(np.moveaxis(yi, axis, 0), (yi.shape[axis], -1))
    hold_nodes(self, Polynomial)


# ------------------------------------------------------------------------------------------ Newton


def krogh(self: Any, xi: Any, yi: Any, axis: int = 0) -> None:
    """The making of a ``KroghInterpolator``.

    A point that is repeated has derivatives for its further values: F. T. Krogh, "Efficient algorithms for polynomial
    interpolation and numerical differentiation", Math. Comput. 24 (1970).
    """
    _begin(self, xi, yi, axis)
    x, y, numbers = self.xi, self.yi, plain(self.xi)
    c = [y[0]]
    for k in range(1, len(numbers)):
        again = 0
        while again < k and numbers[k - again - 1] == numbers[k]:
            again += 1
        if np.any(numbers[: k - again] == numbers[k]):
            raise ValueError("Elements of `xi` can't be equal.")
        # divided differences over the first i points and `again` + 1 times the point k, for i = 0 ... k - again
        level = [y[k - again + s] / math.factorial(s) for s in range(again + 1)]
        for i in range(k - again):
            gap = x[i] - x[k]
            before = (c[i] - level[0]) / gap
            new = [before]
            for s in range(1, again + 1):
                new.append((new[-1] - level[s]) / gap)
            level = new
        c.append(level[again])
    self.c = np.stack(c)


def _newton(self: Any, x: Any, count: int) -> list[Any]:
    """The polynomial and its derivatives, by Horner's rule on Newton's form and on the derivatives of it."""
    points, c = array(self.xi), array(self.c)
    n = len(points)
    found = [c[n - 1] + 0 * x[:, None], *[np.zeros((x.shape[0], c.shape[1]))] * (count - 1)]
    for k in range(n - 2, -1, -1):
        step = column(x - points[k], 2)
        found = [f * step + (j * found[j - 1] if j else c[k]) for j, f in enumerate(found)]
    return found


# ------------------------------------------------------------------------------------------ Lagrange


def barycentric(self: Any, xi: Any, yi: Any = None, axis: int = 0, *, wi: Any = None, rng: Any = None, **other: Any) -> None:
    """The making of a ``BarycentricInterpolator``; weights that are given are those of the points, which are known anyway."""
    if yi is None:
        raise TypeError("scipy.interpolate.BarycentricInterpolator: values given later are not recorded; give yi=")
    _begin(self, xi, yi, axis)


def _lagrange(self: Any, x: Any, count: int) -> list[Any]:
    """The polynomial and its derivatives: values at the points, and from them those of derivatives, weighted at places."""
    points, values = array(self.xi), array(self.yi)
    n = len(points)
    same = np.eye(n, dtype=bool)
    gaps = np.where(same, 1.0, points[:, None] - points)
    scale = 4.0 / np.ptp(plain(points)) if n > 1 else 1.0
    weights = 1 / np.prod(gaps * np.where(same, 1.0, scale), axis=1)
    away = np.where(same, 1.0, (x[:, None, None] - points) * scale)  # of each place, the distances but one
    matrix = np.prod(away, axis=2) * weights
    found = [matrix @ values]
    if count > 1:  # J.-P. Berrut and L. N. Trefethen, "Barycentric Lagrange interpolation", SIAM Rev. 46 (2004), (9.4), (9.5)
        slopes = np.where(same, 0.0, weights / (gaps * weights[:, None]))
        slopes = slopes - np.where(same, np.sum(slopes, axis=1)[:, None], 0.0)
        for _ in range(count - 1):
            values = slopes @ values
            found.append(matrix @ values)
    return found


def krogh_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """``scipy.interpolate.krogh_interpolate``."""
    return _asked(scipy.interpolate.KroghInterpolator(xi, yi, axis=axis), x, der)


def barycentric_interpolate(xi: Any, yi: Any, x: Any, axis: int = 0, *, der: Any = 0, rng: Any = None) -> Any:
    """``scipy.interpolate.barycentric_interpolate``."""
    return _asked(scipy.interpolate.BarycentricInterpolator(xi, yi, axis=axis), x, der)


def _asked(curve: Any, x: Any, der: Any) -> Any:
    if np.ndim(der) == 0 and der is not None:
        return derivative(curve, x, der)
    return derivatives(curve, x) if der is None else derivatives(curve, x, np.max(der) + 1)[np.asarray(der)]


def lagrange(x: Any, w: Any) -> Any:
    """The sum of the values, each with the product of ``(t - x[k]) / (x[j] - x[k])`` over all other points."""
    x, w = array(x), array(w)
    total = 0.0
    for j in range(len(x)):
        basis = np.ones(1)
        for k in range(len(x)):
            if k != j:
                basis = np.convolve(basis, np.stack([np.ones_like(x[k]), -x[k]])) / (x[j] - x[k])
        total = total + w[j] * basis
    return np.poly1d(total)
