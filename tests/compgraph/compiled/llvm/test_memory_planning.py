"""Memory of programs: buffers share the memory of results, and traces are released."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each, sampled
from tests.support.jitting import compiled, is_compiled, same

pytest.importorskip("llvmlite")
from compgraph.compiled.llvm.planning import memory_planning

Array = np.ndarray[Any, Any]


def assert_memory(f: Callable[..., Any], small: tuple[Any, ...], args: tuple[Any, ...], resident: float, peak: float) -> None:
    """Bound the memory that a compiled function holds, and that a call needs beyond it, in sizes of its first argument.

    Each bound holds in one of three measurements, because allocations by other threads are counted as well.
    """
    measured: list[tuple[float, float]] = []
    for _ in range(3):
        measured.append(_current_and_peak(f, small, args))
        if min(h for h, _ in measured) < resident and min(p for _, p in measured) < peak:
            return
    raise AssertionError(f"held and peak {measured}, with bounds {resident} and {peak}")


def _current_and_peak(f: Callable[..., Any], small: tuple[Any, ...], args: tuple[Any, ...]) -> tuple[float, float]:
    jitted = cg.jit(f, cache=False, threads=1)
    tracemalloc.start()
    try:
        jitted.compile(*small)  # imports and one-time allocations
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        jitted.compile(*args)
        gc.collect()
        current = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        jitted(*args)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return (current - before) / args[0].nbytes, (peak - current) / args[0].nbytes


def layers(x: Any, weights: Any) -> Any:
    for w in weights:
        x = np.tanh(x @ w)
    return np.sum(x * x)


def test_memory_plan_residuals_share_memory_with_gradients() -> None:
    rng, beside = np.random.default_rng(0), cg.placeholder((3,))  # while one lives, nodes remember how they were computed
    x, weights = rng.standard_normal((192, 192)), [rng.standard_normal((192, 192)) / 14 for _ in range(20)]
    f = ad.value_and_grad(layers, argnums=1)
    small = (x[:2, :2], [w[:2, :2] for w in weights])
    # Held are a cotangent, one that is computed from it, and the nodes; the peak has the gradients.
    assert_memory(f, small, (x, weights), resident=5, peak=20.5)
    assert beside.shape == (3,)
    jitted = cg.jit(f, threads=1).compile(x, weights)
    assert is_compiled(jitted)
    value, slopes = jitted(x, weights)
    expected, others = f(x, weights)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for slope, other in zip(slopes, others, strict=True):
        np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-12)
        assert slope.flags.owndata
    assert not any(np.may_share_memory(a, b) for a, b in combinations([x, *weights, *slopes], 2))


def _states(x: Any) -> Any:
    """Results of several sizes; some are written late, some are read again."""
    first = np.exp(x * 0.1) @ x
    second = np.tanh(first)
    third = np.sum(second * second, axis=0)
    fourth = (second - third) @ first.T
    return np.sum(fourth), fourth, third, second.T @ fourth, first[::2] * 2.0


def _with_numpy_calls(x: Any) -> Any:
    """NumPy calls in between, with results that share memory with their operands."""
    a = np.tanh(x) @ x
    b = np.sort(a, axis=0, kind="heapsort")
    c = np.atleast_2d(b * 2.0)
    d = np.linalg.inv(c @ c.T + 100 * np.eye(len(c)))
    return d, np.sin(c @ d), np.broadcast_to(a * 3.0, (2, *a.shape))[1] @ b, np.cos(a)


def _with_loops(x: Any) -> Any:
    y, out = x * 1.0, []
    for _ in range(40):
        y = np.tanh(y @ x * 0.1) + x
        out.append(np.sum(y))
    return np.stack(out), y @ y, y * 2.0, np.exp(-y * y)


def _with_writes(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:] = np.sin(x[:-1]) @ x
    z = y * 2.0
    z[:, ::2] += np.cos(y[:, ::2])
    return y, z, np.exp(z - np.max(z)) @ y, np.sum(z)


def _of_other_sizes(x: Any) -> Any:
    half = np.tanh(x[: len(x) // 2] @ x)
    single = (half * half).astype(np.float32)
    return single, half @ x, np.sum(single, axis=0), (half @ x).astype(np.float32) * 2


FUNCTIONS = [_states, _with_numpy_calls, _with_loops, _with_writes, _of_other_sizes]
SHAPES = [(33, 33), (64, 64), (7, 7)]


@sampled
@for_each("f", FUNCTIONS)
@for_each("large", [1, 1000, memory_planning.MIN_HOSTED_BYTES])
@for_each("shape", SHAPES)
def test_memory_plan_results_ignore_earlier_contents(f: Callable[..., Any], large: int, shape: tuple[int, int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory_planning, "MIN_HOSTED_BYTES", large)
        _check_results(f, shape)


def _check_results(f: Callable[..., Any], shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    first, second = rng.standard_normal(shape) * 0.3, rng.standard_normal(shape) * 0.3
    jitted = compiled(f, first)
    for x in (first, second, first):
        outputs = jitted(x)
        for a, b in zip(outputs, f(x), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6 if a.dtype == np.float32 else 1e-9, atol=1e-9)
        arrays = [a for a in outputs if np.ndim(a)]
        assert not any(np.may_share_memory(a, b) for a, b in combinations([x, *arrays], 2))


def test_memory_plan_places_large_values_in_results() -> None:
    x = np.random.default_rng(1).standard_normal((64, 64))
    jitted = compiled(_states, x)
    (program,) = [v.program for p in jitted._caches_by_signature.values() for v in p.specializations]
    assert program._plan.hosts
    for buffer, host in program._plan.hosts.items():
        assert program._plan.offsets[buffer] + buffer.nbytes <= host.nbytes


def test_memory_plan_beyond_argument_limit() -> None:
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal((4, 4)), [rng.standard_normal((4, 4)) / 2 for _ in range(350)]
    f = ad.value_and_grad(layers, argnums=1)
    jitted = compiled(f, x, weights)
    assert is_compiled(jitted)
    assert "calls NumPy" not in jitted.report()
    assert "runs as NumPy" not in jitted.report()
    (value, slopes), (expected, others) = jitted(x, weights), f(x, weights)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_allclose(slopes, others, rtol=1e-6, atol=1e-12)


def test_memory_plan_space_reuses_freed_blocks() -> None:
    space = memory_planning.Arena(200)
    assert [space.try_allocate(64), space.try_allocate(100), space.try_allocate(64), space.try_allocate(9)] == [0, 64, None, None]
    space.release(64, 100)
    assert space.try_allocate(136) == 64
    space.release(0, 64)
    space.release(64, 136)
    assert space.try_allocate(200) == 0
    growing = memory_planning.Arena()
    assert [growing.allocate(1), growing.allocate(65), growing.allocate(64)] == [0, 64, 192]
    growing.release(64, 65)
    assert [growing.allocate(64), growing.allocate(65)] == [64, 256]
    assert growing.size == 384


# --------------------------------------------------------------------------------------------- traces that write


def _rows(x: Any) -> Any:
    """Writes into an array that was there, one that was computed, and a part of a copy of the argument."""
    out, scratch, own = np.zeros((8, *x.shape)), x * 1.0, np.array(x)
    for k in range(8):
        scratch[::2] = np.tanh(scratch[::2] @ x) + out[k - 1, ::2]
        out[k] = scratch * k
    own[1:-1, 1:] += out[3, 1:-1, 1:]
    return out, scratch, np.sum(own * own), 1.0 / own


def test_program_with_writes_keeps_no_trace() -> None:
    def total(x: Any) -> Any:
        return sum(np.sum(np.sin(part)) for part in _rows(x)[:3])

    x = np.random.default_rng(0).standard_normal((96, 96)) * 0.1
    # Held are the work space, and zeros that are written into; its trace has four times as many.
    assert_memory(ad.value_and_grad(total), (x[:4, :4],), (x,), resident=45, peak=np.inf)


def test_program_with_writes_restores_arrays_for_numpy_fallback() -> None:
    x = np.random.default_rng(0).standard_normal((12, 12)) * 0.1
    jitted = compiled(_rows, x)
    for at in (x, x * 2):
        assert all(same(a, b) for a, b in zip(jitted(at), _rows(at), strict=True))
    bad = x.copy()
    bad[0, 0] = 0.0
    for _ in range(2):  # nothing that the first run wrote is there in the second
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            outputs = jitted(bad)
        with np.errstate(all="ignore"):
            assert all(same(a, b) for a, b in zip(outputs, _rows(bad), strict=True))
    assert all(same(a, b) for a, b in zip(jitted(x), _rows(x), strict=True))
