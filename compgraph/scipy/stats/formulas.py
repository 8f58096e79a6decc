"""Formulas of continuous distributions that SciPy writes in a way in which nodes do not keep their graph.

Each is that of SciPy's documentation of the distribution, for the standard one. They are called as SciPy's own methods are, with a
law in place of the distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as st

from .pieces import pieces

Formula = Callable[..., Any]

_ROOT_2PI = math.sqrt(2 * math.pi)


# -------------------------------------------------------------------------------------------- truncated normal


def _log_mass(a: Any, b: Any) -> Any:
    """The logarithm of the normal probability of an interval, in that tail where it does not cancel."""

    def left(a: Any, b: Any) -> Any:
        upper = sc.log_ndtr(b)
        return upper + np.log1p(-np.exp(sc.log_ndtr(a) - upper))

    return pieces(
        [(a <= 0) & (b > 0), b <= 0, a > 0],
        [lambda a, b: np.log1p(-sc.ndtr(a) - sc.ndtr(-b)), left, lambda a, b: left(-b, -a)],
        (a, b),
    )


def _log_share(part: Any, rest: Any) -> Any:
    """The logarithm of a share; near 1 by that of the rest."""
    return pieces([part <= -0.1, part > -0.1], [lambda part, rest: part, lambda part, rest: np.log1p(-np.exp(rest))], (part, rest))


def _truncnorm_logcdf(law: Any, x: Any, a: Any, b: Any) -> Any:
    total = _log_mass(a, b)
    return _log_share(_log_mass(a, x) - total, _log_mass(x, b) - total)


def _truncnorm_logsf(law: Any, x: Any, a: Any, b: Any) -> Any:
    total = _log_mass(a, b)
    return _log_share(_log_mass(x, b) - total, _log_mass(a, x) - total)


def _truncnorm_ppf(law: Any, q: Any, a: Any, b: Any) -> Any:
    mass = _log_mass(a, b)
    return pieces(
        [a < 0, a >= 0],
        [
            lambda q, mass, a, b: sc.ndtri_exp(np.logaddexp(sc.log_ndtr(a), np.log(q) + mass)),
            lambda q, mass, a, b: -sc.ndtri_exp(np.logaddexp(sc.log_ndtr(-b), np.log1p(-q) + mass)),
        ],
        (q, mass, a, b),
    )


def _truncnorm_isf(law: Any, q: Any, a: Any, b: Any) -> Any:
    return -_truncnorm_ppf(law, q, -b, -a)


# -------------------------------------------------------------------------------------------- Pearson's third

_NEARLY_NORMAL = 1.6e-5


def _pearson3(normal: Formula, positive: Formula, negative: Formula) -> Formula:
    """By the sign of the skewness a gamma distribution, or one reversed; of next to none the normal one."""

    def formula(law: Any, x: Any, skew: Any) -> Any:
        scaled = lambda f: lambda x, skew: f(x, 2 / skew)  # noqa: E731
        near = np.abs(skew) < _NEARLY_NORMAL
        cases = [near, ~near & (skew > 0), ~near & (skew < 0)]
        return pieces(cases, [lambda x, skew: normal(x), scaled(positive), scaled(negative)], (x, skew))

    return formula


def _pearson3_logpdf(x: Any, beta: Any) -> Any:
    return np.log(np.abs(beta)) + st.gamma.logpdf(beta * x + beta * beta, beta * beta)


_pearson3_cdf = lambda x, beta: st.gamma.cdf(beta * x + beta * beta, beta * beta)  # noqa: E731
_pearson3_sf = lambda x, beta: st.gamma.sf(beta * x + beta * beta, beta * beta)  # noqa: E731


# -------------------------------------------------------------------------------------------- others


def _genhalflogistic_pdf(law: Any, x: Any, c: Any) -> Any:
    base = (1 - c * x) ** (1 / c - 1)
    return 2 * base / (1 + base * (1 - c * x)) ** 2


def _genhalflogistic_cdf(law: Any, x: Any, c: Any) -> Any:
    power = (1 - c * x) ** (1 / c)
    return (1 - power) / (1 + power)


def _kappa3_sf(law: Any, x: Any, a: Any) -> Any:
    plain = 1 - law._cdf(x, a)
    tail = lambda x, a, plain: -sc.expm1(sc.xlog1py(-1 / a, a * x**-a))  # noqa: E731
    return pieces([plain >= 0.01, plain < 0.01], [lambda x, a, plain: plain, tail], (x, a, plain))


def _genhyperbolic_logpdf(law: Any, x: Any, p: Any, a: Any, b: Any) -> Any:
    root, size = np.sqrt(a * a - b * b), np.hypot(1, x)
    scale = p * np.log(root) - (p - 0.5) * np.log(a) - math.log(_ROOT_2PI) - np.log(sc.kve(p, root)) + root
    return scale + b * x + (p - 0.5) * np.log(size) + np.log(sc.kve(p - 0.5, a * size)) - a * size


def _geninvgauss_logpdf(law: Any, x: Any, p: Any, b: Any) -> Any:
    return (p - 1) * np.log(x) - 0.5 * b * (x + 1 / x) - np.log(2 * sc.kve(p, b)) + b


def _dpareto_lognorm_logpdf(law: Any, x: Any, u: Any, s: Any, a: Any, b: Any) -> Any:
    z = (np.log(x) - u) / s
    ratio = lambda z: sc.log_ndtr(-z) + 0.5 * z * z + math.log(_ROOT_2PI)  # noqa: E731 - Mills'
    front = np.log(a) + np.log(b) - np.log(a + b) - np.log(x)
    return front - 0.5 * z * z - math.log(_ROOT_2PI) + np.logaddexp(ratio(a * s - z), ratio(b * s + z))


FORMULAS: dict[tuple[str, str], Formula] = {
    ("nbinom_gen", "_logcdf"): lambda law, *given: np.log(law._cdf(*given)),
    ("alpha_gen", "_ppf"): lambda law, q, a: 1 / (a - sc.ndtri(q * sc.ndtr(a))),
    ("beta_gen", "_ppf"): lambda law, q, a, b: sc.betaincinv(a, b, q),
    ("beta_gen", "_isf"): lambda law, q, a, b: sc.betainccinv(a, b, q),
    ("exponweib_gen", "_ppf"): lambda law, q, a, c: (-np.log1p(-(q ** (1 / a)))) ** (1 / c),
    ("genhalflogistic_gen", "_pdf"): _genhalflogistic_pdf,
    ("genhalflogistic_gen", "_cdf"): _genhalflogistic_cdf,
    ("kappa3_gen", "_sf"): _kappa3_sf,
    ("genhyperbolic_gen", "_logpdf"): _genhyperbolic_logpdf,
    ("genhyperbolic_gen", "_pdf"): lambda law, *given: np.exp(law._logpdf(*given)),
    ("geninvgauss_gen", "_logpdf"): _geninvgauss_logpdf,
    ("geninvgauss_gen", "_pdf"): lambda law, *given: np.exp(law._logpdf(*given)),
    ("dpareto_lognorm_gen", "_logpdf"): _dpareto_lognorm_logpdf,
    ("truncnorm_gen", "_logpdf"): lambda law, x, a, b: -0.5 * x * x - math.log(_ROOT_2PI) - _log_mass(a, b),
    ("truncnorm_gen", "_logcdf"): _truncnorm_logcdf,
    ("truncnorm_gen", "_logsf"): _truncnorm_logsf,
    ("truncnorm_gen", "_ppf"): _truncnorm_ppf,
    ("truncnorm_gen", "_isf"): _truncnorm_isf,
    ("pearson3_gen", "_logpdf"): _pearson3(st.norm.logpdf, _pearson3_logpdf, _pearson3_logpdf),
    ("pearson3_gen", "_pdf"): lambda law, *given: np.exp(law._logpdf(*given)),
    ("pearson3_gen", "_cdf"): _pearson3(sc.ndtr, _pearson3_cdf, _pearson3_sf),
    ("pearson3_gen", "_sf"): _pearson3(lambda x: sc.ndtr(-x), _pearson3_sf, _pearson3_cdf),
    ("pearson3_gen", "_ppf"): _pearson3(
        sc.ndtri,
        lambda q, beta: sc.gammaincinv(beta * beta, q) / beta - beta,
        lambda q, beta: sc.gammaincinv(beta * beta, 1 - q) / beta - beta,
    ),
}

# What SciPy integrates, solves, or has in C: distribution functions, their derivative is the density; and the inverse ones.
_ALL = frozenset({"_cdf", "_sf", "_ppf", "_isf"})
NUMERIC: dict[str, frozenset[str]] = {
    "cosine_gen": _ALL,
    "genhyperbolic_gen": _ALL,
    "geninvgauss_gen": _ALL,
    "invgauss_gen": frozenset({"_ppf", "_isf"}),
    "irwinhall_gen": _ALL,
    "ksone_gen": _ALL,
    "kstwo_gen": _ALL,
    "kstwobign_gen": _ALL,
    "landau_gen": _ALL,
    "levy_stable_gen": _ALL,
    "norminvgauss_gen": _ALL,
    "skewnorm_gen": _ALL,
    "studentized_range_gen": _ALL,
    "dpareto_lognorm_gen": _ALL,
}


def _skewnorm_slope(x: Any, a: Any) -> Any:
    """Of ``ndtr(x) - 2 owens_t(x, a)``."""
    square = 1 + a * a
    return -np.exp(-0.5 * x * x * square) / (math.pi * square)


def _invgauss_slope(x: Any, mu: Any) -> Any:
    """Two of the three terms of the derivative cancel."""
    return -2 / mu**2 * np.exp(2 / mu + sc.log_ndtr(-(x / mu + 1) / np.sqrt(x)))


# Derivatives of these distribution functions by the shape parameters, where they are known.
SLOPES: dict[str, tuple[Formula, ...]] = {
    "skewnorm_gen": (_skewnorm_slope,),
    "invgauss_gen": (_invgauss_slope,),
}
