"""``scipy.ndimage``: SciPy's own Python code, run on nodes, with recorded operations in place of its C functions."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...array_types import Array
from ...graph import to_values
from ...values import Value
from ..own_code import replace_module
from ..policy import Policy
from . import kernels as kernels  # for the rules


def _fill_output(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that returns `output` and its new elements, to write these; plain arguments run SciPy's C function."""

    @functools.wraps(function)
    def fill(*args: object) -> Any:
        if not any(isinstance(value, Value) for value in args):
            return getattr(kernels.c_module(), function.__name__[1:])(*args)
        output, result = function(*args)
        if type(output) is np.ndarray and isinstance(result, Value):
            raise TypeError(
                "scipy.ndimage: output= is a plain array, which cannot hold nodes. Use the result, pass cg.zeros(shape), or pass "
                "plain numbers (node.value)"
            )
        output[...] = result
        return None

    return fill


@_fill_output
def _correlate1d(x: Any, weights: Any, axis: int, output: Any, mode: int, cval: float, origin: int) -> Any:
    options = {"axis": axis, "mode": mode, "cval": cval, "origin": origin, "dtype": output.dtype}
    return output, kernels.correlate1d(x, weights, **options)


@_fill_output
def _correlate(x: Any, weights: Any, output: Any, mode: int, cval: float, origins: Any) -> Any:
    return output, kernels.correlate(x, weights, mode=mode, cval=cval, origins=tuple(origins), dtype=output.dtype)


@_fill_output
def _uniform_filter1d(x: Any, size: int, axis: int, output: Any, mode: int, cval: float, origin: int) -> Any:
    options = {"size": size, "axis": axis, "mode": mode, "cval": cval, "origin": origin, "dtype": output.dtype}
    return output, kernels.uniform_filter1d(x, **options)


@_fill_output
def _min_or_max_filter1d(
    x: NDArray[Any], size: int, axis: int, output: object, mode: int, cval: float, origin: int, minimum: int
) -> Any:
    extended_array = kernels.extend(x, axis, kernels.ends_of(size, origin), mode, cval)
    neighbors = np.lib.stride_tricks.sliding_window_view(extended_array, size, axis)
    return output, _extreme(neighbors, minimum)


@_fill_output
def _min_or_max_filter(
    x: object, footprint: Array, structure: Any, output: object, mode: int, cval: float, origins: list[int], minimum: int
) -> Any:
    neighbors = _neighborhoods(x, footprint, mode, cval, origins)
    if structure is not None:
        offsets = structure[footprint]
        neighbors = neighbors - offsets if minimum else neighbors + offsets
    return output, _extreme(neighbors, minimum)


def _extreme(neighbors: Any, minimum: int) -> Any:
    """The minimum or maximum along the last axis; of equal elements, the first."""
    indices = np.argmin(neighbors, axis=-1) if minimum else np.argmax(neighbors, axis=-1)
    return np.take_along_axis(neighbors, indices[..., None], -1)[..., 0]


@_fill_output
def _rank_filter(
    x: object, rank: int, footprint: NDArray[Any], output: object, mode: int, cval: float, origins: list[int]
) -> Any:
    return output, np.sort(_neighborhoods(x, footprint, mode, cval, origins), axis=-1)[..., rank]


def _line_rank_filter(x: NDArray[Any], rank: int, size: int, output: NDArray[Any], mode: int, cval: float, origin: int) -> None:
    """As `_rank_filter`, for an array of one axis."""
    output[...] = np.sort(_neighborhoods(x, np.ones(size, bool), mode, cval, (origin,)), axis=-1)[..., rank]


def _neighborhoods(x: Any, footprint: Array, mode: int, cval: float, origins: Sequence[int]) -> Any:
    """The neighbors of each element, along a new last axis."""
    for axis, (size, origin) in enumerate(zip(footprint.shape, origins, strict=True)):
        x = kernels.extend(x, axis, kernels.ends_of(size, origin), mode, cval)
    return np.lib.stride_tricks.sliding_window_view(x, footprint.shape)[..., np.asarray(footprint, bool)]


@_fill_output
def _spline_filter1d(x: NDArray[Any], order: int, axis: int, output: NDArray[Any], mode: int) -> Any:
    return output, kernels.spline_filter1d(x, order=order, axis=axis, mode=mode)


@_fill_output
def _geometric_transform(
    c: Any, mapping: object, coordinates: Any, matrix: Any, shift: Any, output: Any, order: int, mode: int, cval: float,
    padding: int, arguments: object, keywords: object,
) -> Any:  # fmt: skip
    if mapping is not None:
        raise TypeError(
            "scipy.ndimage.geometric_transform is not supported on nodes: the mapping is called for each element separately. "
            "Pass all coordinates to scipy.ndimage.map_coordinates"
        )
    if coordinates is None:
        grid = np.indices(output.shape, np.float64)
        coordinates = np.stack([_sum_in_order(shift[i], matrix[i], grid) for i in range(len(shift))])
    options = {"order": order, "mode": mode, "cval": cval, "padding": padding, "dtype": output.dtype}
    return output, kernels.interpolate(c, coordinates, **options)


def _sum_in_order(start: Any, factors: Any, grid: Any) -> Any:
    """The sum of `start` and the products of factors and grid, in SciPy's order of terms."""
    for k in range(len(grid)):
        start = start + grid[k] * factors[k]
    return start


@_fill_output
def _zoom_shift(
    c: Any, zoom: Any, shift: Any, output: Any, order: int, mode: int, cval: float, padding: int, grid_mode: bool
) -> Any:
    half = 0.5 if grid_mode else 0.0
    coordinates = []
    for axis, coordinate in enumerate(np.indices(output.shape, np.float64)):
        coordinate = coordinate if shift is None else coordinate + shift[axis]
        coordinates.append(coordinate if zoom is None else (coordinate + half) * zoom[axis] - half)
    options = {"order": order, "mode": mode, "cval": cval, "padding": padding, "dtype": output.dtype}
    return output, kernels.interpolate(c, np.stack(coordinates), **options)


@_fill_output
def _fourier_filter(x: object, sizes: object, n: int, axis: int, output: object, kind: int) -> Any:
    return output, x * _factor("fourier_filter", x, sizes, n, axis, output, kind)


@_fill_output
def _fourier_shift(x: object, shifts: NDArray[Any], n: int, axis: int, output: object) -> Any:
    return output, x * _factor("fourier_shift", x, shifts, n, axis, output)


def _factor(name: str, x: Any, sizes: object, n: int, axis: int, output: Any, *kind: int) -> Any:
    """The factor of each frequency, computed by SciPy's C function on ones."""
    if isinstance(sizes, Value):
        raise TypeError(f"scipy.ndimage.{name}: sizes and shifts must be plain numbers. Multiply by your own factors instead")
    factor = np.empty(x.shape, output.dtype)
    getattr(kernels.c_module(), name)(np.ones(x.shape, to_values(x).dtype), sizes, n, axis, factor, *kind)
    return factor


class _ReplacedModule(ModuleType):
    """A module of SciPy with replaced functions."""

    def __init__(self, name: str, replacements: dict[str, Any]) -> None:
        super().__init__(name)
        vars(self).update(replacements)

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


_C_FUNCTIONS = (
    _correlate1d, _correlate, _uniform_filter1d, _min_or_max_filter1d, _min_or_max_filter, _rank_filter, _spline_filter1d,
    _geometric_transform, _zoom_shift, _fourier_filter, _fourier_shift,
)  # fmt: skip
MODULES = {
    "scipy.ndimage._nd_image": _ReplacedModule("scipy.ndimage._nd_image", {f.__name__[1:]: f for f in _C_FUNCTIONS}),
    "scipy.ndimage._rank_filter_1d": _ReplacedModule("scipy.ndimage._rank_filter_1d", {"rank_filter": _line_rank_filter}),
}


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
_POSITION_ADVICE = "the plain numbers of the array (the result is positions or booleans)"

POLICY = Policy(
    module="scipy.ndimage",
    own_code=frozenset(_OWN_CODE.split()),
    always_replaced=frozenset({"generic_laplace", "generic_gradient_magnitude", "vectorized_filter"}),
    plain=frozenset({"generate_binary_structure", "iterate_structure"}),
    unsupported={
        "geometric_transform": "scipy.ndimage.map_coordinates with all coordinates",
        **dict.fromkeys(("generic_filter", "generic_filter1d"), "scipy.ndimage.vectorized_filter, or sliding windows in NumPy"),
        **dict.fromkeys(("maximum_position", "minimum_position", "find_objects", "value_indices"), _POSITION_ADVICE),
        **dict.fromkeys(("label", "watershed_ift", "histogram"), _POSITION_ADVICE),
        **dict.fromkeys(("binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes"), _POSITION_ADVICE),
        **dict.fromkeys(("binary_hit_or_miss", "binary_opening", "binary_propagation"), _POSITION_ADVICE),
        **dict.fromkeys(("distance_transform_bf", "distance_transform_cdt", "distance_transform_edt"), _POSITION_ADVICE),
        "labeled_comprehension": "scipy.ndimage.sum, mean or variance, or x[labels == k] in NumPy",
    },
)
