"""Rules of SciPy's Bessel functions and related functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc
from numpy.typing import NDArray

from ....rules import Rule, elementwise
from ...elementwise_functions import series_near_zero
from .ufunc_rules import ROOT_PI, real_only, special, special_multi_output

# Bessel functions
special_j0_grad = special("j0", lambda g, out, x: -g * sc.j1(x))
special_j1_grad = special("j1", lambda g, out, x: g * (0.5 * (sc.j0(x) - sc.jv(2, x))))
special_y0_grad = special("y0", lambda g, out, x: -g * sc.y1(x))
special_y1_grad = special("y1", lambda g, out, x: g * (0.5 * (sc.y0(x) - sc.yv(2, x))))
special_i0_grad = special("i0", lambda g, out, x: g * sc.i1(x))
special_i1_grad = special("i1", lambda g, out, x: g * (0.5 * (sc.i0(x) + sc.iv(2, x))))
special_i0e_grad = special("i0e", lambda g, out, x: g * (sc.i1e(x) - np.sign(x) * out))
special_i1e_grad = special("i1e", lambda g, out, x: g * (0.5 * (sc.i0e(x) + sc.ive(2, x)) - np.sign(x) * out))
special_k0_grad = special("k0", lambda g, out, x: -g * sc.k1(x))
special_k1_grad = special("k1", lambda g, out, x: -g * (0.5 * (sc.k0(x) + sc.kv(2, x))))
special_k0e_grad = special("k0e", lambda g, out, x: g * (out - sc.k1e(x)))
special_k1e_grad = special("k1e", lambda g, out, x: g * (out - 0.5 * (sc.k0e(x) + sc.kve(2, x))))


def _bessel(name: str, below: int, above: int, factor: complex = 0, order: str = "v") -> Rule:
    """Declare a rule by ``f_v' = (below f_(v-1) + above f_(v+1)) / 2 + factor f_v``."""
    neighbor_name = {"yn": "yv", "kn": "kv"}.get(name, name)  # these functions accept negative orders

    def formula(g: NDArray[Any], out: NDArray[Any], v: NDArray[Any], x: NDArray[Any]) -> Any:
        function = getattr(sc, neighbor_name)
        slope = 0.5 * (below * function(v - 1, x) + above * function(v + 1, x))
        return g * (slope + factor * out if factor else slope)

    return special(name, order, formula)


special_jv_grad = _bessel("jv", 1, -1)
special_yv_grad = _bessel("yv", 1, -1)
special_iv_grad = _bessel("iv", 1, 1)
special_kv_grad = _bessel("kv", -1, -1)
special_yn_grad = _bessel("yn", 1, -1, order="n")
special_kn_grad = _bessel("kn", -1, -1, order="n")
special_ive_grad = special(
    "ive",
    "v",
    real_only("ive", "iv", lambda g, out, v, x: g * (0.5 * (sc.ive(v - 1, x) + sc.ive(v + 1, x)) - np.sign(x) * out)),
)
special_jve_grad = special(
    "jve", "v", real_only("jve", "jv", lambda g, out, v, x: g * (0.5 * (sc.jve(v - 1, x) - sc.jve(v + 1, x))))
)
special_yve_grad = special(
    "yve", "v", real_only("yve", "yv", lambda g, out, v, x: g * (0.5 * (sc.yve(v - 1, x) - sc.yve(v + 1, x))))
)
special_kve_grad = _bessel("kve", -1, -1, 1)
special_hankel1_grad = _bessel("hankel1", 1, -1)
special_hankel2_grad = _bessel("hankel2", 1, -1)
special_hankel1e_grad = _bessel("hankel1e", 1, -1, -1j)
special_hankel2e_grad = _bessel("hankel2e", 1, -1, 1j)

# Airy functions. The scaled ones are Ai exp(zeta) and Bi exp(-|Re zeta|), with zeta = 2/3 x sqrt(x).
special_airy_grad = special_multi_output(
    "airy", (lambda out, x: out[1], lambda out, x: x * out[0], lambda out, x: out[3], lambda out, x: x * out[2])
)


def _zeta_slope(x: NDArray[Any]) -> Any:
    """Return the derivative of zeta; for real x, of its real part."""
    return np.sqrt(x) if x.dtype.kind == "c" else np.sqrt(np.maximum(x, 0))


_scaled_bi = real_only("airye", "airy", lambda out, x: out[3] - _zeta_slope(x) * out[2])
_scaled_bi_slope = real_only("airye", "airy", lambda out, x: x * out[2] - _zeta_slope(x) * out[3])
special_airye_grad = special_multi_output(
    "airye",
    (
        lambda out, x: out[1] + _zeta_slope(x) * out[0],
        lambda out, x: x * out[0] + _zeta_slope(x) * out[1],
        _scaled_bi,
        _scaled_bi_slope,
    ),
)
special_itairy_grad = special_multi_output(
    "itairy",
    (
        lambda out, x: sc.airy(x)[0],
        lambda out, x: sc.airy(x)[2],
        lambda out, x: sc.airy(-x)[0],
        lambda out, x: sc.airy(-x)[2],
    ),
)

# Kelvin functions: ber(x) + i bei(x) = J0(x exp(3 pi i / 4)), ker(x) + i kei(x) = K0(x exp(pi i / 4)).
_ROTATION = complex(np.exp(0.75j * math.pi))


def _ber_bei_curvature(out: NDArray[Any], x: NDArray[Any]) -> Any:
    """Return the second derivative of ber + i bei, by a formula that does not divide by x."""
    return 0.5j * (sc.jv(0, _ROTATION * x) - sc.jv(2, _ROTATION * x))


special_ber_grad = special("ber", lambda g, out, x: g * sc.berp(x))
special_bei_grad = special("bei", lambda g, out, x: g * sc.beip(x))
special_ker_grad = special("ker", lambda g, out, x: g * sc.kerp(x))
special_kei_grad = special("kei", lambda g, out, x: g * sc.keip(x))
special_berp_grad = special("berp", lambda g, out, x: g * np.real(_ber_bei_curvature(out, x)))
special_beip_grad = special("beip", lambda g, out, x: g * np.imag(_ber_bei_curvature(out, x)))
special_kerp_grad = special("kerp", lambda g, out, x: -g * (sc.kei(x) + out / x))
special_keip_grad = special("keip", lambda g, out, x: g * (sc.ker(x) - out / x))
special_kelvin_grad = special_multi_output(
    "kelvin",
    (lambda out, x: out[2], lambda out, x: out[3], _ber_bei_curvature, lambda out, x: 1j * out[1] - out[3] / x),
)


# Struve functions, by the mean of their two recurrences, which does not divide by x
def _struve(name: str, sign: int) -> Rule:
    def formula(g: NDArray[Any], out: NDArray[Any], v: NDArray[Any], x: NDArray[Any]) -> Any:
        function = getattr(sc, name)
        power = (0.5 * x) ** v * (sc.rgamma(v + 1.5) / ROOT_PI)
        return g * (0.5 * (function(v - 1, x) + sign * function(v + 1, x) + power))

    return special(name, "v", formula)


special_struve_grad = _struve("struve", -1)
special_modstruve_grad = _struve("modstruve", 1)


# Integrals, whose derivatives are the integrands
def _bessel_quotient(x: NDArray[Any], sign: int) -> Any:
    """Compute ``(1 - J0(x)) / x`` for sign -1, ``(I0(x) - 1) / x`` for sign 1."""
    terms = [sign**k / math.factorial(k + 1) ** 2 for k in range(12)]
    function = sc.j0 if sign < 0 else sc.i0
    return 0.25 * x * series_near_zero(0.25 * x * x, 0.5, terms, lambda far: sign * (function(2 * np.sqrt(far)) - 1) / far)


special_itj0y0_grad = special_multi_output("itj0y0", (lambda out, x: sc.j0(x), lambda out, x: sc.y0(x)))
special_iti0k0_grad = special_multi_output("iti0k0", (lambda out, x: sc.i0(x), lambda out, x: sc.k0(x)))
special_it2j0y0_grad = special_multi_output("it2j0y0", (lambda out, x: _bessel_quotient(x, -1), lambda out, x: -sc.y0(x) / x))
special_it2i0k0_grad = special_multi_output("it2i0k0", (lambda out, x: _bessel_quotient(x, 1), lambda out, x: -sc.k0(x) / x))
special_itstruve0_grad = special("itstruve0", lambda g, out, x: g * sc.struve(0, x))
special_itmodstruve0_grad = special("itmodstruve0", lambda g, out, x: g * sc.modstruve(0, x))
special_it2struve0_grad = special("it2struve0", lambda g, out, x: -g * (sc.struve(0, x) / x))
special_besselpoly_grad = special(
    "besselpoly", lambda g, out, a, power, v: g * ((sc.jv(v, 2 * a) - (power + 1) * out) / a), "lmb", "nu"
)

# Wright's generalized Bessel function
special_wright_bessel_grad = special(
    "wright_bessel", "a", "b", lambda g, out, a, b, x: g * sc.wright_bessel(a, a + b, x)
)  # fmt: skip
special_log_wright_bessel_grad = special(
    "log_wright_bessel", "a", "b", lambda g, out, a, b, x: g * np.exp(sc.log_wright_bessel(a, a + b, x) - out)
)

# Spherical Bessel functions, which SciPy implements in Python


def _spherical_bessel(name: str, below: int, above: int) -> Rule:
    """Declare a rule by ``(2 n + 1) f_n' = below n f_(n-1) + above (n + 1) f_(n+1)``, DLMF 10.51.2 and 10.51.5.

    The formula does not divide by the argument, so it is valid at 0.
    """

    def formula(g: NDArray[Any], out: NDArray[Any], z: NDArray[Any], n: object, derivative: bool = False) -> Any:
        function = getattr(sc, name)
        if not derivative:
            return g * function(n, z, True)
        n = np.asarray(n)
        lower, upper = function(np.maximum(n - 1, 0), z, True), function(n + 1, z, True)
        return g * ((below * n * lower + above * (n + 1) * upper) / (2 * n + 1))

    return elementwise(f"scipy_special_{name}", formula)


scipy_special_spherical_jn_grad = _spherical_bessel("spherical_jn", 1, -1)
scipy_special_spherical_yn_grad = _spherical_bessel("spherical_yn", 1, -1)
scipy_special_spherical_in_grad = _spherical_bessel("spherical_in", 1, 1)
scipy_special_spherical_kn_grad = _spherical_bessel("spherical_kn", -1, -1)
