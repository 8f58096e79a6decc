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

from ...graph import INERT, Node
from .pieces import pieces

Formula = Callable[..., Any]

_ROOT_2PI = math.sqrt(2 * math.pi)


def _by_logpdf(law: Any, *given: Any) -> Any:
    return np.exp(law._logpdf(*given))


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
    return pieces(
        [part <= -0.1, part > -0.1], [lambda part, rest: part, lambda part, rest: np.log1p(-np.exp(rest))], (part, rest)
    )


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
        if isinstance(skew, Node) and skew.__class__ not in INERT and np.any(np.abs(skew) < _NEARLY_NORMAL):
            raise TypeError(
                "scipy.stats.pearson3: of a skewness within 1.6e-5 of 0 SciPy takes the normal distribution, whatever the skewness "
                "is, so that no derivative by it is there; give a larger one, or a plain number for it (x.value)"
            )
        scaled = lambda f: lambda x, skew: f(x, 2 / skew)  # noqa: E731
        near = np.abs(skew) < _NEARLY_NORMAL
        cases = [near, ~near & (skew > 0), ~near & (skew < 0)]
        return pieces(cases, [lambda x, skew: normal(x), scaled(positive), scaled(negative)], (x, skew))

    return formula


def _pearson3_logpdf(x: Any, beta: Any) -> Any:
    return np.log(np.abs(beta)) + st.gamma.logpdf(beta * x + beta * beta, beta * beta)


_pearson3_cdf = lambda x, beta: st.gamma.cdf(beta * x + beta * beta, beta * beta)  # noqa: E731
_pearson3_sf = lambda x, beta: st.gamma.sf(beta * x + beta * beta, beta * beta)  # noqa: E731


# -------------------------------------------------------------------------------------------- extreme values
#
# Each has a parameter at 0 of which SciPy takes another formula, the limit. Here they are written by functions that are smooth
# there, so that 0 is as good a parameter as any.


def _log_over(x: Any, c: Any) -> Any:
    """``log(1 + c x) / c``, at 0 `x`."""
    return np.log1p(sc.inv_boxcox1p(x, c))


def _genpareto_logpdf(law: Any, x: Any, c: Any) -> Any:
    return -(1 + c) * _log_over(x, c)


def _genextreme_logpdf(law: Any, x: Any, c: Any) -> Any:
    log = -_log_over(x, -c)
    return (1 - c) * log - np.exp(log)


def _genextreme_ppf(law: Any, q: Any, c: Any) -> Any:
    y = -np.log(-np.log(q))
    return y * sc.exprel(-c * y)


def _genextreme_isf(law: Any, q: Any, c: Any) -> Any:
    y = -np.log(-np.log1p(-q))
    return y * sc.exprel(-c * y)


def _kappa4_logpdf(law: Any, x: Any, h: Any, k: Any) -> Any:
    log = -_log_over(x, -k)
    return (1 - k) * log - (1 - h) * _log_over(np.exp(log), -h)


def _kappa4_logcdf(law: Any, x: Any, h: Any, k: Any) -> Any:
    return -_log_over(np.exp(-_log_over(x, -k)), -h)


# -------------------------------------------------------------------------------------------- others


def _triang(rising: Formula, falling: Formula) -> Formula:
    """In two pieces, of which one may be empty."""
    top = lambda x, c: rising(x, np.where(c < 1, 1, c))  # noqa: E731
    return lambda law, x, c: pieces([x < c, (x >= c) & (c < 1), (x >= c) & (c >= 1)], [rising, falling, top], (x, c))


def _truncpareto_share(x: Any, b: Any) -> Any:
    """``1 - x**-b``, the share below of the distribution that is truncated."""
    return -np.expm1(-b * np.log(x))


def _tukeylambda_pdf(law: Any, x: Any, lam: Any) -> Any:
    """By that of the quantiles, 0 where these do not reach."""
    below = sc.tklmbda(x, lam)
    reached = np.abs(x) * lam < 1
    p = np.where(reached, below, 0.5)
    return np.where(reached, 1 / (p ** (lam - 1) + (1 - p) ** (lam - 1)), 0)


def _skewnorm_pdf(law: Any, x: Any, a: Any) -> Any:
    return 2 * np.exp(-0.5 * x * x) / _ROOT_2PI * sc.ndtr(a * x)


def _ncx2_logpdf(law: Any, x: Any, df: Any, nc: Any) -> Any:
    """By a Bessel function, and of no noncentrality by the density itself."""

    def by_bessel(x: Any, df: Any, nc: Any) -> Any:
        order, root_x, root_nc = df / 2 - 1, np.sqrt(x), np.sqrt(nc)
        log = np.log(sc.ive(order, root_x * root_nc) / 2)
        return sc.xlogy(order / 2, x / nc) - 0.5 * (root_x - root_nc) ** 2 + log

    return pieces([nc != 0, nc == 0], [by_bessel, lambda *given: np.log(sc._ufuncs._ncx2_pdf(*given))], (x, df, nc))


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
    ("genpareto_gen", "_logpdf"): _genpareto_logpdf,
    ("genpareto_gen", "_pdf"): _by_logpdf,
    ("genpareto_gen", "_cdf"): lambda law, x, c: -np.expm1(-_log_over(x, c)),
    ("genpareto_gen", "_sf"): lambda law, x, c: np.exp(-_log_over(x, c)),
    ("genpareto_gen", "_logsf"): lambda law, x, c: -_log_over(x, c),
    ("genextreme_gen", "_logpdf"): _genextreme_logpdf,
    ("genextreme_gen", "_pdf"): _by_logpdf,
    ("genextreme_gen", "_logcdf"): lambda law, x, c: -np.exp(-_log_over(x, -c)),
    ("genextreme_gen", "_cdf"): lambda law, x, c: np.exp(-np.exp(-_log_over(x, -c))),
    ("genextreme_gen", "_sf"): lambda law, x, c: -np.expm1(-np.exp(-_log_over(x, -c))),
    ("genextreme_gen", "_ppf"): _genextreme_ppf,
    ("genextreme_gen", "_isf"): _genextreme_isf,
    ("kappa4_gen", "_logpdf"): _kappa4_logpdf,
    ("kappa4_gen", "_pdf"): _by_logpdf,
    ("kappa4_gen", "_logcdf"): _kappa4_logcdf,
    ("kappa4_gen", "_cdf"): lambda law, *given: np.exp(law._logcdf(*given)),
    ("kappa4_gen", "_ppf"): lambda law, q, h, k: -sc.boxcox(-sc.boxcox(q, h), k),
    ("triang_gen", "_pdf"): _triang(lambda x, c: 2 * x / c, lambda x, c: 2 * (1 - x) / (1 - c)),
    ("triang_gen", "_cdf"): _triang(lambda x, c: x * x / c, lambda x, c: (x * x - 2 * x + c) / (c - 1)),
    ("truncpareto_gen", "_logpdf"): lambda law, x, b, c: np.log(b / _truncpareto_share(c, b)) - (b + 1) * np.log(x),
    ("truncpareto_gen", "_pdf"): _by_logpdf,
    ("truncpareto_gen", "_cdf"): lambda law, x, b, c: _truncpareto_share(x, b) / _truncpareto_share(c, b),
    ("truncpareto_gen", "_sf"): lambda law, x, b, c: (x**-b - c**-b) / _truncpareto_share(c, b),
    ("truncpareto_gen", "_logcdf"): lambda law, *given: np.log(law._cdf(*given)),
    ("truncpareto_gen", "_logsf"): lambda law, *given: np.log(law._sf(*given)),
    ("truncpareto_gen", "_ppf"): lambda law, q, b, c: (1 - q * _truncpareto_share(c, b)) ** (-1 / b),
    ("truncpareto_gen", "_isf"): lambda law, q, b, c: (c**-b + q * _truncpareto_share(c, b)) ** (-1 / b),
    ("tukeylambda_gen", "_pdf"): _tukeylambda_pdf,
    ("skewnorm_gen", "_pdf"): _skewnorm_pdf,
    ("skewnorm_gen", "_logpdf"): lambda law, x, a: math.log(2 / _ROOT_2PI) - 0.5 * x * x + sc.log_ndtr(a * x),
    ("ncx2_gen", "_logpdf"): _ncx2_logpdf,
    ("ncx2_gen", "_pdf"): lambda law, x, df, nc: sc._ufuncs._ncx2_pdf(x, df, nc),
    ("ncx2_gen", "_cdf"): lambda law, x, df, nc: sc.chndtr(x, df, nc),
    ("ncx2_gen", "_sf"): lambda law, x, df, nc: sc._ufuncs._ncx2_sf(x, df, nc),
    ("ncx2_gen", "_ppf"): lambda law, q, df, nc: sc.chndtrix(q, df, nc),
    ("ncx2_gen", "_isf"): lambda law, q, df, nc: sc._ufuncs._ncx2_isf(q, df, nc),
    ("betaprime_gen", "_ppf"): lambda law, q, a, b: sc.betaincinv(a, b, q) / sc.betainccinv(b, a, q),
    ("betaprime_gen", "_isf"): lambda law, q, a, b: sc.betainccinv(a, b, q) / sc.betaincinv(b, a, q),
    ("dpareto_lognorm_gen", "_logcdf"): lambda law, *given: np.log(law._cdf(*given)),
    ("dpareto_lognorm_gen", "_logsf"): lambda law, *given: np.log(law._sf(*given)),
    ("dpareto_lognorm_gen", "_pdf"): _by_logpdf,
    ("poisson_gen", "_stats"): lambda law, mu: (mu, mu, np.sqrt(1 / mu), 1 / mu),
    ("nbinom_gen", "_stats"): lambda law, n, p: (
        n * (1 - p) / p,
        n * (1 - p) / p**2,
        (2 - p) / np.sqrt(n * (1 - p)),
        6 / n + p * p / (n * (1 - p)),
    ),
    ("nbinom_gen", "_logcdf"): lambda law, *given: np.log(law._cdf(*given)),
    ("alpha_gen", "_ppf"): lambda law, q, a: 1 / (a - sc.ndtri(q * sc.ndtr(a))),
    ("beta_gen", "_ppf"): lambda law, q, a, b: sc.betaincinv(a, b, q),
    ("beta_gen", "_isf"): lambda law, q, a, b: sc.betainccinv(a, b, q),
    ("exponweib_gen", "_ppf"): lambda law, q, a, c: (-np.log1p(-(q ** (1 / a)))) ** (1 / c),
    ("genhalflogistic_gen", "_pdf"): _genhalflogistic_pdf,
    ("genhalflogistic_gen", "_cdf"): _genhalflogistic_cdf,
    ("kappa3_gen", "_sf"): _kappa3_sf,
    ("genhyperbolic_gen", "_logpdf"): _genhyperbolic_logpdf,
    ("genhyperbolic_gen", "_pdf"): _by_logpdf,
    ("geninvgauss_gen", "_logpdf"): _geninvgauss_logpdf,
    ("geninvgauss_gen", "_pdf"): _by_logpdf,
    ("dpareto_lognorm_gen", "_logpdf"): _dpareto_lognorm_logpdf,
    ("truncnorm_gen", "_logpdf"): lambda law, x, a, b: -0.5 * x * x - math.log(_ROOT_2PI) - _log_mass(a, b),
    ("truncnorm_gen", "_logcdf"): _truncnorm_logcdf,
    ("truncnorm_gen", "_logsf"): _truncnorm_logsf,
    ("truncnorm_gen", "_ppf"): _truncnorm_ppf,
    ("truncnorm_gen", "_isf"): _truncnorm_isf,
    ("pearson3_gen", "_logpdf"): _pearson3(st.norm.logpdf, _pearson3_logpdf, _pearson3_logpdf),
    ("pearson3_gen", "_pdf"): _by_logpdf,
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
    "vonmises_gen": frozenset({"_cdf"}),
    "wald_gen": frozenset({"_ppf", "_isf"}),
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

# Densities that SciPy has as numbers alone: their distribution functions can be differentiated once.
OPAQUE = frozenset(
    {"irwinhall_gen", "ksone_gen", "kstwo_gen", "kstwobign_gen", "landau_gen", "levy_stable_gen", "studentized_range_gen"}
)

# Distributions of counts, and such as have no formula.
_COUNTS = "its parameters are counts; give plain numbers for them (x.value)"
REFUSED: dict[str, str] = {
    "hypergeom_gen": _COUNTS,
    "nhypergeom_gen": _COUNTS,
    "randint_gen": _COUNTS,
    "poisson_binom_gen": "the sum over the trials one by one: np.convolve of [1 - p, p]",
    "nchypergeom_fisher_gen": "a sum of the terms of its definition, by scipy.special.gammaln",
    "nchypergeom_wallenius_gen": "plain numbers for its parameters (x.value)",
    "zipfian_gen": "k**-a over the sum of np.arange(1, n + 1.0)**-a",
}
