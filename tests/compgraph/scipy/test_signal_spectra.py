"""Derivatives of ``scipy.signal``: spectra, waveforms and windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import autodiff as ad
from tests.support.arguments import complexes, real
from tests.support.scipy_checks import Rows, functions

x = real(20)
h = np.array(0.3)
tt = np.linspace(0.1, 0.9, 7)
stft = scipy.signal.stft(x, nperseg=8)[2]

CASES: dict[str, list[tuple[Any, ...]]] = {
    "chirp, by method": [
        (method, lambda t, f0, f1, phi, m=method: scipy.signal.chirp(t, f0, 2.0, f1, m, phi), tt, real() + 3, real() + 6, real())
        for method in ("linear", "quadratic", "logarithmic", "hyperbolic")
    ],
    "spectrogram, by mode": [
        (mode, lambda x, m=mode: scipy.signal.spectrogram(x, nperseg=8, mode=m)[2], x)
        for mode in ("complex", "magnitude", "phase", "angle")
    ],
    "windows": [
        (name, lambda *p, n=name: getattr(scipy.signal.windows, n)(8, *p), *map(np.array, parameters))
        for name, parameters in (
            ("gaussian", (3.0,)),
            ("general_gaussian", (1.5, 3.0)),
            ("general_hamming", (0.6,)),
            ("kaiser_bessel_derived", (3.0,)),
            ("chebwin", (60.0,)),
        )
    ],
    "others": [
        ("welch", lambda x: scipy.signal.welch(x, nperseg=8)[1], x),
        (
            "welch complex",
            lambda x: scipy.signal.welch(x, nperseg=8, return_onesided=False, detrend=False, axis=0)[1],
            complexes(20, 2),
        ),
        ("periodogram", lambda x: scipy.signal.periodogram(x, nfft=32)[1], x),
        ("csd", lambda x, y: scipy.signal.csd(x, y, nperseg=8)[1], x, real(20, seed=2)),
        ("csd bc", lambda x, y: scipy.signal.csd(x, y, nperseg=8)[1], real(2, 16), real(16, seed=2)),
        ("coherence", lambda x, y: scipy.signal.coherence(x, y, nperseg=8)[1], real(40), real(40, seed=2)),
        ("spectrogram", lambda x: scipy.signal.spectrogram(x, nperseg=8)[2], x),
        ("stft", lambda x: scipy.signal.stft(x, nperseg=8)[2], x),
        (
            "stft even",
            lambda x: scipy.signal.stft(x, nperseg=8, boundary="even", padded=True, noverlap=3, detrend="constant")[2],
            real(2, 21),
        ),
        ("stft istft", lambda x: scipy.signal.istft(2 * scipy.signal.stft(x, nperseg=8)[2], nperseg=8)[1], x),
        ("istft", lambda s: scipy.signal.istft(s, nperseg=8)[1], stft),
        ("lombscargle", lambda t, y, w: scipy.signal.lombscargle(t, y, w), np.sort(x), real(20, seed=1), np.array([1.0, 2.0])),
        ("vectorstrength", lambda e, p: scipy.signal.vectorstrength(e, p), x, real() + 3),
        ("chirp cplx", lambda t, f0: scipy.signal.chirp(t, f0, 2.0, 3.0, complex=True), tt, real() + 3),
        ("gausspulse", lambda t, fc: scipy.signal.gausspulse(t, fc), tt - 0.5, real() + 5),
        ("gausspulse ret", lambda t: scipy.signal.gausspulse(t, 5, retquad=True, retenv=True), tt - 0.5),
        ("sawtooth", lambda t: scipy.signal.sawtooth(t, 0.3), tt),
        ("sawtooth w", lambda t, w: scipy.signal.sawtooth(t, w), tt * 6, h),
        ("sweep_poly", lambda t, p: scipy.signal.sweep_poly(t, p), tt, real(3)),
        ("gauss_spline", lambda t: scipy.signal.gauss_spline(t, 3), tt),
        ("kaiser_beta", scipy.signal.kaiser_beta, real() + 30),
        ("kaiser win", lambda be: scipy.signal.windows.kaiser(7, be), real() + 3),
        ("get_window", lambda be: scipy.signal.get_window(("kaiser", be), 8), real() + 3),
        ("win exponential", lambda t: scipy.signal.windows.exponential(7, tau=t), np.array(2.5)),
        ("win general_cosine", lambda t: scipy.signal.windows.general_cosine(7, t), real(3)),
    ],
}


@pytest.mark.parametrize("rows", functions(CASES))
def test_spectra_derivatives(rows: Rows) -> None:
    rows.check()


def test_short_time_fft_object_is_rebuilt() -> None:
    transform = scipy.signal.ShortTimeFFT(np.hanning(8) + 0.1, hop=4, fs=1.0)
    np.testing.assert_allclose(ad.grad(lambda v: np.sum(transform.istft(transform.stft(v), k1=20)))(x), np.ones(20), atol=1e-12)
    with pytest.raises(TypeError, match="a plain window"):
        ad.grad(lambda w: np.sum(scipy.signal.welch(x, window=w)[1]))(np.hanning(8))
