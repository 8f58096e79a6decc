"""Operators with the conventions of HIPS/autograd; the expected values are NumPy's or written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff as ad
from autodiff.compat.hips import misc, operators, vspaces
from autodiff.compat.hips.operators import (
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    hessian,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_jvp_reversemode,
    make_vjp,
    multigrad_dict,
    value_and_grad,
)

X = np.array([0.5, -1.0, 2.0])


def test_grad_accepts_results_of_one_element() -> None:
    assert grad(lambda x: x**2)(np.array([3.0])).tolist() == [6.0]
    assert grad(lambda x: np.sum(x**2).reshape(1, 1))(X).tolist() == [1.0, -2.0, 4.0]
    assert grad(lambda x: np.array([x**2]))(3.0) == 6.0
    with pytest.raises(TypeError, match=r"Grad only applies to real scalar-output functions.*returned \(3,\) float64"):
        grad(lambda x: x**2)(X)
    with pytest.raises(TypeError, match="value_and_grad only applies to real scalar-output functions"):
        value_and_grad(lambda x: x * 1j)(2.0)


def test_grad_argnums() -> None:
    f = lambda x, y, k=1.0: np.sum(x * y) * k  # noqa: E731
    assert grad(f, 1)(2.0, 3.0, k=5.0) == 10.0
    assert grad(f, -1)(2.0, 3.0) == 2.0
    assert grad(f, (1, 0))(2.0, 3.0) == (2.0, 3.0)
    assert grad(f, [0])(2.0, 3.0) == (3.0,)
    assert grad(lambda p: p["a"] * p["b"][0])({"a": 2.0, "b": [3.0]}) == {"a": 3.0, "b": [2.0]}
    with pytest.raises(IndexError, match="argnum is 2, but the function was called with 2"):
        grad(f, 2)(1.0, 2.0)


def test_grad_and_jacobian_set_names_and_docs() -> None:
    assert grad(np.sin).__name__ == "grad_of_sin_wrt_argnum_0"
    assert "jacobian of function grad_of_sin" in str(jacobian(grad(np.sin)).__doc__)


@pytest.mark.parametrize("operator", [grad, elementwise_grad, deriv, jacobian])
def test_grad_converts_integers(operator: Any) -> None:
    assert operator(lambda x: x**2 / 2)(3) == 3.0
    assert elementwise_grad(lambda x: x**3)(np.arange(3)).tolist() == [0.0, 3.0, 12.0]
    assert grad(lambda x, n: np.sum(x**n), 0)(np.arange(3), 2).tolist() == [0.0, 2.0, 4.0]


def test_elementwise_grad_is_the_vjp_of_ones() -> None:
    assert elementwise_grad(lambda x: np.sum(x**2))(X).tolist() == (2 * X).tolist()
    assert elementwise_grad(lambda x: np.cumsum(x))(X).tolist() == [3.0, 2.0, 1.0]
    with pytest.raises(TypeError, match="Elementwise_grad only applies to real-output functions"):
        elementwise_grad(lambda x: x * 1j)(X)


def test_grad_of_independent_result_is_zero_with_warning() -> None:
    with pytest.warns(UserWarning, match="Output seems independent of input"):
        assert grad(lambda x: 3.0)(X).tolist() == [0.0, 0.0, 0.0]
    with pytest.warns(UserWarning, match="independent"):
        pull, value = make_vjp(lambda x: np.ones(2))(X)
    assert value.tolist() == [1.0, 1.0]
    assert pull(np.ones(2)).tolist() == [0.0, 0.0, 0.0]
    assert jacobian(lambda x: np.ones(2))(X).tolist() == np.zeros((2, 3)).tolist()
    assert make_jvp(lambda x: 2.0)(X)(X) == (2.0, 0.0)


def test_operators_raise_on_lost_graph() -> None:
    for operator in (grad, elementwise_grad, value_and_grad, make_vjp, jacobian):
        with pytest.warns(RuntimeWarning, match=r"float\(\)"), pytest.raises(ad.LostGraphError, match="was not recorded"):
            operator(lambda x: float(x))(2.0)
    with pytest.raises(TypeError, match="returned None") as raised:
        grad(lambda x: None)(2.0)
    assert not isinstance(raised.value, ad.LostGraphError)


def test_operators_raise_on_results_without_vector_space() -> None:
    for f in (lambda x: x > 1, lambda x: bool(np.all(x > 1)), lambda x: 3, lambda x: "text"):
        with pytest.raises(TypeError, match="has no vector space"):
            grad(f)(2.0)
    with pytest.warns(UserWarning, match="independent"):
        pull, value = make_vjp(lambda x: x > 1)(2.0)
    assert value
    assert pull(1.0) == 0.0


def test_make_vjp_and_make_jvp() -> None:
    pull, value = make_vjp(lambda x, y: x * y, (0, 1))(X, 2.0)
    assert value.tolist() == (2 * X).tolist()
    assert [part.tolist() for part in pull(np.ones(3))] == [[2.0, 2.0, 2.0], X.sum()]
    assert pull(1)[1] == X.sum()  # one number for all elements
    assert make_vjp(lambda x: (x, {"a": 2 * x}))(1.0)[0]((1.0, {"a": 10.0})) == 21.0
    with pytest.raises(ValueError, match="the cotangent nests as"):
        make_vjp(lambda x: (x, x))(1.0)[0](1.0)
    value, tangent = make_jvp(lambda x, y: x * y, (0, 1))(X, 2.0)((np.ones(3), 1.0))
    assert (value.tolist(), tangent.tolist()) == ((2 * X).tolist(), (2 + X).tolist())
    assert make_jvp_reversemode(lambda x: x**2)(X)(np.ones(3)).tolist() == (2 * X).tolist()


def test_hessian_and_hvp() -> None:
    f = lambda x: np.sum(x**3)  # noqa: E731
    assert hessian(f)(X).tolist() == np.diag(6 * X).tolist()
    assert hessian(lambda x: x[:1] * x[1])(X).shape == (1, 3, 3)
    product, gradient = make_hvp(f)(X)
    assert (product(np.ones(3)).tolist(), gradient.tolist()) == ((6 * X).tolist(), (3 * X**2).tolist())
    assert operators.hessian_tensor_product(lambda a, x: a * f(x), 1)(2.0, X, np.ones(3)).tolist() == (12 * X).tolist()
    assert operators.tensor_jacobian_product(lambda x: x**2)(X, np.ones(3)).tolist() == (2 * X).tolist()
    assert make_ggnvp(lambda x: x**2)(X)(np.ones(3)).tolist() == (4 * X**2).tolist()
    assert grad(grad(lambda x: np.sin(x) * x**2))(1.5) == pytest.approx(2 * np.sin(1.5) + 6 * np.cos(1.5) - 2.25 * np.sin(1.5))


def test_holomorphic_grad_and_further_operators() -> None:
    assert holomorphic_grad(np.square)(3j) == 6j
    with pytest.warns(UserWarning, match="not complex"):
        holomorphic_grad(np.square)(3.0)
    assert grad_and_aux(lambda x: (np.sum(x), x + 1))(np.ones(1)) == (1.0, 2.0)
    result = multigrad_dict(lambda x, *rest, y=2.0, **more: x * rest[0] * y * more["z"])(3.0, 5.0, z=7.0)
    assert result == {"x": 70.0, "rest": (42.0,), "y": 105.0, "more": {"z": 30.0}}
    assert [*result] == ["x", "rest", "y", "more"]


def test_unary_to_nary_extends_argnums() -> None:
    @operators.unary_to_nary
    def scaled(fun: Any, x: Any, scale: float, shift: float = 0.0) -> Any:
        return scale * fun(x) + shift

    assert scaled(lambda x, y: x - y, 1, 10.0)(5.0, 2.0) == 30.0
    assert scaled(lambda x, y: x - y, (0, 1), 1.0, shift=1.0)(5.0, 2.0) == 4.0
    assert scaled(np.sin).__name__ == "scaled_of_sin_wrt_argnum_0"


def test_check_grads_detects_wrong_gradient() -> None:
    misc.check_grads(lambda x, p: np.sin(x) * p["a"], (0, 1))(X, {"a": 2.0})
    misc.combo_check(lambda x, k: np.sum(x, axis=k), 0)([np.ones((2, 3))], k=[0, 1, None])
    wrong = ad.custom_gradient(lambda x: (x**2, lambda g: g * x))
    wrong.__name__ = "f"
    with pytest.raises(AssertionError, match=r"Derivative \(VJP\) check of f"):
        misc.check_grads(wrong, modes=["rev"], order=1)(2.0)


def test_vspace_arithmetic_and_comparison() -> None:
    space = vspaces.vspace({"a": 1.0, "b": [np.ones(2), (1j,)]})
    assert space == vspaces.vspace({"a": 2.0, "b": [np.zeros(2), (2j,)]})
    assert space != vspaces.vspace({"a": 2.0})
    assert space.size == 5
    assert len([*space.standard_basis()]) == 5
    ones = space.ones()
    assert ones["b"][1] == (1 + 1j,)
    assert space.inner_prod(ones, space.scalar_mul(ones, 3.0)) == 3 * 5
    assert space.add(ones, space.zeros())["b"][0].tolist() == [1.0, 1.0]
    assert space.mut_add(None, ones)["b"][0].tolist() == [1.0, 1.0]
    assert space.covector(ones)["b"][1] == (1 - 1j,)
    svd = np.linalg.svd(np.eye(2))
    assert type(vspaces.vspace(svd).zeros()) is type(svd)
    assert vspaces.vspace(np.float32(1)).zeros().dtype == np.float32
    with pytest.raises(TypeError, match="has no vector space"):
        vspaces.vspace("text")


def test_vspace_of_registered_class() -> None:
    class Text(vspaces.VSpace):
        def zeros(self) -> Any:
            return ""

    Text.register(str)
    try:
        assert vspaces.vspace("abc").zeros() == ""
        assert vspaces.vspace("abc").add("a", "b") == "ab"
        with pytest.raises(NotImplementedError, match="Text does not define ones"):
            vspaces.vspace("abc").ones()
    finally:
        del vspaces.VSpace.mappings[str]


def test_optimizers_accept_nested_arguments() -> None:
    steps: list[Any] = []
    for optimize in (misc.adam, misc.rmsprop, misc.sgd):
        result = optimize(
            lambda p, i: {"a": 2 * p["a"], "b": [2 * p["b"][0]]},
            {"b": [np.ones(2)], "a": 3.0},
            lambda p, i, g: steps.append((i, g["a"])),
            300,
            step_size=0.05,
        )
        assert [*result] == ["b", "a"]
        assert abs(result["a"]) < 0.1
        assert np.all(np.abs(result["b"][0]) < 0.1)
    assert len(steps) == 900
    assert steps[0] == (0, 6.0)


def test_flatten_is_differentiable() -> None:
    def f(p: Any) -> Any:
        vector, unflatten = misc.flatten(p)
        return np.sum(vector**2) + unflatten(vector * 2)["a"][0]

    assert grad(f)({"b": np.array([1.0, 2.0]), "a": [3.0]}) == {"b": pytest.approx([2.0, 4.0]), "a": [8.0]}
    of_vectors, unflatten, start = misc.flatten_func(lambda p: {"a": p["a"] ** 2}, {"a": np.array([1.0, 2.0])})
    assert of_vectors(start).tolist() == [1.0, 4.0]
    assert unflatten(start)["a"].tolist() == [1.0, 2.0]
    assert misc.flatten(())[0].shape == (0,)


def test_fixed_point_uses_implicit_derivative() -> None:
    newton = lambda a: lambda x: (x + a / x) / 2  # noqa: E731
    root = lambda a: misc.fixed_point(newton, a, 1.0, lambda x, y: abs(x - y), 1e-12)  # noqa: E731
    assert root(5.0) == pytest.approx(5**0.5)
    assert grad(root)(5.0) == pytest.approx(0.5 * 5**-0.5)
