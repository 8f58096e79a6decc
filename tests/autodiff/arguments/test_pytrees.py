"""Arguments and results that nest."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, make_dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import compgraph as cg
from autodiff import grad, jvp, value_and_grad, vjp
from autodiff.arguments import flatten, unflatten
from tests.support.for_each import for_each


class Layer(NamedTuple):
    w: Any
    b: Any


@dataclass
class Model:
    layers: list[Layer]
    scale: Any
    note: Any = None

    def __post_init__(self) -> None:
        assert isinstance(self.layers, list)


@dataclass(frozen=True)
class Frozen:
    a: Any


def model() -> Model:
    rng = np.random.default_rng(0)
    return Model([Layer(rng.normal(size=(3, 2)), rng.normal(size=2)), Layer(rng.normal(size=(2, 1)), np.zeros(1))], 1.5)


def loss(m: Model, x: Any) -> Any:
    for layer in m.layers:
        x = np.tanh(x @ layer.w + layer.b) * m.scale
    return np.sum(x * x)


X = np.random.default_rng(1).normal(size=(4, 3))


def flat(tree: Any) -> Any:
    return np.concatenate([np.ravel(leaf) for leaf in flatten(tree)[0]])


def moved(tree: Any, along: Any, step: float) -> Any:
    leaves, structure = flatten(tree)
    return unflatten(structure, [a + step * d for a, d in zip(leaves, flatten(along)[0], strict=True)])


def like(tree: Any, seed: int = 2) -> Any:
    """A direction."""
    leaves, structure = flatten(tree)
    rng = np.random.default_rng(seed)
    return unflatten(structure, [rng.normal(size=np.shape(leaf)) for leaf in leaves])


def slope(f: Any, tree: Any, along: Any) -> Any:
    return (f(moved(tree, along, 1e-6)) - f(moved(tree, along, -1e-6))) / 2e-6


def test_grad_returns_structure_of_argument() -> None:
    m = model()
    value, g = value_and_grad(loss)(m, X)
    assert value == loss(m, X)
    assert isinstance(g, Model)
    assert isinstance(g.layers[1], Layer)
    assert g.layers[0].w.shape == (3, 2)
    assert g.note is None
    along = like(m)
    assert np.isclose(flat(g) @ flat(along), slope(lambda t: loss(t, X), m, along), rtol=1e-7)


def test_jvp_of_pytree_agrees_with_grad() -> None:
    m, along = model(), like(model())
    value, tangent = jvp(lambda t: loss(t, X), (m,), (along,))
    assert value == loss(m, X)
    assert np.isclose(tangent, flat(grad(loss)(m, X)) @ flat(along), rtol=1e-12)


def test_grad_of_pytree_is_differentiable() -> None:
    m, along = model(), like(model())

    def directional(t: Model) -> Any:
        return np.sum(np.stack([np.sum(a * d) for a, d in zip(flatten(grad(loss)(t, X))[0], flatten(along)[0], strict=True)]))

    second = grad(directional)(m)
    expected = (flat(grad(loss)(moved(m, along, 1e-5), X)) - flat(grad(loss)(moved(m, along, -1e-5), X))) / 2e-5
    assert np.allclose(flat(second), expected, rtol=1e-6, atol=1e-7)
    pushed = jvp(lambda t: grad(loss)(t, X), (m,), (along,))[1]
    assert isinstance(pushed, Model)
    assert np.allclose(flat(pushed), flat(second), rtol=1e-9)


@for_each(
    "tree",
    [[1.0, 2.0], (1.0, [2.0, None]), {"b": 1.0, "a": (2.0,)}, Layer(1.0, None), Frozen(Frozen(3.0)), {1: {"x": [0.5]}}],
    ids=["list", "tuple", "dictionary", "named tuple", "dataclasses", "dictionaries"],
)
def test_grad_accepts_every_kind_of_pytree(tree: Any) -> None:
    def total(t: Any) -> Any:
        return np.sum(np.stack([leaf**2 for leaf in flatten(t)[0]]))

    gradient = grad(total)(tree)
    assert type(gradient) is type(tree)
    assert flatten(gradient)[1] == flatten(tree)[1]
    assert flat(gradient).tolist() == (2 * flat(tree)).tolist()


def test_grad_argnums_by_name_and_keyword() -> None:
    def f(a: Any, b: Any, *, c: Any) -> Any:
        return a * b**2 * np.sum(c["k"])

    c = {"k": np.ones(3)}
    assert grad(f, "b")(2.0, 3.0, c=c) == 36
    assert grad(f, ("b", 0))(2.0, 3.0, c=c) == (36, 27)
    assert grad(f, "c")(2.0, 3.0, c=c)["k"].tolist() == [18, 18, 18]
    assert grad(f, ("c", "a"))(a=2.0, b=3.0, c=c)[1] == 27
    with pytest.raises(ValueError, match="contains 'd', which is not an argument"):
        grad(f, "d")(2.0, 3.0, c=c)
    with pytest.raises(ValueError, match="contains 'c', which is not an argument"):
        grad(lambda a, c=1.0: a * c, "c")(2.0)
    with pytest.raises(ValueError, match="argnums 2 is out of range"):
        grad(f, 2)(2.0, 3.0, c=c)


def test_has_aux_returns_plain_values() -> None:
    def f(p: Any) -> Any:
        h = p["w"] * 2
        return np.sum(h), {"h": h, "n": 3, "none": None}

    gradient, aux = grad(f, has_aux=True)({"w": np.ones(2)})
    assert gradient["w"].tolist() == [2, 2]
    assert type(aux["h"]) is np.ndarray
    assert aux["n"] == 3
    outer = cg.variable(2.0)
    (_, aux), _ = value_and_grad(lambda x: (x, x * outer), has_aux=True)(1.0)
    assert isinstance(aux, cg.Node)
    with pytest.raises(TypeError, match="has_aux=True, but"):
        grad(lambda x: x, has_aux=True)(1.0)


def test_vjp_and_jvp_return_nested_results() -> None:
    def f(x: Any, p: Any) -> Any:
        return {"y": x * p[0], "z": (np.sum(x), None), "w": p[1] * 1.0}

    x, p = np.array([1.0, 2.0]), [np.array([3.0, 4.0]), np.float32(2)]
    value, pull = vjp(f, x, p)
    assert value["y"].tolist() == [3, 8]
    assert value["z"] == (3, None)
    of_x, of_p = pull({"y": np.array([1.0, 10.0]), "z": (5.0, None), "w": np.float32(7)})
    assert of_x.tolist() == [3 + 5, 40 + 5]
    assert of_p[0].tolist() == [1, 20]
    assert of_p[1] == 7
    assert of_p[1].dtype == np.float32
    tangent = jvp(f, (x, p), (np.ones(2), [np.zeros(2), np.float32(1)]))[1]
    assert tangent["y"].tolist() == [3, 4]
    assert tangent["z"] == (2, None)
    assert tangent["w"] == 1
    with pytest.raises(ValueError, match="cotangent nests as"):
        pull([1.0])
    with pytest.raises(ValueError, match="tangents nest as"):
        jvp(f, (x, p), (np.ones(2), np.ones(2)))


def test_flatten_registers_dataclass_in_concurrent_threads() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for i in range(30):
                kind, start = make_dataclass(f"New{i}", ["a"]), threading.Barrier(4)

                def derive(kind: Any = kind, start: threading.Barrier = start) -> Any:
                    start.wait()
                    return grad(lambda t: t.a**2)(kind(2.0)).a

                assert [future.result() for future in [pool.submit(derive) for _ in range(4)]] == [4, 4, 4, 4]
    finally:
        sys.setswitchinterval(interval)


def test_grad_of_argument_without_arrays_raises() -> None:
    for nothing in (None, [], {"a": None}):
        with pytest.raises(TypeError, match="contain no array"):
            grad(lambda x: 1.0)(nothing)
    for wrong in (["a"], {"n": np.array([1, 2])}):
        with pytest.raises(TypeError, match="is not differentiable"):
            grad(lambda x: 1.0)(wrong)
    with pytest.raises(TypeError, match="returned None"):
        vjp(lambda x: None, 1.0)
    with pytest.raises(TypeError, match="was not recorded"):
        vjp(lambda x: [x, x.value], 1.0)
