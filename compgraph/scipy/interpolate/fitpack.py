"""FITPACK's curves, by the same B-splines: those through all points, and those with knots that are given.

Where FITPACK chooses knots by a bound of the residual (``s > 0``), the spline is found by a search, and is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate
import scipy.linalg

from ..steps import array, column, floating, hold_nodes, holding_nodes, plain
from . import bsplines

_SEARCHED = (
    "{}: with s > 0 the knots are found by a search, which has no derivative; use s=0 (through all points), "
    "scipy.interpolate.make_lsq_spline with knots of your own, or make_smoothing_spline with lam="
)


def splrep(
    x: Any, y: Any, w: Any = None, xb: Any = None, xe: Any = None, k: int = 3, task: int = 0, s: Any = None, t: Any = None,
    full_output: Any = 0, per: Any = 0, quiet: Any = 1,
) -> Any:  # fmt: skip
    """``scipy.interpolate.splrep``."""
    for name, given in {"per": per, "full_output": full_output, "xb": xb is not None, "xe": xe is not None}.items():
        if given:
            raise TypeError(f"scipy.interpolate.splrep: {name}= is not recorded; use make_interp_spline, or CubicSpline")
    if t is None and (s is not None or w is not None) and s != 0:
        raise TypeError(_SEARCHED.format("scipy.interpolate.splrep"))
    x, y = floating(x), floating(y)
    return tck_of(x, y, k, None if t is None else floating(t), w)


def tck_of(x: Any, y: Any, k: int, inner: Any = None, w: Any = None) -> tuple[Any, Any, int]:
    """Knots, coefficients and degree of the spline through all points; with inner knots, of the nearest one."""
    if inner is None:
        curve = bsplines.interpolating(x, y, k)
    else:
        ends = [x[:1]] * (k + 1), [x[-1:]] * (k + 1)
        curve = bsplines.least_squares(x, y, np.concatenate([*ends[0], inner, *ends[1]]), k, w)
    return curve.t, np.concatenate([curve.c, np.zeros(k + 1)]), k


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """``scipy.interpolate.splev``."""
    if isinstance(tck, scipy.interpolate.BSpline):
        if ext:
            raise ValueError(f"Extrapolation mode {ext} is not supported by BSpline.")
        return bsplines.call(tck, x, der, extrapolate=True)
    t, c, k = tck
    if isinstance(c, (list, tuple)) and np.ndim(c[0]):
        return [splev(x, (t, part, k), der, ext) for part in c]
    if not 0 <= der <= k:
        raise ValueError(f"0<=der={der}<=k={k} must hold")
    t, c, x = floating(t), floating(c), floating(x)
    flat = np.ravel(x)
    first, last = t[k], t[len(t) - k - 1]
    beyond = (plain(flat) < plain(first)) | (plain(flat) > plain(last))
    if ext == 2 and np.any(beyond):
        raise ValueError("Found x value not in the domain")
    if ext == 3:
        flat = np.clip(flat, first, last)
    found = bsplines.value(t, c, k, flat, der, True)
    if ext == 1 and np.any(beyond):
        found = np.where(beyond, 0.0, found)
    return np.reshape(found, x.shape)


def splint(a: Any, b: Any, tck: Any, full_output: Any = 0) -> Any:
    """``scipy.interpolate.splint``."""
    if full_output:
        raise TypeError("scipy.interpolate.splint: full_output= gives integrals of the basis, which are not recorded")
    if isinstance(tck, scipy.interpolate.BSpline):
        return bsplines.integrate(tck, a, b, extrapolate=False)
    t, c, k = tck
    if isinstance(c, (list, tuple)) and np.ndim(c[0]):
        return [splint(a, b, (t, part, k)) for part in c]
    return bsplines.integrate(bsplines.made(floating(t), floating(c), k), a, b, extrapolate=False)


def splder(tck: Any, n: int = 1) -> Any:
    """``scipy.interpolate.splder``."""
    if isinstance(tck, scipy.interpolate.BSpline):
        return bsplines.derivative(tck, n)
    return bsplines.slopes((floating(tck[0]), floating(tck[1]), tck[2]), n)


def splantider(tck: Any, n: int = 1) -> Any:
    """``scipy.interpolate.splantider``."""
    if isinstance(tck, scipy.interpolate.BSpline):
        return bsplines.antiderivative(tck, n)
    return bsplines.sums((floating(tck[0]), floating(tck[1]), tck[2]), n)


# ------------------------------------------------------------------------------------------ the classes


class Curve:
    """The methods of a ``UnivariateSpline`` that is made of nodes."""

    _tck: Any
    ext: Any

    def __call__(self, x: Any, nu: int = 0, ext: Any = None) -> Any:
        """The spline, or a derivative of it."""
        ext = self.ext if ext is None else ext
        return splev(x, self._tck, nu, _EXTENSIONS.get(ext, ext))

    def integral(self, a: Any, b: Any) -> Any:
        """The integral between limits, beyond the points of zero."""
        return splint(a, b, self._tck)

    def derivative(self, n: int = 1) -> Any:
        """The derivative, as a spline."""
        return _curve(splder(self._tck, n), 1 if self.ext == 3 else self.ext)

    def antiderivative(self, n: int = 1) -> Any:
        """The antiderivative, as a spline."""
        return _curve(splantider(self._tck, n), self.ext)

    def derivatives(self, x: Any) -> Any:
        """All derivatives at a place."""
        return np.stack([splev(x, self._tck, nu) for nu in range(self._tck[2] + 1)])

    def get_knots(self) -> Any:
        """The knots, without those that are doubled at both ends."""
        t, _, k = self._tck
        return t[k : len(t) - k]

    def get_coeffs(self) -> Any:
        """The coefficients."""
        t, c, k = self._tck
        return c[: len(t) - k - 1]

    def _refused(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("roots, residuals and other smoothing of a spline that is made of nodes are not recorded")

    roots = set_smoothing_factor = get_residual = _refused


_EXTENSIONS = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}


def _curve(tck: Any, ext: Any) -> Any:
    found: Any = object.__new__(holding_nodes(Curve, scipy.interpolate.UnivariateSpline))
    found._tck, found.ext = tck, ext
    return found


def _begin(self: Any, x: Any, y: Any, inner: Any, w: Any, bbox: Any, k: int, ext: Any) -> None:
    if any(end is not None for end in bbox):
        raise TypeError("bbox= of a spline that is made of nodes is not recorded; use scipy.interpolate.make_interp_spline")
    x, y = floating(x), floating(y)
    if np.any(np.diff(plain(x)) <= 0):
        raise ValueError("x must be strictly increasing")
    tck = tck_of(x, y, k, inner, w)
    hold_nodes(self, Curve)
    self._tck, self.ext = tck, _EXTENSIONS.get(ext, ext)


def univariate(
    self: Any, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, s: Any = None, ext: Any = 0,
    check_finite: bool = False,
) -> None:  # fmt: skip
    """The making of a ``UnivariateSpline``."""
    if s is None or s != 0:
        raise TypeError(_SEARCHED.format("scipy.interpolate.UnivariateSpline"))
    _begin(self, x, y, None, w, bbox, k, ext)


def interpolated(
    self: Any, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: Any = 0, check_finite: bool = False
) -> None:
    """The making of an ``InterpolatedUnivariateSpline``."""
    _begin(self, x, y, None, w, bbox, k, ext)


def near_points(
    self: Any,
    x: Any,
    y: Any,
    t: Any,
    w: Any = None,
    bbox: Any = (None, None),
    k: int = 3,
    ext: Any = 0,
    check_finite: bool = False,
) -> None:
    """The making of an ``LSQUnivariateSpline``."""
    _begin(self, x, y, floating(t), w, bbox, k, ext)


def call(self: Any, x: Any, nu: int = 0, ext: Any = None) -> Any:
    """``UnivariateSpline.__call__`` of plain numbers at nodes."""
    ext = self.ext if ext is None else ext
    return splev(x, self._eval_args, nu, _EXTENSIONS.get(ext, ext))


def integral(self: Any, a: Any, b: Any) -> Any:
    """``UnivariateSpline.integral`` of plain numbers between nodes."""
    return splint(a, b, self._eval_args)


# ------------------------------------------------------------------------------------------ smoothing


def smoothing(x: Any, y: Any, w: Any = None, lam: Any = None, *, axis: int = 0) -> Any:
    """``scipy.interpolate.make_smoothing_spline``, by Reinsch's equations.

    P. J. Green and B. W. Silverman, *Nonparametric Regression and Generalized Linear Models*, 1994, ch. 2: with the second
    derivatives at the inner points ``(R + lam Q' W^-1 Q) g = Q' y`` the values are ``y - lam W^-1 Q g``.
    """
    if lam is None:
        raise TypeError(
            "scipy.interpolate.make_smoothing_spline: without lam= the parameter is found by a search; give the number, or find "
            "it with that of plain arrays"
        )
    x, y, lam = floating(x), floating(y), array(lam)
    if lam.ndim or x.ndim != 1 or len(x) < 5 or len(x) != y.shape[axis]:
        raise ValueError("make_smoothing_spline takes 5 points or more, as many as values along the axis, and one number lam")
    if np.any(np.diff(plain(x)) <= 0) or plain(lam) < 0:
        raise ValueError("``x`` should be an ascending array, and lam not negative")
    axis = axis % y.ndim
    y = np.moveaxis(y, axis, 0)
    each = 1 / (np.ones(len(x)) if w is None else floating(w))
    h = np.diff(x)
    a, b, c = 1 / h[:-1], -(1 / h[:-1] + 1 / h[1:]), 1 / h[1:]  # the columns of Q
    main = (h[:-1] + h[1:]) / 3 + lam * (a * a * each[:-2] + b * b * each[1:-1] + c * c * each[2:])
    next_one = h[1:-1] / 6 + lam * (b[:-1] * a[1:] * each[1:-2] + c[:-1] * b[1:] * each[2:-1])
    next_two = lam * c[:-2] * a[2:] * each[2:-2]
    none = np.zeros(1)
    matrix = np.stack([
        np.concatenate([none, none, next_two]), np.concatenate([none, next_one]), main,
        np.concatenate([next_one, none]), np.concatenate([next_two, none, none]),
    ])  # fmt: skip
    flat = np.reshape(y, (len(x), -1))
    right = a[:, None] * flat[:-2] + b[:, None] * flat[1:-1] + c[:, None] * flat[2:]
    g = scipy.linalg.solve_banded((2, 2), matrix, right)
    gap = np.zeros((2, flat.shape[1]))
    bent = np.concatenate([a[:, None] * g, gap]) + np.concatenate([gap[:1], b[:, None] * g, gap[:1]])
    bent = bent + np.concatenate([gap, c[:, None] * g])
    values = np.reshape(flat - lam * column(each, 2) * bent, y.shape)
    made = bsplines.interpolating(x, values, bc_type="natural")
    made.axis = axis
    return made
