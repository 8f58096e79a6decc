"""Moments, entropy, quantiles and draws of SciPy's distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats as st

from .... import ops
from ....bind import bind
from ....graph import to_values
from ....values import INERT, Value
from ..pieces import operand
from .continuous import HERE, NOWHERE, merged
from .laws import Law, is_given, law_of


def _validity(loc: Any, scale: Any, *shapes: Any, distribution: Any) -> Any:
    return np.where(np.logical_and(distribution._argcheck(*shapes), scale > 0) & (loc == loc), HERE, NOWHERE)


ops.enter_piecewise(_validity, "scipy_stats_validity")


def _refuse_shapes(distribution: Any, shapes: tuple[Any, ...], what: str) -> None:
    if any(isinstance(s, Value) and type(s) not in INERT for s in shapes):
        raise TypeError(
            f"scipy.stats.{distribution.name}.{what}: SciPy integrates it, and its derivative by the shape parameters is not "
            "known; give plain numbers for these (x.value), or sum pdf at the nodes of a quadrature"
        )


def _raw(law: Law, order: int, shapes: tuple[Any, ...]) -> Any:
    """A moment about 0 of the standard distribution."""
    if is_given(law, "_munp"):
        return law._munp(order, *shapes)
    _refuse_shapes(law.distribution, shapes, "moment")
    return law.distribution._munp(order, *to_values(shapes))


def _standard(law: Law, shapes: tuple[Any, ...], moments: str) -> dict[str, Any]:
    """Mean, variance, skewness and kurtosis of the standard distribution: those that are asked for."""
    options = {"moments": moments} if law.distribution._stats_has_moments else {}
    given: tuple[Any, ...] = law._stats(*shapes, **options) if is_given(law, "_stats") else (None,) * 4
    mean, variance, skewness, kurtosis = given
    raw = [k for k, letter in enumerate("mvsk", 1) if letter in moments and given[k - 1] is None]  # which SciPy integrates
    if mean is None and raw:
        mean = _raw(law, 1, shapes)
    if variance is None and raw and max(raw) > 1:
        variance = np.where(np.isinf(mean), np.inf, _raw(law, 2, shapes) - mean * mean)
    if 3 in raw:
        skewness = (_raw(law, 3, shapes) + (-mean * mean - 3 * variance) * mean) / variance**1.5
    if 4 in raw:
        third = _raw(law, 3, shapes) + (-mean * mean - 3 * variance) * mean
        fourth = _raw(law, 4, shapes) + ((-mean * mean - 6 * variance) * mean - 4 * third) * mean
        kurtosis = fourth / variance**2 - 3
    return {"m": mean, "v": variance, "s": skewness, "k": kurtosis}


def _whole(distribution: Any, args: tuple[Any, ...], kwargs: dict[str, Any], formula: Callable[..., Any]) -> Any:
    """What a formula of location, scale and shapes gives, nan where these are wrong."""
    shapes, loc, scale = distribution._parse_args(*args, **kwargs)
    operands = (operand(loc), operand(scale), *map(operand, shapes))
    region = bind(_validity, operands, {"distribution": distribution})
    return merged(formula, region, operands, (distribution.badvalue,) * 3)


def stats(distribution: Any, *args: Any, moments: str = "mv", **kwargs: Any) -> Any:
    """Moments, as many as are named."""
    law = law_of(distribution, "stats")

    def one(letter: str) -> Callable[..., Any]:
        def formula(loc: Any, scale: Any, *shapes: Any) -> Any:
            value = _standard(law, shapes, letter)[letter]
            return {"m": lambda: value * scale + loc, "v": lambda: value * scale * scale}.get(letter, lambda: value + 0 * scale)()

        return formula

    found = tuple([_whole(distribution, args, kwargs, one(letter)) for letter in "mvsk" if letter in moments])
    return found[0] if len(found) == 1 else found


def mean(distribution: Any, *args: Any, **kwargs: Any) -> Any:
    """The first moment."""
    return stats(distribution, *args, **{**kwargs, "moments": "m"})


def var(distribution: Any, *args: Any, **kwargs: Any) -> Any:
    """The second central moment."""
    return stats(distribution, *args, **{**kwargs, "moments": "v"})


def std(distribution: Any, *args: Any, **kwargs: Any) -> Any:
    """The root of the variance."""
    return np.sqrt(var(distribution, *args, **kwargs))


def moment(distribution: Any, order: Any, *args: Any, **kwargs: Any) -> Any:
    """A moment about 0, by those of the standard distribution and the binomial theorem."""
    if np.floor(order) != order:
        raise ValueError("Moment must be an integer.")
    if order < 0:
        raise ValueError("Moment must be positive.")
    law, order = law_of(distribution, "moment"), int(order)

    def formula(loc: Any, scale: Any, *shapes: Any) -> Any:
        known = _standard(law, shapes, "mvsk"[:order] or "m")
        raw = [1.0, *[_about_zero(law, known, k, shapes) for k in range(1, order + 1)]]
        return sum(math.comb(order, k) * loc ** (order - k) * scale**k * raw[k] for k in range(order + 1))

    return _whole(distribution, args, kwargs, formula)


def _about_zero(law: Law, known: dict[str, Any], order: int, shapes: tuple[Any, ...]) -> Any:
    mean, variance = known["m"], known["v"]
    if order == 1:
        return mean
    if order == 2:
        return variance + mean * mean
    if order == 3:
        return known["s"] * variance**1.5 + 3 * mean * variance + mean**3
    if order == 4:
        third = known["s"] * variance**1.5
        return (known["k"] + 3) * variance**2 + 4 * mean * third + 6 * mean**2 * variance + mean**4
    return _raw(law, order, shapes)


def entropy(distribution: Any, *args: Any, **kwargs: Any) -> Any:
    """The differential entropy; of a discrete distribution the entropy."""
    law = law_of(distribution, "entropy")

    def formula(loc: Any, scale: Any, *shapes: Any) -> Any:
        if is_given(law, "_entropy") or isinstance(distribution, st.rv_discrete):
            return law._entropy(*shapes) + np.log(scale) + 0 * loc
        _refuse_shapes(distribution, shapes, "entropy")
        return distribution.vecentropy(*to_values(shapes)) + np.log(scale) + 0 * loc

    return _whole(distribution, args, kwargs, formula)


def median(distribution: Any, *args: Any, **kwargs: Any) -> Any:
    """Where a half lies below."""
    return distribution.ppf(0.5, *args, **kwargs)


def interval(distribution: Any, confidence: Any, *args: Any, **kwargs: Any) -> Any:
    """Where so much lies about the median."""
    confidence = operand(confidence)
    if np.any((confidence > 1) | (confidence < 0)):
        raise ValueError("alpha must be between 0 and 1 inclusive")
    low, high = (1.0 - confidence) / 2, (1.0 + confidence) / 2
    return distribution.ppf(low, *args, **kwargs), distribution.ppf(high, *args, **kwargs)


def support(distribution: Any, *args: Any, **kwargs: Any) -> Any:
    """Its ends; infinite ones stay where they are."""

    def end(place: int) -> Any:
        def formula(loc: Any, scale: Any, *shapes: Any) -> Any:
            standard = operand(law_of(distribution, "support")._get_support(*shapes)[place])
            return np.where(np.isinf(standard), standard, np.where(np.isinf(standard), 0, standard) * scale + loc)

        return _whole(distribution, args, kwargs, formula)

    return end(0), end(1)


def nnlf(distribution: Any, theta: Any, x: Any) -> Any:
    """The negative logarithm of the likelihood of the data, infinite where that is nothing."""
    log = distribution.logpdf if hasattr(distribution, "pdf") else distribution.logpmf
    total = -np.sum(log(x, *[theta[k] for k in range(len(theta))]), axis=0)
    return np.where(np.isnan(total), np.inf, total)


def rvs(distribution: Any, *args: Any, size: Any = None, random_state: Any = None, **kwargs: Any) -> Any:
    """The same draw of the standard distribution, scaled and moved in recorded steps."""
    if isinstance(distribution, st.rv_discrete):
        raise TypeError(
            f"scipy.stats.{distribution.name}.rvs: draws are whole numbers and have no derivative by a parameter; draw from "
            "plain numbers (x.value), and weigh by logpmf (the score function)"
        )
    (*shapes,), loc, scale = distribution._parse_args(*args, **kwargs)
    if any(isinstance(s, Value) and type(s) not in INERT for s in shapes):
        raise TypeError(
            f"scipy.stats.{distribution.name}.rvs: draws are differentiated by loc and scale alone; for shape parameters give "
            "draws of a uniform distribution to ppf, or plain numbers (x.value) and weigh by logpdf"
        )
    loc, scale = operand(loc), operand(scale)
    if np.any(scale < 0):
        raise ValueError("Domain error in arguments: the `scale` parameter must be positive for all distributions")
    zero, one = np.zeros(np.shape(loc)), np.ones(np.shape(scale))
    standard = st.rv_continuous.rvs(
        distribution, *to_values(tuple(shapes)), loc=zero, scale=one, size=size, random_state=random_state
    )
    return standard * scale + loc


METHODS: dict[str, Callable[..., Any]] = {
    "stats": stats,
    "mean": mean,
    "var": var,
    "std": std,
    "moment": moment,
    "entropy": entropy,
    "median": median,
    "interval": interval,
    "support": support,
    "nnlf": nnlf,
    "rvs": rvs,
}
