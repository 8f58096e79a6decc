"""Tests and regressions: statistics, and what probability they have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as st
from scipy.stats import _stats_py as results

from ...graph import as_operand
from .samples import Along, checked_nan, floating

_SIDES = {"less": -1, "two-sided": 0, "greater": 1}


def _side(alternative: str) -> int:
    if alternative not in _SIDES:
        raise ValueError("`alternative` must be 'less', 'greater', or 'two-sided'.")
    return _SIDES[alternative]


def _of_student(t: Any, df: Any, alternative: str) -> Any:
    """The probability of a value as large, in that direction."""
    side = _side(alternative)
    return 2 * sc.stdtr(df, -np.abs(t)) if side == 0 else sc.stdtr(df, -side * t)


def _refuse(name: str, **options: Any) -> None:
    for option, given in options.items():
        if given is not None and not (isinstance(given, (int, float)) and given == 0):
            raise TypeError(f"scipy.stats.{name}: {option}= resamples or cuts by values, and is not recorded; leave it out")


# -------------------------------------------------------------------------------------------- Student's


def _student(t: Any, df: Any, alternative: str, error: Any, estimate: Any) -> Any:
    df = as_operand(df) + np.zeros(np.shape(t))
    probability = _of_student(t, df, alternative)
    return results.TtestResult(
        t, probability, df=df, alternative=_side(alternative), standard_error=error, estimate=estimate, statistic_np=t, xp=np
    )


def ttest_1samp(
    a: Any, popmean: Any, axis: Any = 0, nan_policy: str = "propagate", alternative: str = "two-sided", *, keepdims: bool = False
) -> Any:
    """Of the mean of one sample."""
    a, popmean, along = floating(a), floating(popmean), Along(axis, keepdims)
    checked_nan("ttest_1samp", nan_policy, a)
    if popmean.ndim:
        popmean = np.squeeze(popmean, axis=axis)
    finished = lambda value: along.finished(value, a.ndim)  # noqa: E731
    sample = along.last(a)
    mean, error = np.mean(sample, axis=-1), np.sqrt(np.var(sample, axis=-1, ddof=1) / sample.shape[-1])
    return _student(finished((mean - popmean) / error), sample.shape[-1] - 1.0, alternative, finished(error), finished(mean))


def ttest_rel(
    a: Any, b: Any, axis: Any = 0, nan_policy: str = "propagate", alternative: str = "two-sided", *, keepdims: bool = False
) -> Any:
    """Of pairs."""
    return ttest_1samp(floating(a) - floating(b), 0.0, axis, nan_policy, alternative, keepdims=keepdims)


def _pooled(v1: Any, n1: Any, v2: Any, n2: Any, equal_var: bool) -> tuple[Any, Any]:
    """Degrees of freedom, and the error of the difference; of unequal variances by Welch and Satterthwaite."""
    if equal_var:
        df = n1 + n2 - 2.0
        return df, np.sqrt(((n1 - 1) * v1 + (n2 - 1) * v2) / df * (1.0 / n1 + 1.0 / n2))
    a, b = v1 / n1, v2 / n2
    return (a + b) ** 2 / (a**2 / (n1 - 1) + b**2 / (n2 - 1)), np.sqrt(a + b)


def ttest_ind(
    a: Any, b: Any, *, axis: Any = 0, equal_var: bool = True, nan_policy: str = "propagate", alternative: str = "two-sided",
    trim: Any = 0, method: Any = None, keepdims: bool = False,
) -> Any:  # fmt: skip
    """Of two samples."""
    _refuse("ttest_ind", trim=trim, method=method)
    a, b, along = floating(a), floating(b), Along(axis, keepdims)
    checked_nan("ttest_ind", nan_policy, a, b)
    one, two = along.last(a), along.last(b)
    n1, n2 = one.shape[-1], two.shape[-1]
    df, error = _pooled(np.var(one, axis=-1, ddof=1), n1, np.var(two, axis=-1, ddof=1), n2, equal_var)
    finished = lambda value: along.finished(value, max(a.ndim, b.ndim))  # noqa: E731
    estimate = np.mean(one, axis=-1) - np.mean(two, axis=-1)
    return _student(finished(estimate / error), df if equal_var else finished(df), alternative, finished(error), finished(estimate))


def ttest_ind_from_stats(
    mean1: Any, std1: Any, nobs1: Any, mean2: Any, std2: Any, nobs2: Any, equal_var: bool = True, alternative: str = "two-sided"
) -> Any:
    """Of two samples, of which means and deviations are known."""
    mean1, std1, mean2, std2 = map(floating, (mean1, std1, mean2, std2))
    df, error = _pooled(std1**2, nobs1, std2**2, nobs2, equal_var)
    t = (mean1 - mean2) / error
    return results.Ttest_indResult(t, _of_student(t, as_operand(df), alternative))


def f_oneway(
    *samples: Any, axis: Any = 0, equal_var: bool = True, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """The analysis of variance; of unequal ones Welch's."""
    if len(samples) < 2:
        raise TypeError(f"at least two inputs are required; got {len(samples)}.")
    along, given = Along(axis, keepdims), [floating(s) for s in samples]
    checked_nan("f_oneway", nan_policy, *given)
    groups = [along.last(s) for s in given]
    sizes = [g.shape[-1] for g in groups]
    f, dfn, dfd = (_between if equal_var else _welch)(groups, sizes)
    f = along.finished(f, max(s.ndim for s in given))
    dfd = dfd if equal_var else along.finished(dfd, max(s.ndim for s in given))
    return results.F_onewayResult(f, sc.fdtrc(dfn, as_operand(dfd), f))


def _between(groups: list[Any], sizes: list[int]) -> tuple[Any, float, Any]:
    """The variance between the groups over that within."""
    means = [np.mean(g, axis=-1, keepdims=True) for g in groups]
    total, count = sum(sizes), len(groups)
    grand = sum(n * m for n, m in zip(sizes, means, strict=True)) / total
    between = sum(n * (m - grand)[..., 0] ** 2 for n, m in zip(sizes, means, strict=True))
    within = sum(np.sum((g - m) ** 2, axis=-1) for g, m in zip(groups, means, strict=True))
    return (between / (count - 1)) / (within / (total - count)), count - 1.0, total - count * 1.0


def _welch(groups: list[Any], sizes: list[int]) -> tuple[Any, float, Any]:
    count = len(groups)
    means = [np.mean(g, axis=-1) for g in groups]
    weights = [n / np.var(g, axis=-1, ddof=1) for n, g in zip(sizes, groups, strict=True)]
    total = sum(weights)
    grand = sum(w * m for w, m in zip(weights, means, strict=True)) / total
    spread = sum((1 - w / total) ** 2 / (n - 1) for w, n in zip(weights, sizes, strict=True))
    above = sum(w * (m - grand) ** 2 for w, m in zip(weights, means, strict=True)) / (count - 1)
    return above / (1 + 2 * (count - 2) / (count**2 - 1) * spread), count - 1.0, (count**2 - 1) / (3 * spread)


# -------------------------------------------------------------------------------------------- two samples side by side


def _centred(x: Any) -> Any:
    return x - np.mean(x, axis=-1, keepdims=True)


def pearsonr(x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None, axis: Any = 0) -> Any:
    """The correlation, which of independent normal samples is distributed by beta on the interval from -1 to 1."""
    _refuse("pearsonr", method=method)
    x, y = np.broadcast_arrays(floating(x), floating(y))
    x, y = Along(axis).last(x), Along(axis).last(y)
    n = x.shape[-1]
    if n < 2:
        raise ValueError("`x` and `y` must have length at least 2.")
    dx, dy = _centred(x), _centred(y)
    r = np.sum(dx * dy, axis=-1) / np.sqrt(np.sum(dx * dx, axis=-1) * np.sum(dy * dy, axis=-1))
    r = np.clip(r, -1.0, 1.0)
    half, side = n / 2 - 1, _side(alternative)
    if n == 2:
        return results.PearsonRResult(np.round(r), 0 * r + 1, alternative, n, x, y, -1)
    tail = 2 * sc.betaincc(half, half, 0.5 + 0.5 * np.abs(r)) if side == 0 else sc.betaincc(half, half, 0.5 + 0.5 * side * r)
    return results.PearsonRResult(statistic=r, pvalue=tail, n=n, alternative=alternative, x=x, y=y, axis=-1)


def linregress(
    x: Any, y: Any = None, alternative: str = "two-sided", *, axis: Any = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """A line by least squares."""
    if y is None:
        raise TypeError("scipy.stats.linregress: give x and y by themselves, x[0] and x[1]")
    x, y = floating(x), floating(y)
    checked_nan("linregress", nan_policy, x, y)
    along, (x, y) = Along(axis, keepdims), np.broadcast_arrays(x, y)
    ndim, x, y = x.ndim, along.last(x), along.last(y)
    n = x.shape[-1]
    if n > 1 and np.any(np.max(x, axis=-1) == np.min(x, axis=-1)):
        raise ValueError("Cannot calculate a linear regression if all x values are identical")
    dx, dy = _centred(x), _centred(y)
    xx, xy, yy = (np.mean(product, axis=-1) for product in (dx * dx, dx * dy, dy * dy))
    slope, r = xy / xx, np.clip(xy / np.sqrt(xx * yy), -1.0, 1.0)
    mean = np.mean(x, axis=-1)
    intercept = np.mean(y, axis=-1) - slope * mean
    probability, error, error_there = _line_errors(r, xx, yy, mean, n, alternative)
    values = [along.finished(v, ndim) for v in (slope, intercept, r, probability, error)]
    return results.LinregressResult(*values, intercept_stderr=along.finished(error_there, ndim))


def _line_errors(r: Any, xx: Any, yy: Any, mean: Any, n: int, alternative: str) -> tuple[Any, Any, Any]:
    """The probability of such a slope, and the standard errors of slope and intercept."""
    if n == 2:
        return np.where(yy == 0, 1.0, 0.0), 0 * r, 0 * r
    tiny, df = 1e-20, n - 2.0
    t = r * np.sqrt(df / ((1.0 - r + tiny) * (1.0 + r + tiny)))
    error = np.sqrt((1 - r**2) * yy / xx / df)
    return _of_student(t, df, alternative), error, error * np.sqrt(xx + mean**2)


# -------------------------------------------------------------------------------------------- goodness of fit

_POWERS = {
    "pearson": 1.0, "log-likelihood": 0.0, "freeman-tukey": -0.5, "mod-log-likelihood": -1.0, "neyman": -2.0, "cressie-read": 2 / 3,
}  # fmt: skip


def power_divergence(
    f_obs: Any, f_exp: Any = None, ddof: Any = 0, axis: Any = 0, lambda_: Any = None, *, nan_policy: str = "propagate",
    keepdims: bool = False, sum_check: bool = True,
) -> Any:  # fmt: skip
    """Of counts and those that are expected."""
    power = 1.0 if lambda_ is None else _POWERS[lambda_] if isinstance(lambda_, str) else float(lambda_)
    f_obs = floating(f_obs)
    checked_nan("power_divergence", nan_policy, f_obs)
    along = Along(axis, keepdims)
    if f_exp is None:
        observed = along.last(f_obs)
        expected = np.broadcast_to(np.mean(observed, axis=-1, keepdims=True), observed.shape)
        ndim = f_obs.ndim
    else:
        f_obs, f_exp = np.broadcast_arrays(f_obs, floating(f_exp))
        ndim, observed, expected = f_obs.ndim, along.last(f_obs), along.last(f_exp)
        totals = np.sum(observed, axis=-1), np.sum(expected, axis=-1)
        if sum_check and np.any(np.abs(totals[0] - totals[1]) > 1e-8 * np.minimum(*totals)):
            raise ValueError("For each axis slice, the sum of the observed frequencies must agree with those expected, to 1e-08")
    if power == 1:
        terms = (observed - expected) ** 2 / expected
    elif power == 0:
        terms = 2.0 * sc.xlogy(observed, observed / expected)
    elif power == -1:
        terms = 2.0 * sc.xlogy(expected, expected / observed)
    else:
        terms = 2.0 / (power * (power + 1)) * observed * ((observed / expected) ** power - 1)
    value = along.finished(np.sum(terms, axis=-1), ndim)
    return results.Power_divergenceResult(value, sc.chdtrc(observed.shape[-1] - 1.0 - ddof, value))


def chisquare(f_obs: Any, f_exp: Any = None, ddof: Any = 0, axis: Any = 0, **options: Any) -> Any:
    """Pearson's."""
    return power_divergence(f_obs, f_exp, ddof, axis, "pearson", **options)


def jarque_bera(x: Any, *, axis: Any = None, nan_policy: str = "propagate", keepdims: bool = False) -> Any:
    """Whether skewness and kurtosis are those of a normal distribution."""
    x, along = floating(x), Along(axis, keepdims)
    checked_nan("jarque_bera", nan_policy, x)
    sample = along.last(x)
    n = sample.shape[-1]
    skewness, kurtosis = st.skew(sample, axis=-1), st.kurtosis(sample, axis=-1)
    value = along.finished(n / 6.0 * (skewness**2 + kurtosis**2 / 4.0), x.ndim)
    return results.SignificanceResult(value, sc.chdtrc(2.0, value))


def pointbiserialr(x: Any, y: Any, *, axis: Any = 0, nan_policy: str = "propagate", keepdims: bool = False) -> Any:
    """The correlation with what is true or false."""
    if keepdims:
        raise TypeError("scipy.stats.pointbiserialr: keepdims= is not kept; put an axis back by np.expand_dims")
    checked_nan("pointbiserialr", nan_policy, floating(x), floating(y))
    return results.SignificanceResult(*pearsonr(x, y, axis=axis))
