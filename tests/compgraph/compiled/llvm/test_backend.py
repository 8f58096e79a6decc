"""Machine code against the executor's NumPy: every case of the tables, and random programs, with new values."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradients
from tests.support.checks.machine_code import assert_alike
from tests.support.for_each import for_each, sampled
from tests.support.machine_code import compiled, program_of

pytest.importorskip("llvmlite")
from compgraph.compiled.llvm.backend import LLVMBackend
from compgraph.compiled.llvm.lowering import graph_lowering
from compgraph.executor import passes

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _backend(monkeypatch: pytest.MonkeyPatch) -> None:
    cg.reset()
    monkeypatch.setitem(passes.BACKENDS, "llvm", LLVMBackend())


# --------------------------------------------------------------------------------------------- programs that compile whole


def chain(x: Any) -> Any:
    for _ in range(5):
        x = np.sin(x) * 1.1 + np.tanh(x)
    return np.sum(x)


def neighbors(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 1):
        total = total + x[i] * x[i + 1]
    return total


def recurrence(x: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = np.sin(y[i - 1]) * x[i]
    return np.sum(y)


def heat(x: Any) -> Any:
    u = x.copy()
    for _ in range(5):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


def reverse_in_place(x: Any) -> Any:
    y = x * 2.0
    y[...] = y[::-1]
    y[1:] = y[:-1] * x[1:]
    return np.sum(y * x)


def pairwise(x: Any) -> Any:
    d = x[:, None] - x[None]
    return np.sum(np.sqrt(d * d + 1e-2))


def classify(x: Any) -> Any:
    h = np.reshape(x[: len(x) // 2 * 2], (-1, 2)) @ np.array([[0.3, -0.2, 0.5], [0.1, 0.4, -0.6]])
    h = h - np.max(h, axis=1, keepdims=True)
    h = h - np.log(np.sum(np.exp(h), axis=1, keepdims=True))
    return -np.mean(np.where(h > -1.0, h, 0.5 * h))


PROGRAMS = [chain, neighbors, recurrence, heat, reverse_in_place, pairwise, classify]


@sampled
@for_each("function", PROGRAMS)
@for_each("length", [2, 7, 8, 9, 16, 37])
@for_each("dtype", [np.float64, np.float32])
def test_llvm_compiles_program_and_gradient_entirely(function: Any, length: int, dtype: Any) -> None:
    rng = np.random.default_rng(length)
    x = cg.placeholder((length,), dtype, name="x", example=rng.standard_normal(length))
    out = function(x)
    executor = compiled([out, *gradients(out, [x])])
    for _ in range(2):
        at = rng.standard_normal(length).astype(dtype)
        value, gradient = executor.run({"x": at})
        assert_alike([value, gradient], ad.value_and_grad(function)(at))
    if function is not reverse_in_place:  # whose derivative chooses elements by arrays
        assert program_of(executor).report == []


@pytest.mark.parametrize("order", ["C", "F", "strided", "reversed", "broadcast"])
def test_llvm_reads_inputs_of_any_layout(order: str) -> None:
    rng = np.random.default_rng(0)
    whole = rng.standard_normal((6, 10))
    at = {
        "C": whole[:3].copy()[:, :5].copy(),
        "F": np.asfortranarray(whole[:3, :5]),
        "strided": whole[::2, ::2],
        "reversed": whole[:3, :5][::-1, ::-1],
        "broadcast": np.broadcast_to(whole[0, :5], (3, 5)),
    }[order]
    x = cg.placeholder((3, 5), name="x")
    out = [np.exp(x) * x.T[:, :1].T, np.sum(x * x, axis=0), np.sum(x, axis=1), x.T]
    assert_alike(compiled(out).run({"x": at}), cg.Executor(out).run({"x": at}))


def test_llvm_reads_updated_variables() -> None:
    w = cg.variable([1.0, 2.0, 3.0], "w")
    executor = compiled([np.sum(w * w), w + 1])
    assert executor.run()[0] == 14.0
    w[...] = [2.0, 2.0, 2.0]
    outputs = executor.run()
    assert outputs[0] == 12.0
    outputs[1][...] = 0.0
    np.testing.assert_array_equal(executor.run()[1], [3.0, 3.0, 3.0])


def test_llvm_results_share_no_memory() -> None:
    x = cg.placeholder((4,), name="x")
    y = x * 2
    executor = compiled([x, y, y, y[1:], np.transpose(y)])
    at = np.arange(4.0)
    outputs = executor.run({"x": at})
    for k, a in enumerate(outputs):
        assert not np.may_share_memory(a, at)
        assert not any(np.shares_memory(a, b) for b in outputs[k + 1 :])
    before = [np.array(a) for a in outputs]
    executor.run({"x": at + 1})
    for a, b in zip(outputs, before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_llvm_floating_point_warnings_match_numpy() -> None:
    x = cg.placeholder((9,), name="x")
    executor = compiled([np.log(x), 1 / x])
    good, bad = np.linspace(1.0, 2.0, 9), np.linspace(0.0, 2.0, 9)
    with np.errstate(all="raise"):
        executor.run({"x": good})
        with pytest.raises(FloatingPointError, match="divide by zero"):
            executor.run({"x": bad})
    with np.errstate(all="ignore"):
        assert executor.run({"x": bad})[0][0] == -np.inf
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        executor.run({"x": bad})


@pytest.mark.parametrize("operation", [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.fmax, np.fmin])
def test_llvm_arithmetic_has_bits_of_numpy(operation: Any) -> None:
    special = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 5e-324, 1.7e308, 3.0])
    a, b = (x.ravel().copy() for x in np.meshgrid(special, special))
    x, y = cg.placeholder(a.shape, name="x"), cg.placeholder(b.shape, name="y")
    with np.errstate(all="ignore"):
        outputs = compiled(operation(x, y)).run({"x": a, "y": b})
        expected = operation(a, b)
    np.testing.assert_array_equal(outputs, expected)
    if operation not in (np.maximum, np.minimum, np.fmax, np.fmin):
        np.testing.assert_array_equal(
            np.signbit(outputs), np.signbit(expected) & ~np.isnan(expected) | np.signbit(outputs) & np.isnan(outputs)
        )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64, np.bool_])
def test_llvm_integers_wrap_as_numpy(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    kind = np.dtype(dtype)
    a, b = (rng.integers(0, 2, 37).astype(kind) if kind.kind == "b" else rng.integers(0, 120, 37).astype(kind) for _ in "ab")
    x, y = cg.placeholder(a.shape, kind, name="x"), cg.placeholder(b.shape, kind, name="y")
    nodes = [x + y, x * y, x < y, x == y, np.maximum(x, y), np.where(x > y, x, y), x.astype(float), x + 1.5]
    nodes += [x & y, x | y, x ^ y, ~x]
    feed = {"x": a, "y": b}
    for actual, expected in zip(compiled(nodes).run(feed), cg.Executor(nodes).run(feed), strict=True):
        np.testing.assert_array_equal(actual, expected)
        assert actual.dtype == expected.dtype


def test_llvm_long_sums_have_pairwise_error() -> None:
    at = np.random.default_rng(2).random(1_000_003)
    x = cg.placeholder(at.shape, name="x")
    import math

    exact = math.fsum(at)
    outputs = compiled(np.sum(x)).run({"x": at})
    assert abs(outputs - exact) <= 4 * max(abs(np.sum(at) - exact), np.spacing(exact))


def test_llvm_known_shapes_are_not_checked_at_run_time() -> None:
    x = cg.placeholder((5, 3), name="x")  # while it is alive, reads of shapes are recorded
    executor = compiled(np.reshape(x * 2, (x.shape[0] * 3,)) * len(x) * x.size)
    at = np.arange(15.0).reshape(5, 3)
    np.testing.assert_array_equal(executor.run({"x": at}), np.ravel(at * 2) * 75)
    assert "call" not in program_of(executor).source


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
def test_llvm_uniform_arrays_are_detected_by_small_copies(dtype: Any) -> None:
    size = 3 * graph_lowering._CHUNK + 7
    for number in (0, 1):
        whole = np.full(size, number, dtype)
        assert graph_lowering._uniform_value(whole, None) == number
        for place in (0, 1, 2, graph_lowering._CHUNK, graph_lowering._CHUNK + 1, size - 1):
            other = whole.copy()
            other[place] = 1 - number
            assert graph_lowering._uniform_value(other, None) is None
            for shape in ((size, 1), (1, size)):
                assert graph_lowering._uniform_value(np.asfortranarray(other.reshape(shape)), None) is None
    assert graph_lowering._uniform_value(np.full((3, 4), 5, dtype).T, None) == np.asarray(5).astype(dtype)
    assert graph_lowering._uniform_value(np.full((), 5, dtype), None) == np.asarray(5).astype(dtype)
    assert graph_lowering._uniform_value(np.zeros((0, 3), dtype), None) is None


def test_llvm_uniform_value_compares_bits() -> None:
    assert graph_lowering._uniform_value(np.array([0.0, -0.0]), None) is None
    assert np.isnan(graph_lowering._uniform_value(np.full(3, np.nan), None))
    whole = np.zeros(2**20)
    tracemalloc.start()
    assert graph_lowering._uniform_value(whole, None) == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < whole.nbytes / 8
