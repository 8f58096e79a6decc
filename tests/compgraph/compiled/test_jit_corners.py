"""Compiled derivatives at ties: of any order, and without a check of each tie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradients
from tests.support.for_each import for_each
from tests.support.jitting import assert_agrees, compiled

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


AWAY = np.array([2.0, 1.0])
AT_CORNERS = [np.array([0.0, 1.0]), np.array([0.0, 0.0]), np.array([1.0, 1.0])]
DIRECTION = np.array([1.0, 2.0])
LATER_CORNERS: dict[str, Callable[[Any], Any]] = {
    "abs": lambda x: np.sum(np.abs(x) * x),
    "abs squared": lambda x: np.sum(np.abs(x) ** 2),
    "maximum": lambda x: np.sum(np.maximum(x, 0) ** 2),
    "clip": lambda x: np.sum(np.clip(x, 0, 3) * x),
    "relu": lambda x: np.sum(cg.relu(x) * x),
    "copysign": lambda x: np.sum(np.copysign(x, x) * x),
    "max": lambda x: np.max(x) * x[0],
    "norm": lambda x: np.linalg.norm(x, 1) * x[0],
    "median": lambda x: np.median(np.stack([x[0], -x[0], x[1]])) * x[0],
}
SECOND_DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "hessian": ad.hessian,
    "jacobian of gradient": lambda f: ad.jacobian(ad.grad(f)),
    "gradient of gradient": lambda f: ad.grad(lambda x: np.sum(ad.grad(f)(x) * DIRECTION)),
    "tangent of gradient": lambda f: lambda x: ad.jvp(ad.grad(f), (x,), (DIRECTION,))[1],
    "tangent of tangent": lambda f: lambda x: ad.jvp(lambda x: ad.jvp(f, (x,), (DIRECTION,))[1], (x,), (DIRECTION,))[1],
}


@for_each(
    "name, operator", [*[(name, "hessian") for name in LATER_CORNERS], *[("abs", operator) for operator in SECOND_DERIVATIVES]]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_second_derivative_compiled_away_from_corners_matches_eager_at_corners(name: str, operator: str) -> None:
    second_derivative = SECOND_DERIVATIVES[operator](LATER_CORNERS[name])
    compiled_derivative = compiled(second_derivative, AWAY)
    for x in (AWAY, *AT_CORNERS):
        np.testing.assert_allclose(compiled_derivative(x), second_derivative(x), rtol=1e-12)


def test_undefined_second_derivative_compiled_away_from_corner_warns() -> None:
    second_derivative = compiled(ad.hessian(LATER_CORNERS["abs"]), AWAY)
    with pytest.warns(RuntimeWarning, match="invalid value"):
        assert np.isnan(second_derivative(AT_CORNERS[0])[0, 0])


@for_each("name, jit", [*[(name, False) for name in LATER_CORNERS], ("abs", True)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_executor_of_second_derivative_matches_eager_at_corners(name: str, jit: bool) -> None:
    f, x = LATER_CORNERS[name], cg.variable(AWAY, "x")
    (gradient,) = gradients(f(x), [x])
    (derivative,) = gradients(np.sum(gradient * DIRECTION), [x])
    executor = cg.Executor(derivative, jit=jit)
    for value in (AWAY, *AT_CORNERS):
        expected = SECOND_DERIVATIVES["gradient of gradient"](f)(value)
        np.testing.assert_allclose(executor.run({"x": value}), expected, rtol=1e-12)


def test_first_derivatives_check_no_corner() -> None:
    """Programs of first derivatives have no guard, so that values at a corner run by the same program."""
    for derivative in (ad.grad(LATER_CORNERS["abs"]), lambda x: ad.jvp(LATER_CORNERS["abs"], (x,), (DIRECTION,))):
        assert_agrees(derivative, (AWAY,), *[(x,) for x in AT_CORNERS])
