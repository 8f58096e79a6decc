"""Rules of SciPy's gamma, beta and zeta functions, and of functions related to the error function.

The derivatives of the incomplete gamma and beta functions with respect to their parameters have no known closed form. A double
exponential rule computes them as integrals of smooth functions, up to about rounding (H. Takahasi and M. Mori, "Double
exponential formulas for numerical integration", 1974). Its points do not depend on the function, so the sum can be
differentiated to any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc
from numpy.typing import NDArray

from compgraph.protocols import stop_gradient

from ....rules import Rule
from .ufunc_rules import ROOT_2PI, ROOT_PI, special

# y = exp(s - exp(-s)), for integrands that decay exponentially. A sum over 250 steps in s is exact up to rounding, even if the
# decay rate is known only within a factor of some hundreds.
_STEP = 0.04
_S = np.arange(-3.8, 6.2, _STEP)
_POINTS = np.exp(_S - np.exp(-_S))
_WEIGHTS = _STEP * _POINTS * (1 + np.exp(-_S))


def _column(x: NDArray[Any]) -> Any:
    """Append an axis of length one, for the points of the integral."""
    return np.expand_dims(x, -1)


def _integrate_decay(integrand: Callable[[Any], Any], rate: Any) -> Any:
    """Integrate from 0 to infinity a function that decays as ``exp(-rate * y)``. Its argument has the points on the last axis."""
    rate = stop_gradient(rate)
    return np.sum(integrand(_POINTS / _column(rate)) * _WEIGHTS, axis=-1) / rate


def gammainc_slope(a: NDArray[Any], x: NDArray[Any]) -> Any:
    """Return the derivative of the regularized lower incomplete gamma function with respect to `a`.

    It is the integral over ``log(t)`` of the derivative of the density, ``t**a exp(-t) (log(t) - psi(a)) / Gamma(a)``. The
    integral over both sides of `x` is 0, so the side of smaller probability is integrated.
    """
    is_constant = (x <= 0) | (x == np.inf)
    x = np.where(is_constant, 1.0, x)
    is_lower = stop_gradient(x) < np.maximum(stop_gradient(a), 1)
    sign = np.where(is_lower, -1.0, 1.0)
    # Beyond the mode the density decays in log(t) at the rate abs(a - x); near the mode, at the inverse of its width.
    inverse_width = np.minimum(np.where(is_lower, a, x), np.sqrt(np.where(is_lower, a, x)))
    rate = np.maximum(np.abs(a - x) * (is_lower == (x < a)), inverse_width)
    max_log = _column(stop_gradient(np.log(x + 50 * np.sqrt(x) + 800)))  # beyond it the density underflows

    def density(y: NDArray[Any]) -> Any:
        log = _column(np.log(x)) + _column(sign) * y
        log = np.where(log < max_log, log, max_log)
        return np.exp(_column(a) * log - np.exp(log) - _column(sc.gammaln(a))) * (log - _column(sc.psi(a)))

    return np.where(is_constant, 0, -sign * _integrate_decay(density, rate))


def betainc_slopes(a: NDArray[Any], b: NDArray[Any], x: NDArray[Any]) -> tuple[Any, Any]:
    """Return the derivatives of the regularized incomplete beta function with respect to `a` and to `b`."""
    is_constant = (x <= 0) | (x >= 1)
    x = np.where(is_constant, 0.5, x)
    logit = np.log(x) - np.log1p(-x)
    return np.where(is_constant, 0, _beta_slope(a, b, x, logit)), np.where(is_constant, 0, -_beta_slope(b, a, 1 - x, -logit))


def _beta_slope(a: NDArray[Any], b: NDArray[Any], x: NDArray[Any], logit: Any) -> Any:
    """Return the derivative with respect to `a` as `gammainc_slope` does, by an integral over ``log(t / (1 - t))``."""
    drift = a - (a + b) * x
    sign = np.where(stop_gradient(drift) > 0, -1.0, 1.0)
    size = a * b / (a + b)
    rate = np.maximum(np.abs(drift), np.minimum(size, np.sqrt(size)))
    mean = sc.psi(a) - sc.psi(a + b)

    def density(y: NDArray[Any]) -> Any:
        w = _column(logit) + _column(sign) * y
        below, above = sc.log_expit(w), sc.log_expit(-w)
        power = _column(a) * below + _column(b) * above - _column(sc.betaln(a, b))
        return np.exp(power) * (below - _column(mean))

    return -sign * _integrate_decay(density, rate)


# -------------------------------------------------------------------------------------------- zeta functions

_TERMS = 24
_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330]


def hurwitz_slope(s: NDArray[Any], q: NDArray[Any]) -> Any:
    """Return the derivative of Hurwitz's zeta function with respect to `s`, by the Euler-Maclaurin formula, DLMF 25.11.28."""
    n = np.arange(float(_TERMS))
    base = _column(q) + n
    leading_terms = -np.sum(np.log(base) * base ** -_column(s), axis=-1)
    w = q + float(_TERMS)
    log, power = np.log(w), w**-s
    total = leading_terms - w * power * (log / (s - 1) + 1 / (s - 1) ** 2) - 0.5 * log * power
    product, slope = s * 1.0, 1.0  # s (s + 1) ... (s + 2 k - 2), and its derivative
    for k, bernoulli in enumerate(_BERNOULLI, 1):
        weight = bernoulli / math.factorial(2 * k) * w ** (1 - 2 * k)
        total = total + weight * power * (slope - log * product)
        for step in (2 * k - 1, 2 * k):
            product, slope = product * (s + step), slope * (s + step) + product
    return total


def riemann_slope(s: NDArray[Any]) -> Any:
    """Return the derivative of Riemann's zeta function, below 0 by its functional equation, DLMF 25.4.1."""
    if s.dtype.kind == "c":
        raise TypeError("scipy.special.zeta: the derivative with respect to a complex number is unknown. Pass a plain value")
    is_negative = s < 0
    reflected_s = np.where(is_negative, 1 - s, s)
    slope = hurwitz_slope(reflected_s, np.ones(()))
    t = np.where(is_negative, s, -0.5)
    log = math.log(2 * math.pi)
    factor = 2 * (2 * math.pi) ** (t - 1) * sc.gamma(1 - t)
    sine, cosine = np.sin(math.pi / 2 * t), np.cos(math.pi / 2 * t)
    value = sc.zeta(np.where(is_negative, reflected_s, 2.0))
    reflected_slope = factor * (value * (sine * (log - sc.psi(1 - t)) + math.pi / 2 * cosine) - sine * slope)
    return np.where(is_negative, reflected_slope, slope)


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
