"""Rules of poolings: each is linear in what flows through it, and the largest elements stay where they are."""

from __future__ import annotations

from typing import Any

from compgraph.nn import max_pool_along, max_pool_back, mean_pool_back, pooled_mean

from ...rules import Formula, Rule, general


def _max_pool(g: Any, out: Any, x: Any, **options: Any) -> Any:
    return max_pool_back(g, x, out, **options)


def _max_pool_tangent(t: Any, out: Any, x: Any, **options: Any) -> Any:
    return max_pool_along(t, x, out, **options)


def _back(h: Any, out: Any, g: Any, x: Any, best: Any, **options: Any) -> Any:
    return max_pool_along(h, x, best, **options)


def _along(g: Any, out: Any, t: Any, x: Any, best: Any, **options: Any) -> Any:
    return max_pool_back(g, x, best, **options)


def _mean_pool(g: Any, out: Any, x: Any, **options: Any) -> Any:
    return mean_pool_back(g, x, **options)


def _mean_pool_back(h: Any, out: Any, g: Any, like: Any, **options: Any) -> Any:
    return pooled_mean(h, **options)


def _of_first(opname: str, count: int, pull: Formula, push: Formula) -> Rule:
    """A rule that is zero but for the first of `count` operands."""
    rest = [None] * (count - 1)
    return general(opname, pull, *rest).tangent(push, *rest)


max_pool_grad = _of_first("max_pool", 1, _max_pool, _max_pool_tangent).selecting()
max_pool_back_grad = _of_first("max_pool_back", 3, _back, lambda t, out, g, x, best, **o: max_pool_back(t, x, best, **o)).moving()
max_pool_along_grad = _of_first(
    "max_pool_along", 3, _along, lambda s, out, t, x, best, **o: max_pool_along(s, x, best, **o)
).moving()
mean_pool_grad = _of_first("mean_pool", 1, _mean_pool, lambda t, out, x, **o: pooled_mean(t, **o)).moving()
mean_pool_back_grad = _of_first(
    "mean_pool_back", 2, _mean_pool_back, lambda t, out, g, like, **o: mean_pool_back(t, like, **o)
).moving()
