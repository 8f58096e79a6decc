"""The methods of SciPy's continuous distributions: location, scale, and what lies beyond the support."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .... import ops
from ....bind import bind
from ..pieces import operand, pieces
from .laws import law_of

HERE, NOWHERE, LOW, HIGH = range(4)  # where the formula holds; parameters are wrong; below and above


def _region_of_x(x: Any, loc: Any, scale: Any, *shapes: Any, distribution: Any, closed: bool) -> Any:
    """For each argument whether the formula holds there, and if not why."""
    shapes = tuple([np.asarray(s, float) for s in shapes])
    with np.errstate(all="ignore"):
        x = (x - loc) / scale
        low, high = distribution._get_support(*shapes)
        valid = np.logical_and(distribution._argcheck(*shapes), scale > 0) & ~np.isnan(x)
        below, above = (x < low, x > high) if closed else (x <= low, x >= high)
    return np.where(valid, np.where(below, LOW, np.where(above, HIGH, HERE)), NOWHERE)


def _region_of_q(q: Any, loc: Any, scale: Any, *shapes: Any, distribution: Any) -> Any:
    valid = np.logical_and(distribution._argcheck(*shapes), scale > 0) & (loc == loc) & (q >= 0) & (q <= 1)
    return np.where(valid, np.where(q == 0, LOW, np.where(q == 1, HIGH, HERE)), NOWHERE)


for _function in (_region_of_x, _region_of_q):
    ops.enter_piecewise(_function, f"scipy_stats{_function.__name__}")


def _split(distribution: Any, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    shapes, loc, scale = distribution._parse_args(*args, **kwargs)
    return operand(x), operand(loc), operand(scale), tuple(map(operand, shapes))


def merged(compute: Callable[..., Any], region: Any, operands: tuple[Any, ...], others: tuple[Any, Any, Any]) -> Any:
    """What a formula gives where it holds, and other values elsewhere.

    Parameters
    ----------
    compute : callable
        Called with the operands, or with those elements of theirs for which it holds.
    region : array_like
        For each element of the result, where it is.
    operands : tuple
        Broadcast against each other.
    others : tuple
        The values where the parameters are wrong, below, and above.
    """
    if np.all(region == HERE):
        shape = np.shape(region)
        result = np.broadcast_to(compute(*[o if np.ndim(o) else np.reshape(o, (1,)) for o in operands]), shape or (1,))
        return result if shape else np.reshape(result, ())
    result = pieces([region == HERE], [compute], operands)
    for code, value in zip((NOWHERE, LOW, HIGH), others, strict=True):
        result = np.where(region == code, value, result)
    return result


def of_x(method: str, closed: bool, low: float, high: float, scaled: Callable[[Any, Any], Any] | None = None) -> Any:
    """A method of `x`, of the formula, its values below and above, and how the scale enters it."""

    def evaluated(distribution: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        x, loc, scale, shapes = _split(distribution, x, args, kwargs)
        formula = getattr(law_of(distribution, method[1:]), method)

        def compute(x: Any, loc: Any, scale: Any, *shapes: Any) -> Any:
            value = formula(((x - loc) / scale).astype(float), *shapes)
            return scaled(value, scale) if scaled else value

        operands = (x, loc, scale, *shapes)
        region = bind(_region_of_x, operands, {"distribution": distribution, "closed": closed})
        return merged(compute, region, operands, (distribution.badvalue, low, high))

    return evaluated


def of_q(method: str) -> Any:
    """A method of a probability."""

    def evaluated(distribution: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
        q, loc, scale, shapes = _split(distribution, q, args, kwargs)
        law = law_of(distribution, method[1:])
        formula = getattr(law, method)
        operands = (q, loc, scale, *shapes)
        region = bind(_region_of_q, operands, {"distribution": distribution})
        ends: tuple[Any, Any] = (np.nan, np.nan)
        if not np.all(region == HERE):
            ends = tuple(
                [np.where(np.isinf(end), end, np.where(np.isinf(end), 0, end) * scale + loc) for end in law._get_support(*shapes)]
            )
            ends = ends[::-1] if method == "_isf" else ends
        compute = lambda q, loc, scale, *shapes: formula(q, *shapes) * scale + loc  # noqa: E731
        return merged(compute, region, operands, (distribution.badvalue, *ends))

    return evaluated


METHODS: dict[str, Callable[..., Any]] = {
    "pdf": of_x("_pdf", True, 0.0, 0.0, lambda density, scale: density / scale),
    "logpdf": of_x("_logpdf", True, -np.inf, -np.inf, lambda log, scale: log - np.log(scale)),
    "cdf": of_x("_cdf", False, 0.0, 1.0),
    "logcdf": of_x("_logcdf", False, -np.inf, 0.0),
    "sf": of_x("_sf", False, 1.0, 0.0),
    "logsf": of_x("_logsf", False, 0.0, -np.inf),
    "ppf": of_q("_ppf"),
    "isf": of_q("_isf"),
}
