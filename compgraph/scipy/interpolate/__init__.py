"""``scipy.interpolate``: SciPy's own Python code on nodes, with its compiled functions replaced by recorded steps."""

from __future__ import annotations

import importlib

from ..own_classes import class_of_nodes, own_class, replace_compiled_functions
from ..own_code import NUMPY, replace_functions, replace_methods
from ..policy import Policy
from . import multivariate, splines

_NAME = "scipy.interpolate"
_CLASSES = [  # each with the methods of plain objects that accept nodes
    "CubicSpline",
    "CubicHermiteSpline",
    "PchipInterpolator",
    "Akima1DInterpolator",
    "PPoly __call__ integrate",
    "BPoly __call__ integrate",
    "BSpline __call__ integrate",
    "interp1d __call__",
    "KroghInterpolator derivative derivatives",
    "BarycentricInterpolator __call__ derivative",
    "RegularGridInterpolator __call__",
    "RBFInterpolator __call__",
    "UnivariateSpline __call__ integral",
]
_OWN_CODE = "pchip_interpolate krogh_interpolate barycentric_interpolate interpn splev splint splder splantider"
_COMPILED_FUNCTIONS = {
    "_ppoly": (splines, "evaluate evaluate_bernstein fix_continuity integrate"),
    "_dierckx": (splines, "evaluate_spline"),
    "_fitpack_impl": (splines, "splev splint spalde"),
    "_rgi_cython": (multivariate, "find_indices evaluate_linear_2d"),
    "_ndbspline": (multivariate, "make_ndbspl"),
}
for _module, (_replacement_module, _names) in _COMPILED_FUNCTIONS.items():
    replace_compiled_functions(f"{_NAME}.{_module}", {name: getattr(_replacement_module, name) for name in _names.split()})


def _delegate_of(module: str, name: str) -> object:
    """Return a function of an array namespace that returns the private class for nodes, and NumPy's namespace."""
    return lambda xp: (class_of_nodes(getattr(importlib.import_module(f"{_NAME}.{module}"), name)), NUMPY)


replace_functions({"_ndim_coords_from_arrays": multivariate.ndim_coords_from_arrays, "_get_backend": multivariate.get_backend})
replace_functions({  # of SciPy 1.18 and later, where public classes delegate to private ones
    "_get_xp_ppoly_cls": _delegate_of("_interpolate", "_PPoly"),
    "_get_xp_bpoly_cls": _delegate_of("_interpolate", "_BPoly"),
    "_get_xp_bspline_cls": _delegate_of("_bsplines", "_BSpline"),
})  # fmt: skip
replace_methods({
    ("BarycentricInterpolator", "_evaluate"): splines.barycentric_evaluate,
    ("BarycentricInterpolator", "_evaluate_derivatives"): splines.barycentric_derivatives,
})  # fmt: skip
_ROOT_ADVICE = "the method of a plain object, and autodiff.root to refine its result (roots have no derivative)"
_COPY_ADVICE = "a new object (objects created from nodes are not changed)"


def _raise_in_place(self: object, *args: object, **options: object) -> None:
    """Raise for a method that would write nodes into a plain object; objects created from nodes have SciPy's own method."""
    raise TypeError(f"scipy.interpolate: a plain {type(self).__name__} cannot hold nodes. Create a new object from the nodes")


_CURVE_ADVICE = "CubicSpline, make_interp_spline, make_lsq_spline or make_smoothing_spline"
_SURFACE_ADVICE = "RegularGridInterpolator with method='linear', RBFInterpolator, or make_interp_spline along each axis"

POLICY = Policy(
    module="scipy.interpolate",
    replacements={
        **{name: entry for names in _CLASSES for name, entry in own_class(_NAME, *names.split()).items()},
        "make_interp_spline": splines.make_interp_spline,
        "make_lsq_spline": splines.make_lsq_spline,
        "make_smoothing_spline": splines.make_smoothing_spline,
        "splrep": splines.splrep,
        "UnivariateSpline": splines.init_univariate_spline,
        "InterpolatedUnivariateSpline": splines.init_interpolated_spline,
        "LSQUnivariateSpline": splines.init_lsq_spline,
        "BarycentricInterpolator.set_yi": _raise_in_place,
        "BarycentricInterpolator.add_xi": _raise_in_place,
        "lagrange": splines.lagrange,
        "griddata": multivariate.griddata,
    },
    own_code=frozenset(_OWN_CODE.split()),
    plain=frozenset({"generate_knots"}),  # a generator, whose code cannot be patched; tracers raise in it
    unsupported={
        **dict.fromkeys(["splprep", "make_splprep", "make_splrep"], f"{_CURVE_ADVICE}, of each coordinate"),
        **dict.fromkeys(
            ["insert", "spalde", "sproot"], "the methods of make_interp_spline's spline, and autodiff.root for a root"
        ),
        **dict.fromkeys(
            ["bisplrep", "bisplev", "BivariateSpline", "RectBivariateSpline", "SmoothBivariateSpline"], _SURFACE_ADVICE
        ),
        **dict.fromkeys(["LSQBivariateSpline", "LSQSphereBivariateSpline", "RectSphereBivariateSpline"], _SURFACE_ADVICE),
        **dict.fromkeys(["SmoothSphereBivariateSpline", "NdBSpline", "NdPPoly", "interp2d"], _SURFACE_ADVICE),
        **dict.fromkeys(["LinearNDInterpolator", "CloughTocher2DInterpolator"], "griddata with method='linear', RBFInterpolator"),
        "NearestNDInterpolator": "griddata with method='nearest'",
        "Rbf": "RBFInterpolator",
        **dict.fromkeys(["AAA", "FloaterHormannInterpolator", "pade"], "BarycentricInterpolator, or CubicSpline"),
        "approximate_taylor_polynomial": "autodiff.taylor, which computes exact coefficients",
        **dict.fromkeys(["PPoly.solve", "PPoly.roots", "UnivariateSpline.roots"], _ROOT_ADVICE),
        **dict.fromkeys(
            ["PPoly.extend", "BPoly.extend", "BSpline.insert_knot", "UnivariateSpline.set_smoothing_factor"], _COPY_ADVICE
        ),
        "UnivariateSpline.get_residual": "np.sum((spline(x) - y) ** 2)",
    },
)
