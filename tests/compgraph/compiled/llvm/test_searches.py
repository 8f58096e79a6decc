"""Searches in tables that are arguments, interpolation, and histograms, against NumPy; derivatives of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each
from tests.support.jitting import compiled, is_compiled

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]
SEARCHES: dict[str, Callable[..., Any]] = {
    "searchsorted": np.searchsorted,
    "right": lambda t, x: np.searchsorted(t, x, side="right"),
    "method": lambda t, x: t.searchsorted(x),
    "part of a table": lambda t, x: np.searchsorted(t[::2], x.T),
    "digitize": lambda t, x: np.digitize(x, t),
    "digitize right": lambda t, x: np.digitize(x, t, right=True),
    "number": lambda t, x: np.searchsorted(t, 0.7) + np.searchsorted(t, x),
    "constant keys": lambda t, x: np.searchsorted(t, np.array([0.5, 7.0, -1.0])),
}
DTYPES = [np.float64, np.float32, np.int64, np.int16, np.uint8, np.uint64]


def assert_agrees(jitted: Any, function: Callable[..., Any], *args: Any) -> None:
    value, expected = jitted(*args), function(*args)
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(value, expected)


def compiled_without_calls(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    jitted = cg.jit(function, cache=False, **options).compile(*args)
    assert "NumPy" not in str(jitted.report()).splitlines()[0], jitted.report()
    return jitted


def numbers(rng: np.random.Generator, shape: Any, dtype: Any) -> Array:
    x = rng.integers(0, 9, shape).astype(dtype)
    return x + rng.choice([0.0, 0.5, -0.25, -0.0], shape).astype(dtype) if np.dtype(dtype).kind == "f" else x


@for_each("name", SEARCHES)
@for_each("dtype", DTYPES)
@for_each("exact", [False, True])
def test_search_in_table_matches_numpy(name: str, dtype: Any, exact: bool) -> None:
    function, rng = SEARCHES[name], np.random.default_rng([list(SEARCHES).index(name), DTYPES.index(dtype)])
    for key_dtype in rng.choice(DTYPES, 2):
        length, shape = rng.integers(1, 40), [(), (1,), (30,), (4, 5), (0,)][rng.integers(5)]
        shape = shape or (() if np.dtype(key_dtype).kind == "f" else (3,))  # an integer would be a compile-time constant
        table = np.sort(numbers(rng, length, dtype))
        jitted = compiled_without_calls(function, table, np.asarray(numbers(rng, shape, key_dtype)), exact=exact)
        for _ in range(3):
            x = np.asarray(numbers(rng, shape, key_dtype))
            if x.dtype.kind == "f" and "digitize" not in name:
                x = np.where(rng.random(shape) < 0.2, rng.choice([np.inf, -np.inf, np.nan]), x).astype(key_dtype)
            assert_agrees(jitted, function, np.sort(numbers(rng, length, dtype)), x)
        assert is_compiled(jitted), jitted.report()


@for_each("name", ["searchsorted", "right", "digitize"])
def test_table_that_is_not_sorted_runs_as_numpy(name: str) -> None:
    function, rng = SEARCHES[name], np.random.default_rng(0)
    table, x = np.sort(rng.standard_normal(20)), rng.standard_normal(9)
    jitted = compiled_without_calls(function, table, x)
    for other in (table[::-1].copy(), np.append(table[:-1], np.nan), np.full(20, np.nan), np.zeros(20)):
        if name != "digitize" or not np.isnan(other).all():
            assert_agrees(jitted, function, other, x)
    if name == "digitize":
        with pytest.raises(ValueError, match="monoton"):
            jitted(rng.permutation(table), x)
    else:
        assert_agrees(jitted, function, rng.permutation(table), x)


def test_search_in_long_table_is_called() -> None:
    table, x = np.linspace(0, 1, 100_000), np.array([0.25, 0.5])
    jitted = compiled(np.searchsorted, table, x)
    assert "the table is long" in jitted.report()
    assert_agrees(jitted, np.searchsorted, table, x)


def test_search_in_table_with_writes() -> None:
    def f(t: Any, x: Any) -> Any:
        table = t * 1.0
        first = np.searchsorted(table, x)
        table[2:] += 5.0
        second = np.searchsorted(table, x)
        return first + 100 * second + 10_000 * np.searchsorted(np.add(table, t, out=table), x)

    rng = np.random.default_rng(4)
    t, x = np.sort(rng.standard_normal(8)), rng.standard_normal(15)
    assert_agrees(compiled_without_calls(f, t, x), f, t, x)


INTERPOLATIONS: dict[str, Callable[..., Any]] = {
    "interp": np.interp,
    "ends": lambda x, t, y: np.interp(x, t, y, left=-3.0, right=2),
    "matrix": lambda x, t, y: np.interp(x.reshape(2, -1), t, y),
    "knots alone": lambda x, t, y: np.interp(np.linspace(-2, 3, 10), t, y),
    "period": lambda x, t, y: np.interp(x, t, y, period=1.7),
}


@for_each("name", INTERPOLATIONS)
@for_each("dtype", [np.float64, np.float32])
def test_interpolation_at_knots_that_are_arguments(name: str, dtype: Any) -> None:
    function, rng = INTERPOLATIONS[name], np.random.default_rng([list(INTERPOLATIONS).index(name), np.dtype(dtype).num])

    def arguments() -> tuple[Array, ...]:
        t = np.sort(rng.standard_normal(9)).astype(dtype)
        x = np.append(2 * rng.standard_normal(17), t[rng.integers(0, 9, 3)]).astype(dtype)
        return x, t, rng.standard_normal(9).astype(dtype)

    jitted = compiled_without_calls(function, *arguments())
    for _ in range(5):
        assert_agrees(jitted, function, *arguments())
    x, t, y = arguments()
    for special in (np.inf, -np.inf, np.nan):
        with np.errstate(invalid="ignore"):
            assert_agrees(jitted, function, np.where(rng.random(20) < 0.2, dtype(special), x), t, y)
            assert_agrees(jitted, function, x, t, np.where(rng.random(9) < 0.3, dtype(special), y))
    assert_agrees(jitted, function, x, np.sort(np.append(t[1:], t[3])), y)
    if name != "period":
        assert_agrees(jitted, function, x, t[::-1].copy(), y)


@for_each("name", INTERPOLATIONS)
def test_derivative_of_interpolation_is_compiled(name: str) -> None:
    function, rng = INTERPOLATIONS[name], np.random.default_rng(3)
    args = (2 * rng.standard_normal(10), np.sort(rng.standard_normal(6)), rng.standard_normal(6))
    weights = rng.standard_normal(np.shape(function(*args)))

    def loss(*args: Any) -> Any:
        return np.sum(np.sin(function(*args)) * weights)

    positions = (1, 2) if name == "knots alone" else (0, 1, 2)
    derivative = ad.grad(loss, positions)
    values = compiled_without_calls(derivative, *args)(*args)
    for k, value in zip(positions, values, strict=True):
        expected = np.zeros(args[k].shape)
        for index in range(expected.size):
            up, down = ([a.copy() for a in args] for _ in range(2))
            up[k][index] += 1e-6
            down[k][index] -= 1e-6
            expected[index] = (loss(*up) - loss(*down)) / 2e-6
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-7)
    for value, eager in zip(values, derivative(*args), strict=True):
        np.testing.assert_allclose(value, eager, rtol=1e-12, atol=1e-14)


# --------------------------------------------------------------------------------------------- bins

COUNTS: dict[str, Callable[..., Any]] = {
    "minlength": lambda k, w: np.bincount(k, minlength=12),
    "length from the greatest": lambda k, w: np.bincount(k),
    "weights": lambda k, w: np.bincount(k, w, minlength=12),
    "weights, length from the greatest": lambda k, w: np.bincount(k, weights=w),
    "constant weights": lambda k, w: np.bincount(k, np.arange(30.0), minlength=12),
}


@for_each("name", COUNTS)
@for_each("dtype", [np.int64, np.int32, np.uint8])
@for_each("exact", [False, True])
def test_bincount_matches_numpy(name: str, dtype: Any, exact: bool) -> None:
    function, rng = COUNTS[name], np.random.default_rng(6)
    k, w = rng.integers(0, 11, 30).astype(dtype), rng.standard_normal(30)
    k[0] = 10
    jitted = compiled_without_calls(function, k, w, exact=exact)
    for greatest in (10, 9, 11, 15):  # NumPy has another number of bins
        assert_agrees(jitted, function, np.where(k == 10, greatest, k).astype(dtype), w[::-1].copy())
    with pytest.raises((ValueError, TypeError)):
        jitted(np.append(k[1:], -1), w)


@for_each("dtype", [np.float64, np.float32, np.int64])
def test_histogram_matches_numpy(dtype: Any) -> None:
    rng = np.random.default_rng(7)
    functions: list[Callable[..., Any]] = [
        lambda x, w: np.histogram(x, [-2.0, -1.0, 0.25, 0.25, 3.0])[0],
        lambda x, w: np.histogram(x, np.array([-3, 0, 1, 4])),
        lambda x, w: np.histogram(x, 20, (-2.0, 2.0))[0],
        lambda x, w: np.histogram(x, bins=7, range=(-1, 3)),
        lambda x, w: np.histogram(x, bins=np.linspace(-3, 3, 13), weights=w)[0],
        lambda x, w: np.histogram(x, bins=9, range=(-2, 2), weights=w, density=True),
        lambda x, w: np.histogram(x, [-2.0, -1.0, 0.25, 3.0], density=True)[0],
    ]
    for function in functions:
        draws = [(2 * rng.standard_normal((4, 30))).astype(dtype) for _ in range(3)]
        draws[1] = np.round(8 * draws[1]).astype(dtype) / 8 if dtype != np.int64 else draws[1]
        draws[1] = draws[1].astype(dtype)
        w = rng.random((4, 30)).astype(np.float64 if dtype == np.int64 else dtype)
        jitted = compiled_without_calls(function, draws[0], w)
        for x in draws:
            value, expected = jitted(x, w), function(x, w)
            assert type(value) is type(expected)
            for a, b in zip(value, expected, strict=True) if isinstance(value, tuple) else [(value, expected)]:
                assert (a.dtype, a.shape) == (b.dtype, b.shape)
                np.testing.assert_allclose(a, b, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-12)
        if dtype != np.int64 and function is functions[0]:
            special = np.where(rng.random(draws[0].shape) < 0.3, rng.choice([np.nan, np.inf, -np.inf]), draws[0]).astype(dtype)
            np.testing.assert_array_equal(jitted(special, w), function(special, w))


def test_derivative_of_histogram_is_compiled() -> None:
    rng = np.random.default_rng(8)
    x, w, weights = rng.standard_normal(40), rng.random(40), rng.standard_normal(6)
    for is_density in (False, True):

        def loss(w: Any, is_density: bool = is_density) -> Any:
            return np.sum(np.sin(np.histogram(x, 6, (-2, 2), weights=w, density=is_density)[0]) * weights)

        value = compiled_without_calls(ad.grad(loss), w)(w)
        change = 1e-6 * np.eye(40)
        expected = [(loss(w + d) - loss(w - d)) / 2e-6 for d in change]
        np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-8)

    def counted(w: Any) -> Any:
        return np.sum(np.sin(np.bincount(np.arange(40) % 7, w, minlength=9)) ** 2)

    np.testing.assert_allclose(compiled_without_calls(ad.hessian(counted), w)(w), ad.hessian(counted)(w), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.histogram(x, 5)[0],
        lambda x: np.histogram(x, "auto")[0],
        lambda x: np.histogram(np.tile(x, 200), [-1.0, 0.0, 0.5])[0],
        lambda x: np.histogram(x, 20, (1.0, 1.0 + 1e-14))[0],
        lambda x: np.histogram(x, 5, (0, 1), weights=x + 1j)[0],
    ],
)
def test_other_histograms_are_called(function: Callable[..., Any]) -> None:
    x = np.random.default_rng(9).standard_normal(50)
    jitted = compiled(function, x)
    assert "NumPy" in jitted.report().splitlines()[0], jitted.report()
    np.testing.assert_array_equal(jitted(x), function(x))
