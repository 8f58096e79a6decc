"""Nested derivatives: perturbation confusion, modes in every order, control flow, writes, and `no_graph`."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import check_grads, grad, jvp, value_and_grad, vjp
from autodiff.reverse import gradient
from tests.support.for_each import for_each


def reverse(f: Any) -> Any:
    """The derivative of a function of one number, by reverse mode."""
    return grad(f)


def forward(f: Any) -> Any:
    """The same by forward mode."""
    return lambda x: jvp(f, (x,), (1.0,))[1]


def recorded_derivative(f: Any) -> Any:
    """The same from a graph recorded with a variable."""

    def d(x: float) -> Any:
        v = cg.variable(x)
        return gradient(f(v), [v])[v]

    return d


WAYS = {"reverse": reverse, "forward": forward}
PAIRS = for_each(("d1", "d2"), list(itertools.product(WAYS.values(), repeat=2)))
MODES = for_each("d", [*WAYS.values(), recorded_derivative])


class TestPerturbationConfusion:
    """J. M. Siskind, B. A. Pearlmutter: "Perturbation confusion and referential transparency", IFL 2005; "Nesting forward-mode
    AD in a functional framework", HOSC 21 (2008); O. Manzyuk et al.: "Perturbation confusion in forward automatic
    differentiation of higher-order functions", JFP 29 (2019)."""

    @PAIRS
    def test_perturbation_of_inner_constant(self, d1: Any, d2: Any) -> None:
        # d/dx (x * (d/dy (x + y) at y = 1)) = 1, where confusion gives 2
        assert float(d1(lambda x: x * d2(lambda y: x + y)(1.0))(1.0)) == 1.0
        # d/dx (x * (d/dy (x * y) at y = 2)) = 2 x
        assert float(d1(lambda x: x * d2(lambda y: x * y)(2.0))(3.0)) == 6.0

    @PAIRS
    def test_perturbation_inner_function_depends_on_outer_twice(self, d1: Any, d2: Any) -> None:
        # d/dx [d/dy (x^2 y^3) at y = x] = d/dx 3 x^4 = 12 x^3
        assert float(d1(lambda x: d2(lambda y: x**2 * y**3)(x))(2.0)) == 96.0
        # d/dx [x * d/dy (y * x^2) at y = x^2] = 3 x^2
        assert float(d1(lambda x: x * d2(lambda y: y * x**2)(x**2))(2.0)) == 12.0

    @PAIRS
    def test_perturbation_amazing_bug(self, d1: Any, d2: Any) -> None:
        # the derivative of a function that returns functions: s(u)(f)(x) = f(x + u), so D s at 0 is D itself
        def shift(u: Any) -> Any:
            return lambda f: lambda x: f(x + u)

        def derivative(f: Any) -> Any:
            return lambda x: d1(lambda u: shift(u)(f)(x))(0.0)

        assert np.isclose(float(derivative(derivative(np.exp))(1.0)), np.e)
        # with the perturbation of the outer derivative leaking, D(D exp) at 1 was 0
        again = d2(lambda u: derivative(lambda x: np.exp(x + u))(1.0))
        assert np.isclose(float(again(0.0)), np.e)

    @PAIRS
    def test_perturbation_closure_escaping_inner_function(self, d1: Any, d2: Any) -> None:
        closures: list[Any] = []

        def outer(x: Any) -> Any:
            slope = d2(lambda y: closures.append(lambda z: x * z) or x * y * y)(3.0)
            return slope * closures[-1](2.0)

        # 6 x * 2 x
        assert float(d1(outer)(5.0)) == 120.0

    @for_each("ways", list(itertools.product(WAYS.values(), repeat=4)))
    def test_perturbation_four_levels_in_all_orders(self, ways: Any) -> None:
        f: Any = lambda x: x**5 * np.exp(x)  # noqa: E731
        for way in ways:
            f = way(f)
        x = 0.7
        coefficients = [1, 20, 120, 240, 120]  # Leibniz: binomials of 4 times the derivatives of x^5
        expected = sum(c * x ** (5 - k) for k, c in enumerate(coefficients)) * np.exp(x)
        assert np.isclose(float(f(x)), expected, rtol=1e-12)

    @for_each("ways", list(itertools.product(WAYS.values(), repeat=3)))
    def test_perturbation_three_variables_at_three_levels(self, ways: Any) -> None:
        dx, dy, dz = ways
        # d/dx d/dy d/dz of x y^2 z^3 at (2, 3, 5)
        derivative = dx(lambda x: dy(lambda y: dz(lambda z: x * y**2 * z**3)(5.0))(3.0))(2.0)
        assert float(derivative) == 2 * 3 * 3 * 25

    @PAIRS
    def test_perturbation_constant_inner_derivative(self, d1: Any, d2: Any) -> None:
        assert float(d1(lambda x: d2(lambda y: x * 1.0)(1.0))(2.0)) == 0.0
        assert float(d1(lambda x: d2(lambda y: x * y)(1.0))(2.0)) == 1.0

    @MODES
    def test_saddle_point_of_nested_descent(self, d: Any) -> None:
        # min over x of max over y of x^2 + 4 x y - y^2 + 2 y, by gradient steps inside gradient steps
        def best(x: Any) -> Any:
            y = 0.0
            for _ in range(60):
                y = y + 0.25 * reverse(lambda y, x=x: x**2 + 4 * x * y - y**2 + 2 * y)(y)
            return y

        def worst(x: Any) -> Any:
            y = best(x)
            return x**2 + 4 * x * y - y**2 + 2 * y

        # y = 2 x + 1, worst = 5 x^2 + 4 x + 1
        assert np.isclose(float(d(worst)(0.5)), 10 * 0.5 + 4)


class TestControlFlow:
    @PAIRS
    def test_derivative_of_newton_iteration(self, d1: Any, d2: Any) -> None:
        def square_root(a: Any) -> Any:
            x = 1.0
            for _ in range(20):
                x = x - (x * x - a) / d2(lambda z: z * z - a)(x)
            return x

        assert np.isclose(float(d1(square_root)(2.0)), 0.5 / np.sqrt(2))

    @PAIRS
    def test_branches_on_inner_derivative(self, d1: Any, d2: Any) -> None:
        def f(x: Any) -> Any:
            slope = d2(lambda y: y**3)(x)
            return slope * x if slope > 3 else -x

        assert float(d1(f)(2.0)) == 36.0
        assert float(d1(f)(0.5)) == -1.0

    @PAIRS
    def test_loop_length_depends_on_inner_derivative(self, d1: Any, d2: Any) -> None:
        def f(x: Any) -> Any:
            count = 0
            while x < 50:
                x = x * d2(lambda y: y * y)(x)  # 2 x^2
                count += 1
            return x if count == 3 else None

        # 2 x^2, 8 x^4, 128 x^8
        assert np.isclose(float(d1(f)(1.0)), 1024.0)

    @MODES
    def test_derivative_of_recursive_function(self, d: Any) -> None:
        def power(x: Any, n: int) -> Any:
            return 1.0 * x if n == 1 else x * power(x, n - 1)

        assert float(d(lambda x: power(x, 50))(1.0)) == 50.0


class TestWritesInside:
    @PAIRS
    def test_inner_derivatives_written_into_buffer(self, d1: Any, d2: Any) -> None:
        def f(x: Any) -> Any:
            a = cg.zeros(3)
            for k in range(3):
                a[k] = d2(lambda y, k=k: y ** (k + 1) * x)(x)
            a *= 2.0
            return np.sum(a)

        # 2 (x + 2 x^2 + 3 x^3)
        assert np.isclose(float(d1(f)(0.5)), 2 * (1 + 4 * 0.5 + 9 * 0.25))

    @PAIRS
    def test_inner_function_with_writes(self, d1: Any, d2: Any) -> None:
        def inner(x: Any, y: Any) -> Any:
            a = cg.zeros(2)
            a[0] = x * y
            a[1] = a[0] * y
            a[0] += a[1]
            return np.sum(a)  # x y + 2 x y^2

        assert np.isclose(float(d1(lambda x: x * d2(lambda y: inner(x, y))(3.0))(2.0)), 2 * 2 * (1 + 4 * 3))

    def test_array_writes_of_inner_gradient(self) -> None:
        def f(x: Any) -> Any:
            a = x * 1.0
            a[1:] *= grad(lambda y: np.sum(y**3))(x)[:-1]
            return np.sum(np.sin(a))

        check_grads(f, [np.array([0.3, 0.5, 0.9])], order=3)


class TestClosures:
    def test_closure_variable_through_two_levels(self) -> None:
        w = cg.variable(3.0, "w")
        for d1, d2 in itertools.product(WAYS.values(), repeat=2):
            derivative = d1(lambda x, d2=d2: d2(lambda y: w**2 * x * y * y)(x))(2.0)  # 4 w^2 x
            assert float(derivative) == 72.0
            assert float(gradient(derivative)["w"]) == 48.0

    def test_pull_of_vjp_is_differentiable(self) -> None:
        _, pull = vjp(lambda x: np.sin(x), np.array([0.3, 0.4]))
        hessian = jvp(lambda u: pull(u)[0] ** 2, (np.ones(2),), (np.ones(2),))[1]
        assert np.allclose(hessian, 2 * np.cos([0.3, 0.4]) ** 2)

    @PAIRS
    def test_pull_within_outer_derivative(self, d1: Any, d2: Any) -> None:
        def f(x: Any) -> Any:
            value, pull = vjp(lambda y: x * y * y, 3.0)
            return value * pull(d2(lambda z: z * z)(x))[0]

        # 9 x * 6 x * 2 x = 108 x^3
        assert np.isclose(float(d1(f)(2.0)), 3 * 108 * 4)


class TestArguments:
    """Cases that tests/autodiff/operators/test_grad.py does not have."""

    @for_each("call", [lambda f, x: grad(f)(x), lambda f, x: vjp(f, x), lambda f, x: jvp(f, (x,), (1.0,))])
    def test_bad_result_within_another_derivative_raises(self, call: Any) -> None:
        def inside(f: Any, argument: Any) -> Any:
            return lambda: grad(lambda x: call(lambda y: f(x, y), argument(x)))(2.0)

        with pytest.raises(TypeError, match=r"returned None.*lack a return statement"):
            inside(lambda x, y: None, lambda x: x)()
        with pytest.raises(TypeError, match="returned a plain float"):
            inside(lambda x, y: x.value * y.value, lambda x: x)()
        with pytest.raises(TypeError, match=r"dtype int64, which is not differentiable"):
            inside(lambda x, y: x * y, lambda x: np.array([1, 2]))()

    def test_nonscalar_result_within_another_derivative_raises(self) -> None:
        with pytest.raises(ValueError, match=r"returned shape \(2,\), not a scalar"):
            grad(lambda x: grad(lambda y: np.stack([x, y]))(1.0))(2.0)
        with pytest.raises(ValueError, match=r"returned shape \(2,\), not a scalar"):
            grad(lambda x: vjp(lambda y: x * y, np.ones(2))[0])(2.0)

    def test_boolean_argument_and_bad_arguments(self) -> None:
        assert float(grad(lambda x: x * 2.0)(True)) == 2.0
        for wrong in (np.array([True]), "text", np.array(["a"])):
            with pytest.raises(TypeError, match="is not differentiable"):
                value_and_grad(np.sum)(wrong)
        with pytest.raises(TypeError, match="contain no array"):
            value_and_grad(np.sum)(None)

    def test_integer_and_boolean_results_raise(self) -> None:
        for f in (lambda x: np.argmax(x), lambda x: np.sum(x) > 0):
            with pytest.raises(TypeError, match="that the function returned is not floating or complex"):
                grad(f)(np.ones(2))


class TestForwardModeStoresNothing:
    def test_forward_mode_memory_is_bounded(self) -> None:
        def steps(count: int) -> Any:
            def f(x: Any) -> Any:
                for _ in range(count):
                    x = 0.999 * x + 0.001 * np.sin(x)
                return x

            return f

        x = np.linspace(0, 1, 50)
        jvp(steps(2_000), (x,), (x,))  # fills caches
        tracemalloc.start()
        value, tangent = jvp(steps(2_000), (x,), (np.ones(50),))  # of four operations each
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 40_000  # less than five bytes an operation, where one array has 400
        assert np.all(np.isfinite(value) & np.isfinite(tangent))
