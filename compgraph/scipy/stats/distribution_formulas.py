"""Formulas of distributions that replace SciPy's in rebound code.

Each is the formula of SciPy's documentation, for the standard distribution. SciPy evaluates some distributions in C. For others
it switches to a second formula at one value of a shape parameter, where the first is 0/0. The second formula has no derivative
with respect to that parameter, so these are written with functions that are smooth there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as st

from ...array_types import Array
from ...values import INERT, Value

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


def _log1p_over(x: object, c: object) -> Any:
    """``log(1 + c x) / c``; `x` where c is 0."""
    return np.log1p(sc.inv_boxcox1p(x, c))


# -------------------------------------------------------------------------------------------- smooth in the shape parameters


def _genextreme_logpdf(self: Any, x: Any, c: Any) -> Any:
    log = -_log1p_over(x, -c)
    return (1 - c) * log - np.exp(log)


def _genextreme_ppf(self: Any, q: Any, c: Any) -> Any:
    y = -np.log(-np.log(q))
    return y * sc.exprel(-c * y)


def _genextreme_isf(self: Any, q: Any, c: Any) -> Any:
    y = -np.log(-np.log1p(-q))
    return y * sc.exprel(-c * y)


def _kappa4_logpdf(self: Any, x: Any, h: Any, k: Any) -> Any:
    log = -_log1p_over(x, -k)
    return (1 - k) * log - (1 - h) * _log1p_over(np.exp(log), -h)


def _triang_pdf(self: Any, x: Any, c: Any) -> Any:
    """The density; if the mode c is at an end (0 or 1), there is only one side, with the same dependence on c."""
    is_left = (x < c) | (c >= 1)
    left, right = np.where(is_left, c, 1), np.where(is_left, 0, c)
    return np.where(is_left, 2 * x / left, 2 * (1 - x) / (1 - right))


def _triang_cdf(self: Any, x: Any, c: Any) -> Any:
    is_left = (x < c) | (c >= 1)
    left, right = np.where(is_left, c, 1), np.where(is_left, 0, c)
    return np.where(is_left, x * x / left, (x * x - 2 * x + right) / (right - 1))


def _skewnorm_pdf(self: Any, x: Any, a: Any) -> Any:
    return 2 * np.exp(-0.5 * x * x - _LOG_ROOT_2PI) * sc.ndtr(a * x)


def _skewnorm_logpdf(self: Any, x: Any, a: Any) -> Any:
    return math.log(2) - _LOG_ROOT_2PI - 0.5 * x * x + sc.log_ndtr(a * x)


def _ncx2_logpdf(self: Any, x: Any, df: Array, nc: Any) -> Any:
    """By a Bessel function; where `nc` is 0 by the density, which has a derivative there."""
    is_central = nc == 0
    positive = np.where(is_central, 1.0, nc)
    order, root_x, root_nc = df / 2 - 1, np.sqrt(x), np.sqrt(positive)
    log = sc.xlogy(order / 2, x / positive) - 0.5 * (root_x - root_nc) ** 2 + np.log(sc.ive(order, root_x * root_nc) / 2)
    if not np.any(is_central):
        return log
    return np.where(is_central, np.log(sc._ufuncs._ncx2_pdf(x, df, np.where(is_central, nc, 0.0))), log)


def _pearson3_method(normal: Callable[..., Any], positive: Any, negative: Any) -> Any:
    """A gamma distribution, reversed for a negative skewness; SciPy uses the normal distribution for a skewness near 0."""

    def method(self: Any, x: Any, skew: Any) -> Any:
        is_normal = np.abs(skew) < 1.6e-5
        if isinstance(skew, Value) and type(skew) not in INERT and np.any(is_normal):
            raise TypeError(
                "scipy.stats.pearson3: for a skewness within 1.6e-5 of 0, SciPy uses the normal distribution, so there is no "
                "derivative with respect to the skewness. Use a larger one, or a plain number (x.value)"
            )
        beta = 2 / np.where(is_normal, 1.0, skew)
        skewed = np.where(skew > 0, positive(x, beta), negative(x, beta))
        return np.where(is_normal, normal(x), skewed) if np.any(is_normal) else skewed

    return method


def _pearson3_logpdf(x: Any, beta: Any) -> Any:
    return np.log(np.abs(beta)) + st.gamma.logpdf(beta * x + beta * beta, beta * beta)


def _pearson3_cdf(x: Any, beta: Any) -> Any:
    return st.gamma.cdf(beta * x + beta * beta, beta * beta)


def _pearson3_sf(x: Any, beta: Any) -> Any:
    return st.gamma.sf(beta * x + beta * beta, beta * beta)


# -------------------------------------------------------------------------------------------- in C in SciPy


def _genhyperbolic_logpdf(self: Any, x: Any, p: Array, a: Any, b: Any) -> Any:
    root, size = np.sqrt(a * a - b * b), np.hypot(1, x)
    scale = p * np.log(root) - (p - 0.5) * np.log(a) - _LOG_ROOT_2PI - np.log(sc.kve(p, root)) + root
    return scale + b * x + (p - 0.5) * np.log(size) + np.log(sc.kve(p - 0.5, a * size)) - a * size


def _geninvgauss_logpdf(self: Any, x: Any, p: Array, b: Any) -> Any:
    return (p - 1) * np.log(x) - 0.5 * b * (x + 1 / x) - np.log(2 * sc.kve(p, b)) + b


def _nbinom_stats(self: Any, n: Any, p: Any) -> tuple[Any, Any, Any, Any]:
    mean = n * (1 - p) / p
    return mean, mean / p, (2 - p) / np.sqrt(n * (1 - p)), 6 / n + p * p / (n * (1 - p))


FORMULAS: dict[tuple[str, str], Any] = {
    ("genpareto_gen", "_logpdf"): lambda self, x, c: -(1 + c) * _log1p_over(x, c),
    ("genpareto_gen", "_logsf"): lambda self, x, c: -_log1p_over(x, c),
    ("genextreme_gen", "_logpdf"): _genextreme_logpdf,
    ("genextreme_gen", "_logcdf"): lambda self, x, c: -np.exp(-_log1p_over(x, -c)),
    ("genextreme_gen", "_ppf"): _genextreme_ppf,
    ("genextreme_gen", "_isf"): _genextreme_isf,
    ("kappa4_gen", "_logpdf"): _kappa4_logpdf,
    ("kappa4_gen", "_logcdf"): lambda self, x, h, k: -_log1p_over(np.exp(-_log1p_over(x, -k)), -h),
    ("kappa4_gen", "_ppf"): lambda self, q, h, k: -sc.boxcox(-sc.boxcox(q, h), k),
    ("triang_gen", "_pdf"): _triang_pdf,
    ("triang_gen", "_cdf"): _triang_cdf,
    ("skewnorm_gen", "_pdf"): _skewnorm_pdf,
    ("skewnorm_gen", "_logpdf"): _skewnorm_logpdf,
    ("ncx2_gen", "_logpdf"): _ncx2_logpdf,
    ("ncx2_gen", "_pdf"): lambda self, *args: sc._ufuncs._ncx2_pdf(*args),
    ("ncx2_gen", "_cdf"): lambda self, *args: sc.chndtr(*args),
    ("ncx2_gen", "_sf"): lambda self, *args: sc._ufuncs._ncx2_sf(*args),
    ("ncx2_gen", "_ppf"): lambda self, *args: sc.chndtrix(*args),
    ("ncx2_gen", "_isf"): lambda self, *args: sc._ufuncs._ncx2_isf(*args),
    ("pearson3_gen", "_logpdf"): _pearson3_method(st.norm.logpdf, _pearson3_logpdf, _pearson3_logpdf),
    ("pearson3_gen", "_cdf"): _pearson3_method(sc.ndtr, _pearson3_cdf, _pearson3_sf),
    ("pearson3_gen", "_sf"): _pearson3_method(lambda x: sc.ndtr(-x), _pearson3_sf, _pearson3_cdf),
    ("pearson3_gen", "_ppf"): _pearson3_method(
        sc.ndtri,
        lambda q, beta: sc.gammaincinv(beta * beta, q) / beta - beta,
        lambda q, beta: sc.gammaincinv(beta * beta, 1 - q) / beta - beta,
    ),
    ("genhyperbolic_gen", "_logpdf"): _genhyperbolic_logpdf,
    ("genhyperbolic_gen", "_pdf"): lambda self, *args: np.exp(self._logpdf(*args)),
    ("geninvgauss_gen", "_logpdf"): _geninvgauss_logpdf,
    ("nbinom_gen", "_stats"): _nbinom_stats,
}
