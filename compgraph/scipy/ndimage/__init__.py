"""``scipy.ndimage``: SciPy's own Python code, run on nodes, with recorded operations in place of its C functions."""

from __future__ import annotations

from ..own_code import replace_module
from ..policy import Policy
from . import kernels as kernels  # for the rules
from .compiled_functions import MODULES

for _name, _module in MODULES.items():
    replace_module(_name, _module)

_OWN_CODE = """
    correlate convolve correlate1d convolve1d gaussian_filter gaussian_filter1d uniform_filter uniform_filter1d sobel prewitt
    laplace gaussian_laplace gaussian_gradient_magnitude generic_laplace generic_gradient_magnitude spline_filter
    spline_filter1d map_coordinates shift zoom rotate affine_transform maximum_filter minimum_filter maximum_filter1d
    minimum_filter1d median_filter percentile_filter rank_filter grey_dilation grey_erosion grey_opening grey_closing
    morphological_gradient morphological_laplace white_tophat black_tophat vectorized_filter fourier_gaussian fourier_uniform
    fourier_ellipsoid fourier_shift sum sum_labels mean variance standard_deviation center_of_mass maximum minimum median
    extrema
"""
_POSITIONS = "the plain numbers of the array (the result is positions or booleans)"

POLICY = Policy(
    module="scipy.ndimage",
    own_code=frozenset(_OWN_CODE.split()),
    always_replaced=frozenset({"generic_laplace", "generic_gradient_magnitude", "vectorized_filter"}),
    plain=frozenset({"generate_binary_structure", "iterate_structure"}),
    unsupported={
        "geometric_transform": "scipy.ndimage.map_coordinates with all coordinates",
        **dict.fromkeys(("generic_filter", "generic_filter1d"), "scipy.ndimage.vectorized_filter, or sliding windows in NumPy"),
        **dict.fromkeys(("maximum_position", "minimum_position", "find_objects", "value_indices"), _POSITIONS),
        **dict.fromkeys(("label", "watershed_ift", "histogram"), _POSITIONS),
        **dict.fromkeys(("binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes"), _POSITIONS),
        **dict.fromkeys(("binary_hit_or_miss", "binary_opening", "binary_propagation"), _POSITIONS),
        **dict.fromkeys(("distance_transform_bf", "distance_transform_cdt", "distance_transform_edt"), _POSITIONS),
        "labeled_comprehension": "scipy.ndimage.sum, mean or variance, or x[labels == k] in NumPy",
    },
)
