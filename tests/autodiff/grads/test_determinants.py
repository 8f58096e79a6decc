"""Derivatives of determinants of regular, singular and almost singular matrices, against the Leibniz formula."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradients
from tests.support.arguments import complexes, real
from tests.support.for_each import for_each, sampled


def expand_determinant(x: Any) -> Any:
    """The determinant as the sum over all permutations: a polynomial, whose derivatives need no division."""
    n = np.shape(x)[-1]
    total = 0
    for places in itertools.permutations(range(n)):
        term = (-1) ** sum(a > b for a, b in itertools.combinations(places, 2))
        for row, column in enumerate(places):
            term = term * x[..., row, column]
        total = total + term
    return total


def derivative(x: Any, directions: list[Any]) -> Any:
    """The derivative of a determinant along directions: each replaces one row, in every way."""
    total: Any = 0.0
    for rows in itertools.permutations(range(len(x)), len(directions)):
        moved = x.copy()
        for row, direction in zip(rows, directions, strict=True):
            moved[row] = direction[row]
        total += expand_determinant(moved)
    return total


def matrix(values: Any, numbers: Any) -> Any:
    """A matrix with singular values."""
    n = len(values)
    left, right = (np.linalg.qr(numbers(n, n, seed=seed))[0] for seed in (3, 4))
    return left @ np.diag(values) @ right


VALUES = [
    (1, 2, 3), (1, 2, 0), (1, 0, 0), (0, 0, 0), (2, 0), (0, 0), (0,), (5,),
    (1, 2, 3, 4), (1, 2, 3, 0), (1, 2, 0, 0), (1, 0, 0, 0), (0, 0, 0, 0),
    (1, 2, 1e-17), (1, 1e-16, 1e-16), (1, 1e-5, 1e-5), (1, 1e-4, 1e-9), (1e3, 1, 1e-3),
    (5, 3, 1e-9, 1e-17), (1, 1e-4, 1e-8, 1e-12),
]  # fmt: skip


def forward(f: Callable[[Any], Any], direction: Any) -> Callable[[Any], Any]:
    return lambda x: ad.jvp(f, (x,), (direction,))[1]


def backward(f: Callable[[Any], Any], direction: Any) -> Callable[[Any], Any]:
    def derived(x: Any) -> Any:
        value, pull = ad.vjp(f, x)
        return np.sum(pull(np.ones_like(value))[0] * direction)

    return derived


@sampled
@for_each("numbers", [real, complexes])
@for_each("mode", [forward, backward])
@for_each("values", VALUES, ids=str)
def test_det_derivatives_of_every_order(values: Any, mode: Any, numbers: Any) -> None:
    x = matrix(values, numbers)
    f: Any = np.linalg.det
    directions: list[Any] = []
    for order in (1, 2, 3):
        directions.append(numbers(len(values), len(values), seed=10 + order))
        f = mode(f, directions[-1])
        result, expected = f(x), derivative(x, directions)
        size = float(max(values)) ** max(len(values) - order, 0) * 10**order
        assert abs(result - expected) <= 1e-10 * (size + abs(expected)), f"order {order}: {result} instead of {expected}"


@for_each("x", [np.arange(9.0).reshape(3, 3), np.outer([1.0, 2, 3], [4.0, 5, 6]), np.zeros((3, 3))])
def test_det_hessian_of_singular_matrix(x: Any) -> None:
    expected = ad.hessian(expand_determinant)(x)
    assert np.allclose(ad.hessian(np.linalg.det)(x), expected, rtol=0, atol=1e-12)
    direction = np.outer([1.0, -1, 0], [0.0, 1, 2])  # along one matrix of rank one a determinant is linear
    assert abs(np.sum(ad.hvp(np.linalg.det)(x, direction) * direction)) <= 1e-12


def test_det_of_stacked_matrices() -> None:
    x = np.stack([matrix(values, real) for values in VALUES if len(values) == 3 and max(values) < 10]).reshape(4, 2, 3, 3)
    weights = real(4, 2)
    for derive in (ad.grad, ad.hessian):
        result, expected = (derive(lambda x, f=f: np.sum(weights * f(x) ** 2))(x) for f in (np.linalg.det, expand_determinant))
        assert np.allclose(result, expected, rtol=1e-8, atol=1e-9)


def test_det_with_many_small_singular_values() -> None:
    """More than are left to products and sums."""
    x = matrix([1.0, *10.0 ** -np.linspace(5, 8, 10)], real) * 10
    u, s, vh = np.linalg.svd(x)
    others = np.array([np.prod(np.delete(s, i)) for i in range(len(s))])
    expected = np.linalg.det(u) * np.linalg.det(vh) * (u * others) @ vh
    assert np.allclose(ad.grad(np.linalg.det)(x), expected, rtol=1e-6, atol=1e-10 * np.max(np.abs(expected)))


def test_det_of_zero_matrix_of_any_size() -> None:
    assert not np.any(ad.grad(np.linalg.det)(np.zeros((12, 12))))
    assert not np.any(ad.hvp(np.linalg.det)(np.zeros((12, 12)), np.ones((12, 12))))


def test_det_precision_and_nonfinite_values() -> None:
    x = np.arange(9).reshape(3, 3).astype(np.float32)
    assert ad.hessian(np.linalg.det)(x).dtype == np.float32
    assert np.allclose(ad.hessian(np.linalg.det)(x), ad.hessian(expand_determinant)(x), atol=1e-4)
    stack = np.stack([np.full((3, 3), np.nan), np.outer([1.0, 2, 3], [4.0, 5, 6]), np.eye(3)])
    with np.errstate(all="ignore"):
        gradient = ad.grad(lambda x: np.sum(np.linalg.det(x)))(stack)
    assert np.all(np.isnan(gradient[0]))
    assert np.allclose(gradient[1:], [np.zeros((3, 3)), np.eye(3)])


def test_det_recorded_gradient_replays() -> None:
    """As long as the matrices are as singular as before."""
    x = cg.placeholder((3, 3), name="x", example=np.arange(9.0).reshape(3, 3))
    run = cg.Executor(gradients(np.linalg.det(x), [x]))
    other = np.outer([1.0, 2, 3], [4.0, 5, 6]) + np.outer([1.0, 0, 3], [0.0, 5, 6])
    for again in (other, -other, np.eye(3)):
        assert np.allclose(run.run({x: again})[0], ad.grad(expand_determinant)(again), atol=1e-12)


def test_slogdet_of_singular_matrix_has_infinite_slope() -> None:
    with pytest.warns(RuntimeWarning, match="in the derivative of linalg_slogdet"):
        gradient = ad.grad(lambda x: np.linalg.slogdet(x)[1])(np.outer([1.0, 2], [2.0, 1]))
    assert not np.any(np.isfinite(gradient))
