"""Linear systems, inverses, determinants and Cholesky factors of small matrices as machine code, compared with NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each

SIZES = [1, 2, 3, 4, 7, 16]
STACKS: list[tuple[int, ...]] = [(), (3,), (2, 1)]


def matrices(shape: tuple[int, ...], dtype: Any = float) -> Any:
    """Well-conditioned matrices whose elimination swaps rows."""
    rng = np.random.default_rng(len(shape) + shape[-1])
    n = shape[-1]
    return (0.2 * rng.standard_normal(shape) + np.roll(np.eye(n), 1, axis=0) * np.linspace(1, 2, n)).astype(dtype)


def positive_definite(shape: tuple[int, ...], dtype: Any = float) -> Any:
    a = np.random.default_rng(2).standard_normal(shape)
    return (a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])).astype(dtype)


def right_hand_side(shape: tuple[int, ...], dtype: Any = float) -> Any:
    return np.random.default_rng(4).standard_normal(shape).astype(dtype)


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[tuple[int, ...], Any], tuple[Any, ...]]]] = {
    "inv": (np.linalg.inv, lambda shape, dtype: (matrices(shape, dtype),)),
    "det": (np.linalg.det, lambda shape, dtype: (matrices(shape, dtype),)),
    "slogdet": (lambda a: tuple(np.linalg.slogdet(a)), lambda shape, dtype: (matrices(shape, dtype),)),
    "solve": (np.linalg.solve, lambda shape, dtype: (matrices(shape, dtype), right_hand_side((*shape[:-1], 3), dtype))),
    "solve a vector": (np.linalg.solve, lambda shape, dtype: (matrices(shape, dtype), right_hand_side(shape[-1:], dtype))),
    "solve with one matrix": (
        np.linalg.solve, lambda shape, dtype: (matrices(shape[-2:], dtype), right_hand_side((*shape[:-1], 2), dtype)),
    ),
    "cholesky": (np.linalg.cholesky, lambda shape, dtype: (positive_definite(shape, dtype),)),
    "cholesky upper": (lambda a: np.linalg.cholesky(a, upper=True), lambda shape, dtype: (positive_definite(shape, dtype),)),
}  # fmt: skip


def compile_fully(function: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    """Compile a function for some arguments, and check that nothing calls NumPy."""
    jitted = cg.jit(function, cache=False)
    jitted.compile(*args)
    assert "NumPy" not in str(jitted.report()).splitlines()[0], str(jitted.report())
    return jitted


@for_each("name", FUNCTIONS)
@for_each("n", SIZES)
@for_each("stack", STACKS)
@for_each("dtype", ["f8", "f4"])
def test_factorization_matches_numpy(name: str, n: int, stack: tuple[int, ...], dtype: str) -> None:
    function, make = FUNCTIONS[name]
    args = make((*stack, n, n), dtype)
    jitted = compile_fully(function, args)
    for layout in (np.ascontiguousarray, np.asfortranarray):
        for value, expected in zip(*map(optree.tree_leaves, (jitted(*map(layout, args)), function(*args))), strict=True):
            assert (np.shape(value), value.dtype) == (np.shape(expected), expected.dtype)
            tolerance = 50 * n * np.finfo(expected.dtype).eps
            np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)


@for_each("name", sorted(FUNCTIONS))
def test_derivatives_of_factorization_match_eager_ones(name: str) -> None:
    function, make = FUNCTIONS[name]
    args = make((2, 3, 3), float)

    def loss(*args: Any) -> Any:
        return sum(np.sum(np.sin(leaf)) for leaf in optree.tree_leaves(function(*args)))

    every = tuple(range(len(args)))
    for derivative in (ad.grad(loss, every), ad.hessian(loss), lambda *a: ad.jvp(loss, a, tuple(np.cos(x) for x in a))):
        jitted = cg.jit(derivative, cache=False)
        jitted.compile(*args)
        for value, expected in zip(*map(optree.tree_leaves, (jitted(*args), derivative(*args))), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-9)


@for_each("name", ["inv", "solve", "cholesky"])
@for_each("n", [1, 2, 5])
def test_singular_matrix_raises_error_of_numpy(name: str, n: int) -> None:
    function, make = FUNCTIONS[name]
    args = make((2, n, n), float)
    jitted = compile_fully(function, args)
    for bad in (np.zeros((n, n)), -np.ones((n, n))):
        broken = args[0].copy()
        broken[1] = bad
        if name != "cholesky" and n == 1 and bad.any():
            continue
        with pytest.raises(np.linalg.LinAlgError) as expected:
            function(broken, *args[1:])
        with pytest.raises(np.linalg.LinAlgError, match=str(expected.value)):
            jitted(broken, *args[1:])
    for value, reference in zip(*map(np.atleast_1d, (jitted(*args), function(*args))), strict=True):
        np.testing.assert_allclose(value, reference, rtol=1e-13, atol=1e-13)


@for_each("n", [1, 2, 5])
def test_determinant_of_singular_matrix(n: int) -> None:
    jitted = compile_fully(lambda a: (np.linalg.det(a), *np.linalg.slogdet(a)), (np.eye(n),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jitted(np.zeros((n, n))) == (0.0, 0.0, -np.inf)
        assert jitted(np.diag(np.arange(n) * 1.0)) == (0.0, 0.0, -np.inf)


def test_determinant_of_extreme_numbers() -> None:
    a = np.diag([1e300, 1e300, 1e-300, -1e-300])
    jitted = compile_fully(np.linalg.det, (a,))
    np.testing.assert_allclose(jitted(a), np.linalg.det(a), rtol=1e-12)
    with np.errstate(invalid="ignore"):
        assert np.isnan(jitted(np.full((4, 4), np.nan)))


def test_large_matrices_are_calls() -> None:
    a = matrices((17, 17))
    jitted = cg.jit(np.linalg.inv, cache=False)
    jitted.compile(a)
    assert "more than 16 rows" in str(jitted.report())
    np.testing.assert_array_equal(jitted(a), np.linalg.inv(a))


def test_exact_program_calls_numpy() -> None:
    a = matrices((5, 5))
    for function in (np.linalg.inv, np.linalg.det, np.linalg.cholesky):
        argument = positive_definite((5, 5)) if function is np.linalg.cholesky else a
        jitted = cg.jit(function, cache=False, exact=True)
        jitted.compile(argument)
        np.testing.assert_array_equal(jitted(argument), function(argument))


def test_kalman_filter_compiles_as_one_program() -> None:
    observations = np.random.default_rng(0).standard_normal((12, 2))
    step, observed = np.eye(4) + 0.1 * np.eye(4, k=2), np.eye(2, 4)

    def negative_log_likelihood(noise: Any, y: Any) -> Any:
        state, covariance, total = np.zeros(4), np.eye(4), 0.0
        for row in y:
            state, covariance = step @ state, step @ covariance @ step.T + np.exp(noise) * np.eye(4)
            uncertainty, error = observed @ covariance @ observed.T + 0.1 * np.eye(2), row - observed @ state
            gain = np.linalg.solve(uncertainty, observed @ covariance).T
            total = total + 0.5 * (error @ np.linalg.inv(uncertainty) @ error + np.linalg.slogdet(uncertainty)[1])
            state, covariance = state + gain @ error, covariance - gain @ observed @ covariance
        return total

    derivative = ad.value_and_grad(negative_log_likelihood)
    args = np.array(-1.0), observations
    for value, expected in zip(compile_fully(derivative, args)(*args), derivative(*args), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-12)
