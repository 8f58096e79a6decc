"""Formulas of continuous distributions that SciPy writes in a way in which nodes do not keep their graph.

Each is that of SciPy's documentation of the distribution, for the standard one. They are called as SciPy's own methods are,
with a law in place of the distribution.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as st

from ..pieces import pieces
from .tails import (
    ROOT_2PI,
    Formula,
    by_logpdf,
    genextreme_isf,
    genextreme_logpdf,
    genextreme_ppf,
    genpareto_logpdf,
    kappa4_logcdf,
    kappa4_logpdf,
    log_mass,
    log_over,
    pearson3,
    pearson3_cdf,
    pearson3_logpdf,
    pearson3_sf,
    truncnorm_isf,
    truncnorm_logcdf,
    truncnorm_logsf,
    truncnorm_ppf,
)

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
    return 2 * np.exp(-0.5 * x * x) / ROOT_2PI * sc.ndtr(a * x)


def _ncx2_logpdf(law: Any, x: Any, df: Any, nc: Any) -> Any:
    """By a Bessel function, and of no noncentrality by the density itself."""

    def by_bessel(x: Any, df: Any, nc: Any) -> Any:
        order, root_x, root_nc = df / 2 - 1, np.sqrt(x), np.sqrt(nc)
        log = np.log(sc.ive(order, root_x * root_nc) / 2)
        return sc.xlogy(order / 2, x / nc) - 0.5 * (root_x - root_nc) ** 2 + log

    return pieces([nc != 0, nc == 0], [by_bessel, lambda *given: np.log(sc._ufuncs._ncx2_pdf(*given))], (x, df, nc))


def _f_stats(law: Any, dfn: Any, dfd: Any) -> Any:
    mean = np.where(dfd > 2, dfd / (dfd - 2), np.inf)
    var = 2 * dfd**2 * (dfn + dfd - 2) / (dfn * (dfd - 2) ** 2 * (dfd - 4))
    return mean, np.where(dfd > 4, var, np.inf), None, None


def _f_raw(law: Any, order: int, dfn: Any, dfd: Any) -> Any:
    a, b = 0.5 * dfn, 0.5 * dfd
    log = (
        order * np.log(dfd / dfn)
        + sc.gammaln(a + order)
        - sc.gammaln(a)
        + sc.gammaln(np.where(b > order, b - order, 1))
        - sc.gammaln(b)
    )
    return np.where(b > order, np.exp(log), np.inf)


def _chi_stats(law: Any, df: Any) -> Any:
    mean = math.sqrt(2) * sc.poch(0.5 * df, 0.5)
    return mean, df - mean * mean, None, None


def _truncnorm_stats(law: Any, a: Any, b: Any, moments: str = "mv") -> Any:
    low, high = (np.exp(-0.5 * end * end - log_mass(a, b)) / ROOT_2PI for end in (a, b))
    mean = low - high
    inner, outer = (np.where(np.isinf(end), 0, end) for end in (a, b))  # where the density is 0
    return mean, 1 + inner * low - outer * high - mean * mean, None, None


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
    scale = p * np.log(root) - (p - 0.5) * np.log(a) - math.log(ROOT_2PI) - np.log(sc.kve(p, root)) + root
    return scale + b * x + (p - 0.5) * np.log(size) + np.log(sc.kve(p - 0.5, a * size)) - a * size


def _geninvgauss_logpdf(law: Any, x: Any, p: Any, b: Any) -> Any:
    return (p - 1) * np.log(x) - 0.5 * b * (x + 1 / x) - np.log(2 * sc.kve(p, b)) + b


def _dpareto_lognorm_logpdf(law: Any, x: Any, u: Any, s: Any, a: Any, b: Any) -> Any:
    z = (np.log(x) - u) / s
    one, two = (sc.log_ndtr(-w) + 0.5 * w * w for w in (a * s - z, b * s + z))  # Mills' ratios, but for the same factor
    front = np.log(a) + np.log(b) - np.log(a + b) - np.log(x)
    return front - 0.5 * z * z + np.logaddexp(one, two)


FORMULAS: dict[tuple[str, str], Formula] = {
    ("genpareto_gen", "_logpdf"): genpareto_logpdf,
    ("genpareto_gen", "_pdf"): by_logpdf,
    ("genpareto_gen", "_cdf"): lambda law, x, c: -np.expm1(-log_over(x, c)),
    ("genpareto_gen", "_sf"): lambda law, x, c: np.exp(-log_over(x, c)),
    ("genpareto_gen", "_logsf"): lambda law, x, c: -log_over(x, c),
    ("genextreme_gen", "_logpdf"): genextreme_logpdf,
    ("genextreme_gen", "_pdf"): by_logpdf,
    ("genextreme_gen", "_logcdf"): lambda law, x, c: -np.exp(-log_over(x, -c)),
    ("genextreme_gen", "_cdf"): lambda law, x, c: np.exp(-np.exp(-log_over(x, -c))),
    ("genextreme_gen", "_sf"): lambda law, x, c: -np.expm1(-np.exp(-log_over(x, -c))),
    ("genextreme_gen", "_ppf"): genextreme_ppf,
    ("genextreme_gen", "_isf"): genextreme_isf,
    ("kappa4_gen", "_logpdf"): kappa4_logpdf,
    ("kappa4_gen", "_pdf"): by_logpdf,
    ("kappa4_gen", "_logcdf"): kappa4_logcdf,
    ("kappa4_gen", "_cdf"): lambda law, *given: np.exp(law._logcdf(*given)),
    ("kappa4_gen", "_ppf"): lambda law, q, h, k: -sc.boxcox(-sc.boxcox(q, h), k),
    ("triang_gen", "_pdf"): _triang(lambda x, c: 2 * x / c, lambda x, c: 2 * (1 - x) / (1 - c)),
    ("triang_gen", "_cdf"): _triang(lambda x, c: x * x / c, lambda x, c: (x * x - 2 * x + c) / (c - 1)),
    ("truncpareto_gen", "_logpdf"): lambda law, x, b, c: np.log(b / _truncpareto_share(c, b)) - (b + 1) * np.log(x),
    ("truncpareto_gen", "_pdf"): by_logpdf,
    ("truncpareto_gen", "_cdf"): lambda law, x, b, c: _truncpareto_share(x, b) / _truncpareto_share(c, b),
    ("truncpareto_gen", "_sf"): lambda law, x, b, c: (x**-b - c**-b) / _truncpareto_share(c, b),
    ("truncpareto_gen", "_logcdf"): lambda law, *given: np.log(law._cdf(*given)),
    ("truncpareto_gen", "_logsf"): lambda law, *given: np.log(law._sf(*given)),
    ("truncpareto_gen", "_ppf"): lambda law, q, b, c: (1 - q * _truncpareto_share(c, b)) ** (-1 / b),
    ("truncpareto_gen", "_isf"): lambda law, q, b, c: (c**-b + q * _truncpareto_share(c, b)) ** (-1 / b),
    ("tukeylambda_gen", "_pdf"): _tukeylambda_pdf,
    ("skewnorm_gen", "_pdf"): _skewnorm_pdf,
    ("skewnorm_gen", "_logpdf"): lambda law, x, a: math.log(2 / ROOT_2PI) - 0.5 * x * x + sc.log_ndtr(a * x),
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
    ("dpareto_lognorm_gen", "_pdf"): by_logpdf,
    ("f_gen", "_stats"): _f_stats,
    ("f_gen", "_munp"): _f_raw,
    ("pareto_gen", "_stats"): lambda law, b, moments="mv": (None,) * 4,
    ("pareto_gen", "_munp"): lambda law, order, b: np.where(b > order, b / (b - order), np.inf),
    ("chi_gen", "_stats"): _chi_stats,
    ("truncnorm_gen", "_stats"): _truncnorm_stats,
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
    ("genhyperbolic_gen", "_pdf"): by_logpdf,
    ("geninvgauss_gen", "_logpdf"): _geninvgauss_logpdf,
    ("geninvgauss_gen", "_pdf"): by_logpdf,
    ("dpareto_lognorm_gen", "_logpdf"): _dpareto_lognorm_logpdf,
    ("truncnorm_gen", "_logpdf"): lambda law, x, a, b: -0.5 * x * x - math.log(ROOT_2PI) - log_mass(a, b),
    ("truncnorm_gen", "_logcdf"): truncnorm_logcdf,
    ("truncnorm_gen", "_logsf"): truncnorm_logsf,
    ("truncnorm_gen", "_ppf"): truncnorm_ppf,
    ("truncnorm_gen", "_isf"): truncnorm_isf,
    ("pearson3_gen", "_logpdf"): pearson3(st.norm.logpdf, pearson3_logpdf, pearson3_logpdf),
    ("pearson3_gen", "_pdf"): by_logpdf,
    ("pearson3_gen", "_cdf"): pearson3(sc.ndtr, pearson3_cdf, pearson3_sf),
    ("pearson3_gen", "_sf"): pearson3(lambda x: sc.ndtr(-x), pearson3_sf, pearson3_cdf),
    ("pearson3_gen", "_ppf"): pearson3(
        sc.ndtri,
        lambda q, beta: sc.gammaincinv(beta * beta, q) / beta - beta,
        lambda q, beta: sc.gammaincinv(beta * beta, 1 - q) / beta - beta,
    ),
}

# What SciPy integrates, solves, or has in C: distribution functions, and their inverses.
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


# Distributions whose density SciPy has as numbers alone.
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
