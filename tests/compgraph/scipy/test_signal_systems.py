"""Derivatives of ``scipy.signal``: responses of linear systems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.signal

import autodiff as ad
import compgraph as cg
from tests.support.arguments import complexes, real
from tests.support.scipy_checks import Rows, functions

x = real(20)
b, a = np.array([0.3, 0.5, 0.2]), np.array([1.2, -0.3, 0.1])
sos = np.delete(scipy.signal.butter(4, 0.3, output="sos"), 3, axis=1)


def so(q: Any) -> Any:
    """Sections, whose fourth coefficient is 1."""
    return np.concatenate([q[:, :3], np.ones((len(q), 1), q.dtype), q[:, 3:]], axis=1)


z, p = complexes(2) * 0.4, complexes(2, seed=3) * 0.3
A, B, CC, D = real(2, 2) * 0.3 - np.eye(2), real(2, 1), real(1, 2), real(1, 1)
t = np.linspace(0, 1, 6)
h = np.array(0.3)

CASES: dict[str, list[tuple[Any, ...]]] = {
    "filtfilt, by padding": [
        (f"{name} {kind}", function, *arguments)
        for kind in ("odd", "even", "constant", None)
        for name, function, arguments in (
            ("filtfilt", lambda b, a, x, k=kind: scipy.signal.filtfilt(b, a, x, padtype=k), (b, a, x)),
            ("sosfiltfilt", lambda s, x, k=kind: scipy.signal.sosfiltfilt(so(s), x, padtype=k, padlen=5), (sos, x)),
        )
    ],
    "savgol_filter, by mode": [
        (m, lambda x, m=m: scipy.signal.savgol_filter(x, 5, 2, mode=m, axis=0, cval=1.0), real(8, 2))
        for m in ("constant", "nearest", "wrap")
    ],
    "cont2discrete": [
        (how, lambda m, n, p, q, h=how: scipy.signal.cont2discrete((m, n, p, q), 0.1, h)[:4], A, B, CC, D)
        for how in ("zoh", "bilinear", "euler", "foh", "backward_diff")
    ],
    "others": [
        ("filtfilt gust", lambda b, a, x: scipy.signal.filtfilt(b, a, x, method="gust"), b, a, x),
        ("filtfilt axis", lambda b, a, x: scipy.signal.filtfilt(b, a, x, axis=0, padlen=3), b, a, real(6, 2)),
        ("lfilter_zi", scipy.signal.lfilter_zi, b, a),
        ("sosfilt_zi", lambda s: scipy.signal.sosfilt_zi(so(s)), sos),
        ("detrend", scipy.signal.detrend, x),
        ("detrend bp", lambda x: scipy.signal.detrend(x, bp=[0, 5]), x),
        ("savgol", lambda x: scipy.signal.savgol_filter(x, 5, 2), x),
        ("savgol mirror", lambda x: scipy.signal.savgol_filter(x, 5, 2, deriv=1, mode="mirror"), x),
        ("savgol delta", lambda d: scipy.signal.savgol_filter(x, 5, 2, deriv=1, delta=d), real() + 3),
        ("resample_poly", lambda x: scipy.signal.resample_poly(x, 3, 2), x),
        ("decimate", lambda x: scipy.signal.decimate(x, 2), real(60)),
        (
            "welch median",
            lambda x: scipy.signal.welch(x, fs=3.0, nperseg=8, average="median", detrend="linear", scaling="spectrum")[1],
            real(31),
        ),
        ("cont2discrete impulse", lambda m, n, p: scipy.signal.cont2discrete((m, n, p, 0 * D), 0.1, "impulse")[:4], A, B, CC),
        ("cont2discrete dt", lambda dt: scipy.signal.cont2discrete((A, B, CC, D), dt)[:4], real() + 3),
        ("lsim", lambda m, n, p, q, u: scipy.signal.lsim((m, n, p, q), u, t)[1], A, B, CC, D, real(6)),
        ("lsim zoh x0", lambda u, x0: scipy.signal.lsim((A, B, CC, D), u, t, x0, interp=False)[1:], real(6), real(2)),
        ("lsim tf", lambda b, a, u: scipy.signal.lsim((b, a), u, t)[1], b[:2], a, real(6)),
        ("impulse", lambda m, n, p: scipy.signal.impulse((m, n, p, D), T=t)[1], A, B, CC),
        ("step", lambda m, n, p: scipy.signal.step((m, n, p, D), T=t)[1], A, B, CC),
        ("dlsim", lambda m, n, p, q, u: scipy.signal.dlsim((m, n, p, q, 0.1), u)[1], A, B, CC, D, real(6, 1)),
        ("dimpulse", lambda m: scipy.signal.dimpulse((m, B, CC, D, 0.1), n=4)[1][0], A),
        ("dstep", lambda m: scipy.signal.dstep((m, B, CC, D, 0.1), n=4)[1][0], A),
        ("firls", lambda d: scipy.signal.firls(7, [0, 0.3, 0.5, 1.0], d), np.array([1.0, 0.9, 0.2, 0.1])),
        (
            "butter sos filt",
            lambda w, x: scipy.signal.sosfiltfilt(scipy.signal.butter(2, w, output="sos"), x),
            np.array(0.3),
            real(30),
        ),
        ("ss obj", lambda m, u: scipy.signal.lsim(scipy.signal.StateSpace(m, B, CC, D), u, t)[1], A, real(6)),
    ],
}


@pytest.mark.parametrize("rows", functions(CASES))
def test_linear_systems_derivatives(rows: Rows) -> None:
    rows.check()


PLANT = np.array([[0.0, 1.0, 0.2], [0.5, -0.2, 0.1], [0.3, 0.0, 1.0]])
INPUT = np.array([[0.0], [1.0], [0.4]])
REAL, COMPLEX = np.array([-3.0, -1.0, -2.0]), np.array([-1.0, -2 + 1j, -2 - 1j])
PLACEMENTS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "plant": (lambda a: scipy.signal.place_poles(a, INPUT, REAL), PLANT),
    "plant, complex poles": (lambda a: scipy.signal.place_poles(a, INPUT, COMPLEX, method="YT"), PLANT),
    "input": (lambda b: scipy.signal.place_poles(PLANT, b, COMPLEX), INPUT),
    "poles": (lambda p: scipy.signal.place_poles(PLANT, INPUT, p), REAL),
    "a pole of the plant": (lambda a: scipy.signal.place_poles(a, INPUT, [np.linalg.eigvals(PLANT).real.min(), -2, -3]), PLANT),
    "one state": (lambda a: scipy.signal.place_poles(a, np.array([[2.0]]), [-1.0]), np.array([[0.3]])),
}


@pytest.mark.parametrize("name", PLACEMENTS)
def test_pole_placement_of_one_input_matches_differences(name: str) -> None:
    place, x = PLACEMENTS[name]
    f = lambda x: np.sum((gain := place(x).gain_matrix) * np.arange(1.0, gain.shape[1] + 1))  # noqa: E731
    value, gradient = ad.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-10)
    np.testing.assert_allclose(gradient, ad.numeric.gradient(f, [x])[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(place(cg.variable(x)).computed_poles, place(x).computed_poles, rtol=1e-10)


def test_pole_placement_without_unique_result_raises() -> None:
    with pytest.raises(TypeError, match="several inputs"):
        ad.grad(lambda a: np.sum(scipy.signal.place_poles(a, np.eye(3)[:, :2], REAL).gain_matrix))(PLANT)
    with pytest.raises(AttributeError):
        ad.grad(lambda a: np.sum(scipy.signal.place_poles(a, INPUT, REAL).X))(PLANT)
    with pytest.raises(ValueError, match="poles"):
        ad.grad(lambda a: np.sum(scipy.signal.place_poles(a, INPUT, REAL[:2]).gain_matrix))(PLANT)
