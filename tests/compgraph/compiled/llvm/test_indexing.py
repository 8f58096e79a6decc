"""Indexing by arrays, array assembly and cumulative operations as machine code, compared with NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradients
from tests.support.for_each import for_each, sampled
from tests.support.machine_code import assert_same, compiled, program_of

pytest.importorskip("llvmlite")
from compgraph.compiled.llvm.backend import LLVMBackend
from compgraph.compiled.llvm.planning import loop_rerolling
from compgraph.executor import passes

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _backend(monkeypatch: pytest.MonkeyPatch) -> None:
    cg.reset()
    monkeypatch.setitem(passes.BACKENDS, "llvm", LLVMBackend())


def report_of(executor: cg.Executor) -> list[str]:
    """Return the operations that call NumPy."""
    report: list[str] = program_of(executor).report
    return report


def assert_compiled(function: Callable[..., Any], recorded: tuple[Any, ...], others: list[tuple[Any, ...]]) -> None:
    """Compiled at some values, a function returns NumPy's results at others, without NumPy calls."""
    holders = [cg.placeholder(np.shape(x), np.asarray(x).dtype, example=x) for x in recorded]
    executor = compiled(function(*holders))
    for values in [recorded, *others]:
        assert_same(executor.run(dict(zip(holders, map(np.asarray, values), strict=True))), function(*values))
    assert report_of(executor) == []


def at_other_values(shape: tuple[int, ...], dtype: Any = float) -> list[tuple[Array]]:
    """Arrays of a shape with zeros of both signs, nan, and several memory layouts."""
    rng = np.random.default_rng(3)
    wide = rng.integers(-3, 4, (*shape, 2)) * (0.5 if np.dtype(dtype).kind == "f" else 1)
    wide = wide.astype(dtype)
    arrays = [wide[..., 0], np.asfortranarray(wide[..., 1]), np.broadcast_to(wide[..., :1][..., 0][:1], shape)]
    if np.dtype(dtype).kind == "f" and wide.size:
        special = wide[..., 0].copy()
        special.flat[:: max(special.size // 2, 1)] = np.nan
        special.flat[-1:] = -0.0
        arrays.append(special)
    return [(a,) for a in arrays]


PLACES = np.array([0, 2, 2, -1])
GRID = np.array([[0, 1], [-1, 0], [1, 1]])
GATHERS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x[PLACES],
    "rows of a list": lambda x: x[[1, 0]],
    "columns": lambda x: x[:, PLACES],
    "last": lambda x: x[..., PLACES],
    "pairs": lambda x: x[GRID, PLACES[:2]],
    "apart": lambda x: x[GRID, :, PLACES[:2]],
    "apart by nothing": lambda x: x[:, GRID, ..., PLACES[:2]],
    "with a number": lambda x: x[1, :, GRID],
    "with a number beside": lambda x: x[:, 1, GRID],
    "a new axis": lambda x: x[None, GRID, None],
    "a new axis between": lambda x: x[GRID, None, PLACES[:2]],
    "a slice backwards": lambda x: x[GRID, ::-1],
    "a slice with a step": lambda x: x[1::2, GRID, ::2],
    "small integers": lambda x: x[PLACES.astype(np.int8)],
    "unsigned": lambda x: x[np.array([0, 2], np.uint32)],
    "strided": lambda x: x[np.arange(6)[::2] % 3],
    "Fortran": lambda x: x[np.asfortranarray(GRID)],
    "a mask": lambda x: x[np.array([True, False, True])],
    "a mask of two axes": lambda x: x[np.arange(12).reshape(3, 4) % 3 == 0],
    "take": lambda x: np.take(x, PLACES, axis=1),
    "take of all": lambda x: np.take(x, GRID),
    "take one": lambda x: np.take(x, 2, axis=-1),
    "take along": lambda x: np.take_along_axis(x, GRID[:, :, None] + np.zeros((3, 2, 5), int), axis=1),
    "take along, broadcast": lambda x: np.take_along_axis(x, GRID[:1, :, None], axis=1),
    "take along all": lambda x: np.take_along_axis(x, PLACES, axis=None),
    "transposed": lambda x: x.T[PLACES],
    "twice": lambda x: x[PLACES][:, PLACES],
}


@sampled
@for_each("name", GATHERS)
@for_each("dtype", [np.float64, np.float32, np.int32, np.bool_])
def test_gather_has_bits_of_numpy(name: str, dtype: Any) -> None:
    shape = (3, 4, 5)
    assert_compiled(GATHERS[name], (np.ones(shape, dtype),), at_other_values(shape, dtype))


@for_each("name", GATHERS)
def test_derivative_of_gather_matches_numpy(name: str) -> None:
    rng = np.random.default_rng(4)
    shape = (3, 4, 5)
    x = cg.placeholder(shape, name="x", example=rng.random(shape))

    def function(x: Any) -> Any:
        return np.sum(np.sin(GATHERS[name](x)) * 1.5)

    (gradient,) = gradients(function(x), [x])
    executor = compiled(gradient)
    at = rng.standard_normal(shape)
    np.testing.assert_allclose(executor.run({"x": at}), ad.grad(function)(at), rtol=1e-12)
    assert report_of(executor) == []


def test_gather_at_computed_indices() -> None:
    def function(x: Any, i: Any) -> Any:
        return x[i * 2 - 1] * 2.0 + np.take(x, i)

    rng = np.random.default_rng(5)
    at = rng.standard_normal(7)
    others = [(rng.standard_normal(7), i) for i in (np.array([0, 3, 2]), np.array([-3, 1, 0]))]
    assert_compiled(function, (at, np.array([1, 2, 3])), others)
    x, i = cg.placeholder((7,), name="x"), cg.placeholder((3,), int, name="i", example=np.array([1, 2, 3]))
    executor = compiled(function(x, i))
    for bad in (np.array([0, 4, 1]), np.array([0, -4, 1])):
        with pytest.raises(IndexError, match="out of bounds"):
            executor.run({"x": at, "i": bad})


def test_gather_at_one_computed_index() -> None:
    def function(x: Any) -> Any:
        return x[np.argmax(x[:, 0]), np.argmin(x[0])] + x[np.argmax(x[:, 1])][0]

    rng = np.random.default_rng(6)
    assert_compiled(function, (rng.random((4, 5)),), [(rng.random((4, 5)),) for _ in range(4)])


def test_gather_of_no_elements_matches_numpy() -> None:
    x, i = cg.placeholder((3, 0), name="x"), cg.placeholder((2,), int, name="i", example=np.array([0, 1]))
    executor = compiled(x[i])
    assert executor.run({"x": np.ones((3, 0)), "i": np.array([0, 2])}).shape == (2, 0)
    with pytest.raises(IndexError):
        executor.run({"x": np.ones((3, 0)), "i": np.array([0, 5])})


# --------------------------------------------------------------------------------------------- writes


def overwrite(x: Any) -> Any:
    y = x * 2.0
    y[PLACES] = x[:4]
    y[GRID[:, 0]] += x[1, 2]
    return y


def write_by_rows(x: Any) -> Any:
    y = np.zeros_like(x)
    y[[3, 1], 1:] = x[:2, 1:]
    y[:, [0, 2]] = x[:, [2, 0]] * 3.0
    return y + y[::-1]


def write_from_itself(x: Any) -> Any:
    y = x + 0.0
    y[[0, 1, 2]] = y[[1, 2, 3]]
    y[[4, 3]] = y[:2]
    y[np.array([[0, 1], [2, 3]])] = 7.0
    return y


def write_at_mask(x: Any) -> Any:
    y = x * 1.0
    y[np.array([True, False, True, False, True])] = x[0]
    return y


def add_up(x: Any) -> Any:
    y = x * 1.0
    np.add.at(y, PLACES, x[:4])
    return y


def write_through_view(x: Any) -> Any:
    y = x * 1.0
    z = y[1:, ::2]
    z[[0, -1]] = x[0, 0]
    return y


WRITES = [overwrite, write_by_rows, write_from_itself, write_at_mask, add_up, write_through_view]


@sampled
@for_each("function", WRITES)
@for_each("dtype", [np.float64, np.float32])
def test_scatter_at_index_arrays_matches_numpy(function: Callable[[Any], Any], dtype: Any) -> None:
    rng = np.random.default_rng(7)
    values = [(rng.standard_normal((5, 6)).astype(dtype),) for _ in range(3)]
    assert_compiled(function, values[0], values[1:])
    x = cg.placeholder((5, 6), dtype, name="x", example=values[0][0])

    def total(x: Any) -> Any:
        return np.sum(function(x) ** 2)

    (gradient,) = gradients(total(x), [x])
    outputs = compiled(gradient).run({"x": values[1][0]})
    np.testing.assert_allclose(outputs, ad.grad(total)(values[1][0]), rtol=1e-4 if dtype == np.float32 else 1e-11)


def random_program(rng: np.random.Generator) -> Callable[[Any], Any]:
    """Writes and readings at random arrays, in random order; of one axis of length 8."""
    steps = []
    for _ in range(12):
        kind, count = rng.integers(0, 7), int(rng.integers(1, 9))
        steps.append((kind, rng.integers(-8, 8, count), rng.integers(-8, 8, count), int(rng.integers(0, 8 - count + 1))))

    def run(x: Any) -> Any:
        y, z = x * 2.0, x + 0.0
        for kind, to, there, start in steps:
            if kind == 0:
                y[to] = z[there]
            elif kind == 1:
                y[to] = y[there] + 1.0
            elif kind == 2:
                z[to] += y[there]
            elif kind == 3:
                z[start : start + len(to)] = y[to]
            elif kind == 4:
                y = y * z[::-1]
            elif kind == 5:
                np.add.at(z, to, y[there])
            else:
                y[to] = np.cumsum(z)[there]
        return y + z

    return run


@for_each("seed", range(4), rest=range(4, 40))
def test_scatter_of_random_writes_has_bits_of_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    function = random_program(rng)
    values = [(rng.integers(-2, 3, 8) * 0.25,) for _ in range(3)]
    assert_compiled(function, values[0], values[1:])


# --------------------------------------------------------------------------------------------- arrays put together

JOINED: dict[str, Callable[[Any], Any]] = {
    "concatenate": lambda x: np.concatenate([x, x * 2, np.ones((1, 4), x.dtype)]),
    "concatenate on an axis": lambda x: np.concatenate([x, x[:, :1]], axis=-1),
    "concatenate all": lambda x: np.concatenate([x, x.T], axis=None),
    "stack": lambda x: np.stack([x, x[::-1]], axis=1),
    "stack of numbers": lambda x: np.stack([x[0, 0], x[1, 2]]),
    "hstack": lambda x: np.hstack([x, x]),
    "vstack": lambda x: np.vstack([x[0], x]),
    "append": lambda x: np.append(x, x[0]),
    "pad": lambda x: np.pad(x, 1),
    "pad each": lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=2),
    "tile": lambda x: np.tile(x, (2, 3)),
    "tile on a new axis": lambda x: np.tile(x[0], (2, 1, 2)),
    "repeat": lambda x: np.repeat(x, 2, axis=1),
    "repeat all": lambda x: np.repeat(x.T, 3),
    "repeat each": lambda x: np.repeat(x, [2, 0, 1], axis=0),
    "flip": lambda x: np.flip(x, 0) + np.flip(x),
    "roll": lambda x: np.roll(x, 5),
    "roll back": lambda x: np.roll(x, -1, axis=1),
    "roll both": lambda x: np.roll(x, (1, -2), axis=(0, 1)),
    "roll twice": lambda x: np.roll(x, (1, 1), axis=(0, 0)),
    "tril": lambda x: np.tril(x) + np.triu(x, 1),
    "diag": lambda x: np.diag(x[0], 1),
    "diag below": lambda x: np.diag(x[:, 0], -2),
    "diag of a matrix": lambda x: np.diag(x) + np.diag(x, -0),
    "diagonal": lambda x: np.diagonal(x, 1) * np.diagonal(x.T, -1),
    "outer": lambda x: np.outer(x, x[0]),
    "multiply.outer": lambda x: np.multiply.outer(x, x[0]),
    "full_like": lambda x: np.full_like(x, 2) + x,
}


@sampled
@for_each("name", JOINED)
@for_each("dtype", [np.float64, np.float32, np.int16, np.bool_])
def test_concatenation_has_bits_of_numpy(name: str, dtype: Any) -> None:
    assert_compiled(JOINED[name], (np.ones((3, 4), dtype),), at_other_values((3, 4), dtype))


@for_each("name", ["concatenate on an axis", "concatenate all", "stack", "roll", "roll both", "outer", "full_like"])
def test_concatenation_of_empty_arrays(name: str) -> None:
    x = cg.placeholder((3, 4), name="x")
    executor = compiled(JOINED[name](x[:, :0][:, :, None].reshape(3, 0)) if name != "stack" else np.stack([x[:0], x[:0]]))
    assert executor.run({"x": np.ones((3, 4))}).size == 0


# --------------------------------------------------------------------------------------------- along axes

EXACT: dict[str, Callable[[Any], Any]] = {
    "max": lambda x: np.max(x, axis=0),
    "min of all": lambda x: np.min(x),
    "any": lambda x: np.any(x, axis=1),
    "all": lambda x: np.all(x, axis=(0, 2), keepdims=True),
    "any of all": lambda x: np.any(x),
    "argmax": lambda x: np.argmax(x, axis=1),
    "argmax of all": lambda x: np.argmax(x),
    "argmin": lambda x: np.argmin(x, axis=-1, keepdims=True),
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "cumsum of all": lambda x: np.cumsum(x),
    "cumprod": lambda x: np.cumprod(x, axis=0),
    "accumulate": lambda x: np.add.accumulate(x),
}
OF_INTEGERS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: np.sum(x, axis=1),
    "sum of all": lambda x: np.sum(x),
    "prod": lambda x: np.prod(x, axis=(0, 1)),
    "mean": lambda x: np.mean(x == x, axis=0),
    "reduce": lambda x: np.add.reduce(x),
    "count": lambda x: np.sum(x > 1, axis=2, keepdims=True),
    "trace": lambda x: np.trace(x),
    "sum of nothing": lambda x: np.sum(x[:0], axis=0) + np.prod(x[:, :0]),
}
SHAPES = [(3, 4, 5), (2, 17, 3), (1, 1, 1), (9, 1, 33)]


INTEGERS = [np.int8, np.uint16, np.int64, np.uint64, np.bool_]


@sampled
@for_each("name", EXACT)
@for_each("dtype", [np.float64, np.float32, *INTEGERS])
@for_each("shape", SHAPES)
def test_reduction_has_bits_of_numpy(name: str, dtype: Any, shape: tuple[int, ...]) -> None:
    assert_compiled(EXACT[name], (np.ones(shape, dtype),), at_other_values(shape, dtype))


@sampled
@for_each("name", OF_INTEGERS)
@for_each("dtype", INTEGERS)
@for_each("shape", SHAPES)
def test_integer_reduction_has_bits_of_numpy(name: str, dtype: Any, shape: tuple[int, ...]) -> None:
    assert_compiled(OF_INTEGERS[name], (np.ones(shape, dtype),), at_other_values(shape, dtype))


ROUNDED: dict[str, Callable[[Any], Any]] = {
    "var": lambda x: np.var(x, axis=0),
    "std": lambda x: np.std(x, axis=(1, 2), ddof=1, keepdims=True),
    "var of all": lambda x: np.var(x),
    "ptp": lambda x: np.ptp(x, axis=1),
    "trace": lambda x: np.trace(x, 1),
    "sum": lambda x: np.sum(x, axis=(0, 2)),
    "mean": lambda x: np.mean(x, axis=1),
}


@sampled
@for_each("name", ROUNDED)
@for_each("dtype", [np.float64, np.float32])
def test_rounded_reduction_matches_numpy(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(8)
    x = cg.placeholder((3, 4, 5), dtype, name="x")
    executor = compiled(ROUNDED[name](x))
    at = rng.standard_normal((3, 4, 5)).astype(dtype)
    for value in (at, np.asfortranarray(at), at[::-1, :, ::-1]):
        outputs, expected = executor.run({"x": value}), ROUNDED[name](value)
        assert outputs.dtype == expected.dtype
        np.testing.assert_allclose(outputs, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)
    assert report_of(executor) == []


def test_reduction_sum_has_signed_zeros_of_numpy() -> None:
    def function(x: Any) -> Any:
        return np.sum(x) + np.sum(x, axis=()) * 0.0, np.sum(x), np.prod(x), np.cumsum(x)

    x = cg.placeholder((1,), name="x")
    at = np.array([-0.0])
    with warnings.catch_warnings():
        for actual, expected in zip(compiled(list(function(x))).run({"x": at}), function(at), strict=True):
            assert_same(actual, expected)


# --------------------------------------------------------------------------------------------- in loops


def spread(x: Any) -> Any:
    """Many iterations with array indices for reads and writes."""
    y = x * 1.0
    for k in range(20):
        z = np.cumsum(y[PLACES]) * 0.25
        y[[1, 3, 0, 5]] = z + x[k % 2]
        y[np.array([2, 2, 4, 1])] += 0.125
        y = y * 0.5 + np.take(x, np.array([5, 4, 3, 2, 1, 0]))
    return y


def walk(x: Any) -> Any:
    """Each iteration reads at an index computed by the previous one."""
    i = np.argmax(x)
    total = x[i] * 1.0
    for _ in range(60):
        i = (i * 5 + 3) % 6
        total = total * 0.5 + x[i]
    return total


@pytest.mark.parametrize("function", [spread, walk])
def test_indexing_by_arrays_in_loops(function: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_rerolling, "MIN_STEPS", 0)
    monkeypatch.setattr(loop_rerolling, "MIN_LOOP_STEPS", 8)
    rng = np.random.default_rng(9)
    values = [(rng.integers(-9, 9, 6) * 0.5,) for _ in range(3)]
    x = cg.placeholder((6,), name="x", example=values[0][0])
    out = function(x)
    executor = compiled([out, *gradients(np.sum(out), [x])])
    for (at,) in values:
        outputs, gradient = executor.run({"x": at})
        assert_same(outputs, function(at))
        np.testing.assert_allclose(gradient, ad.grad(lambda x: np.sum(function(x)))(at), rtol=1e-12, atol=1e-14)
    program = next(iter(executor._programs.values()))
    assert program.report == []
    assert "repeat " in program.source
