"""Rules of SciPy's elliptic integrals and functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc
from numpy.typing import NDArray

from compgraph.array_types import Operand

from ...elementwise_functions import power_series, series_near_zero
from .ufunc_rules import several, special

# Elliptic integrals, with power series of the complete ones in their parameter
_BINOMIALS = [(math.comb(2 * n, n) / 4**n) ** 2 * math.pi / 2 for n in range(20)]
_K_SLOPE = [n * _BINOMIALS[n] for n in range(1, 20)]
_E_SLOPE = [n * _BINOMIALS[n] / (1 - 2 * n) for n in range(1, 20)]


def _k_slope(m: Any, p: Any) -> Any:
    """The derivative of the complete integral of the first kind, of ``m = 1 - p``; one of them is exact."""
    close = np.abs(m) < 0.1
    m_far, p_far = np.where(close, 0.5, m), np.where(close, 0.5, p)
    far = (sc.ellipe(m_far) / p_far - sc.ellipkm1(p_far)) / (2 * m_far)
    return np.where(close, power_series(np.where(close, m, 0), _K_SLOPE), far)


def _e_slope(m: object) -> Any:
    return series_near_zero(m, 0.1, _E_SLOPE, lambda far: (sc.ellipe(far) - sc.ellipk(far)) / (2 * far))


special_ellipk_grad = special("ellipk", lambda g, out, m: g * _k_slope(m, 1 - m))
special_ellipkm1_grad = special("ellipkm1", lambda g, out, p: -g * _k_slope(1 - p, p))
special_ellipe_grad = special("ellipe", lambda g, out, m: g * _e_slope(m))


# The incomplete ones of Legendre, by the symmetric ones of Carlson within half a turn, which divide by nothing
def _parts(phi: Any, m: object) -> tuple[Any, Any, Any, Any]:
    """Half turns, then sine, squared cosine, and ``1 - m sin**2`` of the rest."""
    turns = np.rint(phi / math.pi)
    rest = phi - turns * math.pi
    sine = np.sin(rest)
    return turns, sine, np.cos(rest) ** 2, 1 - m * sine * sine


def _with_turns(turns: Any, whole: Any, part: Any) -> Any:
    return np.where(turns == 0, 0, 2 * turns * np.where(turns == 0, 0, whole)) + part


def _first_kind_slope(phi: object, m: Any) -> Any:
    turns, sine, cosine2, delta2 = _parts(phi, m)
    return _with_turns(turns, _k_slope(m, 1 - m), sine**3 * sc.elliprd(cosine2, 1, delta2) / 6)


def _second_kind_slope(phi: object, m: object) -> Any:
    turns, sine, cosine2, delta2 = _parts(phi, m)
    return _with_turns(turns, _e_slope(m), -(sine**3) * sc.elliprd(cosine2, delta2, 1) / 6)


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
    """With respect to m."""
    return -out[2] * _first_kind_slope(out[3], m)


special_ellipj_grad = several(
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


# Carlson's symmetric integrals are homogeneous: sum(x * derivative by x) is a multiple of the integral.
def _c_first(out: NDArray[Any], x: NDArray[Any], y: NDArray[Any]) -> Any:
    """By x; on the cut, where the integral is a principal value, by the closed form that is singular at x = y."""
    cut = (np.real(y) < 0) & (np.imag(y) == 0)
    closed = (1 / np.sqrt(np.where(cut, x, 1)) - out) / np.where(cut, 2 * (x - y), 1)
    safe = np.where(cut, 1, y)
    return np.where(cut, closed, sc.elliprd(safe, safe, x) / -6)


def _d_first(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any]) -> Any:
    return (sc.elliprd(x, y, z) - sc.elliprd(y, z, x)) / (2 * (z - x))


def _j_first(out: NDArray[Any], x: NDArray[Any], y: NDArray[Any], z: NDArray[Any], p: Operand) -> Any:
    return (out - sc.elliprd(y, z, x)) / (2 * (p - x))


def _j_last(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], y: NDArray[Any], z: NDArray[Any], p: Any) -> Any:
    by_others = x * _j_first(out, x, y, z, p) + y * _j_first(out, y, z, x, p) + z * _j_first(out, z, x, y, p)
    return g * ((-1.5 * out - by_others) / p)


def _g_first(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any]) -> Any:
    return 0.25 * sc.elliprf(x, y, z) - x * sc.elliprd(y, z, x) / 12


special_elliprc_grad = special(
    "elliprc",
    lambda g, out, x, y: g * _c_first(out, x, y),
    lambda g, out, x, y: g * ((-0.5 * out - x * _c_first(out, x, y)) / y),
)
special_elliprf_grad = special(
    "elliprf",
    lambda g, out, x, y, z: -g * (sc.elliprd(y, z, x) / 6),
    lambda g, out, x, y, z: -g * (sc.elliprd(z, x, y) / 6),
    lambda g, out, x, y, z: -g * (sc.elliprd(x, y, z) / 6),
)
special_elliprd_grad = special(
    "elliprd",
    lambda g, out, x, y, z: g * _d_first(x, y, z),
    lambda g, out, x, y, z: g * _d_first(y, x, z),
    lambda g, out, x, y, z: g * ((-1.5 * out - x * _d_first(x, y, z) - y * _d_first(y, x, z)) / z),
)
special_elliprg_grad = special(
    "elliprg",
    lambda g, out, x, y, z: g * _g_first(x, y, z),
    lambda g, out, x, y, z: g * _g_first(y, z, x),
    lambda g, out, x, y, z: g * _g_first(z, x, y),
)
special_elliprj_grad = special(
    "elliprj",
    lambda g, out, x, y, z, p: g * _j_first(out, x, y, z, p),
    lambda g, out, x, y, z, p: g * _j_first(out, y, z, x, p),
    lambda g, out, x, y, z, p: g * _j_first(out, z, x, y, p),
    _j_last,
)


# The arithmetic-geometric mean is a quarter of pi times the sum over K of m = ((a - b) / (a + b))**2.
def _mean_slope(out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    """With respect to a."""
    total = a + b
    m, p = ((a - b) / total) ** 2, 4 * a * b / total**2
    return out * (1 / total - 4 * b * (a - b) / total**3 * _k_slope(m, p) / sc.ellipkm1(p))


special_agm_grad = special(
    "agm", lambda g, out, a, b: g * _mean_slope(out, a, b), lambda g, out, a, b: g * _mean_slope(out, b, a)
)  # fmt: skip
