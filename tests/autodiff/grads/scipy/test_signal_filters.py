"""Derivatives of ``scipy.signal``'s convolutions and filters."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.signal

import autodiff as ad
import compgraph as cg
from tests.support.arguments import complexes, real
from tests.support.for_each import for_each
from tests.support.scipy_checks import Rows, functions

x = real(20)
b, a = np.array([0.3, 0.5, 0.2]), np.array([1.2, -0.3, 0.1])
sos = np.delete(scipy.signal.butter(4, 0.3, output="sos"), 3, axis=1)


def so(q: Any) -> Any:
    """Sections, whose fourth coefficient is 1."""
    return np.concatenate([q[:, :3], np.ones((len(q), 1), q.dtype), q[:, 3:]], axis=1)


def convolutions(name: str) -> list[tuple[Any, ...]]:
    function = getattr(scipy.signal, name)
    rows: list[tuple[Any, ...]] = []
    for mode in ("full", "same", "valid"):
        for n1, n2 in ((7, 3), (7, 4), (3, 7)):
            call = partial(function, mode=mode)
            rows.append((f"{mode} {n1} {n2}", call, real(n1), real(n2, seed=1)))
        rows.append((f"{mode}, two axes", call, real(4, 5), real(2, 3, seed=1)))
        rows.append((f"{mode}, complex", call, complexes(4, 5), complexes(2, 3, seed=1)))
        if name in ("fftconvolve", "oaconvolve"):
            rows.append((f"{mode}, axes", partial(call, axes=-1), real(4, 5), real(1, 3, seed=1)))
        else:
            rows.append((f"{mode}, method", partial(call, method="direct"), real(5), real(2, seed=1)))
    return rows


def in_two(name: str) -> list[tuple[Any, ...]]:
    function = getattr(scipy.signal, name)
    return [
        (f"{mode}, {boundary} {size}", partial(function, mode=mode, boundary=boundary), real(5, 6), real(*size, seed=1))
        for mode in ("full", "same", "valid")
        for boundary in ("fill", "wrap", "symm")
        for size in ((3, 3), (2, 4))
    ]


CASES: dict[str, list[tuple[Any, ...]]] = {
    **{name: convolutions(name) for name in ("convolve", "correlate", "fftconvolve", "oaconvolve")},
    **{name: in_two(name) for name in ("convolve2d", "correlate2d")},
    "upfirdn": [
        (f"{up} {down}, {h.size}", partial(scipy.signal.upfirdn, up=up, down=down, axis=0), h, y)
        for up, down in ((1, 1), (3, 2), (2, 5))
        for h, y in ((real(5), real(8)), (real(3), real(8, 2)))
    ],
    "others": [
        ("convolve2d fill", lambda p, q: scipy.signal.convolve2d(p, q, "same", "fill", 2.0), real(5, 6), real(3, 2, seed=1)),
        ("correlate2d valid swapped", lambda p, q: scipy.signal.correlate2d(p, q, "valid"), real(2, 3), real(4, 4, seed=1)),
        ("correlate2d complex", lambda p, q: scipy.signal.correlate2d(p, q, "same"), complexes(2, 3), complexes(4, 4, seed=1)),
        ("convolve complex", lambda p, q: scipy.signal.convolve(p, q, "same"), complexes(6), complexes(3, seed=1)),
        ("convolve 0d", lambda p, q: scipy.signal.convolve(p, q), real(), real(seed=1)),
        ("lfilter", scipy.signal.lfilter, b, a, x),
        ("lfilter axis", lambda b, a, x: scipy.signal.lfilter(b, a, x, 0), b, a, real(6, 2)),
        ("lfilter zi", lambda b, a, x, z: scipy.signal.lfilter(b, a, x, zi=z), b, a, x, np.array([0.4, -0.7])),
        ("lfilter zi axis", lambda b, a, x, z: scipy.signal.lfilter(b, a, x, axis=0, zi=z), b, a, real(6, 2), real(2, 2, seed=4)),
        (
            "lfilter zi short",
            lambda b, a, x, z: scipy.signal.lfilter(b, a, x, axis=0, zi=z),
            real(5, seed=3),
            a,
            real(2, 2),
            real(4, 1, seed=4),
        ),
        ("lfilter fir", lambda b, x: scipy.signal.lfilter(b, 1.0, x), b, x),
        ("lfilter fir zi", lambda b, x, z: scipy.signal.lfilter(b, [2.0], x, zi=z), b, x, np.array([0.4, -0.7])),
        ("lfilter complex", scipy.signal.lfilter, complexes(2), np.array([1 + 0.2j, 0.1 - 0.3j]), complexes(6)),
        ("lfilter long", lambda b, x: scipy.signal.lfilter(b, [1.0, 0.3], x), real(70), real(80)),
        ("sosfilt", lambda s, x: scipy.signal.sosfilt(so(s), x), sos, x),
        ("sosfilt zi", lambda s, x, z: scipy.signal.sosfilt(so(s), x, zi=z), sos, x, real(2, 2)),
        ("sosfilt zi axis", lambda s, x, z: scipy.signal.sosfilt(so(s), x, axis=0, zi=z), sos, real(6, 3), real(2, 2, 3)),
        ("lfiltic", scipy.signal.lfiltic, b, a, real(3), real(2)),
        ("hilbert", scipy.signal.hilbert, x),
        ("hilbert N", lambda x: scipy.signal.hilbert(x, 12, axis=0), real(7, 2)),
        ("hilbert2", scipy.signal.hilbert2, real(4, 5)),
        ("envelope", lambda x: scipy.signal.envelope(x)[0], x + 3),
        ("detrend const", lambda x: scipy.signal.detrend(x, type="constant", axis=0), real(5, 2)),
        ("resample", lambda x: scipy.signal.resample(x, 13), x),
        ("resample up", lambda x: scipy.signal.resample(x, 32, axis=1), real(2, 7)),
        ("resample win", lambda x: scipy.signal.resample(x, 12, window="hamming"), x),
        ("resample freq", lambda x: scipy.signal.resample(x, 13, domain="freq"), complexes(20)),
        ("resample complex", lambda x: scipy.signal.resample(x, 12), complexes(8)),
        ("resample t", lambda x: scipy.signal.resample(x, 12, t=np.arange(20.0))[0], x),
        ("resample_poly mean", lambda x: scipy.signal.resample_poly(x, 2, 3, padtype="mean", axis=1), real(2, 9)),
        ("resample_poly win", lambda x, w: scipy.signal.resample_poly(x, 2, 3, window=w), x, real(7)),
        ("decimate fir", lambda x: scipy.signal.decimate(x, 2, ftype="fir", zero_phase=False), real(60)),
        ("deconvolve", lambda s, d: scipy.signal.deconvolve(s, d), x, b),
        ("wiener", lambda x: scipy.signal.wiener(x, 3), x),
        ("wiener noise", lambda x: scipy.signal.wiener(x, 3, 0.2), real(5, 5)),
        ("medfilt", scipy.signal.medfilt, x),
        ("medfilt 2", lambda x: scipy.signal.medfilt(x, (3, 5)), real(6, 7)),
        ("medfilt2d", scipy.signal.medfilt2d, real(5, 5)),
        ("order", lambda x: scipy.signal.order_filter(x, np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]]), 3), real(5, 5)),
        ("czt", lambda x: scipy.signal.czt(x), x),
        ("czt w", lambda x, w: scipy.signal.czt(x, 5, w), real(6), np.exp(-0.3j) * np.array(1.02)),
        ("zoom_fft", lambda x: scipy.signal.zoom_fft(x, [0.2, 0.5], m=6), x),
        ("zoom_fft ax", lambda x: scipy.signal.zoom_fft(x, 0.5, m=6, axis=0), real(6, 2)),
        ("cspline1d", scipy.signal.cspline1d, x),
        ("cspline1d l", lambda x: scipy.signal.cspline1d(x, 1.0), x),
        ("qspline1d", scipy.signal.qspline1d, x),
    ],
}


@pytest.mark.parametrize("rows", functions(CASES))
def test_signal_filters_derivatives(rows: Rows) -> None:
    rows.check()


def test_signal_filters_jacobians_of_both_modes_agree() -> None:
    for function in (
        lambda v: scipy.signal.lfilter(v[:2], v[1:3], v),
        lambda v: scipy.signal.convolve(v, v[:3], "same"),
        lambda v: scipy.signal.upfirdn(v[:3], v, 2, 3),
        lambda v: scipy.signal.sosfilt(so(np.reshape(v[:5], (1, 5))), v),
        lambda v: scipy.signal.fftconvolve(np.reshape(v, (2, 3)), v[None, :2], axes=1),
    ):
        np.testing.assert_allclose(ad.jacobian(function)(real(6)), ad.jacfwd(function)(real(6)), atol=1e-10)
        np.testing.assert_allclose(
            ad.hessian(lambda v, f=function: np.sum(f(v) ** 2))(real(6)),
            ad.jacfwd(ad.jacfwd(lambda v, f=function: np.sum(f(v) ** 2)))(real(6)),
            atol=1e-8,
        )


def test_lfilter_fitted_to_signal() -> None:
    expected = scipy.signal.lfilter([0.2, 0.3], [1.0, -0.5], x)

    def loss(b: Any, a: Any) -> Any:
        return np.mean((scipy.signal.lfilter(b, [1.0, a], x) - expected) ** 2)

    b, a = np.array([0.1, 0.1]), -0.2
    for _ in range(400):
        gb, ga = ad.grad(loss, (0, 1))(b, a)
        b, a = b - 0.15 * gb, a - 0.15 * ga
    assert loss(b, a) < 1e-4


def test_signal_filters_record_scipy_functions() -> None:
    node = scipy.signal.lfilter(b, a, cg.variable(x))
    assert node.opname == "scipy_signal_lfilter"
    np.testing.assert_array_equal(node.value, scipy.signal.lfilter(b, a, x))


@for_each(
    ("call", "match"),
    [
        (lambda v: scipy.signal.upfirdn([1.0], v, mode="line"), "mode='line'"),
        (lambda v: scipy.signal.lfilter([1.0, 2.0], [1.0], v, zi=np.ones(3)), "zi must have shape"),
        (lambda v: scipy.signal.find_peaks(v), "find_peaks"),
        (lambda v: scipy.signal.sosfilt(np.ones((2, 5)), v), "n_sections, 6"),
    ],
)
def test_signal_filters_unsupported_calls_raise(call: Any, match: str) -> None:
    with pytest.raises((TypeError, ValueError), match=match):
        ad.grad(lambda v: np.sum(call(v)))(x)
