"""grad, value_and_grad, vjp, jvp: nesting, closures, mixed modes, errors."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import check_grads, grad, jvp, value_and_grad, vjp
from autodiff.reverse import check_gradient, gradient
from tests.support.for_each import for_each


def d_forward(f: Any) -> Any:
    """The derivative of a function of one number, by forward mode."""
    return lambda x: jvp(f, (x,), (1.0,))[1]


MODES = for_each("d", [grad, d_forward], ids=["reverse", "forward"])
BOTH = for_each(("outer", "inner"), [(a, b) for a in (grad, d_forward) for b in (grad, d_forward)], ids=["rr", "rf", "fr", "ff"])


class TestNesting:
    @BOTH
    def test_nested_second_derivative(self, outer: Any, inner: Any) -> None:
        assert np.isclose(float(outer(inner(lambda x: np.sin(x) * x))(0.7)), 2 * np.cos(0.7) - 0.7 * np.sin(0.7))

    @BOTH
    def test_nested_inner_ignores_outer_perturbation(self, outer: Any, inner: Any) -> None:
        # d/dx (x * d/dy (x + y)) = d/dx (x * 1) = 1; confusion gives 2
        assert float(outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0)) == 1.0

    @BOTH
    def test_nested_inner_derivative_of_product(self, outer: Any, inner: Any) -> None:
        # d/dx (x * d/dy (x * y) at 2) = d/dx x^2 = 2x
        assert float(outer(lambda x: x * inner(lambda y: x * y)(2.0))(3.0)) == 6.0

    @BOTH
    def test_nested_inner_derivative_at_outer_point(self, outer: Any, inner: Any) -> None:
        # d/dx [d/dy (x y^2) at y = x] = d/dx 2 x^2 = 4x
        assert float(outer(lambda x: inner(lambda y: x * y * y)(x))(3.0)) == 12.0

    @MODES
    def test_nested_third_derivative_of_mixed_modes(self, d: Any) -> None:
        for a in (grad, d_forward):
            for b in (grad, d_forward):
                assert np.isclose(float(d(a(b(lambda x: x**4)))(1.5)), 24 * 1.5)

    @MODES
    def test_nested_gradient_of_constant_is_zero(self, d: Any) -> None:
        assert float(grad(d(lambda x: 3.0 * x))(2.0)) == 0.0
        assert float(d_forward(d(lambda x: 3.0 * x))(2.0)) == 0.0

    def test_nested_hessian_vector_product_of_arrays(self) -> None:
        rng = np.random.default_rng(0)
        a = rng.normal(size=(4, 4))
        x, v = rng.normal(size=4), rng.normal(size=4)

        def f(x: Any) -> Any:
            return np.sum(np.sin(a @ x) ** 2) + np.prod(x)

        forward_over_reverse = jvp(grad(f), (x,), (v,))[1]
        reverse_over_reverse = grad(lambda x: np.sum(grad(f)(x) * v))(x)
        reverse_over_forward = grad(lambda x: jvp(f, (x,), (v,))[1])(x)
        assert np.allclose(forward_over_reverse, reverse_over_reverse, rtol=1e-12)
        assert np.allclose(forward_over_reverse, reverse_over_forward, rtol=1e-12)

    def test_operators_return_plain_results_at_top_level(self) -> None:
        assert type(grad(lambda x: np.sum(x * x))(np.ones(2))) is np.ndarray
        assert type(grad(lambda x: x * x)(2.0)) is np.float64
        value, pull = vjp(lambda x: x * x, np.ones(2))
        assert type(value) is np.ndarray
        assert type(pull(np.ones(2))[0]) is np.ndarray
        assert all(type(part) is np.ndarray for part in jvp(lambda x: x * x, (np.ones(2),), (np.ones(2),)))
        assert all(type(part) is np.ndarray for part in jvp(grad(lambda x: np.sum(x**3)), (np.ones(2),), (np.ones(2),)))


class TestClosures:
    def test_grad_closure_over_variable(self) -> None:
        w = cg.variable(3.0, "w")
        g = grad(lambda x: w * x * x)(2.0)
        assert float(g) == 12.0
        assert float(gradient(g)["w"]) == 4.0

    def test_jvp_closure_over_variable(self) -> None:
        w = cg.variable(3.0, "w")
        value, tangent = jvp(lambda x: w * x * x, (2.0,), (1.0,))
        assert float(value) == 12.0
        assert float(gradient(tangent)["w"]) == 4.0

    def test_grad_at_a_variable_is_connected(self) -> None:
        x = cg.variable(2.0, "x")
        g = grad(lambda v: v**3)(x)
        assert float(g) == 12.0
        assert float(gradient(g)["x"]) == 12.0

    def test_grad_within_no_graph_is_plain(self) -> None:
        x, w = cg.variable(2.0, "x"), cg.variable(3.0, "w")
        with cg.no_graph():
            g = grad(lambda v: w * v**3)(x)
        assert float(g) == 36.0
        assert not isinstance(g, cg.Node)

    def test_grad_of_function_with_no_graph(self) -> None:
        def f(x: Any) -> Any:
            with cg.no_graph():
                weight = x * 10
            return x * weight

        assert float(grad(f)(2.0)) == 20.0

    def test_grad_of_stop_gradient(self) -> None:
        assert float(grad(lambda x: x * cg.stop_gradient(x))(3.0)) == 3.0
        assert float(d_forward(lambda x: x * cg.stop_gradient(x))(3.0)) == 3.0

    def test_grad_control_flow_follows_values(self) -> None:
        def f(x: Any) -> Any:
            y = x
            while y < 100:
                y = y * x
            return y if x > 2 else -y

        assert float(grad(f)(3.0)) == 5 * 81.0
        assert float(grad(f)(2.0)) == -7 * 64.0


class TestArguments:
    def test_grad_argnums(self) -> None:
        def f(x: Any, y: Any, z: float) -> Any:
            return np.sum(x * y**2) * z

        x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
        assert np.array_equal(grad(f, argnums=1)(x, y, 2.0), 4 * x * y)
        gx, gz = grad(f, argnums=(0, 2))(x, y, 2.0)
        assert np.array_equal(gx, 2 * y**2)
        assert float(gz) == 41.0
        assert float(grad(f, argnums=-1)(x, y, 2.0)) == 41.0
        with pytest.raises(ValueError, match=r"argnums 3 is out of range.* 3 positional"):
            grad(f, argnums=3)(x, y, 2.0)

    def test_grad_passes_keywords_on(self) -> None:
        assert float(grad(lambda x, *, power: x**power)(2.0, power=3)) == 12.0

    def test_grad_has_aux(self) -> None:
        def f(x: Any) -> Any:
            return x**2, {"twice": 2 * x}

        g, aux = grad(f, has_aux=True)(3.0)
        assert float(g) == 6.0
        assert float(aux["twice"]) == 6.0
        (value, _), g = value_and_grad(f, has_aux=True)(3.0)
        assert (float(value), float(g)) == (9.0, 6.0)

    def test_grad_converts_python_ints_and_rejects_integer_arrays(self) -> None:
        assert float(grad(lambda x: x**2)(3)) == 6.0
        with pytest.raises(TypeError, match=r"dtype int64, which is not differentiable.*astype\(float\)"):
            grad(np.sum)(np.array([1, 2]))
        with pytest.raises(TypeError, match="dtype int64, which is not differentiable"):
            jvp(np.sum, (np.array([1, 2]),), (np.array([1.0, 2.0]),))

    def test_operators_keep_float32(self) -> None:
        x = np.ones(2, np.float32)
        assert grad(lambda x: np.sum(np.sin(x) * 2.0))(x).dtype == np.float32
        value, tangent = jvp(lambda x: np.sin(x) * 2.0, (x,), (x,))
        assert (value.dtype, tangent.dtype) == (np.float32, np.float32)

    def test_grad_does_not_change_argument(self) -> None:
        x = np.array([1.0, 2.0])
        g = grad(lambda x: np.sum(x * 1.0))(x)
        g += 1
        assert np.array_equal(x, [1.0, 2.0])


class TestErrors:
    @for_each("operator", [grad, value_and_grad])
    def test_grad_of_nonscalar_result_raises(self, operator: Any) -> None:
        with pytest.raises(ValueError, match=r"returned shape \(2,\), not a scalar\. Sum it, or use vjp, jvp or jacobian"):
            operator(lambda x: x * 2)(np.ones(2))

    @for_each("call", [lambda f: grad(f)(1.0), lambda f: jvp(f, (1.0,), (1.0,)), lambda f: vjp(f, 1.0)])
    def test_operators_raise_on_lost_graph_and_none(self, call: Any) -> None:
        with pytest.raises(TypeError, match="returned None"):
            call(lambda x: None)
        with pytest.raises(TypeError, match=r"returned a plain float.*was not recorded"):
            call(lambda x: x.value**2)

    def test_operators_of_independent_result_return_zero(self) -> None:
        assert float(grad(lambda x: cg.constant(3.0))(1.0)) == 0.0
        assert float(jvp(lambda x: cg.constant(3.0), (1.0,), (1.0,))[1]) == 0.0

    def test_jvp_mismatched_tangents_raise(self) -> None:
        with pytest.raises(ValueError, match=r"numbers of primals \(1\) and tangents \(2\) differ"):
            jvp(np.sin, (1.0,), (1.0, 2.0))
        with pytest.raises(ValueError, match="tangent 0 has shape"):
            jvp(np.sin, (np.ones(2),), (np.ones(3),))

    def test_vjp_mismatched_cotangent_raises(self) -> None:
        with pytest.raises(ValueError, match=r"the cotangent has shape \(3,\), but the value has shape \(2,\)"):
            vjp(np.sin, np.ones(2))[1](np.ones(3))

    def test_jvp_operation_without_tangent_rule_raises(self) -> None:
        from autodiff import rule

        @cg.primitive
        def oneway(x: Any) -> Any:
            return x * 2

        rule(oneway, lambda g, out, x: 2 * g)
        assert float(grad(oneway)(1.0)) == 2.0
        with pytest.raises(TypeError, match="oneway has no tangent rule"):
            jvp(oneway, (1.0,), (1.0,))


class TestForwardMode:
    def test_jvp_stores_no_graph(self) -> None:
        import weakref

        ghosts = []

        def f(x: Any) -> Any:
            for _ in range(5):
                x = np.sin(x)
                ghosts.append(weakref.ref(x))
            return x

        def watched(x: Any) -> Any:
            out = f(x)
            assert [ghost() is None for ghost in ghosts] == [True] * 4 + [False]
            return out

        jvp(watched, (1.0,), (1.0,))

    def test_jvp_several_outputs(self) -> None:
        def f(x: Any) -> Any:
            q, r = divmod(x, 3.0)
            return q * 10 + r * r

        assert float(d_forward(f)(7.5)) == 3.0
        assert float(grad(f)(7.5)) == 3.0

    def test_jvp_composed_functions(self) -> None:
        x = np.arange(6.0)
        value, tangent = jvp(lambda x: np.vstack(np.split(x, 2)) ** 2, (x,), (np.ones(6),))
        assert np.array_equal(value, x.reshape(2, 3) ** 2)
        assert np.array_equal(tangent, 2 * x.reshape(2, 3))

    def test_jvp_scalars_rebind_in_place(self) -> None:
        def f(x: Any) -> Any:
            s = x * 1.0
            s += x
            s *= 2
            return s

        assert float(d_forward(f)(3.0)) == 4.0


def test_vjp_pull_can_be_called_again() -> None:
    value, pull = vjp(lambda x, y: x * y, np.array([1.0, 2.0]), 3.0)
    assert np.array_equal(value, [3.0, 6.0])
    for _ in range(2):
        gx, gy = pull(np.array([1.0, 10.0]))
        assert np.array_equal(gx, [3.0, 30.0])
        assert float(gy) == 21.0


def test_vjp_pull_is_differentiable() -> None:
    # the pull is linear in the cotangent, and differentiable by it
    x = np.array([1.0, 2.0])
    assert np.array_equal(grad(lambda u: np.sum(vjp(np.sin, x)[1](u)[0]))(np.ones(2)), np.cos(x))
    assert np.array_equal(jvp(lambda u: vjp(np.sin, x)[1](u)[0], (np.ones(2),), (np.ones(2),))[1], np.cos(x))


def test_operators_in_threads_are_independent() -> None:
    def work(k: int) -> list[float]:
        return [float(grad(lambda x: x * grad(lambda y: x * y * k)(2.0))(float(i))) for i in range(50)]

    with ThreadPoolExecutor(8) as pool:
        for k, result in enumerate(pool.map(work, range(8))):
            assert result == [2.0 * k * i for i in range(50)]


def test_grad_inspecting_operands_changes_nothing() -> None:
    x = cg.variable(np.ones(2, np.float32), "x")
    y = x * 2.0
    assert [type(o).__name__ for o in y.operands] == ["VariableNode", "ConstantNode"]
    assert y.operands[1] is y.operands[1]
    g = gradient(y, create_graph=True)["x"]
    assert g.dtype == np.float32
    assert np.array_equal(g, [2.0, 2.0])


def test_jvp_value_dependent_loop_keeps_no_graph() -> None:
    def f(x: Any, steps: int) -> Any:
        y = x
        for _ in range(steps):
            y = np.where(y > 0, 0.99 * y, 1.01 * y) + 0.001 * x
        return np.sum(y)

    def peak(steps: int) -> int:
        tracemalloc.start()
        value, _ = jvp(lambda x: f(x, steps), (np.ones(10_000),), (np.ones(10_000),))
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert not isinstance(value, cg.Node)
        return used

    assert peak(200) < 1.2 * peak(20)


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "primals": (lambda: jvp(np.sin, 0.0, 1.0), r"jvp: the primals are a tuple .*not a float. .*write jvp\(f, \(x,\), \(t,\)\)"),
    "tangents": (lambda: jvp(np.sin, (0.0,), 1.0), "jvp: the tangents are a tuple .*not a float"),
    "an array": (lambda: jvp(np.sin, np.ones(3), np.ones(3)), "jvp: the primals are a tuple .*not a ndarray"),
    "a dictionary": (lambda: jvp(np.sin, {"x": 1.0}, {"x": 1.0}), "jvp: the primals are a tuple .*not a dict"),
    "check_gradient": (
        lambda: check_gradient(np.sum, np.ones(3)),  # type: ignore[arg-type]
        r"check_gradient: args must be a tuple or list .*not a ndarray\. .*write check_gradient\(f, \[x\]\)",
    ),
    "check_gradient, gradients": (
        lambda: check_gradient(np.sum, [np.ones(3)], np.ones(3)),  # type: ignore[arg-type]
        r"check_gradient: gradients is a list .*not a ndarray. For one argument pass \[g\]",
    ),
    "check_gradient, nested": (lambda: check_gradient(np.sum, [{"a": 1.0}]), "argument 0 is a dict.*check_grads takes"),
    "check_gradient, turned": (lambda: check_gradient([1.0], np.sum), "the function comes first, not a list"),  # type: ignore[arg-type]
    "check_grads": (
        lambda: check_grads(np.sum, np.ones(3)),
        r"check_grads: args must be a tuple or list .*write check_grads\(f, \[x\]\)",
    ),  # type: ignore[arg-type]
}


@for_each("name", CALLS)
def test_operators_unsupported_call_form_raises_with_advice(name: str) -> None:
    call, message = CALLS[name]
    with pytest.raises(TypeError, match=message):
        call()
