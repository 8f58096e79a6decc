"""custom_gradient, and the ways to declare the rule of a user's own operation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import check_grads, custom_gradient, grad, jvp, rule, vjp
from autodiff.checks import check_graph
from autodiff.reverse import gradient
from tests.support.for_each import for_each

X, Y = np.array([0.3, -1.2, 2.0]), np.array([1.5, 0.4, -0.7])


class TestCustomGradient:
    def test_custom_gradient_any_order_and_mode(self) -> None:
        @custom_gradient
        def norm(x: Any, y: Any) -> Any:
            r = np.sqrt(x * x + y * y)
            return r, lambda g: (g * x / r, g * y / r)

        check_grads(lambda x, y: np.sin(norm(x, y)), [X, Y], order=3)
        assert check_graph(norm(cg.variable(X), cg.variable(Y))) == []

    def test_custom_gradient_overrides_derivative(self) -> None:
        double = custom_gradient(lambda x: (x * 1.0, lambda g: 2 * g))
        assert float(grad(double)(3.0)) == 2.0
        assert float(jvp(double, (3.0,), (1.0,))[1]) == 2.0
        assert float(gradient(double(cg.variable(3.0, "x")))["x"]) == 2.0

    def test_custom_gradient_several_results_and_options(self) -> None:
        @custom_gradient
        def both(x: Any, *, power: int) -> Any:
            return (np.sin(x), x**power), lambda g: g[0] * np.cos(x) + g[1] * power * x ** (power - 1)

        check_grads(lambda x: both(x, power=3)[0] * both(x, power=2)[1], [X], order=2)
        assert np.allclose(grad(lambda x: np.sum(both(x, power=3)[1]))(X), 3 * X**2)
        values = both(X, power=2)
        assert [type(v) for v in values] == [np.ndarray, np.ndarray]

    def test_custom_gradient_pull_sums_broadcast_axes(self) -> None:
        scale = custom_gradient(lambda a, x: (a * x, lambda g: (np.sum(g * x), g * a)))
        check_grads(scale, [2.0, X], order=2)
        wrong = custom_gradient(lambda a, x: (a * x, lambda g: (g * x, g * a)))
        with pytest.raises(ValueError, match=r"returned shape \(3,\) for argument 0, which has shape \(\)"):
            grad(lambda a: np.sum(wrong(a, X)))(2.0)

    def test_custom_gradient_none_means_zero(self) -> None:
        pick = custom_gradient(lambda x, k: (x[k], lambda g: (g * (np.arange(3) == k), None)))
        assert np.array_equal(grad(lambda x: pick(x, 1))(X), [0, 1, 0])

    def test_custom_gradient_operands_written_later(self) -> None:
        square = custom_gradient(lambda x: (x * x, lambda g: 2 * g * x))
        x = cg.variable(X, "x")
        a = x * 1.0
        y = np.sum(square(a))
        a[0] = 100.0
        assert np.allclose(gradient(y)["x"], 2 * X)

    def test_custom_gradient_nonlinear_pull(self) -> None:
        clipped = custom_gradient(lambda x: (x * 1.0, lambda g: np.clip(g, -1, 1)))
        assert float(grad(lambda x: 5 * clipped(x))(2.0)) == 1.0
        with pytest.raises(ValueError, match="pull of <lambda> is not linear in the cotangent, so it has no forward mode"):
            jvp(clipped, (2.0,), (1.0,))

    def test_custom_gradient_pull_leaving_graph(self) -> None:
        lost = custom_gradient(lambda x: (x * 1.0, lambda g: math.nextafter(g, g) * 1.0))
        assert float(grad(lost)(2.0)) == 1.0
        with pytest.raises(cg.LeakError, match=r"takes the numbers of .*test_custom.*math\.nextafter\(g, g\)"):
            jvp(lost, (2.0,), (1.0,))
        lost = custom_gradient(lambda x: (x * 1.0, lambda g: g.value * 1.0 if isinstance(g, cg.Node) else g))
        with pytest.raises(TypeError, match="not all of its operations on the cotangent are recorded"):
            jvp(lost, (2.0,), (1.0,))

    def test_custom_gradient_outer_nodes_raise(self) -> None:
        w = cg.variable(2.0, "w")
        with pytest.raises(TypeError, match=r"captures a node, for which its pull returns no cotangent. Pass it as an argument"):
            custom_gradient(lambda x: (w * x, lambda g: g * w))(1.0)
        with pytest.raises(TypeError, match="captures a node"):
            jvp(lambda v: custom_gradient(lambda x: (v * x, lambda g: g * v))(1.0), (1.0,), (1.0,))

    def test_custom_gradient_wrong_results_raise(self) -> None:
        with pytest.raises(TypeError, match=r"must return a pair \(value, pull\)"):
            custom_gradient(lambda x: x)(1.0)
        short = custom_gradient(lambda x, y: (x * y, lambda g: (g * y,)))
        with pytest.raises(ValueError, match="returned 1 cotangents for 2 arguments"):
            grad(short)(1.0, 2.0)

    def test_custom_gradient_pull_runs_once_for_all_operands(self) -> None:
        calls = []

        @custom_gradient
        def product(x: Any, y: Any) -> Any:
            return x * y, lambda g: (calls.append(1) or g * y, g * x)

        _, pull = vjp(product, X, Y)
        for count in (1, 2):
            gx, gy = pull(np.ones(3))
            assert len(calls) == count
            assert np.array_equal(gx, Y)
            assert np.array_equal(gy, X)


def declare_primitive(function: Any, **options: Any) -> Any:
    """A new operation of the test's own, with a rule."""
    function.__name__ = f"own_{id(function)}"
    operation = cg.primitive(function)
    rule(operation, **options)
    return operation


class TestRules:
    def test_primitive_derivative_option(self) -> None:
        cube = declare_primitive(lambda x: x**3, derivative=lambda x: 3 * x**2)
        check_grads(cube, [X], order=3)
        product = declare_primitive(lambda x, y, *, k: k * x * y, derivative=[lambda x, y, k: k * y, lambda x, y, k: k * x])
        check_grads(lambda x, y: product(x, y, k=2.0), [X, np.array([[1.0], [2.0]])], order=2)
        once = declare_primitive(lambda x, y: x * y, derivative=[lambda x, y: y, None])
        assert grad(lambda y: np.sum(once(X, y)))(Y).tolist() == [0, 0, 0]

    def test_primitive_jacobian_option(self) -> None:
        def outer(x: Any, y: Any) -> Any:
            return np.outer(x, y)

        def by_x(x: Any, y: Any) -> Any:
            return np.eye(len(x))[:, None, :] * y[None, :, None]

        def by_y(x: Any, y: Any) -> Any:
            return np.eye(len(y))[None, :, :] * x[:, None, None]

        check_grads(declare_primitive(outer, jacobian=[by_x, by_y], check=True), [X, Y[:2]], order=2)
        check_grads(declare_primitive(lambda x: np.sum(x**2), jacobian=lambda x: 2 * x), [X], order=2)
        wrong = declare_primitive(lambda x: np.sum(x), jacobian=lambda x: np.ones((1, 3)))
        with pytest.raises(ValueError, match=r"for operand 0 has shape \(1, 3\); it must have \(3,\)"):
            grad(wrong)(X)

    @for_each("kind", ["general", "elementwise"])
    def test_primitive_numerically_option(self, kind: str) -> None:
        blend = declare_primitive(lambda x, y: np.sin(x) * y, numerically=True, kind=kind) if kind == "elementwise" else None
        blend = blend or declare_primitive(lambda x, y: np.sin(x) @ y * x, numerically=True)
        check_grads(blend, [X, Y], order=1)
        x32 = X.astype(np.float32)
        assert np.allclose(jvp(blend, (x32, x32), (x32, x32))[1], jvp(blend, (X, X), (X, X))[1], rtol=1e-2)
        for second in (
            lambda: grad(lambda x: np.sum(grad(lambda z: np.sum(blend(z, Y)))(x)))(X),
            lambda: jvp(lambda x: jvp(lambda z: blend(z, Y), (x,), (X,))[1], (X,), (X,)),
        ):
            with pytest.raises(TypeError, match="central differences, which cannot be differentiated again"):
                second()
        with pytest.raises(TypeError, match="needs real operands"):
            vjp(blend, X + 1j, Y + 1j)[1](np.ones(3, complex))

    def test_primitive_numerically_option_within_nested_grad(self) -> None:
        square = declare_primitive(lambda x: x * x, numerically=True)
        assert np.isclose(float(grad(lambda w: grad(lambda x: square(x) * w)(3.0))(2.0)), 6.0)

    @for_each(
        ("right", "wrong"),
        [
            (
                {"derivative": lambda x: 2 * x},
                {"derivative": lambda x: 2.01 * x},
            ),
            (
                {"jacobian": lambda x: np.diag(2 * x)},
                {"jacobian": lambda x: np.diag(2.01 * x)},
            ),
        ],
    )
    def test_primitive_check_option_detects_wrong_rules(self, right: Any, wrong: Any) -> None:
        check_grads(declare_primitive(lambda x: x * x, check=True, **right), [X], order=2)
        bad = declare_primitive(lambda x: x * x, check=True, **wrong)
        with pytest.raises(ArithmeticError, match="is wrong for operand 0, reverse mode: it returns"):
            grad(lambda x: np.sum(bad(x)))(X)
        with pytest.raises(ArithmeticError, match="is wrong for operand 0, forward mode: it returns"):
            jvp(bad, (X,), (Y,))

    @for_each("mode", ["reverse", "forward"])
    def test_primitive_check_option_of_formulas_and_kinds(self, mode: str) -> None:
        def run(f: Any) -> Any:
            return grad(lambda x: np.sum(f(x) * Y))(X) if mode == "reverse" else jvp(f, (X,), (Y,))

        def declared(function: Any, formula: Any, kind: str, tangent: Any = None) -> Any:
            function.__name__ = f"own_{id(function)}"
            operation = cg.primitive(function)
            rule(operation, formula, kind=kind, tangents=[tangent] if tangent else (), check=True)
            return operation

        run(declared(lambda x: 3 * x, lambda g, out, x: 3 * g, "linear"))
        run(
            declared(
                lambda x: np.cumsum(x), lambda g, out, x: np.cumsum(g[::-1])[::-1], "general", lambda t, out, x: np.cumsum(t)
            )
        )
        run(declared(lambda x: x * x, lambda g, out, x: 2 * x * g, "elementwise"))
        for bad in (
            declared(lambda x: x * x, lambda g, out, x: 2.1 * x * g, "linear"),
            declared(lambda x: np.cumsum(x), lambda g, out, x: g, "general", lambda t, out, x: t),
            declared(lambda x: np.cumsum(x), None, "general", lambda t, out, x: t * 0),
        ):
            with pytest.raises(ArithmeticError, match=f"is wrong for operand 0, {mode} mode"):
                run(bad)

    def test_primitive_check_option_runs_once(self) -> None:
        calls = []
        f = declare_primitive(lambda x: calls.append(1) or x * x, derivative=lambda x: 2 * x, check=True)
        counts = []
        for _ in range(3):
            grad(lambda x: np.sum(f(x)))(X)
            counts.append(len(calls))
        assert counts[0] > 1
        assert np.diff(counts).tolist() == [1, 1]

    def test_primitive_bad_options_raise(self) -> None:
        operation = declare_primitive(lambda x, y: x * y, derivative=[None, None])
        for options, message in (
            ({"derivative": np.cos, "numerically": True}, "several forms of the derivative were passed"),
            ({"derivative": np.cos}, "has 2 operands, but derivative= has 1 entries"),
            ({"derivative": np.cos, "kind": "linear"}, "derivative= applies to elementwise"),
            ({"jacobian": np.cos, "kind": "elementwise"}, "jacobian= applies to general"),
            ({"numerically": True, "kind": "linear"}, "does not apply to a linear operation"),
            ({"kind": "round"}, "kind must be one of"),
        ):
            with pytest.raises(ValueError, match=message):
                rule(operation, **options)
        split = declare_primitive(lambda x: (x, x * x), derivative=np.cos)
        with pytest.raises(TypeError, match=r"apply to operations with one result, but .* returns 2\. Pass formulas"):
            grad(lambda x: split(x)[1])(1.0)
        halved = declare_primitive(lambda x: x[:2], numerically=True, kind="elementwise")
        with pytest.raises(ValueError, match=r"returned shape \(2,\) for operands of shapes \(3,\)\. Omit kind"):
            grad(lambda x: np.sum(halved(x)))(X)
        with pytest.raises(ValueError, match=r"takes any number of operands\. Pass formulas"):
            declare_primitive(lambda *xs: xs[0], numerically=True)
        with pytest.raises(TypeError, match=r"Decorate it with cg\.primitive first"):
            rule(np.sin, derivative=np.cos)
