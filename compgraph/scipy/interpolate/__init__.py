"""``scipy.interpolate``: curves and surfaces in recorded steps, made of nodes, and asked at nodes."""

from __future__ import annotations

from ..policy import Policy
from . import bsplines, cubic, pieces

POLICY = Policy(
    module="scipy.interpolate",
    instead={
        "PPoly": pieces.begin,
        "PPoly.__call__": pieces.call,
        "PPoly.integrate": pieces.integrate,
        "BPoly": pieces.begin,
        "BPoly.integrate": pieces.integrate,
        "CubicHermiteSpline": cubic.hermite,
        "PchipInterpolator": cubic.pchip,
        "Akima1DInterpolator": cubic.akima,
        "CubicSpline": cubic.cubic_spline,
        "pchip_interpolate": cubic.pchip_interpolate,
        "BSpline": bsplines.begin,
        "BSpline.__call__": bsplines.call,
        "BSpline.integrate": bsplines.integrate,
        "make_interp_spline": bsplines.interpolating,
        "make_lsq_spline": bsplines.least_squares,
    },
)
