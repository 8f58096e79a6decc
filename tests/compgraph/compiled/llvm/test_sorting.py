"""Compiled sorts against NumPy: bits, also of zeros and nan, and the order of equal elements; order statistics; derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from compgraph.compiled.llvm import numpy_sorting
from tests.support.for_each import for_each
from tests.support.jitting import compiled, is_compiled

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]
SHAPES: list[tuple[int, ...]] = [(1,), (2,), (17,), (300,), (3, 40), (0,), (3, 0), (4, 1), (2, 5, 7), (33, 2, 3)]
DTYPES = [np.float64, np.float32, np.int64, np.int32, np.int8, np.uint8, np.uint64, np.bool_]
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sort": np.sort,
    "stable sort": lambda x: np.sort(x, kind="stable"),
    "sort along the first axis": lambda x: np.sort(x, axis=0),
    "sort of all": lambda x: np.sort(x, axis=None),
    "sort of a part": lambda x: np.sort(x[..., ::-2]),
    "method": lambda x: (y := x.copy(), y.sort(), y)[2],
    "argsort": np.argsort,
    "stable argsort": lambda x: np.argsort(x, kind="stable"),
    "argsort with stable": lambda x: np.argsort(x, axis=0, stable=True),
    "argsort along the first axis": lambda x: np.argsort(x, axis=0),
    "argsort of all": lambda x: np.argsort(x, axis=None),
    "argsort backwards": lambda x: np.argsort(x[..., ::-1]),
    "ordered": lambda x: np.take_along_axis(x, np.argsort(x, axis=-1), axis=-1),
}


def ties(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Random numbers, many of them equal; of floats also zeros of both signs, infinities and nan."""
    x = rng.integers(-3, 4, shape).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x = np.where(rng.random(shape) < 0.3, rng.standard_normal(shape).astype(dtype), x)
        for number in (-0.0, np.inf, -np.inf, np.nan):
            x = np.where(rng.random(shape) < 0.1, dtype(number), x)
    return x


def layouts(x: Array) -> list[Array]:
    return [x, np.asfortranarray(x), np.repeat(x, 2, axis=-1)[..., ::2], x[::-1]]


def assert_same_bits(value: Any, expected: Any) -> None:
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
    assert np.ascontiguousarray(value).tobytes() == np.ascontiguousarray(expected).tobytes()


@for_each("name", FUNCTIONS)
@for_each("dtype", DTYPES)
def test_sort_has_bits_of_numpy(name: str, dtype: Any) -> None:
    function, rng = FUNCTIONS[name], np.random.default_rng([list(FUNCTIONS).index(name), DTYPES.index(dtype)])
    for k in rng.integers(0, len(SHAPES), 3):
        argument = layouts(ties(rng, SHAPES[k], dtype))[rng.integers(4)]
        jitted = compiled(function, argument)
        assert "NumPy" not in str(jitted.report()).splitlines()[0], jitted.report()
        with np.errstate(all="raise"):
            for _ in range(3):
                assert_same_bits(jitted(argument), function(argument))
                argument[...] = ties(rng, SHAPES[k], dtype)
        assert is_compiled(jitted), jitted.report()


def test_exact_mode_compiles_sorts() -> None:
    x = ties(np.random.default_rng(0), (6, 50), np.float64)
    for function in FUNCTIONS.values():
        jitted = cg.jit(function, exact=True).compile(x)
        assert "NumPy" not in str(jitted.report()).splitlines()[0], jitted.report()
        assert_same_bits(jitted(x), function(x))


def test_sort_preserves_flags_of_other_steps() -> None:
    """Sorts of nan set no flag, and keep that of a division, which makes NumPy warn."""

    def f(x: Any) -> Any:
        return np.sort(1.0 / x)

    jitted, x = compiled(f, np.ones(20)), np.full(20, np.nan)
    with np.errstate(all="raise"):
        assert np.isnan(jitted(x)).all()
        with pytest.raises(FloatingPointError):
            jitted(np.where(np.arange(20) == 3, 0.0, x))


def test_sort_within_loops() -> None:
    """Repeated sorts become one loop, whose rows move."""

    def f(x: Any) -> Any:
        total = np.zeros(x.shape[1])
        for k in range(x.shape[0]):
            total = np.sort(total * 0.5 + x[k]) + x[k][np.argsort(total, kind="stable")]
        return total

    x = np.random.default_rng(1).standard_normal((40, 9))
    jitted = compiled(f, x)
    assert is_compiled(jitted), jitted.report()
    for argument in (x, -x, np.round(x)):
        np.testing.assert_allclose(jitted(argument), f(argument), rtol=1e-12)
    gradient = ad.grad(lambda x: np.sum(f(x) ** 2))
    np.testing.assert_allclose(compiled(gradient, x)(x), gradient(x), rtol=1e-9, atol=1e-12)


def central_differences(loss: Callable[[Array], Any], x: Array) -> Array:
    step, derivative = 1e-6, np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        change = np.zeros(x.shape)
        change[index] = step
        derivative[index] = (loss(x + change) - loss(x - change)) / (2 * step)
    return derivative


DIFFERENTIABLE: dict[str, Callable[..., Any]] = {
    "sort": np.sort,
    "first axis": lambda x: np.sort(x, axis=0),
    "all": lambda x: np.sort(x, axis=None),
    "stable": lambda x: np.sort(x, kind="stable"),
    "method": FUNCTIONS["method"],
    "ordered": lambda x: np.take_along_axis(x, np.argsort(x, axis=0), axis=0),
    "mean of the greatest": lambda x: np.mean(np.sort(x)[..., -3:], axis=-1),
}


@for_each("name", DIFFERENTIABLE)
@for_each("shape", [(9,), (4, 6), (2, 3, 5)])
def test_derivative_of_sort_is_compiled(name: str, shape: tuple[int, ...]) -> None:
    function, rng = DIFFERENTIABLE[name], np.random.default_rng(5)
    x = rng.standard_normal(shape)
    weights = rng.standard_normal(np.shape(function(x)))

    def loss(x: Any) -> Any:
        return np.sum(np.sin(function(x)) * weights)

    jitted = compiled(ad.grad(loss), x)
    assert "NumPy" not in str(jitted.report()).splitlines()[0], jitted.report()
    np.testing.assert_allclose(jitted(x), central_differences(loss, x), rtol=1e-6, atol=1e-8)
    tied = np.round(x)
    np.testing.assert_allclose(jitted(tied), ad.grad(loss)(tied), rtol=1e-13, atol=1e-14)
    for derivative in (ad.hessian(loss), lambda x: ad.jvp(loss, (x,), (weights.sum() * x,))[1]):
        np.testing.assert_allclose(compiled(derivative, x)(x), derivative(x), rtol=1e-10, atol=1e-12)


STATISTICS: dict[str, Callable[..., Any]] = {
    "median": np.median,
    "median along the last axis": lambda x: np.median(x, axis=-1),
    "median along the first axis": lambda x: np.median(x, axis=0, keepdims=True),
    "median along two axes": lambda x: np.median(x, axis=(0, -1) if x.ndim > 1 else None, keepdims=True),
    "quantile": lambda x: np.quantile(x, 0.3),
    "quantiles": lambda x: np.quantile(x, [0.0, 0.25, 0.5, 0.77, 1.0], axis=-1),
    "quantiles with keepdims": lambda x: np.quantile(x, [0.9, 0.1], axis=0, keepdims=True),
    "least": lambda x: np.quantile(x, 0, axis=-1),
    "greatest": lambda x: np.quantile(x, [1], axis=-1),
    "percentile": lambda x: np.percentile(x, 35, axis=0),
    "percentiles": lambda x: np.percentile(x, np.array([5.0, 95.0])),
}


@for_each("name", STATISTICS)
@for_each("dtype", [np.float64, np.float32, np.int64, np.uint8, np.bool_])
def test_order_statistic_matches_numpy(name: str, dtype: Any) -> None:
    """Values are NumPy's up to the sign of zeros, also of rows with nan; NumPy decides where infinities are subtracted."""
    if dtype == np.bool_ and "median" not in name:
        return
    function, rng = STATISTICS[name], np.random.default_rng([list(STATISTICS).index(name), np.dtype(dtype).num])
    shapes = [(1,), (6,), (7,), (4, 5), (2, 5, 6), (3, 1, 4)]
    for shape in (shapes[k] for k in rng.integers(0, 6, 2)):
        x = np.round(20 * rng.random(shape)).astype(dtype) if dtype != np.bool_ else rng.random(shape) < 0.5
        argument = layouts(x)[rng.integers(4)]
        jitted = compiled(function, argument)
        assert "NumPy" not in str(jitted.report()).splitlines()[0], jitted.report()
        for number in (0, np.nan, np.inf, -np.inf) if np.dtype(dtype).kind == "f" else (0, 1):
            argument[np.unravel_index(rng.integers(x.size), shape)] = number
            with np.errstate(invalid="ignore"):
                value, expected = jitted(argument), function(argument)
            assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
            np.testing.assert_array_equal(value, expected)


@for_each("name", STATISTICS)
@for_each("shape", [(5,), (6,), (3, 4)])
def test_derivative_of_order_statistic_is_compiled(name: str, shape: tuple[int, ...]) -> None:
    function, x = STATISTICS[name], np.random.default_rng(8).standard_normal(shape)
    weights = np.random.default_rng(9).standard_normal(np.shape(function(x)))

    def loss(x: Any) -> Any:
        return np.sum(np.sin(function(x)) * weights)

    jitted = compiled(ad.grad(loss), x)
    assert "NumPy" not in str(jitted.report()).splitlines()[0], jitted.report()
    np.testing.assert_allclose(jitted(x), central_differences(loss, x), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(jitted(-x), ad.grad(loss)(-x), rtol=1e-12, atol=1e-14)
    if shape == (5,):
        np.testing.assert_allclose(compiled(ad.hessian(loss), x)(x), ad.hessian(loss)(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        np.nanmedian,
        lambda x: np.quantile(x, 0.3, method="hazen"),
        lambda x: np.quantile(x, 0.3, weights=np.arange(1.0, 31.0), method="inverted_cdf"),
    ],
)
def test_other_order_statistics_are_called(function: Callable[..., Any]) -> None:
    x = np.random.default_rng(2).standard_normal(30)
    jitted = compiled(function, x)
    assert "NumPy" in str(jitted.report()).splitlines()[0], jitted.report()
    np.testing.assert_array_equal(jitted(x), function(x))


def test_exact_mode_calls_order_statistics() -> None:
    x = np.zeros(6) * np.array([1, -1, -1, 1, -1, -1])
    for function in (np.median, STATISTICS["quantiles"]):
        jitted = cg.jit(function, exact=True).compile(x)
        assert "exact" in jitted.report()
        assert_same_bits(jitted(x), np.asarray(function(x)))


@pytest.mark.parametrize(
    "function", [lambda x: np.sort(x, kind="heapsort"), lambda x: np.partition(x, 3), lambda x: np.sort(x + 1j)]
)
def test_other_sorts_are_called(function: Callable[..., Any]) -> None:
    x = ties(np.random.default_rng(2), (30,), np.float64)
    jitted = compiled(function, x)
    assert "NumPy" in str(jitted.report()).splitlines()[0], jitted.report()
    np.testing.assert_array_equal(jitted(x), function(x))


def test_sort_by_another_function_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version of NumPy whose results differ from those of its C API is called."""
    monkeypatch.setattr(numpy_sorting, "is_available", lambda *_: False)
    x = np.random.default_rng(2).standard_normal(30)
    jitted = cg.jit(np.sort, cache=False).compile(x)
    assert "another function" in jitted.report()
    np.testing.assert_array_equal(jitted(x), np.sort(x))
