"""`vmap` of convolutions, poolings, transforms and filters: one call computes all batch elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy

import autodiff as ad
import compgraph as cg
from autodiff.batching.rules import LOOP_COUNTS
from compgraph.nn import cross_correlate_back, cross_correlate_kernel
from tests.support.arguments import real
from tests.support.failures import Failures

Function = Callable[..., Any]
SIZE = 4
OPERATIONS: dict[str, Function] = {
    f.__name__: f for f in (cg.cross_correlate, cg.conv, cross_correlate_back, cross_correlate_kernel)
}
CHANNELS = {
    "plain": {},
    "all options": {"strides": (2, 1), "padding": "same", "dilation": (1, 2)},
    "groups": {"groups": 2, "padding": ((1, 0), 2)},
}


def check_vmap(f: Function, *args: Any) -> None:
    """Compare `vmap` over each choice of the arguments with a loop; no batch element is computed by itself."""
    for chosen in itertools.product((0, None), repeat=len(args)):
        if set(chosen) == {None}:
            continue
        inputs = [np.stack([x * (1 + 0.1 * k) for k in range(SIZE)]) if a == 0 else x for x, a in zip(args, chosen, strict=True)]
        expected = [np.asarray(f(*[x[k] if a == 0 else x for x, a in zip(inputs, chosen, strict=True)])) for k in range(SIZE)]
        LOOP_COUNTS.clear()
        result = ad.vmap(f, in_axes=chosen)(*inputs)
        assert not LOOP_COUNTS, LOOP_COUNTS
        assert (result.shape, result.dtype) == (np.shape(expected), expected[0].dtype)
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


def operands_of(name: str, x: Any, kernel: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    out = cg.cross_correlate(x, kernel, **options)
    return {"cross_correlate_back": (out, kernel, x), "cross_correlate_kernel": (x, out, kernel)}.get(name, (x, kernel))


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("options", CHANNELS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_vmap_cross_correlate_channels(name: str, options: str, dtype: Any) -> None:
    chosen: dict[str, Any] = CHANNELS[options]
    x, kernel = real(2, 4, 7, 8), real(6, 4 // chosen.get("groups", 1), 3, 2, seed=1)
    if dtype is complex:
        x, kernel = x + 1j * x[::-1], kernel - 1j * kernel[::-1]
    check_vmap(lambda *args: OPERATIONS[name](*args, **chosen), *operands_of(name, x, kernel, chosen))


@pytest.mark.parametrize("padding", ["valid", "same", "full", 2])
@pytest.mark.parametrize("name", OPERATIONS)
def test_vmap_correlate_signals(name: str, padding: Any) -> None:
    operands = operands_of(name, real(9), real(4, seed=1), {"padding": padding})
    check_vmap(lambda *args: OPERATIONS[name](*args, padding=padding), *operands)


@pytest.mark.parametrize("pool", [cg.max_pool, cg.mean_pool])
def test_vmap_pooling_and_derivatives(pool: Function) -> None:
    x = real(2, 6, 6)
    check_vmap(lambda x: pool(x, (2, 2), padding=1), x)
    check_vmap(ad.grad(lambda x: np.sum(pool(x, 2) ** 2)), x)
    check_vmap(ad.jacfwd(lambda x: pool(x, (2, 3)) ** 2), x)


LINES = ("dct", "idct", "dst", "idst", "fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
ARRAYS = ("dctn", "idctn", "dstn", "idstn", "fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn")
PLANES = ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2")


def test_vmap_scipy_fft() -> None:
    lines: list[dict[str, Any]] = [{}, {"axis": 0}, {"axis": 1, "n": 5}, {"norm": "ortho"}]
    arrays: list[dict[str, Any]] = [{}, {"axes": (1, 0)}, {"s": (5,)}, {"axes": (1, 2), "s": (3, 5)}]
    planes: list[dict[str, Any]] = [{}, {"axes": (0, 2)}]
    groups = [
        (LINES, lines),
        (ARRAYS, arrays),
        (PLANES, planes),
        (("fftshift", "ifftshift"), [{}, {"axes": 1}, {"axes": (0, -1)}]),
    ]
    with Failures("transforms") as failures:
        for names, choices in groups:
            for name, options in itertools.product(names, choices):
                function = getattr(scipy.fft, name)
                with failures.case(f"{name}, {options}"):
                    check_vmap(lambda x, function=function, options=options: function(x, **options), real(4, 6, 3))
        with failures.case("fht"):
            check_vmap(lambda x: scipy.fft.fht(x, 0.1, 0.5), real(8))


def test_vmap_scipy_filters() -> None:
    b, a = real(3), np.array([1.0, 0.3])
    check_vmap(lambda x: scipy.signal.lfilter(b, a, x, axis=0), real(7, 2))
    check_vmap(lambda x: scipy.ndimage.spline_filter1d(x, 3, axis=0, mode="nearest"), real(6, 7))


def test_vmap_sparse_matrix_times_dense() -> None:
    matrix = scipy.sparse.random(6, 5, 0.5, random_state=0).tocsr()
    check_vmap(lambda x: matrix @ x, real(5))
    check_vmap(lambda x: matrix @ x, real(5, 3))
