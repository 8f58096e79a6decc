"""Rules of SciPy's gamma, beta and zeta functions, and of functions related to the error function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc
from numpy.typing import NDArray

from ....rules import Rule
from .parameter_derivatives import betainc_slopes, gammainc_slope, hurwitz_slope, riemann_slope
from .ufunc_rules import ROOT_2PI, ROOT_PI, special


def _psi(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any]) -> Any:
    if x.dtype.kind == "c":
        raise TypeError(
            "scipy.special.psi: SciPy has no trigamma function, its derivative, of complex numbers. Pass a plain value"
        )
    return g * sc.zeta(2, x)


# Gamma functions
special_gamma_grad = special("gamma", lambda g, out, x: g * (out * sc.psi(x)))
special_rgamma_grad = special("rgamma", lambda g, out, x: -g * (out * sc.psi(x)))
special_gammaln_grad = special("gammaln", lambda g, out, x: g * sc.psi(x))
special_loggamma_grad = special("loggamma", lambda g, out, x: g * sc.psi(x))
special_psi_grad = special("psi", _psi)
special_zeta_grad = special(
    "_zeta", lambda g, out, s, q: g * hurwitz_slope(s, q), lambda g, out, s, q: -g * (s * sc.zeta(s + 1, q))
)
special_riemann_zeta_grad = special("_riemann_zeta", lambda g, out, s: g * riemann_slope(s))
special_poch_grad = special(
    "poch",
    lambda g, out, z, m: g * (out * (sc.psi(z + m) - sc.psi(z))),
    lambda g, out, z, m: g * (out * sc.psi(z + m)),
)
special_beta_grad = special(
    "beta",
    lambda g, out, a, b: g * (out * (sc.psi(a) - sc.psi(a + b))),
    lambda g, out, a, b: g * (out * (sc.psi(b) - sc.psi(a + b))),
)
special_betaln_grad = special(
    "betaln",
    lambda g, out, a, b: g * (sc.psi(a) - sc.psi(a + b)),
    lambda g, out, a, b: g * (sc.psi(b) - sc.psi(a + b)),
)
special_binom_grad = special(
    "binom",
    lambda g, out, n, k: g * (out * (sc.psi(n + 1) - sc.psi(n - k + 1))),
    lambda g, out, n, k: g * (out * (sc.psi(n - k + 1) - sc.psi(k + 1))),
)

special_zetac_grad = special("zetac", lambda g, out, s: g * riemann_slope(s))


def gamma_density(a: NDArray[Any], x: NDArray[Any]) -> Any:
    """Return the density of the gamma distribution with shape `a`."""
    return np.exp(sc.xlogy(a - 1, x) - x - sc.gammaln(a))


def beta_density(a: NDArray[Any], b: NDArray[Any], x: NDArray[Any]) -> Any:
    """Return the density of the beta distribution."""
    return np.exp(sc.xlogy(a - 1, x) + sc.xlog1py(b - 1, -x) - sc.betaln(a, b))


special_gammainc_grad = special(
    "gammainc", lambda g, out, a, x: g * gammainc_slope(a, x), lambda g, out, a, x: g * gamma_density(a, x)
)
special_gammaincc_grad = special(
    "gammaincc", lambda g, out, a, x: -g * gammainc_slope(a, x), lambda g, out, a, x: -g * gamma_density(a, x)
)
special_gammaincinv_grad = special(
    "gammaincinv",
    lambda g, out, a, y: -g * (gammainc_slope(a, out) / gamma_density(a, out)),
    lambda g, out, a, y: g / gamma_density(a, out),
)
special_gammainccinv_grad = special(
    "gammainccinv",
    lambda g, out, a, y: -g * (gammainc_slope(a, out) / gamma_density(a, out)),
    lambda g, out, a, y: -g / gamma_density(a, out),
)


def _incomplete_beta(name: str, sign: int) -> Rule:
    return special(
        name,
        lambda g, out, a, b, x: sign * g * betainc_slopes(a, b, x)[0],
        lambda g, out, a, b, x: sign * g * betainc_slopes(a, b, x)[1],
        lambda g, out, a, b, x: sign * g * beta_density(a, b, x),
    )


def _inverse_beta(name: str, sign: int) -> Rule:
    return special(
        name,
        lambda g, out, a, b, y: -g * (betainc_slopes(a, b, out)[0] / beta_density(a, b, out)),
        lambda g, out, a, b, y: -g * (betainc_slopes(a, b, out)[1] / beta_density(a, b, out)),
        lambda g, out, a, b, y: sign * g / beta_density(a, b, out),
    )


special_betainc_grad = _incomplete_beta("betainc", 1)
special_betaincc_grad = _incomplete_beta("betaincc", -1)
special_betaincinv_grad = _inverse_beta("betaincinv", 1)
special_betainccinv_grad = _inverse_beta("betainccinv", -1)

# Error functions
special_erf_grad = special("erf", lambda g, out, x: g * (np.exp(-x * x) * (2 / ROOT_PI)))
special_erfc_grad = special("erfc", lambda g, out, x: -g * (np.exp(-x * x) * (2 / ROOT_PI)))
special_erfcx_grad = special("erfcx", lambda g, out, x: g * (2 * x * out - 2 / ROOT_PI))
special_erfi_grad = special("erfi", lambda g, out, x: g * (np.exp(x * x) * (2 / ROOT_PI)))
special_wofz_grad = special("wofz", lambda g, out, z: g * (2j / ROOT_PI - 2 * z * out))
special_dawsn_grad = special("dawsn", lambda g, out, x: g * (1 - 2 * x * out))
special_erfinv_grad = special("erfinv", lambda g, out, x: g * (np.exp(out * out) * (ROOT_PI / 2)))
special_erfcinv_grad = special("erfcinv", lambda g, out, x: -g * (np.exp(out * out) * (ROOT_PI / 2)))
special_ndtr_grad = special("ndtr", lambda g, out, x: g * (np.exp(-0.5 * x * x) / ROOT_2PI))
special_log_ndtr_grad = special("log_ndtr", lambda g, out, x: g * (np.exp(-0.5 * x * x - out) / ROOT_2PI))
special_ndtri_grad = special("ndtri", lambda g, out, x: g * (np.exp(0.5 * out * out) * ROOT_2PI))
special_ndtri_exp_grad = special("ndtri_exp", lambda g, out, x: g * (np.exp(0.5 * out * out + x) * ROOT_2PI))


# The Voigt profile is the real part of wofz(z) / (sigma sqrt(2 pi)), where z = (x + i gamma) / (sigma sqrt(2)).
def _voigt(sigma: Any, x: NDArray[Any], gamma: Any) -> tuple[Any, Any]:
    """Return z, and the derivative of ``wofz(z) / (sigma sqrt(2 pi))`` with respect to z."""
    z = (x + 1j * gamma) / (sigma * math.sqrt(2))
    return z, (2j / ROOT_PI - 2 * z * sc.wofz(z)) / (sigma * ROOT_2PI)


def _voigt_sigma(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], sigma: object, gamma: object) -> Any:
    z, slope = _voigt(sigma, x, gamma)
    return -g * ((out + np.real(slope * z)) / sigma)


special_voigt_profile_grad = special(
    "voigt_profile",
    lambda g, out, x, sigma, gamma: g * np.real(_voigt(sigma, x, gamma)[1] / (sigma * math.sqrt(2))),
    _voigt_sigma,
    lambda g, out, x, sigma, gamma: g * np.real(1j * _voigt(sigma, x, gamma)[1] / (sigma * math.sqrt(2))),
)
