"""Derivatives of ``scipy.ndimage``."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient
from tests.support.arguments import complexes, real
from tests.support.failures import Failures
from tests.support.for_each import for_each
from tests.support.scipy_checks import Rows, functions

MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-mirror", "grid-constant", "grid-wrap")
im, x, k, w = real(5, 6), real(9), real(3, 4, seed=5), real(4, seed=2)
at = np.array([[0.3, 1.7, 2.6, 3.2, -0.6, 4.4, 7.3, -3.3, 13.2], [0.4, 2.3, 4.6, 0.2, 1.2, 5.3, 2.2, -9.1, 3.4]])
F = complexes(5, 6)
lab = np.array([[0, 1, 1, 2, 2, 2]] * 5)


def write_output(i: Any) -> Any:
    """Into an array that the function made."""
    o = np.zeros((5, 6))
    scipy.ndimage.gaussian_filter(i, 1.0, output=o)
    return o * i


def second(v: Any, axis: int, output: Any, mode: str, cval: float) -> Any:
    return scipy.ndimage.correlate1d(v, [1, -2, 1], axis, output, mode, cval, 0)


def with_mode(mode: str) -> list[tuple[Any, ...]]:
    """Calls of filters with a mode, and a constant beyond the ends."""
    nd = scipy.ndimage
    calls: list[tuple[Any, ...]] = [
        ("correlate", lambda i, k: nd.correlate(i, k, mode=mode, cval=1.5), im, k),
        ("convolve1d", lambda i, k: nd.convolve1d(i, k, axis=0, mode=mode, cval=1.5, origin=1), im, w),
        ("uniform", lambda i: nd.uniform_filter1d(i, 4, mode=mode, cval=1.5, origin=-1), im),
        ("gaussian", lambda i: nd.gaussian_filter(i, (1.0, 2.0), mode=mode, cval=0.5), im),
        ("maximum", lambda i: nd.maximum_filter(i, 3, mode=mode, cval=0.5), im),
        ("minimum1d", lambda i: nd.minimum_filter1d(i, 4, mode=mode, cval=0.5, origin=1), im),
        ("median", lambda i: nd.median_filter(i, 3, mode=mode, cval=0.5), im),
        ("median of a line", lambda i: nd.median_filter(i, 3, mode=mode, cval=0.5), x),
        ("shift", lambda i, s: nd.shift(i, s, mode=mode), im, np.array([0.3, -1.2])),
        ("zoom", lambda i: nd.zoom(i, 1.7, mode=mode), im),
        ("rotate", lambda i: nd.rotate(i, 20, mode=mode, order=2), im),
        (
            "affine_transform",
            lambda i, a, o: nd.affine_transform(i, a, o, mode=mode),
            im,
            np.array([[0.9, 0.1], [-0.2, 1.1]]),
            np.array([0.21, 0.13]),
        ),
        *[(f"spline_filter1d {o}", lambda i, o=o: nd.spline_filter1d(i, o, axis=0, mode=mode), im) for o in (3, 4)],
    ]
    orders = range(6) if mode in ("mirror", "nearest") else (1, 3)
    calls += [(f"coordinates {o}", partial(nd.map_coordinates, order=o, mode=mode, cval=0.5), im, at) for o in orders]
    calls.append(("not prefiltered", partial(nd.map_coordinates, order=2, mode=mode, cval=0.5, prefilter=False), im, at))
    return calls


def by_function() -> dict[str, list[tuple[Any, ...]]]:
    """Rows of each function by mode; the first mode differs from function to function."""
    groups: dict[str, list[tuple[Any, ...]]] = {}
    for mode in MODES:
        for name, *call in with_mode(mode):
            groups.setdefault(name, []).append((mode, *call))
    return {name: rows[k % len(rows) :] + rows[: k % len(rows)] for k, (name, rows) in enumerate(groups.items())}


CASES: dict[str, list[tuple[Any, ...]]] = {
    **by_function(),
    "over labels": [
        (f"{name}, {index}", lambda i, f=name, n=index: getattr(scipy.ndimage, f)(i, lab, n), im + 4)
        for name in (
            "sum",
            "sum_labels",
            "mean",
            "variance",
            "standard_deviation",
            "maximum",
            "minimum",
            "median",
            "center_of_mass",
        )
        for index in ([1, 2], 2)
    ],
    "over all": [
        (name, getattr(scipy.ndimage, name), im + 4)
        for name in ("sum", "mean", "variance", "standard_deviation", "maximum", "median", "center_of_mass")
    ],
    "far places": [  # beyond the first period on either side
        (f"{mode} {shift}", partial(scipy.ndimage.map_coordinates, order=1, mode=mode, cval=0.5), im, at + shift)
        for mode in MODES
        for shift in (-20.45, 17.23)
    ],
    "others": [
        ("zoom grid", lambda i: scipy.ndimage.zoom(i, (2, 1.5), order=1, mode="grid-constant", grid_mode=True), im),
        ("zoom factor", lambda i: scipy.ndimage.zoom(i, [2.0, 0.5], order=1), im),
        ("rotate angle", lambda i, a: scipy.ndimage.rotate(i, a, reshape=False, order=3), im, np.array(20.0)),
        ("affine diag", lambda i, a: scipy.ndimage.affine_transform(i, a, 0.27, order=2), im, np.array([0.9, 1.1])),
        (
            "affine hom",
            lambda i, a: scipy.ndimage.affine_transform(i, a, order=2, output_shape=(4, 4)),
            im,
            np.array([[0.9, 0.1, 0.31], [0.2, 1.1, 0.12]]),
        ),
        ("complex map", lambda i, at: scipy.ndimage.map_coordinates(i, at), complexes(5, 6), at),
        ("complex corr", lambda i, k: scipy.ndimage.correlate(i, k), complexes(5, 6), complexes(3, 2)),
        ("complex gauss", lambda i: scipy.ndimage.gaussian_filter(i, 1.0), complexes(5, 6)),
        (
            "convolve axes",
            lambda i, k: scipy.ndimage.convolve(i, k, axes=(0, 2), mode="nearest"),
            real(3, 2, 4),
            real(2, 3, seed=1),
        ),
        ("gauss order", lambda i: scipy.ndimage.gaussian_filter(i, 1.0, order=(1, 2), radius=3), im),
        ("gauss sigma", lambda i, s: scipy.ndimage.gaussian_filter1d(i, s, truncate=2.2), im, np.array(1.3)),
        ("gauss sigmas", lambda i, s: scipy.ndimage.gaussian_filter(i, s, truncate=2.2), im, np.array([1.3, 0.9])),
        ("sobel", scipy.ndimage.sobel, im),
        ("prewitt", scipy.ndimage.prewitt, im),
        ("laplace", scipy.ndimage.laplace, im),
        ("gl", lambda i: scipy.ndimage.gaussian_laplace(i, 1.0), im),
        ("ggm", lambda i: scipy.ndimage.gaussian_gradient_magnitude(i, 1.0), im),
        ("generic_laplace", lambda i: scipy.ndimage.generic_laplace(i, second), im),
        ("ggmag", lambda i: scipy.ndimage.generic_gradient_magnitude(i, scipy.ndimage.sobel), im),
        ("uniform", lambda i: scipy.ndimage.uniform_filter(i, (3, 2)), im),
        ("output dtype", lambda i: scipy.ndimage.gaussian_filter(i, 1.0, output=np.float64), im),
        ("output array", write_output, im),
        ("percentile", lambda i: scipy.ndimage.percentile_filter(i, 30, 3), im),
        ("rank", lambda i: scipy.ndimage.rank_filter(i, -2, footprint=np.array([[0, 1, 0], [1, 1, 1]])), im),
        ("grey_dilation", lambda i: scipy.ndimage.grey_dilation(i, structure=real(3, 3) * 0.3), im),
        ("grey_erosion", lambda i: scipy.ndimage.grey_erosion(i, size=3), im),
        ("opening", lambda i: scipy.ndimage.grey_opening(i, 3), im),
        ("closing", lambda i: scipy.ndimage.grey_closing(i, structure=np.ones((2, 3))), im),
        ("grey_dil struct", lambda i, s: scipy.ndimage.grey_dilation(i, structure=s), im, real(3, 3) * 0.3),
        ("mgrad", lambda i: scipy.ndimage.morphological_gradient(i, 3), im),
        ("mlap", lambda i: scipy.ndimage.morphological_laplace(i, 3), im),
        ("wth", lambda i: scipy.ndimage.white_tophat(i, 3), im),
        ("bth", lambda i: scipy.ndimage.black_tophat(i, 3), im),
        ("fg", lambda i: scipy.ndimage.fourier_gaussian(i, 1.0), F),
        ("fu", lambda i: scipy.ndimage.fourier_uniform(i, 2), F),
        ("fe", lambda i: scipy.ndimage.fourier_ellipsoid(i, 2), F),
        ("fs", lambda i: scipy.ndimage.fourier_shift(i, (0.3, 1.0)), F),
        ("fg n", lambda i: scipy.ndimage.fourier_gaussian(i, 1.0, n=10), F),
        ("extrema", lambda i: scipy.ndimage.extrema(i, lab, [1, 2])[:2], im),
        ("vectorized", lambda i: scipy.ndimage.vectorized_filter(i, np.mean, size=3), im),
    ],
}


@pytest.mark.parametrize("rows", functions(CASES, in_full={"others"}))
def test_ndimage_derivatives(rows: Rows) -> None:
    rows.check(tolerance=5e-6)


@for_each(
    "function",
    [
        lambda v: scipy.ndimage.gaussian_filter1d(v, 1.0, mode="constant"),
        lambda v: scipy.ndimage.correlate1d(v, v[:3], mode="mirror"),
        lambda v: scipy.ndimage.correlate(np.reshape(v, (2, 3)), np.reshape(v[:4], (2, 2))),
        lambda v: scipy.ndimage.uniform_filter1d(v, 3),
        lambda v: scipy.ndimage.spline_filter1d(v, mode="reflect"),
        lambda v: scipy.ndimage.map_coordinates(v, np.abs(v)[None] + 0.1, mode="mirror"),
        lambda v: scipy.ndimage.maximum_filter1d(v, 3),
    ],
)
def test_ndimage_jacobians_of_both_modes_agree(function: Any) -> None:
    v = real(6)
    np.testing.assert_allclose(ad.jacobian(function)(v), ad.jacfwd(function)(v), atol=1e-10)

    def total(v: Any) -> Any:
        return np.sum(function(v) ** 3)

    np.testing.assert_allclose(ad.hessian(total)(v), ad.jacfwd(ad.jacfwd(total))(v), atol=1e-7)


def test_ndimage_shift_image_registration() -> None:
    """The shift between two images, found by its gradient."""
    y, z = np.mgrid[:24, :24]
    blob = np.exp(-((y - 11.0) ** 2 + (z - 12.0) ** 2) / 20)
    moved = scipy.ndimage.shift(blob, (1.4, -0.8))

    def loss(shift: Any) -> Any:
        return np.sum((scipy.ndimage.shift(blob, shift) - moved) ** 2)

    shift = np.zeros(2)
    for _ in range(60):
        shift = shift - 0.1 * ad.grad(loss)(shift)
    np.testing.assert_allclose(shift, [1.4, -0.8], atol=1e-3)


def test_ndimage_top_level_nodes() -> None:
    """Nodes are solid there, and what C takes of them would be lost without a word."""
    v = cg.variable(im)
    derivative = gradient(np.sum(scipy.ndimage.gaussian_filter(v, 1.0) ** 2))[v]
    np.testing.assert_allclose(derivative, ad.grad(lambda v: np.sum(scipy.ndimage.gaussian_filter(v, 1.0) ** 2))(im))
    blank = cg.zeros((5, 6))
    scipy.ndimage.sobel(v, output=blank)
    assert np.any(gradient(np.sum(blank**2))[v])
    with pytest.raises(TypeError, match="output= is a plain array"):
        scipy.ndimage.sobel(v, output=np.zeros((5, 6)))


def test_ndimage_values_equal_scipy() -> None:
    for function in (scipy.ndimage.gaussian_laplace, scipy.ndimage.gaussian_filter):
        np.testing.assert_array_equal(function(cg.variable(im), 1.3).value, function(im, 1.3))


@for_each(
    ("call", "match"),
    [
        (lambda v: scipy.ndimage.geometric_transform(v, lambda p: p), "map_coordinates"),
        (lambda v: scipy.ndimage.generic_filter(v, np.mean, 3), "vectorized_filter"),
        (lambda v: scipy.ndimage.fourier_gaussian(im, v[0, 0]), "plain numbers"),
        (lambda v: scipy.ndimage.label(v), "plain numbers"),
    ],
)
def test_ndimage_unsupported_calls_raise(call: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        ad.grad(lambda v: np.sum(call(v)))(im)


@for_each("length", [1, 2, 5])
@for_each("mode", MODES)
def test_ndimage_splines_far_outside_and_at_ties(mode: str, length: int) -> None:
    """Between -24 and 24, in half steps: gradients of lines are SciPy's values of unit vectors, slopes are differences."""
    at = np.arange(-24.0, 24.25, 0.5)[None]
    weights, line = np.cos(np.arange(at.size)), np.sin(1.0 + np.arange(length))
    units = np.eye(length)
    with Failures(f"{mode} {length}") as failures:
        for order in range(4):
            interpolate = partial(scipy.ndimage.map_coordinates, order=order, mode=mode, prefilter=False)
            with failures.case(f"line {order}"):
                expected = [weights @ interpolate(unit, at) for unit in units]
                derivative = ad.grad(lambda v: weights @ interpolate(v, at))(line)  # noqa: B023
                np.testing.assert_allclose(derivative, expected, rtol=1e-10, atol=1e-10)
            with failures.case(f"slopes {order}"):
                places, step = at + 0.17, 1e-6
                derivative = ad.grad(lambda p: np.sum(interpolate(line, p)))(places)  # noqa: B023
                expected = (interpolate(line, places + step) - interpolate(line, places - step)) / (2 * step)
                np.testing.assert_allclose(derivative[0], expected, rtol=1e-6, atol=1e-6)
