"""Numbers that sum up a sample: means, moments, spreads, entropies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as st

from ...graph import as_operand, gathered
from .samples import Along, checked_nan, floating, statistic

_TURN = 2 * math.pi


# -------------------------------------------------------------------------------------------- means


def _mean(a: Any, weights: Any) -> Any:
    return np.mean(a, axis=-1) if weights is None else np.sum(a * weights, axis=-1) / np.sum(weights, axis=-1)


def _weighted(name: str, to: Callable[[Any], Any], back: Callable[[Any], Any]) -> Callable[..., Any]:
    """A mean of transformed numbers, transformed back."""

    def mean(
        a: Any, axis: Any = 0, dtype: Any = None, weights: Any = None, *, nan_policy: str = "propagate", keepdims: bool = False
    ) -> Any:
        a = floating(a) if dtype is None else as_operand(gathered(a)).astype(dtype)
        weights = weights if weights is None else floating(weights)
        checked_nan(name, nan_policy, *[x for x in (a, weights) if x is not None])
        along = Along(axis, keepdims)
        if weights is not None:
            a, weights = np.broadcast_arrays(a, weights)
        result = back(_mean(to(along.last(a)), weights if weights is None else along.last(weights)))
        return along.finished(result, a.ndim)

    return mean


def _not_negative(a: Any) -> Any:
    return np.where(a < 0, np.nan, a)


gmean = _weighted("gmean", np.log, np.exp)
hmean = _weighted("hmean", lambda a: 1.0 / _not_negative(a), lambda m: 1.0 / m)


def pmean(a: Any, p: Any, *, axis: Any = 0, dtype: Any = None, weights: Any = None, **options: Any) -> Any:
    """The power mean, of exponent 0 the geometric one."""
    if not isinstance(p, (int, float)):
        raise ValueError("Power mean only defined for exponent of type int or float.")
    if p == 0:
        return gmean(a, axis, dtype, weights, **options)
    if math.isinf(p):
        raise NotImplementedError("Power mean only implemented for finite `p`")
    mean = _weighted("pmean", lambda a: _not_negative(a) ** float(p), lambda m: m ** (1 / p))
    return mean(a, axis, dtype, weights, **options)


def trim_mean(a: Any, proportiontocut: float, axis: Any = 0, **options: Any) -> Any:
    """The mean of what is left when the ends are cut off."""

    def formula(a: Any) -> Any:
        cut = int(proportiontocut * a.shape[-1])
        if cut > a.shape[-1] - cut:
            raise ValueError("Proportion too big.")
        return np.mean(np.sort(a, axis=-1)[..., cut : a.shape[-1] - cut], axis=-1)

    return statistic("trim_mean")(formula)(a, axis=axis, **options)


# -------------------------------------------------------------------------------------------- moments


def _central(a: Any, order: int, center: Any = None) -> Any:
    middle = np.mean(a, axis=-1, keepdims=True) if center is None else center
    return np.mean((a - middle) ** order, axis=-1)


def moment(a: Any, order: Any = 1, axis: Any = 0, nan_policy: str = "propagate", *, center: Any = None, **options: Any) -> Any:
    """A moment about the mean, or about a number; of several orders one after another."""
    if np.ndim(order):
        return np.stack([moment(a, k, axis, nan_policy, center=center, **options) for k in np.asarray(order)])
    if order != np.round(order):
        raise ValueError("All elements of `order` must be integral.")

    def formula(a: Any) -> Any:
        if order == 0:
            return np.mean(0 * a, axis=-1) + 1
        return np.mean(0 * a, axis=-1) if order == 1 and center is None else _central(a, int(order), center)

    return statistic("moment")(formula)(a, axis=axis, nan_policy=nan_policy, **options)


def _is_constant(a: Any, variance: Any) -> Any:
    return variance <= (np.finfo(a.dtype).eps * np.mean(a, axis=-1)) ** 2


def skew(a: Any, axis: Any = 0, bias: bool = True, nan_policy: str = "propagate", **options: Any) -> Any:
    """The third moment over the variance to the power 3/2."""

    def formula(a: Any) -> Any:
        n, second = a.shape[-1], _central(a, 2)
        value = _central(a, 3) / second**1.5
        value = value if bias or n < 3 else value * (math.sqrt((n - 1.0) * n) / (n - 2.0))
        return np.where(_is_constant(a, second), np.nan, value)

    return statistic("skew")(formula)(a, axis=axis, nan_policy=nan_policy, **options)


def kurtosis(
    a: Any, axis: Any = 0, fisher: bool = True, bias: bool = True, nan_policy: str = "propagate", **options: Any
) -> Any:
    """The fourth moment over the square of the variance."""

    def formula(a: Any) -> Any:
        n, second = a.shape[-1], _central(a, 2)
        value = _central(a, 4) / second**2.0
        if not bias and n > 3:
            value = 1.0 / (n - 2) / (n - 3) * ((n**2 - 1.0) * value - 3 * (n - 1) ** 2.0) + 3.0
        return np.where(_is_constant(a, second), np.nan, value - 3 if fisher else value)

    return statistic("kurtosis")(formula)(a, axis=axis, nan_policy=nan_policy, **options)


def describe(a: Any, axis: Any = 0, ddof: int = 1, bias: bool = True, nan_policy: str = "propagate") -> Any:
    """Several of them at once."""
    a = floating(a)
    checked_nan("describe", nan_policy, a)
    a = Along(axis).last(a)
    ends = np.min(a, axis=-1), np.max(a, axis=-1)
    kind = type(st.describe([1.0, 2.0]))
    shape = skew(a, -1, bias), kurtosis(a, -1, bias=bias)
    return kind(a.shape[-1], ends, np.mean(a, axis=-1), np.var(a, axis=-1, ddof=ddof), *shape)


def kstat(data: Any, n: int = 2, *, axis: Any = None, **options: Any) -> Any:
    """The unbiased estimator of a cumulant, from the central moments."""
    if n > 4 or n < 1:
        raise ValueError("k-statistics only supported for 1<=n<=4")

    def formula(a: Any) -> Any:
        size = a.shape[-1]
        if n == 1:
            return np.mean(a, axis=-1)
        if n == 2:
            return np.var(a, axis=-1, ddof=1)
        if n == 3:
            return _central(a, 3) * (size**2 / ((size - 1.0) * (size - 2)))
        scale = size**2 / ((size - 1.0) * (size - 2) * (size - 3))
        return scale * ((size + 1) * _central(a, 4) - 3 * (size - 1) * _central(a, 2) ** 2)

    return statistic("kstat")(formula)(data, axis=axis, **options)


# -------------------------------------------------------------------------------------------- spreads


def sem(a: Any, axis: Any = 0, ddof: int = 1, nan_policy: str = "propagate", **options: Any) -> Any:
    """The standard error of the mean."""
    formula = lambda a: np.std(a, axis=-1, ddof=ddof) / math.sqrt(a.shape[-1])  # noqa: E731
    return statistic("sem")(formula)(a, axis=axis, nan_policy=nan_policy, **options)


def variation(a: Any, axis: Any = 0, nan_policy: str = "propagate", ddof: int = 0, **options: Any) -> Any:
    """The standard deviation over the mean."""
    formula = lambda a: np.std(a, axis=-1, ddof=ddof) / np.mean(a, axis=-1)  # noqa: E731
    return statistic("variation")(formula)(a, axis=axis, nan_policy=nan_policy, **options)


def gstd(a: Any, axis: Any = 0, ddof: int = 1, **options: Any) -> Any:
    """The exponential of the standard deviation of the logarithms."""
    return statistic("gstd")(lambda a: np.exp(np.std(np.log(a), axis=-1, ddof=ddof)))(a, axis=axis, **options)


def _scale(scale: Any, name: str, normal: float) -> float:
    if isinstance(scale, str):
        if scale.lower() != "normal":
            raise ValueError(f"{scale} not a valid scale for `{name}`")
        return normal
    return float(scale)


def iqr(
    x: Any, axis: Any = None, rng: Any = (25, 75), scale: Any = 1.0, nan_policy: str = "propagate", interpolation: str = "linear",
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """The distance of two percentiles."""
    low, high = sorted(rng)
    size = _scale(scale, "iqr", 2 * 0.6744897501960817)
    ends = lambda a: np.percentile(a, [low, high], axis=-1, method=interpolation)  # noqa: E731
    formula = lambda a: (lambda e: (e[1] - e[0]) / size)(ends(a))  # noqa: E731
    return statistic("iqr")(formula)(x, axis=axis, nan_policy=nan_policy, keepdims=keepdims)


def median_abs_deviation(
    x: Any, axis: Any = 0, center: Any = None, scale: Any = 1.0, nan_policy: str = "propagate", **options: Any
) -> Any:
    """The median of the distances to the middle."""
    size = _scale(scale, "median_abs_deviation", 0.6744897501960817)

    def formula(a: Any) -> Any:
        middle = (center or np.median)(a, axis=-1)
        return np.median(np.abs(a - np.expand_dims(middle, -1)), axis=-1) / size

    return statistic("median_abs_deviation")(formula)(x, axis=axis, nan_policy=nan_policy, **options)


def zmap(scores: Any, compare: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """Distances to the mean of a sample, in its standard deviations."""
    scores, compare = floating(scores), floating(compare)
    checked_nan("zmap", nan_policy, compare)
    mean = np.mean(compare, axis=axis, keepdims=True)
    deviation = np.std(compare, axis=axis, ddof=ddof, keepdims=True)
    constant = deviation <= np.abs(np.finfo(compare.dtype).eps * mean)
    return np.where(constant, np.nan, (scores - mean) / np.where(constant, 1, deviation))


def zscore(a: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """Those of the sample itself."""
    return zmap(a, a, axis, ddof, nan_policy)


def gzscore(a: Any, *, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """Those of the logarithms."""
    return zscore(np.log(floating(a)), axis, ddof, nan_policy)


# -------------------------------------------------------------------------------------------- on a circle


def circmean(
    samples: Any, high: Any = _TURN, low: Any = 0, axis: Any = None, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Any:
    """The direction of the mean of the points."""
    sine, cosine, period = _points("circmean", samples, high, low, axis, nan_policy, keepdims)
    return np.mod(np.arctan2(sine, cosine) * (period / _TURN) - low, period) + low


def circvar(
    samples: Any, high: Any = _TURN, low: Any = 0, axis: Any = None, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Any:
    """What the mean of the points lacks to length one."""
    sine, cosine, _ = _points("circvar", samples, high, low, axis, nan_policy, keepdims)
    return 1.0 - np.minimum(np.sqrt(sine**2 + cosine**2), 1.0)


def circstd(
    samples: Any, high: Any = _TURN, low: Any = 0, axis: Any = None, nan_policy: str = "propagate", *, normalize: bool = False,
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """The deviation of the wrapped normal distribution with that variance."""
    sine, cosine, period = _points("circstd", samples, high, low, axis, nan_policy, keepdims)
    result = np.sqrt(-2 * np.log(np.minimum(np.sqrt(sine**2 + cosine**2), 1.0)))
    return result if normalize else result * (period / _TURN)


def _points(name: str, samples: Any, high: Any, low: Any, axis: Any, nan_policy: str, keepdims: bool) -> tuple[Any, Any, Any]:
    period = high - low
    mean = lambda f: statistic(name)(lambda a: np.mean(f(a * (_TURN / period)), axis=-1))  # noqa: E731
    given = {"axis": axis, "nan_policy": nan_policy, "keepdims": keepdims}
    return mean(np.sin)(samples, **given), mean(np.cos)(samples, **given), period


# -------------------------------------------------------------------------------------------- entropies


def entropy(
    pk: Any, qk: Any = None, base: Any = None, axis: Any = 0, *, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """Shannon's entropy of weights, or the divergence of two."""
    if base is not None and base <= 0:
        raise ValueError("`base` must be a positive number or `None`.")
    pk, along = floating(pk), Along(axis, keepdims)
    if qk is not None:
        pk, qk = np.broadcast_arrays(pk, floating(qk))
        checked_nan("entropy", nan_policy, qk)
    checked_nan("entropy", nan_policy, pk)
    shares = [a / np.sum(a, axis=-1, keepdims=True) for a in map(along.last, [pk] if qk is None else [pk, qk])]
    total = np.sum(sc.entr(*shares) if qk is None else sc.rel_entr(*shares), axis=-1)
    return along.finished(total if base is None else total / math.log(base), pk.ndim)


def differential_entropy(
    values: Any, *, window_length: int | None = None, base: Any = None, axis: Any = 0, method: str = "auto", **options: Any
) -> Any:
    """The entropy of a density, from the spacings of a sample."""

    def formula(a: Any) -> Any:
        n = a.shape[-1]
        m = math.floor(math.sqrt(n) + 0.5) if window_length is None else window_length
        if not 2 <= 2 * m < n:
            raise ValueError(f"Window length ({m}) must be positive and less than half the sample size ({n}).")
        chosen = method.lower()
        if chosen == "auto":
            chosen = "van es" if n <= 10 else "ebrahimi" if n <= 1000 else "vasicek"
        if chosen not in _SPACINGS:
            raise ValueError(f"`method` must be one of {set(_SPACINGS) | {'auto'}}")
        result = _SPACINGS[chosen](np.sort(a, axis=-1), m)
        return result if base is None else result / math.log(base)

    return statistic("differential_entropy")(formula)(values, axis=axis, **options)


def _padded(x: Any, m: int) -> Any:
    shape = (*x.shape[:-1], m)
    return np.concatenate([np.broadcast_to(x[..., :1], shape), x, np.broadcast_to(x[..., -1:], shape)], axis=-1)


def _vasicek(x: Any, m: int) -> Any:
    n, x = x.shape[-1], _padded(x, m)
    return np.mean(np.log(n / (2 * m) * (x[..., 2 * m :] - x[..., : -2 * m])), axis=-1)


def _van_es(x: Any, m: int) -> Any:
    n = x.shape[-1]
    spacings = np.mean(np.log((n + 1) / m * (x[..., m:] - x[..., :-m])), axis=-1)
    return spacings + np.sum(1 / np.arange(m, n + 1.0)) + math.log(m) - math.log(n + 1)


def _ebrahimi(x: Any, m: int) -> Any:
    n, x = x.shape[-1], _padded(x, m)
    i = np.arange(1, n + 1.0)
    weights = np.where(i >= n - m + 1, 1 + (n - i) / m, np.where(i <= m, 1 + (i - 1) / m, 2.0))
    return np.mean(np.log(n * (x[..., 2 * m :] - x[..., : -2 * m]) / (weights * m)), axis=-1)


def _correa(x: Any, m: int) -> Any:
    n, x = x.shape[-1], _padded(x, m)
    offsets = np.arange(-m, m + 1)[:, None]
    near = x[..., np.arange(1, n + 1) + offsets + m - 1]
    near = near - np.mean(near, axis=-2, keepdims=True)
    return -np.mean(np.log(np.sum(near * offsets, axis=-2) / (n * np.sum(near**2, axis=-2))), axis=-1)


_SPACINGS = {"vasicek": _vasicek, "van es": _van_es, "ebrahimi": _ebrahimi, "correa": _correa}
