"""``scipy.interpolate``: curves and surfaces in recorded steps, made of nodes, and asked at nodes."""

from __future__ import annotations

from ..policy import Policy
from . import bsplines, cubic, fitpack, pieces, polynomials, scattered, tables

_CURVES = "CubicSpline, make_interp_spline, make_lsq_spline or make_smoothing_spline"
_SURFACES = "RegularGridInterpolator with method='linear', RBFInterpolator, or make_interp_spline along one axis after the other"

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
        "make_smoothing_spline": fitpack.smoothing,
        "splrep": fitpack.splrep,
        "splev": fitpack.splev,
        "splint": fitpack.splint,
        "splder": fitpack.splder,
        "splantider": fitpack.splantider,
        "UnivariateSpline": fitpack.univariate,
        "UnivariateSpline.__call__": fitpack.call,
        "UnivariateSpline.integral": fitpack.integral,
        "InterpolatedUnivariateSpline": fitpack.interpolated,
        "LSQUnivariateSpline": fitpack.near_points,
        "interp1d": tables.table,
        "interp1d.__call__": polynomials.call,
        "RegularGridInterpolator": tables.grid,
        "RegularGridInterpolator.__call__": tables.on_grid,
        "interpn": tables.interpn,
        "KroghInterpolator": polynomials.krogh,
        "KroghInterpolator.derivative": polynomials.derivative,
        "KroghInterpolator.derivatives": polynomials.derivatives,
        "krogh_interpolate": polynomials.krogh_interpolate,
        "BarycentricInterpolator": polynomials.barycentric,
        "BarycentricInterpolator.__call__": polynomials.call,
        "BarycentricInterpolator.derivative": polynomials.derivative,
        "barycentric_interpolate": polynomials.barycentric_interpolate,
        "lagrange": polynomials.lagrange,
        "RBFInterpolator": scattered.radial,
        "RBFInterpolator.__call__": scattered.radial_call,
        "griddata": scattered.griddata,
    },
    plain=frozenset({"generate_knots"}),  # a generator, which cannot be given the code of a function; tracers raise there
    refused={
        **dict.fromkeys(["splprep", "make_splprep", "make_splrep"], f"{_CURVES}, of each coordinate"),
        **dict.fromkeys(
            ["insert", "spalde", "sproot"], "the methods of make_interp_spline's spline, and autodiff.root for a root"
        ),
        **dict.fromkeys(["bisplrep", "bisplev", "BivariateSpline", "RectBivariateSpline", "SmoothBivariateSpline"], _SURFACES),
        **dict.fromkeys(["LSQBivariateSpline", "LSQSphereBivariateSpline", "RectSphereBivariateSpline"], _SURFACES),
        **dict.fromkeys(["SmoothSphereBivariateSpline", "NdBSpline", "NdPPoly", "interp2d"], _SURFACES),
        **dict.fromkeys(["LinearNDInterpolator", "CloughTocher2DInterpolator"], "griddata with method='linear', RBFInterpolator"),
        "NearestNDInterpolator": "griddata with method='nearest'",
        "Rbf": "RBFInterpolator",
        **dict.fromkeys(["AAA", "FloaterHormannInterpolator", "pade"], "BarycentricInterpolator, or CubicSpline"),
        "approximate_taylor_polynomial": "autodiff.taylor, which finds the coefficients themselves",
    },
)
