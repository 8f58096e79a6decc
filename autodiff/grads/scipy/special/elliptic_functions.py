"""Rules of SciPy's elliptic integrals and functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc
from numpy.typing import NDArray

from compgraph.array_types import Array, Operand

from ...elementwise_functions import power_series, series_near_zero
from .ufunc_rules import special, special_multi_output

# Complete elliptic integrals, near m = 0 by the derivatives of their power series
_BINOMIALS = [(math.comb(2 * n, n) / 4**n) ** 2 * math.pi / 2 for n in range(20)]
_K_SLOPE = [n * _BINOMIALS[n] for n in range(1, 20)]
_E_SLOPE = [n * _BINOMIALS[n] / (1 - 2 * n) for n in range(1, 20)]


def _k_slope(m: Any, p: Any) -> Any:
    """Return the derivative of the complete integral of the first kind, given m and ``p = 1 - m``, both without rounding."""
    is_near = np.abs(m) < 0.1
    m_far, p_far = np.where(is_near, 0.5, m), np.where(is_near, 0.5, p)
    closed_form = (sc.ellipe(m_far) / p_far - sc.ellipkm1(p_far)) / (2 * m_far)
    return np.where(is_near, power_series(np.where(is_near, m, 0), _K_SLOPE), closed_form)


def _e_slope(m: object) -> Any:
    return series_near_zero(m, 0.1, _E_SLOPE, lambda far: (sc.ellipe(far) - sc.ellipk(far)) / (2 * far))


special_ellipk_grad = special("ellipk", lambda g, out, m: g * _k_slope(m, 1 - m))
special_ellipkm1_grad = special("ellipkm1", lambda g, out, p: -g * _k_slope(1 - p, p))
special_ellipe_grad = special("ellipe", lambda g, out, m: g * _e_slope(m))


# Legendre's incomplete integrals: complete ones for multiples of pi, and Carlson's symmetric ones, which divide by no argument
def _reduce_angle(phi: Any, m: object) -> tuple[Any, Any, Any, Any]:
    """Return the nearest multiple of pi, then sine, squared cosine and ``1 - m sin**2`` of the remaining angle."""
    num_pi = np.rint(phi / math.pi)
    angle = phi - num_pi * math.pi
    sine = np.sin(angle)
    return num_pi, sine, np.cos(angle) ** 2, 1 - m * sine * sine


def _add_complete(num_pi: Any, complete: Any, incomplete: Any) -> Any:
    """Add two complete integrals per multiple of pi; without a multiple they may be infinite, and are not used."""
    return np.where(num_pi == 0, 0, 2 * num_pi * np.where(num_pi == 0, 0, complete)) + incomplete


def _first_kind_slope(phi: object, m: Any) -> Any:
    """Return the derivative of the incomplete integral of the first kind with respect to m."""
    num_pi, sine, cosine2, delta2 = _reduce_angle(phi, m)
    return _add_complete(num_pi, _k_slope(m, 1 - m), sine**3 * sc.elliprd(cosine2, 1, delta2) / 6)


def _second_kind_slope(phi: object, m: object) -> Any:
    """Return the derivative of the incomplete integral of the second kind with respect to m."""
    num_pi, sine, cosine2, delta2 = _reduce_angle(phi, m)
    return _add_complete(num_pi, _e_slope(m), -(sine**3) * sc.elliprd(cosine2, delta2, 1) / 6)


def _delta(phi: Any, m: Any) -> Any:
    return np.sqrt(1 - m * np.sin(phi) ** 2)


special_ellipkinc_grad = special(
    "ellipkinc", lambda g, out, phi, m: g / _delta(phi, m), lambda g, out, phi, m: g * _first_kind_slope(phi, m)
)
special_ellipeinc_grad = special(
    "ellipeinc", lambda g, out, phi, m: g * _delta(phi, m), lambda g, out, phi, m: g * _second_kind_slope(phi, m)
)


# Jacobi's functions: sn, cn and dn of u, and the amplitude, whose integral of the first kind is u
def _amplitude_slope(out: tuple[Any, ...], m: object) -> Any:
    """Return the derivative of the amplitude with respect to m."""
    return -out[2] * _first_kind_slope(out[3], m)


special_ellipj_grad = special_multi_output(
    "ellipj",
    (
        lambda out, u, m: out[1] * out[2],
        lambda out, u, m: -out[0] * out[2],
        lambda out, u, m: -m * out[0] * out[1],
        lambda out, u, m: out[2],
    ),
    (
        lambda out, u, m: out[1] * _amplitude_slope(out, m),
        lambda out, u, m: -out[0] * _amplitude_slope(out, m),
        lambda out, u, m: -out[0] * (0.5 * out[0] + m * out[1] * _amplitude_slope(out, m)) / out[2],
        lambda out, u, m: _amplitude_slope(out, m),
    ),
)


# Carlson's symmetric integrals are homogeneous: the sum of each argument times its derivative is a multiple of the integral. This
# gives the derivative with respect to the last argument. The functions `*_slope` differentiate with respect to x.
def _rc_slope(out: NDArray[Any], x: NDArray[Any], y: NDArray[Any]) -> Any:
    """Return the derivative of ``elliprc``.

    On the branch cut the integral is a principal value, so the closed form is used, which is singular at x = y.
    """
    on_cut = (np.real(y) < 0) & (np.imag(y) == 0)
    closed_form = (1 / np.sqrt(np.where(on_cut, x, 1)) - out) / np.where(on_cut, 2 * (x - y), 1)
    off_cut_y = np.where(on_cut, 1, y)
    return np.where(on_cut, closed_form, sc.elliprd(off_cut_y, off_cut_y, x) / -6)


def _rd_slope(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any]) -> Any:
    return (sc.elliprd(x, y, z) - sc.elliprd(y, z, x)) / (2 * (z - x))


def _rj_slope(out: NDArray[Any], x: NDArray[Any], y: NDArray[Any], z: NDArray[Any], p: Operand) -> Any:
    return (out - sc.elliprd(y, z, x)) / (2 * (p - x))


def _pull_rj_p(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], y: NDArray[Any], z: NDArray[Any], p: Array) -> Any:
    sum_of_others = x * _rj_slope(out, x, y, z, p) + y * _rj_slope(out, y, z, x, p) + z * _rj_slope(out, z, x, y, p)
    return g * ((-1.5 * out - sum_of_others) / p)


def _rg_slope(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any]) -> Any:
    return 0.25 * sc.elliprf(x, y, z) - x * sc.elliprd(y, z, x) / 12


special_elliprc_grad = special(
    "elliprc",
    lambda g, out, x, y: g * _rc_slope(out, x, y),
    lambda g, out, x, y: g * ((-0.5 * out - x * _rc_slope(out, x, y)) / y),
)
special_elliprf_grad = special(
    "elliprf",
    lambda g, out, x, y, z: -g * (sc.elliprd(y, z, x) / 6),
    lambda g, out, x, y, z: -g * (sc.elliprd(z, x, y) / 6),
    lambda g, out, x, y, z: -g * (sc.elliprd(x, y, z) / 6),
)
special_elliprd_grad = special(
    "elliprd",
    lambda g, out, x, y, z: g * _rd_slope(x, y, z),
    lambda g, out, x, y, z: g * _rd_slope(y, x, z),
    lambda g, out, x, y, z: g * ((-1.5 * out - x * _rd_slope(x, y, z) - y * _rd_slope(y, x, z)) / z),
)
special_elliprg_grad = special(
    "elliprg",
    lambda g, out, x, y, z: g * _rg_slope(x, y, z),
    lambda g, out, x, y, z: g * _rg_slope(y, z, x),
    lambda g, out, x, y, z: g * _rg_slope(z, x, y),
)
special_elliprj_grad = special(
    "elliprj",
    lambda g, out, x, y, z, p: g * _rj_slope(out, x, y, z, p),
    lambda g, out, x, y, z, p: g * _rj_slope(out, y, z, x, p),
    lambda g, out, x, y, z, p: g * _rj_slope(out, z, x, y, p),
    _pull_rj_p,
)


# agm(a, b) = pi / 4 (a + b) / K(m), where m = ((a - b) / (a + b))**2
def _agm_slope(out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    """Return the derivative of the arithmetic-geometric mean with respect to a."""
    total = a + b
    m, p = ((a - b) / total) ** 2, 4 * a * b / total**2
    return out * (1 / total - 4 * b * (a - b) / total**3 * _k_slope(m, p) / sc.ellipkm1(p))


special_agm_grad = special(
    "agm", lambda g, out, a, b: g * _agm_slope(out, a, b), lambda g, out, a, b: g * _agm_slope(out, b, a)
)  # fmt: skip
