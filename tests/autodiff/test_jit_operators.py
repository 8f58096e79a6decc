"""Operators within and around compiled functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each
from tests.support.jitting import assert_agrees, compiled, is_compiled, same

RNG = np.random.default_rng(0)
W, V = RNG.normal(size=(3, 2)), RNG.normal(size=(3, 2))
X, Y = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3))


def loss(w: Any, x: Any) -> Any:
    h = np.tanh(x @ w)
    return np.sum(h**2) if h.sum() > 0 else np.mean(np.exp(h))


def smooth(v: Any) -> Any:
    return np.sum(np.sin(v) * v[::-1] ** 2)


def filled(v: Any) -> Any:
    y = np.zeros(len(v))
    y[0] = v[0]
    for i in range(1, len(v)):
        y[i] = np.tanh(y[i - 1] + v[i])
    return y


def rotated(v: Any) -> Any:
    frame = np.eye(4)
    frame[:3, :3] = np.array([[1, 0, 0], [0, np.cos(v[0]), -np.sin(v[0])], [0, np.sin(v[0]), np.cos(v[0])]])
    return (frame @ np.outer(v, v))[:3] * v


def training_loss(p: Any, x: Any) -> Any:
    return np.mean((np.maximum(x @ p["w"] + p["b"], 0.0).sum(1) - 1) ** 2)


vector, other = RNG.normal(size=4), RNG.normal(size=4)
OPERATORS = {
    "grad": (ad.grad(loss), (W, X), (V, X), (-W, Y)),
    "value_and_grad": (ad.value_and_grad(loss), (W, X), (V, Y)),
    "grad of both": (ad.grad(loss, argnums=(0, 1)), (W, X), (V, Y)),
    "hessian": (ad.hessian(smooth), (vector,), (other,)),
    "jacobian": (ad.jacobian(filled), (vector,), (other,)),
    "vmap": (ad.vmap(smooth), (X,), (Y,)),
    "vmap of grad": (ad.vmap(ad.grad(smooth)), (X,), (Y,)),
    "grad of vmap": (ad.grad(lambda x: np.sum(ad.vmap(smooth)(x))), (X,), (Y,)),
    "hvp": (ad.hvp(smooth), (vector, other), (other, vector)),
    "grad of grad": (ad.grad(lambda v: np.sum(ad.grad(smooth)(v) ** 2)), (vector,), (other,)),
    "grad of a filled array": (ad.grad(lambda v: np.sum(filled(v) ** 2)), (vector,), (other,)),
    "jvp": (lambda v, t: ad.jvp(smooth, (v,), (t,)), (vector, other), (other, vector)),
    "of a tree": (ad.value_and_grad(training_loss), ({"w": W, "b": V[0]}, X), ({"w": V, "b": W[0]}, Y)),
    "with aux": (ad.grad(lambda w: (np.sum(w**2), {"s": w.sum()}), has_aux=True), (W,), (V,)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_jit_operators_are_compiled(name: str) -> None:
    f, *calls = OPERATORS[name]
    assert_agrees(f, *calls, programs=None)


def test_jit_forward_jacobian_of_written_matrices_calls_no_numpy() -> None:
    jitted = assert_agrees(ad.jacobian(rotated), (vector,), (other,))
    assert "NumPy" not in jitted.report()


def test_jit_of_taylor() -> None:
    f = lambda x: ad.taylor(lambda t: np.exp(np.sin(t)), x, 4)  # noqa: E731
    jitted = cg.jit(f).compile(np.float64(0.3))
    for x in (np.float64(0.3), np.float64(-1.1)):
        assert same(jitted(x), f(x)), jitted.report()


def test_jit_keeps_structural_zeros() -> None:
    f = ad.grad(lambda x: np.sum(np.where(x > 0, np.log(np.where(x > 0, x, x)), 0.0)))
    x = np.array([1.0, 2.0])
    with np.errstate(all="ignore"):
        jitted = compiled(f, x)
        for _ in range(3):
            for y in (x, np.array([0.0, 2.0]), np.array([-1.0, 0.0])):
                assert same(jitted(y), f(y)), jitted.report()
    assert is_compiled(jitted), jitted.report()


def roots(v: Any) -> Any:
    return np.concatenate([np.sqrt(v), v[:1]])


def written_roots(v: Any) -> Any:
    y = np.zeros(3)
    y[:] = np.sqrt(v)
    y[0] *= 2
    return y


SINGULAR = {
    "jacfwd": ad.jacfwd(roots),
    "sparse": lambda v: ad.jacobian(lambda v: np.sqrt(v) * np.sum(v), sparse=True)(v).toarray(),
    "jacfwd of writes": ad.jacfwd(written_roots),
    "jacfwd of jacfwd": ad.jacfwd(ad.jacfwd(roots)),
    "jacfwd of jacfwd of writes": ad.jacfwd(ad.jacfwd(written_roots)),
    "jacfwd of jacrev": ad.jacfwd(ad.jacrev(lambda v: np.sum(np.where(v != 0, np.sqrt(v), v)))),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_jit_forward_jacobian_keeps_zeros_of_directions(name: str) -> None:
    f = SINGULAR[name]
    points = [np.array(v) for v in ([0.5, 0.6, 0.7], [0.0, 0.6, 0.7], [-0.5, 0.3, 0.9])]
    with np.errstate(all="ignore"):
        for compiled_at in ([0], [0, 1], [1], [2]):
            jitted = cg.jit(f, cache=False)
            for k in compiled_at:
                jitted.compile(points[k])
            for x in points + points:
                assert same(jitted(x), f(x)), jitted.report()


def selected_roots(v: Any) -> Any:
    return np.sum(np.where(v > 0.3, np.sqrt(v - 0.3), v**2))


def slope(v: Any) -> Any:
    return ad.grad(selected_roots)(v)


HIDING_NAN = {
    "nan_to_num": lambda v: np.nan_to_num(slope(v)),
    "comparison": lambda v: np.where(slope(v) < v, slope(v), v),
    "fmax": lambda v: np.fmax(slope(v), -9.0),
    "nansum": lambda v: np.nansum(slope(v)),
    "branch": lambda v: v * 2 if slope(v)[1] < 0 else v * 3,
    "write": lambda v: np.fmax(written_slope(v), -9.0),
    "jvp": lambda v: np.fmax(ad.jacfwd(lambda v: roots(np.abs(v)))(v * (v > 0)), -9.0),
}


def written_slope(v: Any) -> Any:
    y = np.zeros(len(v) + 1)
    y[1:] = slope(v)
    return y


@pytest.mark.parametrize("name", HIDING_NAN)
def test_jit_checks_derivatives_whose_nan_is_hidden(name: str) -> None:
    """At the second point, the derivative in its short form is nan, which the result does not show."""
    f = HIDING_NAN[name]
    with np.errstate(all="ignore"):
        jitted = cg.jit(f, cache=False).compile(np.array([0.5, 0.6]))
        for x in (np.array([0.5, 0.6]), np.array([0.5, -1.0]), np.array([0.7, -2.0])):
            for _ in range(2):
                assert same(jitted(x), f(x)), jitted.report()


def signed_square(v: Any) -> Any:
    return np.sum(np.abs(v) * v)


CORNERED = {
    "jvp of grad": lambda v: ad.jvp(ad.grad(signed_square), (v,), (other,))[1],
    "grad of jvp": ad.grad(lambda v: ad.jvp(signed_square, (v,), (other,))[1]),
    "maximum": lambda v: ad.jvp(ad.grad(lambda v: np.sum(np.maximum(v, 2 * v) * v)), (v,), (other,))[1],
}


@pytest.mark.parametrize("name", CORNERED)
def test_jit_at_corner_follows_later_values(name: str) -> None:
    f = CORNERED[name]
    with np.errstate(all="ignore"):
        jitted = cg.jit(f, cache=False).compile(np.zeros(4))
        for x in (np.zeros(4), vector, other, -vector):
            assert same(jitted(x), f(x)), jitted.report()


def test_jit_function_derivatives() -> None:
    jitted = compiled(loss, W, X)
    assert same(ad.grad(jitted)(V, X), ad.grad(loss)(V, X))
    assert same(ad.hessian(jitted)(V, X), ad.hessian(loss)(V, X))
    assert same(ad.vmap(compiled(smooth, vector))(X), ad.vmap(smooth)(X))
    assert same(ad.grad(jitted, argnums="x")(V, X), ad.grad(loss, argnums="x")(V, X))
    step = cg.jit(ad.value_and_grad(jitted)).compile(W, X)
    assert same(step(V, X), ad.value_and_grad(loss)(V, X))
    assert is_compiled(step)


def test_jit_copy_of_captured_array_accepts_nodes() -> None:
    table = np.ones(4)

    def f(v: Any) -> Any:
        t = table.copy()
        t[0] = v[0]
        return np.sum(t * v)

    assert same(ad.grad(compiled(f, vector))(other), ad.grad(f)(other))


def test_jit_within_differentiated_function() -> None:
    inner = compiled(lambda a, b: a * b, np.ones(4), np.ones(4))

    def f(v: Any) -> Any:
        plain = inner(np.arange(4.0), np.ones(4))
        filled = np.zeros(4)
        filled[1] = np.sum(inner(v, plain))
        return np.sum(filled)

    assert same(ad.grad(f)(other), np.arange(4.0))


def test_jit_training_loop() -> None:
    step = cg.jit(ad.value_and_grad(training_loss))
    p, q = ({"w": W.copy(), "b": np.zeros(2)} for _ in range(2))
    for _ in range(8):
        value, slope = step(p, X)
        expected, slope_q = ad.value_and_grad(training_loss)(q, X)
        assert np.isclose(value, expected)
        p = {name: p[name] - 0.1 * slope[name] for name in p}
        q = {name: q[name] - 0.1 * slope_q[name] for name in q}
        step.wait(30)
    assert is_compiled(step), step.report()


def test_jit_method_is_differentiated() -> None:
    class Model:
        def __init__(self) -> None:
            self.x = X

        def loss(self, w: Any) -> Any:
            return loss(w, self.x)

    model = Model()
    step = compiled(ad.grad(model.loss), W)
    assert same(step(V), ad.grad(loss)(V, X))
    model.x = Y
    assert same(step(V), ad.grad(loss)(V, Y))
    assert is_compiled(step)


def test_jit_follows_default_dtype() -> None:
    f = ad.grad(lambda x: x * x)
    jitted = compiled(f, 2.0)
    assert same(jitted(2.0), f(2.0))
    with cg.default_dtype(np.float32):
        assert same(jitted(2.0), f(2.0))
    assert same(jitted(2.0), f(2.0))


@for_each("operator", [ad.jacrev, ad.jacfwd, lambda f: ad.hessian(lambda x: np.sum(f(x))), lambda f: ad.jacfwd(ad.jacrev(f))])
def test_compiled_derivative_by_batches_follows_mask(operator: Any) -> None:
    """Batches of derivatives read the positions that a mask selects in each run, not those of the trace."""
    points = [np.array([0.5, 1.2, -0.7, 2.0]), np.array([1.5, -0.2, 0.7, 0.3])]
    assert_agrees(operator(lambda x: x[x < 0] ** 3), *[(x,) for x in points])
