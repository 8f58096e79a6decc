"""Dictionaries, sets and caches keyed by scalar nodes."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.failures import Failures

X = np.array([0.3, 1.7, 0.8, 2.6, 1.9])
TABLE = {0.0: 0.5, 1.0: 0.25, 2.0: 0.125, 3.0: 2.0}


def count_in_bins(key: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(p: Any) -> Any:
        sums: dict[Any, Any] = defaultdict(float)
        for v in p:
            sums[key(v)] += v
        return sum([a * a for a in sums.values()])

    return f


def memoize(p: Any) -> Any:
    count = [0.0]

    @functools.lru_cache(None)
    def weight(k: Any) -> float:
        count[0] += 1
        return count[0]

    return sum([weight(np.floor(v)) * v * v for v in p])


def cache_by_number(p: Any) -> Any:
    @functools.cache
    def square(v: Any) -> Any:
        return v * v

    return sum([square(v) for v in p])


BY_VALUE: dict[str, Callable[[Any], Any]] = {
    "floor_divide": count_in_bins(lambda v: v // 0.5),
    "floor": count_in_bins(np.floor),
    "comparison": count_in_bins(lambda v: v > 1),
    "integer": count_in_bins(lambda v: np.digitize(v, [1.0, 2.0])),
    "tuple": count_in_bins(lambda v: (np.sign(v - 1), "a")),
    "get": lambda p: sum([TABLE.get(np.round(v), 0.0) * v * v for v in p]),
    "argmax": lambda p: {0: 2.0, 1: 3.0, 3: 5.0}[np.argmax(p)] * np.sum(p**2),
    "set": lambda p: len({np.sign(v - 1) for v in p}) * np.sum(p**2),
    "in": lambda p: sum([v * v for v in p if np.floor(v) in {0, 2}]),
    "Counter": lambda p: Counter(np.floor(p)).most_common(1)[0][1] * np.sum(p**2),
    "frozenset": lambda p: {frozenset([0.0, 1.0]): 2.0}.get(frozenset(np.floor(p[:2])), 7.0) * np.sum(p**2),
    "lru_cache": memoize,
    "lru_cache of values": cache_by_number,
}
BY_IDENTITY: dict[str, Callable[[Any], Any]] = {
    "Counter": lambda p: sum([Counter(p)[v] * v for v in p]),
    "set": lambda p: len(set(p)) * np.sum(p),
    "memo": lambda p: {v: v**2 for v in p}[p[0]],
    "argument": lambda p: {p[0]: 2.0}.get(p[0] * 1.0, 0.0) * p[1],
}


def test_hash_of_scalar_node_without_derivative_is_by_value() -> None:
    with Failures("programs") as failures:
        for name in BY_VALUE:
            with failures.case(name):
                check_hash_by_value(name)


def check_hash_by_value(name: str) -> None:
    """Compare value and derivatives, and those of the compiled function, with plain Python's."""
    f = BY_VALUE[name]
    steps = 1e-6 * np.eye(X.size)
    expected = np.array([(f(X + step) - f(X - step)) / 2e-6 for step in steps])
    value, gradient = ad.value_and_grad(f)(X)
    assert value == pytest.approx(f(X), rel=1e-12)
    assert gradient == pytest.approx(expected, rel=1e-6)
    tangents = [ad.jvp(f, (X,), (direction,))[1] for direction in np.eye(X.size)]
    assert np.array(tangents) == pytest.approx(expected, rel=1e-6)
    compiled = cg.jit(f)
    for x in (X, X, X, X[::-1].copy(), X + 0.35):
        assert compiled(x) == pytest.approx(f(x), rel=1e-12)


@pytest.mark.parametrize("name", BY_IDENTITY)
def test_hash_of_scalar_node_with_derivative_raises(name: str) -> None:
    f = BY_IDENTITY[name]
    calls: list[Callable[[], Any]] = [
        lambda: ad.grad(f)(X),
        lambda: ad.jacobian(f)(X),
        lambda: ad.jvp(f, (X,), (X,)),
        lambda: ad.vmap(ad.grad(f))(np.stack([X, X])),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r"hash\(\) of the value"):
            call()


def test_hash_adds_executor_guard() -> None:
    v = cg.variable([0.2, 0.9])
    y = {0.0: 2.0, 1.0: 3.0}[np.round(v[1])] * v
    executor = cg.Executor([y])
    assert executor.run({v: np.array([5.0, 1.2])})[0].tolist() == [15.0, 3.5999999999999996]
    with pytest.raises(cg.GuardError, match=r"hash\(\)"):
        executor.run({v: np.array([5.0, 0.1])})


def test_hash_of_top_level_nodes_is_by_identity() -> None:
    x = cg.variable([1.0, 2.0])
    y = np.sum(x) * 2.0
    gradients = ad.gradient(y * y, [x, y])
    names = {x: "x", y: "y"}
    assert (gradients[y], gradients[x].tolist()) == (12.0, [24.0, 24.0])
    assert (names[x], names[y], (y + 0.0) in names) == ("x", "y", False)
