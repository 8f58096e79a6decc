"""`vmap`: axes, nesting, writes, composition with derivatives, and what it refuses."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.batching import BatchNode
from compgraph import operations
from compgraph.operations import policies

RNG = np.random.default_rng(0)
XS, W = RNG.normal(size=(3, 4)), RNG.normal(size=4)


def same(found: Any, expected: Any) -> None:
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def loss(w: Any, x: Any) -> Any:
    return np.sum(np.tanh(w * x) ** 2) + w[0] * x[1]


def written(w: Any, x: Any) -> Any:
    """Writes into its argument, into views of it, and into arrays of its own."""
    v = w[1:]
    w[2] = x[0] * 2
    v[0] *= x[1]
    u = w.reshape(2, 2)
    u[1, 1] += np.sum(v)
    a, c = np.zeros_like(x), np.zeros(4)
    b, d = a[::-1], c[1:3]
    a[0] = x[1]
    b[0] = w[2]
    d[...] = a[:2] * w[0]
    c[np.argsort(x)[0]] = 5 * w[1]
    a[x > 0] = w[3]
    np.putmask(a, x > 1, x)
    return np.sum(w * w * x) + np.sum(u) + np.sum(a + c * x)


# ------------------------------------------------------------------------------------------------- axes


def test_axes_of_arguments_and_results() -> None:
    f = lambda x, y: x[:, None] * y  # noqa: E731
    ys = RNG.normal(size=(2, 3))
    expected = np.stack([f(x, y) for x, y in zip(XS, ys.T, strict=True)])
    same(ad.vmap(f, in_axes=(0, 1))(XS, ys), expected)
    same(ad.vmap(f, in_axes=(-2, -1), out_axes=-1)(XS, ys), np.moveaxis(expected, 0, -1))
    same(ad.vmap(f, in_axes=(0, None), out_axes=1)(XS, ys[0]), np.stack([f(x, ys[0]) for x in XS], axis=1))


def test_nested_arguments_and_results() -> None:
    class Pair(NamedTuple):
        one: Any
        other: Any

    f = lambda p, k: {"sum": p["a"] + k, "both": Pair(p["b"][0], [np.sum(p["a"])])}  # noqa: E731
    given = {"a": XS.T, "b": (W,)}
    found = ad.vmap(f, in_axes=({"a": 1, "b": None}, None), out_axes={"both": 0, "sum": -1})(given, 2.0)
    same(found["sum"], XS.T + 2)
    same(found["both"].one, np.stack([W] * 3))
    same(found["both"].other[0], XS.sum(axis=1))
    same(ad.vmap(lambda x: (x, W), out_axes=(0, None))(XS)[1], W)


def test_keywords_have_their_axis_first() -> None:
    same(ad.vmap(lambda x, *, y: x * y)(XS, y=XS), XS * XS)
    same(ad.vmap(lambda: np.ones(2), axis_size=3)(), np.ones((3, 2)))


def test_no_examples() -> None:
    none = np.zeros((0, 3))
    assert ad.vmap(lambda x: np.convolve(x, [1.0, 2.0]))(none).shape == (0, 4)
    assert ad.vmap(ad.grad(lambda x: np.sum(x**2)))(none).shape == (0, 3)


def test_arguments_of_the_caller_stay() -> None:
    xs = XS.copy()

    def f(x: Any) -> Any:
        x[0] = 7
        return x

    found = ad.vmap(f)(xs)
    assert np.array_equal(xs, XS)
    assert np.all(found[:, 0] == 7)
    same_array = ad.vmap(lambda x: x)(xs)
    assert not np.shares_memory(same_array, xs)


def test_what_is_seen_inside() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append((x.shape, len(x), x.ndim, x.dtype, isinstance(x, np.ndarray), type(x), type(x > 0), np.shape(x)))
        return sum(row for row in x)

    same(ad.vmap(f)(XS), XS.sum(axis=1))
    assert seen == [((4,), 4, 1, np.dtype(float), True, BatchNode, BatchNode, (4,))]


# ------------------------------------------------------------------------------------------- composition

Function = Callable[..., Any]
DERIVATIVES: dict[str, Callable[[Function, Any, Any], Any]] = {
    "grad": lambda f, w, x: ad.grad(f)(w, x),
    "value_and_grad": lambda f, w, x: np.concatenate([[ad.value_and_grad(f)(w, x)[0]], ad.value_and_grad(f)(w, x)[1]]),
    "jvp": lambda f, w, x: ad.jvp(lambda w: f(w, x), (w,), (W,))[1],
    "vjp": lambda f, w, x: ad.vjp(f, w, x)[1](2.0)[1],
    "grad of grad": lambda f, w, x: ad.grad(lambda w: np.sum(ad.grad(f)(w, x) * x))(w),
    "jvp of grad": lambda f, w, x: ad.jvp(lambda w: ad.grad(f)(w, x), (w,), (x,))[1],
    "grad of jvp": lambda f, w, x: ad.grad(lambda w: ad.jvp(lambda w: f(w, x), (w,), (x,))[1])(w),
}


@pytest.mark.parametrize("f", [loss, written])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_of_each_example(name: str, f: Function) -> None:
    derive = DERIVATIVES[name]
    # Of a single example the last is refused, where an array made within is written into; it is the same as the one before.
    alone = DERIVATIVES["jvp of grad"] if name == "grad of jvp" else derive
    same(ad.vmap(lambda x: derive(f, W, x))(XS), np.stack([alone(f, W, x) for x in XS]))
    both = ad.vmap(lambda x: ad.vmap(lambda y: derive(f, W, x * y))(XS))(XS)
    same(both, np.stack([[alone(f, W, x * y) for y in XS] for x in XS]))


@pytest.mark.parametrize("f", [loss, written])
@pytest.mark.parametrize("operator", [ad.grad, ad.hessian, ad.jacobian, ad.jacfwd, lambda f: lambda w: ad.jvp(f, (w,), (W,))[1]])
def test_derivatives_of_all_examples(operator: Any, f: Function) -> None:
    def of_all(w: Any) -> Any:  # what is shared cannot be written into by each example
        return np.sum(ad.vmap(lambda w, x: f(w + np.zeros_like(x), x), in_axes=(None, 0))(w, XS) ** 2)

    def of_each(w: Any) -> Any:
        return sum(f(np.copy(w), x) ** 2 for x in XS)

    same(operator(of_all)(W), operator(of_each)(W))


def test_a_pullback_of_many() -> None:
    _, pull = ad.vjp(lambda x: np.cumsum(x * x), W)
    same(ad.vmap(pull)(XS)[0], np.stack([pull(x)[0] for x in XS]))


def test_a_graph_of_variables() -> None:
    w = cg.variable(W, "w")
    total = np.sum(ad.vmap(loss, in_axes=(None, 0))(w, XS))
    same(ad.reverse.gradient(total)["w"], sum(ad.grad(loss)(W, x) for x in XS))


# --------------------------------------------------------------------------------------------- refusals

REFUSED: dict[str, tuple[Function, str]] = {
    "if": (lambda x: x if x.sum() > 0 else -x, "np.where"),
    "float": (lambda x: float(x[0]), "np.where"),
    "int": (lambda x: np.zeros(int(x[0])), "np.where"),
    "value": (lambda x: x.value, "np.where"),
    "in": (lambda x: 1.0 in x, "np.where"),
    "mask": (lambda x: x[x > 0], "np.where"),
    "lengths": (lambda x: np.flatnonzero(x > 0.3), "np.where"),
    "drawn": (lambda x: x * np.random.normal(), "randomness"),  # noqa: NPY002
    "drawn by Python": (lambda x: x * random.random(), "randomness"),
    "index of a plain array": (lambda x: np.arange(9.0)[np.argsort(x)], "np.take"),
    "written into a shared array": (lambda x: cg.constant(W).__setitem__(0, x[0]), "np.zeros_like"),
    "gradient": (lambda x: ad.reverse.gradient(np.sum(x))["x"], "vmap"),
    "pickle": (lambda x: pickle.dumps(x), "vmap|another for each"),
    "arange": (lambda x: np.arange(x[0]), "vmap"),
    "no array": (lambda x: "text", "no array"),
    "variables": (lambda x: ad.forward.variables(W).primal * x, "vmap"),
    "verify": (ad.grad(lambda x: np.sum(x * x), verify="first"), "vmap"),
    "executor": (lambda x: cg.Executor(x), "vmap"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    f, advice = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=advice):
        ad.vmap(f)(XS)


def test_numbers_of_examples_agree() -> None:
    with pytest.raises(ValueError, match="different numbers"):
        ad.vmap(lambda x, y: x[0] * y[0])(XS, XS[:2])
    with pytest.raises(ValueError, match="no argument"):
        ad.vmap(np.sin, in_axes=None)(XS)
    with pytest.raises(ValueError, match="axis 2"):
        ad.vmap(np.sin, in_axes=2)(XS)
    with pytest.raises(ValueError, match="out_axes is None"):
        ad.vmap(np.sin, out_axes=None)(XS)
    with pytest.raises(TypeError, match="does not nest"):
        ad.vmap(lambda p: p[0], in_axes=([0, 1],))([XS])
    with pytest.raises(ValueError, match="randomness"):
        ad.vmap(np.sin, randomness="some")


# ------------------------------------------------------------------------------------------------ table


def test_kinds_are_of_functions_that_are_recorded() -> None:
    recorded = {*operations.OPNAMES, *policies.BATCH_KINDS}
    assert {*policies.BATCH_KINDS} <= recorded
    assert {*policies.BATCH_KINDS.values()} <= {
        "elementwise", "reduction", "position", "cumulative", "ordering", "along", "matrices", "transform", "loop",
    }  # fmt: skip
