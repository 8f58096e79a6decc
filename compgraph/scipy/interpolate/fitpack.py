"""FITPACK's spline curves in recorded steps: interpolation, and least squares with given knots.

With a bound on the residual (``s > 0``), FITPACK searches for knots, and the spline has no derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..own_classes import class_of_nodes
from ..tools import to_array, to_column, to_double, to_numpy
from . import bsplines

_KNOT_SEARCH = (
    "{}: with s > 0 FITPACK searches for knots, and the spline has no derivative. Use s=0 (through all points), "
    "scipy.interpolate.make_lsq_spline with given knots, or make_smoothing_spline with lam="
)
_EXTENSIONS = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}


def splrep(
    x: NDArray[Any],
    y: NDArray[Any],
    w: NDArray[Any] | None = None,
    xb: object = None,
    xe: object = None,
    k: int = 3,
    task: int = 0,
    s: float | None = None,
    t: NDArray[Any] | None = None,
    full_output: int = 0,
    per: int = 0,
    quiet: int = 1,
) -> tuple[Any, Any, int]:
    """``scipy.interpolate.splrep``."""
    options = {"per": per, "full_output": full_output, "xb": xb is not None, "xe": xe is not None}
    for name, is_set in options.items():
        if is_set:
            raise TypeError(f"scipy.interpolate.splrep: {name}= is not recorded. Use make_interp_spline, or CubicSpline")
    if t is None and (s is not None or w is not None) and s != 0:
        raise TypeError(_KNOT_SEARCH.format("scipy.interpolate.splrep"))
    return _tck(to_double(x), to_double(y), k, None if t is None else to_double(t), w)


def _discard_imaginary(y: NDArray[Any]) -> NDArray[Any]:
    """The real part of complex values, which SciPy's real splines use; the conversion issues NumPy's ComplexWarning."""
    return y.astype(y.real.dtype) if y.dtype.kind == "c" else y


def _tck(x: NDArray[Any], y: NDArray[Any], k: int, inner: NDArray[Any] | None, w: object) -> tuple[Any, Any, int]:
    """The knots, coefficients and degree of the interpolating spline; with inner knots, of the least-squares spline."""
    y = _discard_imaginary(y)
    if inner is None:
        curve = bsplines.make_interp_spline(x, y, k)
    else:
        knots = np.concatenate([*[x[:1]] * (k + 1), inner, *[x[-1:]] * (k + 1)])
        curve = bsplines.make_lsq_spline(x, y, knots, k, w)
    return curve.t, np.concatenate([curve.c, np.zeros(k + 1)]), k


# ------------------------------------------------------------------------ replacements of _fitpack_impl


def splev(x: NDArray[Any], tck: Sequence[Any], der: int = 0, ext: int = 0) -> Any:
    """The values of a spline, or of a derivative."""
    t, c, k = tck
    if isinstance(c, (list, tuple)) and np.ndim(c[0]):
        return [splev(x, (t, part, k), der, ext) for part in c]
    if not 0 <= der <= k:
        raise ValueError(f"0<=der={der}<=k={k} must hold")
    if ext not in (0, 1, 2, 3):
        raise ValueError(f"ext = {ext} not in (0, 1, 2, 3) ")
    t, c, x = to_double(t), to_double(c), to_double(x)
    points = np.ravel(x)
    first, last = t[k], t[len(t) - k - 1]
    outside = (to_numpy(points) < to_numpy(first)) | (to_numpy(points) > to_numpy(last))
    if ext == 2 and np.any(outside):
        raise ValueError("Found x value not in the domain")
    if ext == 3:
        points = np.clip(points, first, last)
    values = bsplines.evaluate_spline(t, c[:, None], k, points, der, True)[:, 0]
    if ext == 1 and np.any(outside):
        values = np.where(outside, 0.0, values)
    return np.reshape(values, x.shape)


def splint(a: object, b: object, tck: Sequence[Any], full_output: int = 0) -> Any:
    """The integral of a spline that is zero beyond its knots."""
    if full_output:
        raise TypeError("scipy.interpolate.splint: full_output= returns integrals of the basis, which are not recorded. Omit it")
    t, c, k = tck
    if isinstance(c, (list, tuple)) and np.ndim(c[0]):
        return [splint(a, b, (t, part, k)) for part in c]
    spline = bsplines.spline_of(to_double(t), to_double(c), k)
    first, last = spline.t[k], spline.t[len(spline.t) - k - 1]
    return spline.integrate(np.clip(to_double(a), first, last), np.clip(to_double(b), first, last), extrapolate=True)


def spalde(x: NDArray[Any], tck: Sequence[Any]) -> Any:
    """All derivatives of a spline at a point."""
    return np.stack([splev(x, tck, nu) for nu in range(tck[2] + 1)])


# ------------------------------------------------------------------------------------------ classes


def _init_spline(
    self: Any,
    x: NDArray[Any],
    y: NDArray[Any],
    inner: NDArray[Any] | None,
    w: object,
    bbox: Sequence[Any],
    k: int,
    ext: int | str,
) -> None:
    if any(end is not None for end in bbox):
        raise TypeError("bbox= is not recorded for a spline that is created from nodes. Use scipy.interpolate.make_interp_spline")
    x, y = to_double(x), to_double(y)
    if np.any(np.diff(to_numpy(x)) <= 0):
        raise ValueError("x must be strictly increasing")
    t, c, k = self._eval_args = _tck(x, y, k, inner, w)
    self._data = (None, None, None, None, None, k, None, len(t), t, c, None, None, None, None)  # as UnivariateSpline._from_tck
    self.ext = _EXTENSIONS.get(ext, ext) if isinstance(ext, str) else ext
    self.__class__ = class_of_nodes(type(self))


def init_univariate_spline(
    self: Any,
    x: NDArray[Any],
    y: NDArray[Any],
    w: object = None,
    bbox: tuple[Any, ...] = (None, None),
    k: int = 3,
    s: float | None = None,
    ext: int | str = 0,
    check_finite: bool = False,
) -> None:
    """``UnivariateSpline.__init__``."""
    if s is None or s != 0:
        raise TypeError(_KNOT_SEARCH.format("scipy.interpolate.UnivariateSpline"))
    _init_spline(self, x, y, None, w, bbox, k, ext)


def init_interpolated_spline(
    self: Any,
    x: NDArray[Any],
    y: NDArray[Any],
    w: object = None,
    bbox: Sequence[Any] = (None, None),
    k: int = 3,
    ext: int | str = 0,
    check_finite: bool = False,
) -> None:
    """``InterpolatedUnivariateSpline.__init__``."""
    _init_spline(self, x, y, None, w, bbox, k, ext)


def init_lsq_spline(
    self: Any,
    x: NDArray[Any],
    y: NDArray[Any],
    t: NDArray[Any],
    w: object = None,
    bbox: tuple[Any, ...] = (None, None),
    k: int = 3,
    ext: int | str = 0,
    check_finite: bool = False,
) -> None:
    """``LSQUnivariateSpline.__init__``."""
    _init_spline(self, x, y, to_double(t), w, bbox, k, ext)


# ------------------------------------------------------------------------------------------ smoothing


def make_smoothing_spline(x: Any, y: Any, w: Any = None, lam: Any = None, *, axis: int = 0) -> Any:
    """``scipy.interpolate.make_smoothing_spline``, by Reinsch's equations.

    P. J. Green and B. W. Silverman, *Nonparametric Regression and Generalized Linear Models*, 1994, ch. 2: with the second
    derivatives at the inner points ``(R + lam Q' W^-1 Q) g = Q' y`` the values are ``y - lam W^-1 Q g``.
    """
    if lam is None:
        raise TypeError(
            "scipy.interpolate.make_smoothing_spline: without lam= SciPy searches for the parameter. Pass a number for it"
        )
    x, y, lam = to_double(x), _discard_imaginary(to_double(y)), to_array(lam)
    if lam.ndim or x.ndim != 1 or len(x) < 5 or len(x) != y.shape[axis]:
        raise ValueError("make_smoothing_spline: x must be a vector of at least 5 points, as many as y has, and lam a number")
    if np.any(np.diff(to_numpy(x)) <= 0) or to_numpy(lam) < 0:
        raise ValueError("make_smoothing_spline: x must be increasing, and lam not negative")
    axis = axis % y.ndim
    y = np.moveaxis(y, axis, 0)
    inverse_weights = 1 / (np.ones(len(x)) if w is None else to_double(w))
    h = np.diff(x)
    a, b, c = 1 / h[:-1], -(1 / h[:-1] + 1 / h[1:]), 1 / h[1:]  # the columns of Q
    main = (h[:-1] + h[1:]) / 3 + lam * (
        a * a * inverse_weights[:-2] + b * b * inverse_weights[1:-1] + c * c * inverse_weights[2:]
    )
    next_one = h[1:-1] / 6 + lam * (b[:-1] * a[1:] * inverse_weights[1:-2] + c[:-1] * b[1:] * inverse_weights[2:-1])
    next_two = lam * c[:-2] * a[2:] * inverse_weights[2:-2]
    zero = np.zeros(1)
    matrix = np.stack([
        np.concatenate([zero, zero, next_two]), np.concatenate([zero, next_one]), main,
        np.concatenate([next_one, zero]), np.concatenate([next_two, zero, zero]),
    ])  # fmt: skip
    flat = np.reshape(y, (len(x), -1))
    right = a[:, None] * flat[:-2] + b[:, None] * flat[1:-1] + c[:, None] * flat[2:]
    g = scipy.linalg.solve_banded((2, 2), matrix, right)
    gap = np.zeros((2, flat.shape[1]))
    second_differences = np.concatenate([a[:, None] * g, gap]) + np.concatenate([gap[:1], b[:, None] * g, gap[:1]])
    second_differences = second_differences + np.concatenate([gap, c[:, None] * g])
    values = np.reshape(flat - lam * to_column(inverse_weights, 2) * second_differences, y.shape)
    spline = bsplines.make_interp_spline(x, values, bc_type="natural")
    spline.axis = axis
    return spline
