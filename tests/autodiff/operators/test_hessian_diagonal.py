"""The diagonal of the Hessian, compared with the diagonal of `hessian`."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import linearization
from tests.support.for_each import for_each

Function = Callable[..., Any]
RNG = np.random.default_rng(0)


def dense_interaction(x: Any) -> Any:
    """Every element interacts with every other."""
    v = np.ravel(x)
    return np.sum(np.sin(v) * np.cumsum(v)[::-1] ** 2) + np.prod(v + 1)


def neighbor_interaction(x: Any) -> Any:
    """Elements interact with their neighbors."""
    v = np.ravel(x)
    return np.sum(v**4) + np.sum(np.sin(v[1:] * v[:-1]))


def function_with_writes(x: Any) -> Any:
    y = np.zeros(x.size)
    y[...] = np.ravel(x) ** 2
    y[1:] *= np.sin(y[:-1])
    return np.sum(y**2)


def linear(x: Any) -> Any:
    return np.sum(3 * x)


FUNCTIONS = [dense_interaction, neighbor_interaction, function_with_writes, linear]
SHAPES = [(), (1,), (5,), (2, 3), (2, 1, 2), (0,), (3, 0)]


def diagonal_of(matrix: Any, shape: tuple[int, ...]) -> Any:
    size = int(np.prod(shape))
    return np.diag(np.reshape(matrix, (size, size))).reshape(shape)


@for_each(("f", "shape"), [(f, shape) for f in FUNCTIONS for shape in SHAPES])
def test_hessian_diagonal_matches_hessian(f: Function, shape: tuple[int, ...]) -> None:
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-4)):
        x = RNG.normal(size=shape).astype(dtype)
        expected = diagonal_of(ad.hessian(f)(x), shape)
        for sparse in (False, True):
            diagonal = ad.hessian_diagonal(f, sparse=sparse)(x)
            assert diagonal.shape == shape
            assert diagonal.dtype == dtype
            assert type(diagonal) is (np.ndarray if shape else dtype)
            np.testing.assert_allclose(diagonal, expected, rtol=tolerance, atol=tolerance)


@for_each("layout", [np.asfortranarray, lambda x: np.repeat(x, 2, axis=1)[:, ::2], lambda x: x[::-1]])
def test_hessian_diagonal_memory_layouts(layout: Function) -> None:
    x = RNG.normal(size=(3, 2))
    np.testing.assert_allclose(
        ad.hessian_diagonal(dense_interaction)(layout(x)), diagonal_of(ad.hessian(dense_interaction)(layout(x)), (3, 2))
    )


@for_each("f", FUNCTIONS)
def test_hessian_diagonal_matches_central_differences(f: Function) -> None:
    x, h = RNG.normal(size=4), 1e-4
    expected = [(f(x + h * e) - 2 * f(x) + f(x - h * e)) / h**2 for e in np.eye(4)]
    np.testing.assert_allclose(ad.hessian_diagonal(f)(x), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("most", [8, 200, 10**6])
def test_hessian_diagonal_bounds_batches_of_directions(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = RNG.normal(size=(5, 3))
    expected = diagonal_of(ad.hessian(dense_interaction)(x), x.shape)
    counts: list[int] = []
    original = linearization.Linearization.pull

    def counting(self: Any, seeds: Any, support: Any = None) -> Any:
        counts.append(len(seeds))
        return original(self, seeds, support)

    monkeypatch.setattr(linearization, "MAX_BATCH_BYTES", most)
    monkeypatch.setattr(linearization.Linearization, "pull", counting)
    np.testing.assert_allclose(ad.hessian_diagonal(dense_interaction)(x), expected, rtol=1e-12)
    assert sum(counts) == 15
    assert max(counts) == min(15, max(1, most // (15 * 8)))
    points = np.stack([x, 2 * x])
    diagonal = ad.vmap(ad.hessian_diagonal(dense_interaction))(points)
    np.testing.assert_allclose(diagonal, [diagonal_of(ad.hessian(dense_interaction)(p), x.shape) for p in points], rtol=1e-12)


def test_hessian_diagonal_sparse_needs_few_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    original = linearization.Linearization.pull

    def counting(self: Any, seeds: Any, support: Any = None) -> Any:
        counts.append(len(seeds))
        return original(self, seeds, support)

    x = RNG.normal(size=300)
    expected = ad.hessian_diagonal(neighbor_interaction)(x)
    monkeypatch.setattr(linearization.Linearization, "pull", counting)
    diagonal = ad.hessian_diagonal(neighbor_interaction, sparse=True)(x)
    assert counts == [2]
    np.testing.assert_allclose(diagonal, expected, rtol=1e-12)


def test_hessian_diagonal_nested_and_several_arguments() -> None:
    def f(p: Any, y: Any, scale: float = 1.0) -> Any:
        return scale * dense_interaction(p["w"]) * np.sum(np.exp(y)) + p["b"][0] ** 3 * np.sum(p["w"])

    p, y = {"w": RNG.normal(size=(2, 2)), "b": (0.5,)}, RNG.normal(size=3)
    blocks = ad.hessian(f, (0, 1))(p, y, scale=2.0)
    of_p, of_y = ad.hessian_diagonal(f, (0, 1))(p, y, scale=2.0)
    np.testing.assert_allclose(of_p["w"], diagonal_of(blocks[0]["w"][0]["w"], (2, 2)))
    np.testing.assert_allclose(of_p["b"][0], blocks[0]["b"][0][0]["b"][0])
    np.testing.assert_allclose(of_y, diagonal_of(blocks[1][1], (3,)))
    assert type(of_p["b"]) is tuple
    np.testing.assert_allclose(ad.hessian_diagonal(f, "y")(p, y, scale=2.0), of_y)
    np.testing.assert_allclose(ad.hessian_diagonal(f, argnums=1)(p, y, scale=2.0), of_y)


def test_hessian_diagonal_has_aux() -> None:
    diagonal, aux = ad.hessian_diagonal(lambda x: (dense_interaction(x), {"twice": 2 * x}), has_aux=True)(np.ones(2))
    np.testing.assert_allclose(diagonal, ad.hessian_diagonal(dense_interaction)(np.ones(2)))
    np.testing.assert_array_equal(aux["twice"], [2.0, 2.0])
    assert not isinstance(aux["twice"], cg.Node)


@for_each("f", FUNCTIONS[:3])
def test_hessian_diagonal_is_differentiable(f: Function) -> None:
    x, v = RNG.normal(size=4), RNG.normal(size=4)
    expected = np.einsum("iij->ij", ad.jacobian(ad.hessian(f))(x))
    np.testing.assert_allclose(ad.jacrev(ad.hessian_diagonal(f))(x), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ad.jacfwd(ad.hessian_diagonal(f))(x), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ad.jvp(ad.hessian_diagonal(f), (x,), (v,))[1], expected @ v, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ad.grad(lambda x: np.sum(ad.hessian_diagonal(f)(x)))(x), expected.sum(0), rtol=1e-9, atol=1e-9)


@for_each("f", FUNCTIONS)
def test_hessian_diagonal_vmap_and_nesting(f: Function) -> None:
    points = RNG.normal(size=(2, 3, 4))
    each = np.array([[np.diag(ad.hessian(f)(x)) for x in row] for row in points])
    np.testing.assert_allclose(ad.vmap(ad.vmap(ad.hessian_diagonal(f)))(points), each, rtol=1e-11, atol=1e-11)
    assert ad.vmap(ad.hessian_diagonal(f))(np.zeros((2, 0))).shape == (2, 0)


def test_hessian_diagonal_connects_outer_variables() -> None:
    c = cg.variable(RNG.normal(size=3), "c")
    x = RNG.normal(size=3)
    diagonal = ad.hessian_diagonal(lambda x: np.sum(np.sin(x * c)))(x)
    assert isinstance(diagonal, cg.Node)
    gradient = ad.gradient(np.sum(diagonal))["c"]
    np.testing.assert_allclose(gradient, -2 * c.value * np.sin(c.value * x) - c.value**2 * x * np.cos(c.value * x))


def test_hessian_diagonal_jit_and_pickle() -> None:
    x = RNG.normal(size=4)
    expected = ad.hessian_diagonal(neighbor_interaction)(x)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(ad.hessian_diagonal(neighbor_interaction)))(x), expected)
    jitted = cg.jit(ad.hessian_diagonal(neighbor_interaction))
    for _ in range(2):
        np.testing.assert_allclose(jitted(x), expected, rtol=1e-12)


def test_hessian_diagonal_structural_zeros() -> None:
    x = np.array([0.0, 1.0, -1.0])
    diagonal = ad.hessian_diagonal(lambda x: np.sum(np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)), 0.0)))(x)
    np.testing.assert_allclose(diagonal, [0, -0.25, 0])


WRONG: dict[str, tuple[Function, type[Exception], str]] = {
    "no scalar": (lambda: ad.hessian_diagonal(np.sin)(np.ones(2)), ValueError, "hessian_diagonal: the function returned shape"),
    "complex": (lambda: ad.hessian_diagonal(lambda z: np.sum(np.abs(z) ** 2))(np.ones(2) + 0j), TypeError, "is complex"),
    "integers": (lambda: ad.hessian_diagonal(np.sum)(np.arange(2)), TypeError, "hessian_diagonal"),
    "sparse of two": (lambda: ad.hessian_diagonal(np.dot, (0, 1), sparse=True), ValueError, "needs a single argument"),
    "sparse of nested": (
        lambda: ad.hessian_diagonal(lambda p: np.sum(p["a"] ** 2), sparse=True)({"a": np.ones(2)}),
        ValueError,
        "hessian_diagonal: sparse=True needs a single array",
    ),
    "sparse under vmap": (
        lambda: ad.vmap(ad.hessian_diagonal(neighbor_interaction, sparse=True))(np.ones((2, 3))),
        TypeError,
        "hessian_diagonal: sparse=True is not supported under vmap",
    ),
}


@for_each("label", WRONG)
def test_hessian_diagonal_wrong_calls_raise(label: str) -> None:
    call, error, message = WRONG[label]
    with pytest.raises(error, match=message):
        call()
