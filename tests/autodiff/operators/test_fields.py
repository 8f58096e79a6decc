"""elementwise_grad, vector calculus and Taylor series."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import check_grads, curl, directional_derivative, divergence, elementwise_grad, grad, jvp, laplacian, taylor
from autodiff.reverse import gradient
from tests.support.for_each import for_each

X = np.array([0.3, -1.2, 2.0])


class TestElementwiseGrad:
    def test_elementwise_grad_values(self) -> None:
        matrix = X[:, None] * np.array([1.0, 2.0])
        assert np.allclose(
            elementwise_grad(lambda x: np.sin(x) * np.exp(x))(matrix), np.exp(matrix) * (np.sin(matrix) + np.cos(matrix))
        )
        assert float(elementwise_grad(np.square)(3.0)) == 6.0
        assert elementwise_grad(np.sin)(X.astype(np.float32)).dtype == np.float32
        assert elementwise_grad(np.sin)(np.zeros((0, 2))).shape == (0, 2)
        assert np.allclose(elementwise_grad(lambda a, x, *, k: k * a * x**2, argnums=1)(2.0, X, k=3), 12 * X)
        assert np.allclose(elementwise_grad(elementwise_grad(elementwise_grad(np.sin)))(X), -np.cos(X))

    def test_elementwise_grad_of_infinite_slopes(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            derivative = elementwise_grad(np.sqrt)(np.array([0.0, 4.0]))
        assert derivative.tolist() == [np.inf, 0.25]

    @for_each(
        "f",
        [np.cumsum, lambda x: x[::-1], lambda x: x * np.sum(x), lambda x: x - x.mean(), np.sort],
        ids=["sums", "reversed", "scaled by the sum", "less the mean", "sorted"],
    )
    def test_elementwise_grad_of_other_functions_raises(self, f: Any) -> None:
        with pytest.raises(ValueError, match="an element of the result depends on other elements"):
            elementwise_grad(f)(X)

    def test_elementwise_grad_wrong_shapes_raise(self) -> None:
        with pytest.raises(ValueError, match=r"returned shape \(\) for an argument of shape \(3,\), so it is not elementwise"):
            elementwise_grad(np.sum)(X)
        with pytest.raises(ValueError, match=r"argnums 1 is out of range.* 1 positional"):
            elementwise_grad(np.sin, argnums=1)(X)

    def test_elementwise_grad_within_other_derivatives(self) -> None:
        w = cg.variable(2.0, "w")
        assert np.isclose(float(gradient(elementwise_grad(lambda x: np.sin(w * x))(0.5))["w"]), np.cos(1) - np.sin(1))
        check_grads(lambda x: elementwise_grad(np.tanh)(x) * x, [X], order=1)


class TestVectorCalculus:
    def test_directional_derivative(self) -> None:
        v = np.array([1.0, -2.0, 0.5])
        assert np.isclose(float(directional_derivative(lambda x: np.sum(x**3), X, v)), 3 * X**2 @ v)
        assert np.allclose(directional_derivative(np.sin, X, v), np.cos(X) * v)

    def test_divergence(self) -> None:
        def f(x: Any) -> Any:
            return np.stack([x[0] * x[1], np.sin(x[1]), x[2] ** 2 * x[0]])

        assert np.isclose(float(divergence(f)(X)), X[1] + np.cos(X[1]) + 2 * X[2] * X[0])
        assert float(divergence(lambda x: x * x)(3.0)) == 6.0
        assert float(divergence(lambda x: x)(np.ones((2, 3)))) == 6.0
        with pytest.raises(ValueError, match="divergence: the function returned 1 numbers for an argument of 3"):
            divergence(np.sum)(X)

    def test_curl(self) -> None:
        def f(x: Any) -> Any:
            return np.stack([x[1] * x[2] ** 2, np.sin(x[0]), x[0] * x[1]])

        x, y, z = X
        assert np.allclose(curl(f)(X), [x, 2 * y * z - y, np.cos(x) - z**2])
        assert np.isclose(float(curl(lambda x: np.stack([-x[1] * x[0], x[0] ** 2]))(X[:2])), 3 * X[0])
        with pytest.raises(ValueError, match=r"must have shape \(2,\) or \(3,\), not \(4,\)"):
            curl(lambda x: x)(np.ones(4))
        with pytest.raises(ValueError, match="curl: the function returned 2 numbers for an argument of 3"):
            curl(lambda x: x[:2])(X)

    def test_curl_of_gradient_and_divergence_of_curl_vanish(self) -> None:
        def potential(x: Any) -> Any:
            return np.sin(x[0] * x[1]) * np.exp(x[2]) + x[0] ** 3

        def field(x: Any) -> Any:
            return np.stack([x[1] ** 2 * x[2], np.sin(x[0] * x[2]), x[0] * np.exp(x[1])])

        assert np.allclose(curl(grad(potential))(X), 0, atol=1e-12)
        assert np.isclose(float(divergence(curl(field))(X)), 0, atol=1e-12)
        assert np.isclose(float(divergence(grad(potential))(X)), float(laplacian(potential)(X)))

    def test_laplacian(self) -> None:
        assert np.isclose(float(laplacian(lambda x: np.sum(x**3) * x[0])(X)), 12 * X[0] ** 2 + 6 * X[0] * (X[1] + X[2]))
        w = cg.variable(2.0, "w")
        assert np.isclose(
            float(gradient(laplacian(lambda x: np.sum(np.sin(w * x)))(X))["w"]),
            np.sum(-4 * np.sin(2 * X) - 4 * X * np.cos(2 * X)),
        )
        check_grads(laplacian(lambda x: np.sum(np.sin(x) * x)), [X], order=1)


def by_hand(derivatives: Any, order: int) -> list[float]:
    """Coefficients from derivatives."""
    return [float(derivatives(k)) / math.factorial(k) for k in range(order + 1)]


def nested_coefficients(f: Any, x: Any, v: Any, order: int) -> list[Any]:
    """Coefficients by nested forward mode."""
    coefficients = []
    for k in range(order + 1):
        coefficients.append(np.asarray(f(x)) / math.factorial(k))
        f = along(f, v)
    return coefficients


def along(f: Any, v: Any) -> Any:
    """The derivative of a function along a direction."""
    return lambda x: jvp(f, (x,), (v,))[1]


class TestTaylor:
    @for_each(
        ("f", "x", "derivatives"),
        [
            (np.exp, 0.5, lambda k: np.exp(0.5)),
            (np.sin, 0.5, lambda k: np.sin(0.5 + k * np.pi / 2)),
            (lambda x: 1 / (1 - x), 0.0, math.factorial),
            (np.log, 2.0, lambda k: np.log(2) if k == 0 else -math.factorial(k - 1) * (-0.5) ** k),
            (lambda x: x**3, -2.0, lambda k: [-8, 12, -12, 6][k] if k < 4 else 0),
            (lambda x: np.sqrt(1 + x), 0.0, lambda k: math.prod(0.5 - j for j in range(k))),
        ],
        ids=["exp", "sin", "geometric", "log", "cube", "sqrt"],
    )
    def test_taylor_known_series(self, f: Any, x: float, derivatives: Any) -> None:
        coefficients = taylor(f, x, 10)
        assert len(coefficients) == 11
        assert np.allclose(np.array(coefficients), by_hand(derivatives, 10), rtol=1e-12, atol=1e-15)

    @for_each(
        "f",
        [
            lambda x: np.sum(np.sin(x @ np.outer(x, x)) * x) / np.max(x),
            lambda x: np.tanh(x) * np.arctan(x) + np.hypot(x, 2.0),
            lambda x: np.prod(x) ** x,
            lambda x: np.linalg.inv(np.outer(x, x) + np.eye(3)) @ x,
            lambda x: np.logaddexp(x, x[0])[::-1] / np.cumprod(x),
            lambda x: np.where(x > 0.6, x * x, np.exp(x)) * np.abs(x),
            lambda x: cg.softmax(x) * cg.logsumexp(x),
            lambda x: divmod(x, 0.4)[1] * x,  # several outputs
            lambda x: np.einsum("i,j,k->ij", x, np.sin(x), x),
            lambda x: x,
            lambda x: cg.constant([1.0, 2.0]),
        ],
        ids=[
            "sums",
            "elementwise",
            "powers",
            "inverse",
            "cumulative",
            "choices",
            "softmax",
            "divmod",
            "einsum",
            "same",
            "constant",
        ],
    )
    def test_taylor_matches_nested_forward_mode(self, f: Any) -> None:
        x, v = np.array([0.3, 0.5, 1.1]), np.array([1.0, -2.0, 0.5])
        for actual, expected in zip(taylor(f, x, 4, v), nested_coefficients(f, x, v, 4), strict=True):
            assert np.shape(actual) == expected.shape
            assert np.allclose(actual, expected, rtol=1e-9, atol=1e-12)

    def test_taylor_calls_function_once(self) -> None:
        calls = []
        taylor(lambda x: calls.append(1) or np.sin(np.exp(x) / x) ** x, 0.7, 10)
        assert len(calls) == 1

    def test_taylor_writes_in_place(self) -> None:
        def f(x: Any) -> Any:
            a = cg.zeros(2)
            a[0] = x
            a[1] = np.sin(a[0]) * x
            return a[1]

        assert np.allclose(taylor(f, 0.5, 3), taylor(lambda x: np.sin(x) * x, 0.5, 3), rtol=1e-12)

    def test_taylor_of_derivatives_and_derivatives_of_taylor(self) -> None:
        x, third = 0.4, np.cos(0.4) / 24
        assert np.allclose(taylor(grad(np.sin), x, 3)[3], np.sin(x) / 6)
        assert np.allclose(taylor(lambda x: jvp(np.sin, (x,), (1.0,))[1], x, 3)[3], np.sin(x) / 6)
        assert np.isclose(float(grad(lambda x: taylor(np.sin, x, 4)[4])(x)), third)
        assert np.isclose(float(jvp(lambda x: taylor(np.sin, x, 4)[4], (x,), (1.0,))[1]), third)
        assert np.isclose(float(jvp(lambda w: taylor(lambda x: w * np.exp(x), 0.0, 2)[2], (3.0,), (1.0,))[1]), 0.5)
        w = cg.variable(2.0, "w")
        coefficients = taylor(lambda x: np.exp(w * x), 0.0, 3)
        assert np.isclose(float(gradient(coefficients[3])["w"]), 2.0)
        v = cg.variable(1.0, "v")
        assert np.isclose(float(gradient(taylor(np.exp, 0.0, 3, v)[3])["v"]), 0.5)

    def test_taylor_result_types(self) -> None:
        assert {type(c) for c in taylor(lambda x: grad(lambda z: np.sin(z) * x)(x), 0.4, 3)} == {np.float64}
        assert {c.dtype for c in taylor(np.exp, np.float32(0.4), 3)} == {np.dtype(np.float32)}
        assert np.allclose(taylor(np.exp, 1j, 3), np.exp(1j) / np.array([1, 1, 2, 6]))
        x = cg.variable(0.4, "x")
        with cg.no_graph():
            assert {type(c) for c in taylor(np.exp, x, 2)} == {np.float64}

    def test_taylor_bad_calls_raise(self) -> None:
        with pytest.raises(ValueError, match="order must be at least 0, not -1"):
            taylor(np.exp, 0.0, -1)
        with pytest.raises(ValueError, match=r"direction has shape \(2,\), but the argument has shape \(\)"):
            taylor(np.exp, 0.0, 1, np.ones(2))
        with pytest.raises(TypeError, match="returned a plain float"):
            taylor(lambda x: x.value[()], 0.0, 1)
