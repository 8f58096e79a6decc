"""Spellings of other packages: they work, or the error gives the spelling to use; none is silently ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.optimizers import SGD, Adam, RMSProp
from tests.support.for_each import for_each

X = cg.variable(3.0, "x")
V = cg.variable([1.0, 2.0], "v")
LOSS = X * X


def set_on(node: Any, name: str) -> None:
    setattr(node, name, True)


RAISING: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "backward": (lambda: LOSS.backward(), AttributeError, r"autodiff\.gradient\(loss\)"),
    "grad of a node": (lambda: X.grad, AttributeError, r"gradients\[x\]"),
    "requires_grad": (lambda: V.requires_grad, AttributeError, r"cg\.variable"),
    "requires_grad, set": (lambda: set_on(X, "requires_grad"), AttributeError, r"cg\.variable"),
    "grad, set": (lambda: set_on(X, "grad"), AttributeError, "not stored in variables"),
    "requires_grad=": (lambda: cg.variable(1.0, requires_grad=True), TypeError, r"variable takes no requires_grad="),
    "constant=": (lambda: cg.variable(1.0, constant=False), TypeError, r"cg\.constant"),
    "detach": (lambda: X.detach(), AttributeError, "stop_gradient"),
    "requires_grad_": (lambda: V.requires_grad_(), AttributeError, r"cg\.variable"),
    "zero_grad of a node": (lambda: V.zero_grad(), AttributeError, "nothing to clear"),
    "register_hook": (lambda: V.register_hook(print), AttributeError, r"autodiff\.gradient\(loss, \[x\]\)"),
    "creator": (lambda: V.creator, AttributeError, r"x\.operands"),
    "cuda": (lambda: V.cuda(), AttributeError, "main memory"),
    "pow": (lambda: V.pow(2), AttributeError, r"x \*\* y"),
    "float": (lambda: V.float(), AttributeError, r"astype\(np\.float32\)"),
    "numel": (lambda: V.numel(), AttributeError, r"x\.size"),
    "cg.make_jaxpr": (lambda: cg.make_jaxpr, AttributeError, r"cg\.program"),
    "cg.visualize": (lambda: cg.visualize, AttributeError, r"cg\.visualize_at\(node\)"),
    "retain_graph=": (lambda: ad.gradient(LOSS, retain_graph=True), TypeError, "as long as its nodes do"),
    "cg.compile": (lambda: cg.compile, AttributeError, r"cg\.jit"),
    "cg.lax": (lambda: cg.lax, AttributeError, "for, while and if"),
    "ad.scan": (lambda: ad.scan, AttributeError, "for, while and if"),
    "ad.jet": (lambda: ad.jet, AttributeError, r"autodiff\.taylor"),
    "ad.gradcheck": (lambda: ad.gradcheck, AttributeError, "check_grads"),
    "ad.tree_map": (lambda: ad.tree_map, AttributeError, "arguments nest"),
    "numpy()": (lambda: X.numpy(), AttributeError, r"x\.value"),
    "at": (lambda: V.at[0].set(1.0), AttributeError, r"x\[i\] = value"),
    "tensor": (lambda: cg.tensor, AttributeError, r"cg\.variable"),
    "no_grad": (lambda: cg.no_grad(), AttributeError, r"cg\.no_graph"),
    "cg.grad": (lambda: cg.grad, AttributeError, r"autodiff\.grad"),
    "an unknown name": (lambda: cg.nothing, AttributeError, r"compgraph has no 'nothing'$"),
    "ad.jit": (lambda: ad.jit, AttributeError, r"compgraph\.jit"),
    "make_vjp": (lambda: ad.make_vjp, AttributeError, r"autodiff\.vjp"),
    "another unknown name": (lambda: ad.nothing, AttributeError, r"autodiff has no 'nothing'$"),
    "a gradient by cg": (lambda: cg.gradient(LOSS), TypeError, r"autodiff\.gradient"),
    "a gradient by cg with a variable": (lambda: cg.gradient(LOSS, X), TypeError, r"autodiff\.gradient"),
    "a gradient by cg with wrt": (lambda: cg.gradient(V, wrt=X), TypeError, r"autodiff\.gradient"),
    "the gradient of a function": (lambda: ad.gradient(np.sin), TypeError, r"of a function, autodiff\.grad"),
    "grad of a loss": (lambda: ad.grad(LOSS), TypeError, r"autodiff\.gradient\(node, wrt\)"),
    "hessian of a loss": (lambda: ad.hessian(LOSS), TypeError, r"autodiff\.gradient\(node, wrt\)"),
    "argnum and argnums": (lambda: ad.grad(np.multiply, 0, argnum=1), TypeError, "same parameter"),
    "lr": (lambda: Adam([V], lr=0.1), TypeError, r"learning_rate="),
    "step_size": (lambda: SGD([V], step_size=0.1), TypeError, r"learning_rate="),
    "beta1": (lambda: Adam([V], beta1=0.9), TypeError, r"betas="),
    "alpha": (lambda: RMSProp([V], alpha=0.9), TypeError, "decay"),
    "zero_grad": (lambda: Adam([V]).zero_grad(), AttributeError, "handed to step"),
    "in_dims": (lambda: ad.vmap(np.sin, in_dims=0), TypeError, "in_axes="),
    "static_argnums": (lambda: cg.jit(np.sin, static_argnums=0), TypeError, "static_argnames="),
    "step without gradients": (lambda: Adam([V]).step(), TypeError, r"optimizer\.step\(autodiff\.gradient\(loss\)\)"),
    "no vector": (lambda: ad.hessian_vector_product(np.sin)(1.0), TypeError, "the last argument"),
}


@for_each("name", RAISING)
def test_what_is_meant_is_said(name: str) -> None:
    wrong, error, message = RAISING[name]
    with pytest.raises(error, match=message):
        wrong()


def test_missing_attributes_are_missing() -> None:
    for name in ("grad", "backward", "numpy", "requires_grad"):
        assert not hasattr(X, name)
        assert name not in dir(X)
    assert getattr(X, "grad", None) is None
    assert "sum" in dir(X)


@for_each(
    "operator",
    ["grad", "value_and_grad", "jacobian", "jacrev", "jacfwd", "hessian", "hessian_diagonal", "elementwise_grad", "hvp"],
)
def test_argnum_is_understood(operator: str) -> None:
    apply = getattr(ad, operator)

    def f(x: Any, y: Any) -> Any:
        return np.sin(x) * y**3

    args = (0.5, 1.0, 2.0) if operator == "hvp" else (0.5, 2.0)
    if operator == "hvp":
        assert apply(f, argnum=0)(*args) == apply(f)(*args)
        return
    for argnum in (1, (0, 1)):
        assert apply(f, argnum=argnum)(*args) == apply(f, argnum)(*args)


def test_hessian_vector_product_is_autograds() -> None:
    def f(x: Any, a: Any) -> Any:
        return np.sum(x**3 * a)

    x, a, v = np.array([1.0, 2.0]), np.array([2.0, 3.0]), np.array([1.0, -1.0])
    np.testing.assert_allclose(ad.hessian_vector_product(f)(x, a, v), 6 * x * a * v)


def test_gradients_are_found_where_they_are_looked_for() -> None:
    assert ad.gradient(LOSS)["x"] == 6.0
    assert ad.gradient is ad.reverse.gradient
    np.testing.assert_array_equal(cg.gradient(V * 2), np.gradient(V.value * 2))
    assert cg.gradient(np.array([1.0, 4.0, 9.0]), name="slope").name == "slope"
    assert ad.minimize is ad.optimizers.minimize
