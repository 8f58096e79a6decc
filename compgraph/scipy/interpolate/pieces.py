"""Piecewise polynomials: made of nodes, and asked at nodes.

``S(x) = sum of c[m, i] (x - breaks[i])^(k - m)`` between ``breaks[i]`` and ``breaks[i + 1]``; in Bernstein's basis
``sum of c[a, i] b_a(s)`` with ``s = (x - breaks[i]) / (breaks[i + 1] - breaks[i])`` (C. de Boor, *A Practical Guide to Splines*,
revised ed., Springer 2001, ch. VII; R. T. Farouki, "The Bernstein polynomial basis", Comput. Aided Geom. Des. 29 (2012)). In
which piece a place lies is a choice that has no derivative.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from ..steps import Held, column, floating, hold_nodes, holding_nodes, plain


def piece_of(breaks: Any, x: Any) -> Any:
    """In which piece a place lies: pieces contain their first ends, and the last one both."""
    breaks, x = plain(breaks), plain(x)
    if breaks[0] <= breaks[-1]:
        found = np.searchsorted(breaks, x, side="right") - 1
    else:
        found = np.searchsorted(-breaks, -x, side="right") - 1
    return np.clip(found, 0, len(breaks) - 2)


def folded(x: Any, first: Any, last: Any) -> Any:
    """A place within the period from `first` to `last`."""
    return first + (x - first) % (last - first)


def outside(breaks: Any, x: Any) -> Any:
    """Which places lie beyond the first and last ends."""
    ends, x = plain(breaks)[[0, -1]], plain(x)
    return ~((x >= np.min(ends)) & (x <= np.max(ends)))


def located(x: Any, breaks: Any, extrapolate: Any) -> tuple[Any, Any, Any]:
    """Places, folded where that is asked for; the pieces they lie in; and which get nan, or None."""
    if isinstance(extrapolate, str):
        x, extrapolate = folded(x, breaks[0], breaks[-1]), False
    beyond = None if extrapolate else outside(breaks, x)
    return x, piece_of(breaks, x), beyond if beyond is not None and np.any(beyond) else None


def powers(c: Any, breaks: Any, x: Any, nu: int, extrapolate: Any) -> Any:
    """The value of a piecewise polynomial at a vector of places, or its derivative, by Horner's rule."""
    x, where, beyond = located(x, breaks, extrapolate)
    order = c.shape[0]
    h = column(x - breaks[where], c.ndim - 1)
    total: Any = np.zeros((len(where), *c.shape[2:]), c.dtype)
    if nu < order:
        total = total + c[0][where] * _falling(order - 1, nu)
        for m in range(1, order - nu):
            total = total * h + c[m][where] * _falling(order - 1 - m, nu)
    return total if beyond is None else np.where(column(beyond, c.ndim - 1), np.nan, total)


def _falling(power: int, nu: int) -> float:
    """``power (power - 1) ... (power - nu + 1)``, which the derivative of a power is multiplied by."""
    return float(math.perm(power, nu))


def bernstein(c: Any, breaks: Any, x: Any, nu: int, extrapolate: Any) -> Any:
    """The same of coefficients in Bernstein's basis, by de Casteljau's scheme."""
    for _ in range(nu):
        c = _bernstein_slope(c, breaks)
    x, where, beyond = located(x, breaks, extrapolate)
    s = column((x - breaks[where]) / (breaks[where + 1] - breaks[where]), c.ndim - 1)
    level = [row[where] for row in c]
    while len(level) > 1:
        level = [(1 - s) * a + s * b for a, b in itertools.pairwise(level)]
    return level[0] if beyond is None else np.where(column(beyond, c.ndim - 1), np.nan, level[0])


def _bernstein_slope(c: Any, breaks: Any) -> Any:
    if c.shape[0] == 1:
        return np.zeros_like(c)
    return (c.shape[0] - 1) * np.diff(c, axis=0) / column(np.diff(breaks), c.ndim - 1)


def along_axis(found: Any, ndim: int, axis: int) -> Any:
    """The axes of places brought where the axis of interpolation was."""
    if axis == 0:
        return found
    order = list(range(found.ndim))
    return np.transpose(found, order[ndim : ndim + axis] + order[:ndim] + order[ndim + axis :])


# ------------------------------------------------------------------------------------------ objects


def call(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
    """``PPoly.__call__`` and ``BPoly.__call__``."""
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    x = floating(x)
    rule: Callable[..., Any] = bernstein if isinstance(self, scipy.interpolate.BPoly) else powers
    found = rule(self.c, self.x, np.ravel(x), nu, extrapolate)
    return along_axis(np.reshape(found, x.shape + self.c.shape[2:]), x.ndim, self.axis)


def integrate(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
    """``PPoly.integrate`` and ``BPoly.integrate``: the difference of an antiderivative, and of whole periods."""
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    whole = antiderivative(self)
    whole.axis = 0
    a, b = floating(a), floating(b)
    if not isinstance(extrapolate, str):
        return whole(b, extrapolate=extrapolate) - whole(a, extrapolate=extrapolate)
    first, last = self.x[0], self.x[-1]
    ends = whole(first), whole(last)

    def up_to(t: Any) -> Any:
        turns = np.floor((plain(t) - plain(first)) / (plain(last) - plain(first)))
        return whole(t - turns * (last - first), extrapolate=True) + turns * (ends[1] - ends[0])

    return up_to(b) - up_to(a)


def derivative(self: Any, nu: int = 1) -> Any:
    """``PPoly.derivative`` and ``BPoly.derivative``."""
    if nu < 0:
        return antiderivative(self, -nu)
    c = self.c
    if isinstance(self, scipy.interpolate.BPoly):
        for _ in range(nu):
            c = _bernstein_slope(c, self.x)
        return made(scipy.interpolate.BPoly, c, self.x, self.extrapolate, self.axis)
    order = c.shape[0]
    if nu >= order:
        return made(scipy.interpolate.PPoly, np.zeros_like(c[:1]), self.x, self.extrapolate, self.axis)
    factors = np.array([_falling(order - 1 - m, nu) for m in range(order - nu)])
    c = c[: order - nu] * column(factors, c.ndim)
    return made(scipy.interpolate.PPoly, c, self.x, self.extrapolate, self.axis)


def antiderivative(self: Any, nu: int = 1) -> Any:
    """``PPoly.antiderivative`` and ``BPoly.antiderivative``, continuous, and zero at the first end."""
    if nu < 0:
        return derivative(self, -nu)
    found, kind = self.c, scipy.interpolate.BPoly if isinstance(self, scipy.interpolate.BPoly) else scipy.interpolate.PPoly
    for _ in range(nu):
        found = (_bernstein_sum if kind is scipy.interpolate.BPoly else _power_sum)(found, self.x)
    extrapolate = False if isinstance(self.extrapolate, str) and nu else self.extrapolate
    return made(kind, found, self.x, extrapolate, self.axis)


def _power_sum(c: Any, breaks: Any) -> Any:
    order = c.shape[0]
    raised = c / column(np.arange(order, 0, -1.0), c.ndim)
    h = column(np.diff(breaks), c.ndim - 1)
    area: Any = 0
    for m in range(order):
        area = (area + raised[m]) * h
    start = np.concatenate([np.zeros_like(area[:1]), np.cumsum(area, axis=0)[:-1]])
    return np.concatenate([raised, start[None]])


def _bernstein_sum(c: Any, breaks: Any) -> Any:
    h = column(np.diff(breaks), c.ndim - 1)
    above = np.cumsum(c, axis=0) / c.shape[0] * h
    start = np.concatenate([np.zeros_like(above[-1][:1]), np.cumsum(above[-1], axis=0)[:-1]])
    return np.concatenate([np.zeros_like(above[:1]), above]) + start


class Pieces:
    """The methods of a piecewise polynomial that is made of nodes."""

    c, x, extrapolate, axis = Held(), Held(), Held(), Held()
    __call__, integrate, derivative, antiderivative = call, integrate, derivative, antiderivative

    def solve(self, *args: Any, **kwargs: Any) -> Any:
        """Roots are found among numbers."""
        raise TypeError(
            "the roots of a piecewise polynomial that is made of nodes are not recorded; find them with that of plain arrays, "
            "then take autodiff.root from there"
        )

    def extend(self, *args: Any, **kwargs: Any) -> Any:
        """Not written."""
        raise TypeError("a piecewise polynomial that is made of nodes is not extended in place; join c and x, and make another")

    roots = solve


def set_pieces(self: Any, c: Any, x: Any, extrapolate: Any, axis: int) -> None:
    """Give an object its coefficients and ends."""
    hold_nodes(self, Pieces)
    self.c, self.x, self.extrapolate, self.axis = c, x, extrapolate, axis


def made(kind: Any, c: Any, x: Any, extrapolate: Any, axis: int) -> Any:
    """A piecewise polynomial of nodes."""
    found: Any = object.__new__(holding_nodes(Pieces, kind))
    set_pieces(found, c, x, extrapolate, axis)
    return found


def begin(self: Any, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
    """The making of a PPoly or a BPoly."""
    c, x = floating(c), floating(x)
    if c.ndim < 2 or not 0 <= axis < c.ndim - 1:
        raise ValueError(f"Coefficients array must be at least 2-dimensional, and axis={axis} between 0 and {c.ndim - 1}")
    c = np.moveaxis(c, (axis, axis + 1), (0, 1)) if axis else c
    if x.ndim != 1 or x.size < 2 or c.shape[0] == 0 or c.shape[1] != x.size - 1:
        raise ValueError("x must be 1-dimensional, of one element more than there are pieces in c, which must not be empty")
    steps = np.diff(plain(x))
    if not (np.all(steps >= 0) or np.all(steps <= 0)):
        raise ValueError("`x` must be strictly increasing or decreasing.")
    keep = True if extrapolate is None else extrapolate if extrapolate == "periodic" else bool(extrapolate)
    set_pieces(self, c, x, keep, axis)
