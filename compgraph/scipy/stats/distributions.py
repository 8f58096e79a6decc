"""Univariate distributions: SciPy's own methods on tracers, and replacements of some of them.

For some distributions, SciPy integrates the distribution function, solves for quantiles, or computes either in C. These calls
are recorded as the operation `evaluate_numerically`. Its derivative with respect to the argument is the density; derivatives
with respect to shape parameters are known for some distributions.

Some formulas replace SciPy's. Each is the formula of SciPy's documentation, for the standard distribution. SciPy evaluates some
distributions in C. For others it switches to a second formula at one value of a shape parameter, where the first is 0/0. The
second formula has no derivative with respect to that parameter, so these are written with functions that are smooth there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as st
from numpy.typing import NDArray

from ... import ops
from ...array_types import Array, Operand
from ...bind import bind
from ...graph import stack_nested, to_values
from ...protocols import stop_gradient
from ...values import INERT, Value
from ..own_code import original_instance, rebind_instance, replace_methods, run_own_code
from ..tools import to_array

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


def _log1p_over(x: object, c: object) -> Any:
    """``log(1 + c x) / c``; `x` where c is 0."""
    return np.log1p(sc.inv_boxcox1p(x, c))


# -------------------------------------------------------------------------------------------- smooth in the shape parameters


def _genextreme_logpdf(self: Any, x: NDArray[Any], c: NDArray[Any]) -> Any:
    log = -_log1p_over(x, -c)
    return (1 - c) * log - np.exp(log)


def _genextreme_ppf(self: Any, q: Operand, c: NDArray[Any]) -> Any:
    y = -np.log(-np.log(q))
    return y * sc.exprel(-c * y)


def _genextreme_isf(self: Any, q: NDArray[Any], c: NDArray[Any]) -> Any:
    y = -np.log(-np.log1p(-q))
    return y * sc.exprel(-c * y)


def _kappa4_logpdf(self: Any, x: NDArray[Any], h: NDArray[Any], k: NDArray[Any]) -> Any:
    log = -_log1p_over(x, -k)
    return (1 - k) * log - (1 - h) * _log1p_over(np.exp(log), -h)


def _triang_pdf(self: Any, x: NDArray[Any], c: NDArray[Any]) -> Any:
    """The density; if the mode c is at an end (0 or 1), there is only one side, with the same dependence on c."""
    is_left = (x < c) | (c >= 1)
    left, right = np.where(is_left, c, 1), np.where(is_left, 0, c)
    return np.where(is_left, 2 * x / left, 2 * (1 - x) / (1 - right))


def _triang_cdf(self: Any, x: NDArray[Any], c: NDArray[Any]) -> Any:
    is_left = (x < c) | (c >= 1)
    left, right = np.where(is_left, c, 1), np.where(is_left, 0, c)
    return np.where(is_left, x * x / left, (x * x - 2 * x + right) / (right - 1))


def _skewnorm_pdf(self: Any, x: Operand, a: Operand) -> Any:
    return 2 * np.exp(-0.5 * x * x - _LOG_ROOT_2PI) * sc.ndtr(a * x)


def _skewnorm_logpdf(self: Any, x: Operand, a: Operand) -> Any:
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


# -------------------------------------------------------------------------------------------- evaluated in C by SciPy


def _genhyperbolic_logpdf(self: Any, x: NDArray[Any], p: Array, a: NDArray[Any], b: NDArray[Any]) -> Any:
    root, size = np.sqrt(a * a - b * b), np.hypot(1, x)
    scale = p * np.log(root) - (p - 0.5) * np.log(a) - _LOG_ROOT_2PI - np.log(sc.kve(p, root)) + root
    return scale + b * x + (p - 0.5) * np.log(size) + np.log(sc.kve(p - 0.5, a * size)) - a * size


def _geninvgauss_logpdf(self: Any, x: Operand, p: Array, b: Operand) -> Any:
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


Method = Callable[..., Any]

# -------------------------------------------------------------------------------------------- operations


def evaluate_numerically(x: Array, *shapes: Any, distribution: object, name: str) -> Any:
    """A distribution function or its inverse, computed by SciPy's method `name`."""
    arguments = np.broadcast_arrays(x, *shapes)  # some of SciPy's loops require equal shapes
    return getattr(distribution, name)(*arguments)


def density(distribution: object, x: NDArray[Any], *shapes: object) -> Any:
    """The density of a standard distribution, for arrays or nodes."""
    return rebind_instance(distribution)._pdf(x, *shapes)


def _quantile(q: Operand, loc: int, *shapes: object, distribution: object, name: str) -> Any:
    return getattr(distribution, name)(q, *shapes, loc=loc)


ops.register_operation(evaluate_numerically, "scipy_stats_numeric")
ops.register_piecewise(_quantile, "scipy_stats_quantile")


def _is_active(*values: object) -> bool:
    """Whether one of the values is a differentiable node."""
    return any(isinstance(value, Value) and type(value) not in INERT for value in values)


# -------------------------------------------------------------------------------------------- replaced methods


def _numeric_method(name: str) -> Method:
    """Return the method that records SciPy's method `name` as `evaluate_numerically`."""

    def method(self: Any, x: object, *shapes: object) -> Any:
        distribution = original_instance(self)
        if not any(isinstance(value, Value) for value in (x, *shapes)):
            return getattr(distribution, name)(x, *shapes)
        return bind(evaluate_numerically, (x, *shapes), {"distribution": distribution, "name": name})

    return method


def _plain_density_method(name: str) -> Method:
    """Return a density that SciPy computes in C or by differences, so that it has no derivative; it raises for nodes."""

    def method(self: Any, *args: object) -> Any:
        if _is_active(*args):
            raise TypeError(
                f"scipy.stats.{self.name}: its density has no formula, and so no derivative (cdf and ppf have a first one). Use "
                "plain numbers (x.value)"
            )
        return getattr(original_instance(self), name)(*to_values(args))

    return method


def _pdf(self: Any, x: object, *shapes: object) -> Any:
    if type(original_instance(self))._logpdf is st.rv_continuous._logpdf:
        raise TypeError(
            f"scipy.stats.{self.name}: it defines no density, so SciPy computes it by differences. Define _pdf or _logpdf"
        )
    return np.exp(self._logpdf(x, *shapes))


def _log_method(name: str, complement: str) -> Method:
    """Return the logarithm of a method; by log1p of the complement where that is smaller. SciPy solves for the median instead."""

    def method(self: Any, x: object, *shapes: object) -> Any:
        value = getattr(self, name)(x, *shapes)
        is_smaller = value < 0.5
        return np.where(is_smaller, np.log(np.where(is_smaller, value, 1)), np.log1p(-getattr(self, complement)(x, *shapes)))

    return method


def _integration_method(name: str, public_name: str) -> Method:
    """Return a method that SciPy computes by integration; it raises for shape parameters that are nodes."""

    def method(self: Any, *args: object) -> Any:
        if _is_active(*args):
            raise TypeError(
                f"scipy.stats.{self.name}.{public_name}: SciPy integrates it, so it has no derivative with respect to shape "
                "parameters. Use plain numbers for these (x.value), or sum pdf at the points of a quadrature"
            )
        return getattr(original_instance(self), name)(*to_values(args))

    return method


def _summed_cdf(self: Any, k: Any, *shapes: Any) -> Any:
    low = np.min(np.asarray(self._get_support(*to_values(shapes))[0]))
    if np.isinf(low):
        raise TypeError(f"scipy.stats.{self.name}.cdf: it has no formula, and the support has no lower end. Sum pmf over a range")
    counts = np.arange(low, np.max(to_values(k)) + 1)
    k, *columns = [np.expand_dims(a, -1) for a in (k, *shapes)]
    return np.sum(np.where(counts <= k, self._pmf(counts, *columns), 0), axis=-1)


def _summed_entropy(self: Any, *shapes: Any) -> Any:
    low, high = [np.asarray(end) for end in self._get_support(*to_values(shapes))]
    if np.isinf(np.max(high)) or np.isinf(np.min(low)):
        raise TypeError(
            f"scipy.stats.{self.name}.entropy: it is an infinite sum. Sum scipy.special.entr of pmf over a sufficient range"
        )
    counts = np.arange(np.min(low), np.max(high) + 1)
    masses = self._pmf(counts, *[np.expand_dims(a, -1) for a in shapes])
    return np.sum(sc.entr(np.where((counts >= low[..., None]) & (counts <= high[..., None]), masses, 0)), axis=-1)


_CDF_METHODS = "_cdf _sf _ppf _isf"
_NUMERIC = {  # methods that SciPy integrates, solves for, or computes in C
    "rv_continuous": "_cdf _ppf",
    "cosine_gen": _CDF_METHODS,
    "dpareto_lognorm_gen": _CDF_METHODS,
    "genhyperbolic_gen": _CDF_METHODS,
    "geninvgauss_gen": _CDF_METHODS,
    "invgauss_gen": "_ppf _isf",
    "irwinhall_gen": _CDF_METHODS,
    "ksone_gen": _CDF_METHODS,
    "kstwo_gen": _CDF_METHODS,
    "kstwobign_gen": _CDF_METHODS,
    "landau_gen": _CDF_METHODS,
    "levy_stable_gen": _CDF_METHODS,
    "norminvgauss_gen": _CDF_METHODS,
    "skewnorm_gen": _CDF_METHODS,
    "studentized_range_gen": _CDF_METHODS,
    "vonmises_gen": "_cdf",
    "wald_gen": "_ppf _isf",
}
_WITHOUT_FORMULA = "irwinhall_gen ksone_gen kstwo_gen kstwobign_gen landau_gen levy_stable_gen studentized_range_gen"

_COUNT_ADVICE = "plain numbers for its parameters (x.value), which are counts"
_WITHOUT_DERIVATIVE = {
    "hypergeom_gen": _COUNT_ADVICE,
    "nhypergeom_gen": _COUNT_ADVICE,
    "randint_gen": _COUNT_ADVICE,
    "poisson_binom_gen": "np.convolve of [1 - p, p] for all trials",
    "nchypergeom_fisher_gen": "the sum of its definition, by scipy.special.gammaln",
    "nchypergeom_wallenius_gen": "plain numbers for its parameters (x.value)",
    "zipfian_gen": "k**-a / np.sum(np.arange(1, n + 1.0)**-a)",
}


def _raising_method(advice: str) -> Method:
    """Return a method that raises."""

    def method(self: Any, *args: object) -> Any:
        raise TypeError(f"scipy.stats.{self.name}: it has no derivative. Use {advice}")

    return method


replace_methods({
    **{(cls, name): _numeric_method(name) for cls, names in _NUMERIC.items() for name in names.split()},
    **{(cls, name): _plain_density_method(name) for cls in _WITHOUT_FORMULA.split() for name in ("_pdf", "_logpdf")},
    ("rv_continuous", "_pdf"): _pdf,
    ("rv_continuous", "_logcdf"): _log_method("_cdf", "_sf"),
    ("rv_continuous", "_logsf"): _log_method("_sf", "_cdf"),
    ("rv_continuous", "_entropy"): _integration_method("vecentropy", "entropy"),
    ("rv_generic", "vecentropy"): property(lambda self: self._entropy),  # SciPy's is a loop over the elements
    ("rv_generic", "generic_moment"): property(lambda self: _integration_method("generic_moment", "moment").__get__(self)),
    ("rv_discrete", "_cdf"): _summed_cdf,
    ("rv_discrete", "_entropy"): _summed_entropy,
    ("binom_gen", "_entropy"): _summed_entropy,
    **{(cls, "_argcheck"): _raising_method(advice) for cls, advice in _WITHOUT_DERIVATIVE.items()},
    **FORMULAS,
})  # fmt: skip

# -------------------------------------------------------------------------------------------- public methods


def _count_method(name: str) -> Method:
    """Return a method of a discrete distribution, which is piecewise constant in the count and in the location."""

    def method(self: Any, k: NDArray[Any], *args: object, **kwargs: object) -> Any:
        shapes, loc, _ = self._parse_args(*args, **kwargs)
        count = stop_gradient(to_array(k) - to_array(loc))
        return run_own_code("scipy.stats", f"rv_discrete.{name}", self, count, *shapes)

    return method


def _quantile_method(name: str) -> Method:
    """Return a quantile function of a discrete distribution, which is piecewise constant in all arguments."""

    def method(self: Any, q: object, *args: object, **kwargs: object) -> Any:
        shapes, loc, _ = self._parse_args(*args, **kwargs)
        return bind(_quantile, tuple(map(stack_nested, (q, loc, *shapes))), {"distribution": self, "name": name})

    return method


def _moment(self: Any, order: int, *args: object, **kwargs: object) -> Any:
    """A moment about 0, by the binomial theorem; SciPy's formula at the location 0 has no derivative with respect to it."""
    shapes, loc, scale = self._parse_args(*args, **kwargs)
    loc, scale = stack_nested(loc), stack_nested(scale)
    raw = [1.0, *[run_own_code("scipy.stats", "rv_continuous.moment", self, k, *shapes) for k in range(1, int(order))]]
    raw.append(run_own_code("scipy.stats", "rv_continuous.moment", self, order, *shapes))
    n = len(raw) - 1
    terms = [math.comb(n, k) * loc ** (n - k) * scale**k * each for k, each in enumerate(raw)]
    return np.where(scale > 0, sum(terms), self.badvalue)


def _rvs(self: Any, *args: object, **kwargs: object) -> Any:
    """Draw from the standard distribution, and scale and shift the draws; only loc and scale may be nodes."""
    if isinstance(self, st.rv_discrete):
        raise TypeError(
            f"scipy.stats.{self.name}.rvs: draws are integers, which have no derivative. Draw with plain parameters (x.value), "
            "and weight by logpmf (the score function)"
        )
    parameters = {name: value for name, value in kwargs.items() if name not in ("size", "random_state")}
    if _is_active(*self._parse_args_rvs(*args, **parameters)[0]):
        raise TypeError(
            f"scipy.stats.{self.name}.rvs: draws have derivatives only with respect to loc and scale. For shape parameters, use "
            "ppf of uniform draws, or plain numbers (x.value) weighted by logpdf"
        )
    return run_own_code("scipy.stats", "rv_continuous.rvs", self, *args, **kwargs)


_METHODS_OF_X = "pdf logpdf cdf logcdf sf logsf ppf isf"
_METHODS_OF_PARAMETERS = "stats mean var std entropy median interval support nnlf"
OWN_CODE = [f"rv_continuous.{name}" for name in f"{_METHODS_OF_X} {_METHODS_OF_PARAMETERS}".split()] + ["rv_discrete.entropy"]
REPLACEMENTS: dict[str, Method] = {
    **{f"rv_discrete.{name}": _count_method(name) for name in ["pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"]},
    **{f"rv_discrete.{name}": _quantile_method(name) for name in ("ppf", "isf")},
    "rv_continuous.moment": _moment,
    "rv_continuous.rvs": _rvs,
    "rv_discrete.rvs": _rvs,
}
