"""The methods of SciPy's discrete distributions: smooth in their parameters, piecewise constant in whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .... import ops
from ....bind import bind
from ....protocols import stop_gradient
from ..pieces import operand
from .continuous import HERE, HIGH, LOW, NOWHERE, merged
from .laws import law_of


def _region_of_k(k: Any, *shapes: Any, distribution: Any, mass: bool) -> Any:
    """For each number whether the formula holds there, and if not why."""
    low, high = distribution._get_support(*shapes)
    valid = np.logical_and(distribution._argcheck(*shapes), ~np.isnan(k))
    if mass:
        inside = (k >= low) & (k <= high)
        # a sample of a table may have any values; others live on whole numbers
        inside = inside if hasattr(distribution, "xk") else inside & distribution._nonzero(k, *shapes)
        return np.where(valid, np.where(inside, HERE, LOW), NOWHERE)
    return np.where(valid, np.where(k < low, LOW, np.where(k >= high, HIGH, HERE)), NOWHERE)


def _quantile(q: Any, loc: Any, *shapes: Any, distribution: Any, name: str) -> Any:
    return getattr(distribution, name)(q, *shapes, loc=loc)


ops.enter_piecewise(_region_of_k, "scipy_stats_region_of_k")
ops.enter_piecewise(_quantile, "scipy_stats_quantile")


def _split(distribution: Any, k: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    shapes, loc, _ = distribution._parse_args(*args, **kwargs)
    return operand(k), operand(loc), tuple(map(operand, shapes))


def _of_k(method: str, mass: bool, low: float, high: float) -> Any:
    def evaluated(distribution: Any, k: Any, *args: Any, **kwargs: Any) -> Any:
        law = law_of(distribution, method[1:])
        k, loc, shapes = _split(distribution, k, args, kwargs)
        operands = (stop_gradient(k - loc), *shapes)
        region = bind(_region_of_k, operands, {"distribution": distribution, "mass": mass})
        return merged(getattr(law, method), region, operands, (distribution.badvalue, low, high)) + 0.0

    return evaluated


def _of_q(name: str) -> Any:
    def evaluated(distribution: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
        q, loc, shapes = _split(distribution, q, args, kwargs)
        return bind(_quantile, (q, loc, *shapes), {"distribution": distribution, "name": name})

    return evaluated


METHODS: dict[str, Callable[..., Any]] = {
    "pmf": _of_k("_pmf", True, 0.0, 0.0),
    "logpmf": _of_k("_logpmf", True, -np.inf, -np.inf),
    "cdf": _of_k("_cdf", False, 0.0, 1.0),
    "logcdf": _of_k("_logcdf", False, -np.inf, 0.0),
    "sf": _of_k("_sf", False, 1.0, 0.0),
    "logsf": _of_k("_logsf", False, 0.0, -np.inf),
    "ppf": _of_q("ppf"),
    "isf": _of_q("isf"),
}
