"""Derivatives of ``scipy.signal``: filter design, and responses of filters and systems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import autodiff as ad
from tests.support.arguments import complexes, real
from tests.support.scipy_checks import Rows, functions

x = real(20)
b, a = np.array([0.3, 0.5, 0.2]), np.array([1.2, -0.3, 0.1])
sos = np.delete(scipy.signal.butter(4, 0.3, output="sos"), 3, axis=1)


def so(q: Any) -> Any:
    """Sections, whose fourth coefficient is 1."""
    return np.concatenate([q[:, :3], np.ones((len(q), 1), q.dtype), q[:, 3:]], axis=1)


z, p = complexes(2) * 0.4, complexes(2, seed=3) * 0.3
h = np.array(0.3)

CASES: dict[str, list[tuple[Any, ...]]] = {
    "butter, by output": [(o, lambda w, o=o: scipy.signal.butter(3, w, output=o), h) for o in ("ba", "zpk", "sos")],
    "others": [
        ("freqz", lambda b, a: scipy.signal.freqz(b, a, worN=7)[1], b, a),
        ("freqz w", lambda b, a, w: scipy.signal.freqz(b, a, worN=w)[1], b, a, np.array([0.2, 1.0, 2.0])),
        ("freqz fir", lambda b: scipy.signal.freqz(b, worN=16)[1], b),
        ("freqs", lambda b, a, w: scipy.signal.freqs(b, a, w)[1], b, a, np.array([0.2, 1.0, 2.0])),
        ("freqz_sos", lambda s: scipy.signal.freqz_sos(so(s), worN=6)[1], sos),
        ("sosfreqz", lambda s: scipy.signal.sosfreqz(so(s), worN=6)[1], sos),
        ("freqz_zpk", lambda z, p, k: scipy.signal.freqz_zpk(z, p, k, worN=5)[1], z, p, real() + 3),
        ("freqs_zpk", lambda z, p, k: scipy.signal.freqs_zpk(z, p, k, worN=[1.0, 2.0])[1], z, p, real() + 3),
        ("group_delay", lambda b, a: scipy.signal.group_delay((b, a), w=6)[1], b, a),
        ("tf2zpk", lambda b, a: scipy.signal.tf2zpk(b, a), np.array([1.0, 0.3, -0.2]), np.array([1.0, -0.2, -0.3])),
        ("zpk2tf", scipy.signal.zpk2tf, real(2), real(3), real()),
        ("zpk2tf c", scipy.signal.zpk2tf, z, p, real()),
        ("tf2sos", lambda b, a: scipy.signal.tf2sos(b, a), np.array([1.0, 0.3, -0.2]), np.array([1.0, -0.2, -0.3])),
        ("zpk2sos", lambda k: scipy.signal.zpk2sos([0.3, 0.1], [0.2, 0.5], k), real() + 3),
        ("zpk2sos zp", lambda z, p, k: scipy.signal.zpk2sos(z, p, k), np.array([0.3, 0.1]), np.array([0.2, 0.5]), real() + 3),
        ("sos2tf", lambda s: scipy.signal.sos2tf(so(s)), sos),
        ("sos2zpk", lambda s: scipy.signal.sos2zpk(so(s)), np.array([[1.0, 0.5, 0.1, 0.1, -0.4], [2.0, 0.3, -0.2, 0.4, -0.1]])),
        ("tf2ss", lambda b, a: scipy.signal.tf2ss(b, a), b, a),
        ("ss2tf", scipy.signal.ss2tf, real(2, 2), real(2, 1), real(1, 2), real(1, 1)),
        ("zpk2ss", lambda k: scipy.signal.zpk2ss([0.3], [0.1, 0.2], k), real() + 3),
        (
            "ss2zpk",
            lambda m: scipy.signal.ss2zpk(m, np.ones((2, 1)), np.ones((1, 2)), np.ones((1, 1))),
            np.array([[0.3, 0.1], [0.1, 0.7]]),
        ),
        ("normalize", scipy.signal.normalize, b, a),
        ("bilinear", lambda b, a, fs: scipy.signal.bilinear(b, a, fs[()]), b, a, real() + 3),
        ("bilinear_zpk", lambda z, p, k, fs: scipy.signal.bilinear_zpk(z, p, k, fs[()]), z, p, real(), real() + 3),
        ("lp2lp", scipy.signal.lp2lp, b, a, real() + 3),
        ("lp2hp", scipy.signal.lp2hp, b, a, real() + 3),
        ("lp2bp", scipy.signal.lp2bp, b, a, real() + 3, real() + 2),
        ("lp2bs", scipy.signal.lp2bs, b, a, real() + 3, real() + 2),
        ("lp2lp_zpk", scipy.signal.lp2lp_zpk, z, p, real(), real() + 3),
        ("lp2hp_zpk", scipy.signal.lp2hp_zpk, z, p, real(), real() + 3),
        ("lp2bp_zpk", scipy.signal.lp2bp_zpk, z, p, real(), real() + 3, real() + 2),
        ("lp2bs_zpk", scipy.signal.lp2bs_zpk, z, p, real(), real() + 3, real() + 2),
        ("freqresp", lambda b, a: scipy.signal.freqresp((b, a), [1.0, 2.0])[1], b, a),
        ("bode", lambda b, a: scipy.signal.bode((b, a), [1.0, 2.0])[1:], b, a),
        ("dfreqresp", lambda b, a: scipy.signal.dfreqresp((b, a, 0.1), [1.0, 2.0])[1], b, a),
        ("dbode", lambda b, a: scipy.signal.dbode((b, a, 0.1), [1.0, 2.0])[1:], b, a),
        ("firwin", lambda w: scipy.signal.firwin(7, w), h),
        ("firwin band", lambda w: scipy.signal.firwin(7, w, pass_zero=False), np.array([0.2, 0.5])),
        ("firwin hp list", lambda w: scipy.signal.firwin(7, [w, 0.8], fs=3.0, pass_zero=True), h),
        ("firwin2", lambda g: scipy.signal.firwin2(7, [0, 0.3, 1.0], g), np.array([1.0, 0.7, 0.1])),
        ("minimum_phase", lambda h: scipy.signal.minimum_phase(np.concatenate([h, h[-2::-1]])), np.array([0.1, 0.5, 1.0])),
        ("iirnotch", lambda w: scipy.signal.iirnotch(w, 5.0), h),
        ("iirpeak", lambda w, q: scipy.signal.iirpeak(w, q), h, real() + 5),
        ("iircomb", lambda q: scipy.signal.iircomb(0.25, q), real() + 5),
        ("gammatone", lambda f: scipy.signal.gammatone(f, "iir", fs=100.0), h + 20),
        ("gammatone fir", lambda f: scipy.signal.gammatone(f, "fir", fs=100.0, numtaps=5), h + 20),
        ("butter band", lambda w: scipy.signal.butter(2, w, "band"), np.array([0.2, 0.5])),
        ("butter list", lambda w: scipy.signal.butter(2, [w, 0.8], "stop"), h),
        ("butter analog", lambda w: scipy.signal.butter(2, w, analog=True), h),
        ("butter fs", lambda w, fs: scipy.signal.butter(2, w, fs=fs[()]), h, real() + 4),
        ("cheby1", lambda rp, w: scipy.signal.cheby1(2, rp, w), real() + 3, h),
        ("cheby2", lambda rs, w: scipy.signal.cheby2(3, rs, w), real() + 30, h),
        ("ellip", lambda w: scipy.signal.ellip(3, 1.0, 30.0, w), h),
        ("bessel", lambda w: scipy.signal.bessel(3, w), h),
        ("iirfilter", lambda w: scipy.signal.iirfilter(2, w, btype="low"), h),
        ("invres", lambda r: scipy.signal.invres(r, [0.1, 0.4], []), real(2)),
        ("tf obj", lambda b, a: scipy.signal.freqresp(scipy.signal.TransferFunction(b, a), [1.0, 2.0])[1], b, a),
    ],
}


@pytest.mark.parametrize("rows", functions(CASES))
def test_filter_designs_derivatives(rows: Rows) -> None:
    rows.check()


def test_filter_design_cutoff_fitted_to_response() -> None:
    def loss(cutoff: Any) -> Any:
        _, response = scipy.signal.freqz(*scipy.signal.butter(2, cutoff), worN=[0.5])
        return np.sum((np.abs(response) - 0.5) ** 2)

    cutoff = 0.3
    for _ in range(300):
        cutoff = cutoff - 0.005 * ad.grad(loss)(cutoff)
    assert loss(cutoff) < 1e-6
