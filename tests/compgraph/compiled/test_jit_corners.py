"""Compiled derivatives at ties: of any order, and without a check of each tie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each
from tests.support.jitting import assert_agrees

X = np.array([0.0, 0.0, 1.0, -1.0, 2.0])
WEIGHTS = np.arange(1.0, 6.0)


def running_maximum(x: Any) -> Any:
    totals = np.zeros(len(x) + 1)
    for i in range(len(x)):
        totals[i + 1] = np.maximum(totals[i], totals[i] + x[i]) * x[i]
    return np.sum(totals**2)


CORNERS: dict[str, Callable[[Any], Any]] = {
    "abs": lambda x: np.sum(np.abs(x) ** 2) + np.sum(np.cos(np.abs(x))),
    "fmax": lambda x: np.sum(np.fmax(x, -x) ** 2 * x[2]),
    "minimum": lambda x: np.sum(np.minimum(x, 0) ** 3) + np.sum(np.minimum(x, -x) ** 2),
    "clip": lambda x: np.sum(np.clip(x, 0, 1) ** 2),
    "relu": lambda x: np.sum(cg.relu(x) ** 2),
    "copysign": lambda x: np.sum(np.copysign(x, x) ** 2),
    "max of all": lambda x: np.min(x + 1) ** 2 + np.max(x[:2]) ** 2 + np.max(x) ** 2,
    "max along an axis": lambda x: np.sum(np.max(np.stack([x, -x]), axis=0) ** 2),
    "max, keepdims": lambda x: np.sum(np.max(np.stack([x, -x], 1), axis=1, keepdims=True) ** 4),
    "running maximum": running_maximum,
}


def third_derivative(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def directional(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: np.sum(ad.grad(f)(x) * WEIGHTS)

    return ad.grad(directional(directional(f)))


@for_each("name", CORNERS)
def test_second_derivatives_at_corners_match_eager(name: str) -> None:
    assert_agrees(ad.hessian(CORNERS[name]), (X,), (X[::-1].copy(),), programs=None)


@for_each("name", [name for name in CORNERS if name != "abs"])  # nan
def test_third_derivatives_at_corners_match_eager(name: str) -> None:
    assert_agrees(third_derivative(CORNERS[name]), (X,), (X[::-1].copy(),), programs=None)


def test_compiled_gradient_of_edit_distance_checks_no_tie() -> None:
    """A derivative that is not differentiated again needs no slope at a tie: other ties run by the same program."""

    def distance(x: Any, y: Any) -> Any:
        d = np.full((len(x) + 1, len(y) + 1), np.inf)
        d[0, 0] = 0.0
        for i in range(len(x)):
            for j in range(len(y)):
                d[i + 1, j + 1] = (x[i] - y[j]) ** 2 + np.minimum(np.minimum(d[i, j + 1], d[i + 1, j]), d[i, j])
        return d[-1, -1]

    rng = np.random.default_rng(0)
    calls = [tuple(rng.integers(0, 3, (2, 6)).astype(float)) for _ in range(4)]
    assert_agrees(ad.value_and_grad(distance, argnums=(0, 1)), *calls)
