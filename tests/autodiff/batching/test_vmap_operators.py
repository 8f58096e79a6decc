"""Every operator within `vmap`, and outside of it, to any depth, against a loop over batch elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.arguments import flatten, unflatten
from tests.support.for_each import for_each

RNG = np.random.default_rng(0)
COUNT = 4
XS, VS = RNG.normal(size=(COUNT, 3)), RNG.normal(size=(COUNT, 3))
M = RNG.normal(size=(3, 2))
POSITIVE = np.abs(XS) + 1
Function = Callable[..., Any]


def vector(x: Any) -> Any:
    return np.tanh(x @ M) * np.sum(x)


def vector_with_writes(x: Any) -> Any:
    y = np.zeros(4)
    y[:3] = x**2
    y[3] = x[0] * x[1]
    y[::2] *= np.sum(x)
    return y


def scalar(x: Any) -> Any:
    return np.sum(np.sin(vector(x)))


def scalar_with_writes(x: Any) -> Any:
    return np.sum(np.sin(vector_with_writes(x)))


def loop_over_batch(f: Function, args: tuple[Any, ...], axes: tuple[Any, ...]) -> Any:
    """The results of the examples, stacked."""
    each = [f(*[a if axis is None else a[i] for a, axis in zip(args, axes, strict=True)]) for i in range(COUNT)]
    parts = [flatten(one) for one in each]
    return unflatten(parts[0][1], [np.stack(column) for column in zip(*[leaves for leaves, _ in parts], strict=True)])


def same(actual: Any, expected: Any, close: float = 1e-10) -> None:
    (leaves, structure), (reference, nested) = flatten(actual), flatten(expected)
    assert structure == nested
    for one, other in zip(leaves, reference, strict=True):
        assert np.shape(one) == np.shape(other)
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=close, atol=close)


def check_vmap(f: Function, *args: Any, close: float = 1e-10) -> None:
    """Hold `vmap` of a function to a loop: over all arguments, and over each alone."""
    patterns = [(0,) * len(args)]
    if len(args) > 1:
        patterns += [tuple([0 if k == i else None for k in range(len(args))]) for i in range(len(args))]
    for axes in patterns:
        inputs = tuple([a if axis is not None else a[0] for a, axis in zip(args, axes, strict=True)])
        same(ad.vmap(f, axes)(*inputs), loop_over_batch(f, inputs, axes), close)


OF_VECTORS: dict[str, Callable[[Function], Function]] = {
    "jacobian": ad.jacobian,
    "jacrev": ad.jacrev,
    "jacfwd": ad.jacfwd,
    "jacobian of jacobian": lambda f: ad.jacobian(ad.jacobian(f)),
    "jacfwd of jacrev": lambda f: ad.jacfwd(ad.jacrev(f)),
    "taylor": lambda f: lambda x: ad.taylor(f, x, 3),
    "checkpoint": ad.checkpoint,
    "jacobian of checkpoint": lambda f: ad.jacobian(ad.checkpoint(f)),
    "all pullbacks": lambda f: lambda x: ad.vmap(ad.vjp(f, x)[1])(np.eye(f(x).shape[0]) * x[0]),
    "all tangents": lambda f: lambda x: ad.vmap(ad.linearize(f, x)[1])(np.eye(3)),
    "divergence": lambda f: ad.divergence(lambda x: f(x)[0] * x),
    "jacobian of vmap": lambda f: lambda x: ad.jacobian(ad.vmap(lambda t: f(t * x)))(x),
    "vmap of jacobian": lambda f: lambda x: ad.vmap(ad.jacobian(lambda t: f(t * x)))(x),
}
ALONG: dict[str, Callable[[Function], Function]] = {
    "linearize": lambda f: lambda x, v: ad.linearize(f, x)[1](v),
    "value of linearize": lambda f: lambda x, v: ad.linearize(f, x)[0] * v[0],
    "taylor along": lambda f: lambda x, v: ad.taylor(f, x, 3, v),
    "directional derivative": lambda f: lambda x, v: ad.directional_derivative(f, x, v),
    "jacobian at a product": lambda f: lambda x, v: ad.jacobian(lambda y: f(y * x))(v),
    "checkpoint of two": lambda f: ad.checkpoint(lambda x, v: f(x) * v[0]),
    "jacobians by both": lambda f: ad.jacobian(lambda x, v: {"a": f(x * v), "b": np.sum(v)}, argnums=(0, 1)),
}
OF_SCALARS: dict[str, Callable[[Function], Function]] = {
    "hessian": lambda f: lambda x, v: ad.hessian(f)(x) @ v,
    "hessian by both": lambda f: ad.hessian(lambda x, v: f(x * v), argnums=(0, 1)),
    "hvp": ad.hvp,
    "grad of hvp": lambda f: ad.grad(lambda x, v: np.sum(ad.hvp(f)(x, v) ** 2)),
    "laplacian": lambda f: lambda x, v: ad.laplacian(f)(x) * v,
    "grad of checkpoint": lambda f: ad.grad(ad.checkpoint(lambda x, v: f(x * v)), argnums=(0, 1)),
    "hessian of checkpoint": lambda f: ad.hessian(ad.checkpoint(lambda x, v: f(x * v)), argnums=(0, 1)),
    "hessian in vmap": lambda f: lambda x, v: ad.vmap(ad.hessian(lambda t: f(t * x)))(np.stack([v, x])),
}


@for_each("f", [vector, vector_with_writes])
@for_each("name", OF_VECTORS)
def test_vmap_operators_on_vector_functions(name: str, f: Function) -> None:
    check_vmap(OF_VECTORS[name](f), XS)


@for_each("f", [vector, vector_with_writes])
@for_each("name", ALONG)
def test_vmap_operators_along_directions(name: str, f: Function) -> None:
    check_vmap(ALONG[name](f), XS, VS)


@for_each("f", [scalar, scalar_with_writes])
@for_each("name", OF_SCALARS)
def test_vmap_second_derivatives(name: str, f: Function) -> None:
    check_vmap(OF_SCALARS[name](f), XS, VS)


def test_vmap_operators_of_other_shapes_and_dtypes() -> None:
    check_vmap(ad.elementwise_grad(lambda x: np.sin(x) * x**2), XS)
    check_vmap(ad.elementwise_grad(lambda x: np.sin(x) * x**2), XS + 1j * VS)
    check_vmap(ad.jacobian(lambda x: np.sin(x) * x[0] ** 2), XS + 1j * VS)
    check_vmap(ad.jacfwd(lambda x: np.sin(x) * x[0] ** 2), XS + 1j * VS)
    check_vmap(ad.jacobian(lambda x: np.tanh(x * x[0])), XS.astype("f"), close=1e-5)
    check_vmap(ad.hessian(np.sin), XS[:, 0])
    check_vmap(ad.jacfwd(lambda t: np.stack([np.sin(t), np.cos(t)])), XS[:, 0])
    check_vmap(ad.curl(lambda x: np.cross(x**2, [1.0, 2.0, 3.0])), XS)
    check_vmap(ad.jacobian(lambda x: np.zeros((0, 2)) * x[0]), XS)
    with pytest.raises(ValueError, match="depends on other elements"):
        ad.vmap(ad.elementwise_grad(np.cumsum))(XS)
    with pytest.raises(TypeError, match="not analytic"):
        ad.vmap(ad.jacobian(np.conj))(XS + 1j * VS)


def test_vmap_operators_of_empty_batch() -> None:
    none = np.zeros((0, 3))
    assert ad.vmap(ad.jacobian(vector))(none).shape == (0, 2, 3)
    assert ad.vmap(ad.jacfwd(vector))(none).shape == (0, 2, 3)
    assert ad.vmap(ad.hessian(scalar))(none).shape == (0, 3, 3)
    assert ad.vmap(ad.hvp(scalar))(none, none).shape == (0, 3)
    assert ad.vmap(ad.vjp(vector, XS[0])[1])(np.zeros((0, 2)))[0].shape == (0, 3)


# ------------------------------------------------------------------------------------ outside of vmap

MODELS: dict[str, Function] = {
    "plain": lambda x, w: np.sum(np.tanh(x @ w.reshape(3, 2))),
    "hessian": lambda x, w: np.sum(ad.hessian(lambda w: np.sum(np.tanh(x @ w.reshape(3, 2))))(w) ** 2),
    "jacobian": lambda x, w: np.sum(ad.jacobian(lambda x: np.tanh(x @ w.reshape(3, 2)))(x) ** 2),
    "hvp": lambda x, w: np.sum(ad.hvp(lambda x: np.sum(np.tanh(x @ w.reshape(3, 2))))(x, x**2)),
    "linearize": lambda x, w: np.sum(ad.linearize(lambda x: np.tanh(x @ w.reshape(3, 2)), x)[1](x**2)),
    "taylor": lambda x, w: np.sum(np.stack(ad.taylor(lambda x: np.tanh(x @ w.reshape(3, 2)), x, 2, x**2))),
    "checkpoint": ad.checkpoint(lambda x, w: np.sum(np.tanh(x @ w.reshape(3, 2)))),
    "checkpoint that uses a weight": lambda x, w: ad.checkpoint(lambda x: np.sum(np.tanh(x @ w.reshape(3, 2))))(x),
}
OUTER: dict[str, Callable[[Function], Function]] = {
    "grad": ad.grad,
    "hessian": ad.hessian,
    "jacfwd of grad": lambda f: ad.jacfwd(ad.grad(f)),
    "hvp": lambda f: lambda w: ad.hvp(f)(w, np.arange(6.0)),
    "taylor": lambda f: lambda w: ad.taylor(f, w, 2),
}


@for_each("model", MODELS)
@for_each("outer", OUTER)
def test_derivatives_of_vmap_match_loop(outer: str, model: str) -> None:
    f = MODELS[model]
    if (outer, model) == ("jacfwd of grad", "checkpoint that uses a weight"):
        for total in (lambda w: np.sum(ad.vmap(f, (0, None))(XS, w)), lambda w: sum(f(x, w) for x in XS)):
            with pytest.raises(ValueError, match="Pass it as an argument"):  # as tangents reach a checkpoint
                ad.jacfwd(ad.grad(total))(np.ones(6))
        return
    w = RNG.normal(size=6)
    result = OUTER[outer](lambda w: np.sum(ad.vmap(f, (0, None))(XS, w)))(w)
    same(result, OUTER[outer](lambda w: sum(f(x, w) for x in XS))(w), 1e-9)


@for_each("operator", [ad.jacfwd, ad.jacrev, ad.jacobian])
def test_jacobian_of_vmap_matches_loop(operator: Any) -> None:
    for f in (vector, vector_with_writes, ad.jacobian(vector)):
        same(operator(ad.vmap(f))(XS), operator(lambda xs, f=f: np.stack([f(x) for x in xs]))(XS))


# ------------------------------------------------------------------------------- functions with a derivative of their own


@ad.custom_gradient
def log1pexp(x: Any) -> Any:
    e = np.exp(x)
    return np.log(1 + e), lambda g: g * (1 - 1 / (1 + e))


@ad.custom_gradient
def of_two(x: Any, w: Any) -> Any:
    return {"a": np.sum(x * w), "b": x @ M}, lambda g: (g["a"] * w + M @ g["b"], g["a"] * x)


@ad.custom_gradient
def halve(x: Any, w: Any) -> Any:
    return np.sum(x * w), lambda g: (g * w / 2, None)


OWN: dict[str, Function] = {
    "of one": lambda x, w: np.sum(log1pexp(x) * w),
    "of two": lambda x, w: np.sum(of_two(x, w)["a"] ** 2 + of_two(x, w)["b"] ** 2),
    "halved": lambda x, w: halve(x, w) ** 2 + np.sum(x) * np.sum(w),
}


@for_each("name", OWN)
def test_vmap_custom_gradients_match_loop(name: str) -> None:
    f = OWN[name]
    check_vmap(f, XS, VS)
    check_vmap(ad.grad(f, (0, 1)), XS, VS)
    for axes in ((0, 0), (0, None), (None, 0)):
        inputs = [a if axis is not None else a[0] for a, axis in zip((XS, VS), axes, strict=True)]
        gradients = ad.grad(lambda *a, axes=axes: np.sum(ad.vmap(f, axes)(*a)), (0, 1))(*inputs)

        def each(*a: Any, axes: Any = axes) -> Any:
            return sum(f(*[v if axis is None else v[i] for v, axis in zip(a, axes, strict=True)]) for i in range(COUNT))

        same(gradients, ad.grad(each, (0, 1))(*inputs))
    if name != "halved":
        check_vmap(ad.hessian(f, (0, 1)), XS, VS)
        check_vmap(ad.jacfwd(f, (0, 1)), XS, VS)


SOLUTIONS: dict[str, Function] = {
    "root": lambda p: ad.root(lambda x, p: x * x - p, np.ones(3), p),
    "fixed point": lambda p: ad.fixed_point(lambda x, p: np.cos(x / p), 0.5 * np.ones(3), p),
    "minimum": lambda p: ad.minimize(lambda x, p: np.sum((x - p) ** 2 + x**2), np.zeros(3), p).x,
    "equation": lambda p: ad.odeint(lambda y, t, p: -p * y, np.ones(3), np.array([0.0, 1.0]), p)[-1],
    "state": lambda p: ad.odeint(lambda y, t: -y, p, np.array([0.0, 1.0]))[-1],
}


@pytest.mark.parametrize("name", SOLUTIONS)
def test_vmap_implicit_solvers(name: str) -> None:
    f = SOLUTIONS[name]
    check_vmap(f, POSITIVE, close=1e-8)
    check_vmap(ad.jacobian(f), POSITIVE, close=1e-7)
    check_vmap(lambda x: x * f(POSITIVE[0]), POSITIVE, close=1e-8)
    check_vmap(lambda x: ad.vmap(lambda c: f(x * c))(np.array([1.0, 1.2])), POSITIVE, close=1e-8)
    same(
        ad.grad(lambda p: np.sum(ad.vmap(f)(p) ** 2))(POSITIVE),
        np.stack([ad.grad(lambda p: np.sum(f(p) ** 2))(p) for p in POSITIVE]),
        1e-7,
    )


V = RNG.normal(size=3)


def of_outside(x: Any) -> Any:
    """With respect to what all examples share."""
    w = cg.variable(V, "w")
    return ad.reverse.gradient(np.sum(np.sin(w * x)) + np.sum(w**3))["w"]


def of_several(x: Any) -> Any:
    """Gradients with respect to shared variables, given as objects or by name, with an explicit cotangent."""
    w, b = cg.variable(V, "w"), cg.variable(0.3, "b")
    y = np.zeros_like(w * x)
    y[:2] = (w * x + b)[1:] ** 2
    y[1:] *= x[0]
    gradients = ad.reverse.gradient(y, ["w", b], adjoint=np.cos(x))
    return gradients["w"], gradients[b]


def of_argument(x: Any) -> Any:
    """With respect to the argument of a function that is differentiated, and once more."""
    return ad.grad(lambda z: np.sum(ad.reverse.gradients(scalar_with_writes(z), [z])[0] ** 2))(x)


def of_unused(x: Any) -> Any:
    w, b = cg.variable(V, "w"), cg.variable(0.3, "b")
    return ad.reverse.gradients(np.sum(w * x), [w, b], unused="zero")


RECORDED: dict[str, Function] = {
    "outside": of_outside, "several": of_several, "argument": of_argument, "unused": of_unused,
}  # fmt: skip


@for_each("name", RECORDED)
def test_vmap_gradient_within_function(name: str) -> None:
    """`reverse.gradient` within the mapped function, of batched results."""
    f = RECORDED[name]
    check_vmap(f, XS)
    if name != "several":  # an empty batch writes nothing, so the result does not depend on the named variable
        assert {np.shape(leaf)[0] for leaf in flatten(ad.vmap(f)(XS[:0]))[0]} == {0}
    two = np.stack([XS, 2 * XS])
    same(ad.vmap(ad.vmap(f))(two), loop_over_nested_batch(f, two))


def loop_over_nested_batch(f: Function, xs: Any) -> Any:
    """The results of the examples of examples, stacked."""
    parts = [flatten(ad.vmap(f)(x)) for x in xs]
    return unflatten(parts[0][1], [np.stack(column) for column in zip(*[leaves for leaves, _ in parts], strict=True)])


def test_vmap_gradient_within_function_is_differentiable() -> None:
    """Derivatives with respect to the argument of a function outside of the vmap."""

    def f(w: Any, examples: Any) -> Any:
        return np.sum(examples(lambda x: ad.reverse.gradients(np.sum(np.sin(w * x)), [w])[0])(XS) ** 2)

    def loop(g: Any) -> Any:
        return lambda xs: np.stack([g(x) for x in xs])

    same(ad.grad(lambda w: f(w, ad.vmap))(V), ad.grad(lambda w: f(w, loop))(V))


def test_vmap_named_nodes() -> None:
    """As people name what a picture shall show."""

    def f(x: Any) -> Any:
        y = np.sin(x)
        y.name = "sine"
        assert y.name == "sine"
        return y

    same(ad.vmap(f)(XS), np.sin(XS))


def test_vmap_executor_runs_for_each_element() -> None:
    x = cg.variable(np.zeros(3), "x")
    execute = cg.Executor(np.sum(np.sin(x) * x))
    same(ad.vmap(lambda x: execute.run({"x": x}) * 2)(XS), np.sum(np.sin(XS) * XS, axis=1) * 2)


ERRORS: dict[str, tuple[Function, str]] = {
    "sparse": (ad.jacobian(np.sin, sparse=True), "loop over the batch elements"),
    "sparse hessian": (ad.hessian(lambda x: np.sum(np.sin(x)), sparse=True), "loop over the batch elements"),
    "root of a captured argument": (lambda p: ad.root(lambda x: x * x - p, np.ones(3)), "vmap"),
    "gradient of a variable": (lambda x: ad.reverse.gradient(np.sum(cg.variable(x) ** 2)), "another for each"),
}


@for_each("name", ERRORS)
def test_vmap_unsupported_operators_raise(name: str) -> None:
    f, advice = ERRORS[name]
    with pytest.raises((TypeError, ValueError), match=advice):
        ad.vmap(f)(XS)


def test_vmap_pullback_after_return_raises() -> None:
    pullbacks: list[Any] = []
    ad.vmap(lambda x: pullbacks.append(ad.vjp(vector, x)[1]) or x)(XS)
    with pytest.raises(TypeError, match="has returned"):
        pullbacks[0](np.ones(2))
