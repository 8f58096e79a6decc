"""Formulas of truncated normal distributions, Pearson's third, and those of extreme values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as st

from ....values import INERT, Value
from ..pieces import pieces

Formula = Callable[..., Any]

ROOT_2PI = math.sqrt(2 * math.pi)


def by_logpdf(law: Any, *given: Any) -> Any:
    """The density as the exponential of its logarithm."""
    return np.exp(law._logpdf(*given))


# -------------------------------------------------------------------------------------------- truncated normal


def log_mass(a: Any, b: Any) -> Any:
    """The logarithm of the normal probability of an interval, in that tail where it does not cancel."""

    def left(a: Any, b: Any) -> Any:
        upper = sc.log_ndtr(b)
        return upper + np.log1p(-np.exp(sc.log_ndtr(a) - upper))

    return pieces(
        [(a <= 0) & (b > 0), b <= 0, a > 0],
        [lambda a, b: np.log1p(-sc.ndtr(a) - sc.ndtr(-b)), left, lambda a, b: left(-b, -a)],
        (a, b),
    )


def log_share(part: Any, rest: Any) -> Any:
    """The logarithm of a share; near 1 by that of the rest."""
    return pieces(
        [part <= -0.1, part > -0.1], [lambda part, rest: part, lambda part, rest: np.log1p(-np.exp(rest))], (part, rest)
    )


def truncnorm_logcdf(law: Any, x: Any, a: Any, b: Any) -> Any:
    """The share of the interval below."""
    total = log_mass(a, b)
    return log_share(log_mass(a, x) - total, log_mass(x, b) - total)


def truncnorm_logsf(law: Any, x: Any, a: Any, b: Any) -> Any:
    """The share of the interval above."""
    total = log_mass(a, b)
    return log_share(log_mass(x, b) - total, log_mass(a, x) - total)


def truncnorm_ppf(law: Any, q: Any, a: Any, b: Any) -> Any:
    """By the normal quantile of a mass, in the tail that is nearer."""
    mass = log_mass(a, b)
    return pieces(
        [a < 0, a >= 0],
        [
            lambda q, mass, a, b: sc.ndtri_exp(np.logaddexp(sc.log_ndtr(a), np.log(q) + mass)),
            lambda q, mass, a, b: -sc.ndtri_exp(np.logaddexp(sc.log_ndtr(-b), np.log1p(-q) + mass)),
        ],
        (q, mass, a, b),
    )


def truncnorm_isf(law: Any, q: Any, a: Any, b: Any) -> Any:
    """By reflection."""
    return -truncnorm_ppf(law, q, -b, -a)


# -------------------------------------------------------------------------------------------- Pearson's third

_NEARLY_NORMAL = 1.6e-5


def pearson3(normal: Formula, positive: Formula, negative: Formula) -> Formula:
    """By the sign of the skewness a gamma distribution, or one reversed; of next to none the normal one."""

    def formula(law: Any, x: Any, skew: Any) -> Any:
        if isinstance(skew, Value) and type(skew) not in INERT and np.any(np.abs(skew) < _NEARLY_NORMAL):
            raise TypeError(
                "scipy.stats.pearson3: of a skewness within 1.6e-5 of 0 SciPy takes the normal distribution, whatever the "
                "skewness is, so that no derivative by it is there; give a larger one, or a plain number for it (x.value)"
            )
        near = np.abs(skew) < _NEARLY_NORMAL
        cases = [near, ~near & (skew > 0), ~near & (skew < 0)]
        return pieces(
            cases,
            [lambda x, skew: normal(x), lambda x, skew: positive(x, 2 / skew), lambda x, skew: negative(x, 2 / skew)],
            (x, skew),
        )

    return formula


def pearson3_logpdf(x: Any, beta: Any) -> Any:
    """That of a gamma distribution."""
    return np.log(np.abs(beta)) + st.gamma.logpdf(beta * x + beta * beta, beta * beta)


pearson3_cdf = lambda x, beta: st.gamma.cdf(beta * x + beta * beta, beta * beta)  # noqa: E731
pearson3_sf = lambda x, beta: st.gamma.sf(beta * x + beta * beta, beta * beta)  # noqa: E731


# -------------------------------------------------------------------------------------------- extreme values
#
# Each has a parameter at 0 of which SciPy takes another formula, the limit. Here they are written by functions that are smooth
# there, so that 0 is as good a parameter as any.


def log_over(x: Any, c: Any) -> Any:
    """``log(1 + c x) / c``, at 0 `x`."""
    return np.log1p(sc.inv_boxcox1p(x, c))


def genpareto_logpdf(law: Any, x: Any, c: Any) -> Any:
    """By the cumulated hazard ``log_over``."""
    return -(1 + c) * log_over(x, c)


def genextreme_logpdf(law: Any, x: Any, c: Any) -> Any:
    """In Gumbel's variable."""
    log = -log_over(x, -c)
    return (1 - c) * log - np.exp(log)


def genextreme_ppf(law: Any, q: Any, c: Any) -> Any:
    """Gumbel's quantile, bent."""
    y = -np.log(-np.log(q))
    return y * sc.exprel(-c * y)


def genextreme_isf(law: Any, q: Any, c: Any) -> Any:
    """Gumbel's quantile, bent."""
    y = -np.log(-np.log1p(-q))
    return y * sc.exprel(-c * y)


def kappa4_logpdf(law: Any, x: Any, h: Any, k: Any) -> Any:
    """Two bends, one after the other."""
    log = -log_over(x, -k)
    return (1 - k) * log - (1 - h) * log_over(np.exp(log), -h)


def kappa4_logcdf(law: Any, x: Any, h: Any, k: Any) -> Any:
    """Two bends, one after the other."""
    return -log_over(np.exp(-log_over(x, -k)), -h)
