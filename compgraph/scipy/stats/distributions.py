"""Univariate distributions: SciPy's own methods on tracers, and replacements of some of them.

For some distributions, SciPy integrates the distribution function, solves for quantiles, or computes either in C. These calls
are recorded as the operation `evaluate_numerically`. Its derivative with respect to the argument is the density; derivatives
with respect to shape parameters are known for some distributions.
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
from .distribution_formulas import FORMULAS

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


def _log_of_smaller(one: str, other: str) -> Method:
    """Return the logarithm of `one`, by log1p of `other` where `other` is smaller. SciPy solves for the median instead."""

    def method(self: Any, x: object, *shapes: object) -> Any:
        value = getattr(self, one)(x, *shapes)
        is_smaller = value < 0.5
        return np.where(is_smaller, np.log(np.where(is_smaller, value, 1)), np.log1p(-getattr(self, other)(x, *shapes)))

    return method


def _integration_method(name: str, what: str) -> Method:
    """Return a method that SciPy computes by integration; it raises for shape parameters that are nodes."""

    def method(self: Any, *args: object) -> Any:
        if _is_active(*args):
            raise TypeError(
                f"scipy.stats.{self.name}.{what}: SciPy integrates it, so it has no derivative with respect to shape parameters. "
                "Use plain numbers for these (x.value), or sum pdf at the points of a quadrature"
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


_ALL = "_cdf _sf _ppf _isf"
_NUMERIC = {  # methods that SciPy integrates, solves for, or computes in C
    "rv_continuous": "_cdf _ppf",
    "cosine_gen": _ALL,
    "dpareto_lognorm_gen": _ALL,
    "genhyperbolic_gen": _ALL,
    "geninvgauss_gen": _ALL,
    "invgauss_gen": "_ppf _isf",
    "irwinhall_gen": _ALL,
    "ksone_gen": _ALL,
    "kstwo_gen": _ALL,
    "kstwobign_gen": _ALL,
    "landau_gen": _ALL,
    "levy_stable_gen": _ALL,
    "norminvgauss_gen": _ALL,
    "skewnorm_gen": _ALL,
    "studentized_range_gen": _ALL,
    "vonmises_gen": "_cdf",
    "wald_gen": "_ppf _isf",
}
_WITHOUT_FORMULA = "irwinhall_gen ksone_gen kstwo_gen kstwobign_gen landau_gen levy_stable_gen studentized_range_gen"

_COUNTS = "plain numbers for its parameters (x.value), which are counts"
_WITHOUT_DERIVATIVE = {
    "hypergeom_gen": _COUNTS,
    "nhypergeom_gen": _COUNTS,
    "randint_gen": _COUNTS,
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
    **{(kind, name): _numeric_method(name) for kind, names in _NUMERIC.items() for name in names.split()},
    **{(kind, name): _plain_density_method(name) for kind in _WITHOUT_FORMULA.split() for name in ("_pdf", "_logpdf")},
    ("rv_continuous", "_pdf"): _pdf,
    ("rv_continuous", "_logcdf"): _log_of_smaller("_cdf", "_sf"),
    ("rv_continuous", "_logsf"): _log_of_smaller("_sf", "_cdf"),
    ("rv_continuous", "_entropy"): _integration_method("vecentropy", "entropy"),
    ("rv_generic", "vecentropy"): property(lambda self: self._entropy),  # SciPy's is a loop over the elements
    ("rv_generic", "generic_moment"): property(lambda self: _integration_method("generic_moment", "moment").__get__(self)),
    ("rv_discrete", "_cdf"): _summed_cdf,
    ("rv_discrete", "_entropy"): _summed_entropy,
    ("binom_gen", "_entropy"): _summed_entropy,
    **{(kind, "_argcheck"): _raising_method(advice) for kind, advice in _WITHOUT_DERIVATIVE.items()},
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
