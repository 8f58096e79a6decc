"""Tiled nests on a thread pool: equal bits for any number of threads; flags, forks, interrupts, concurrent callers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each, sampled

pytest.importorskip("llvmlite")
from compgraph.compiled.llvm import thread_pool
from compgraph.compiled.llvm.backend import LLVMBackend
from compgraph.compiled.llvm.buffer_ir import BufferView, Map, dense_view
from compgraph.compiled.llvm.planning import LoopNest, parallel_tiling
from compgraph.executor import passes

Array = np.ndarray[Any, Any]
NUMBERS = (1, 2, 3, 7)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nests of a few thousand operations are cut, so that tests are quick."""
    cg.reset()
    monkeypatch.setitem(passes.BACKENDS, "llvm", LLVMBackend())
    monkeypatch.setattr(parallel_tiling, "MIN_WORK", 3000)
    monkeypatch.setattr(parallel_tiling, "TILE_WORK", 700)


def results_of(f: Callable[..., Any], at: Any, recorded_at: Any, number: int | None) -> tuple[list[Array], int]:
    """The result of compiled `f` at `at`, and the number of tiled nests of its program."""
    x = cg.placeholder(np.shape(at), at.dtype, name="x", example=recorded_at)
    nodes = f(x)
    executor = cg.Executor(nodes if isinstance(nodes, list) else [nodes], jit=True, threads=number)
    executor._backend = "llvm"
    results = executor.run({x: at})
    program = next(iter(executor._programs.values()))
    return results, sum(getattr(step, "tiles", 0) > 0 for step in program._steps)


# --------------------------------------------------------------------------------------------- the same bits


def with_gradient(f: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    """A function, and its gradient."""
    from autodiff.reverse import gradients

    def both(x: Any) -> list[Any]:
        out = f(x)
        return [out, *gradients(out, [x])]

    return both


def chain(x: Any) -> Any:
    for _ in range(3):
        x = np.tanh(1.01 * x) + 0.5 * np.sin(x)
    return np.sum(x)


def normalize(x: Any) -> Any:
    d = x - np.mean(x, axis=-1, keepdims=True)
    return np.sum(np.sqrt(np.mean(d * d, axis=-1) + 1.0) * np.max(x, axis=-1))


def fill_by_writes(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:] = x[:-1] * 2
    y[:-1] += x[1:]
    y[::2] *= 3.0
    return np.sum(y * x)


PROGRAMS = {
    "elementwise": lambda x: np.tanh(x) * 2 - x,
    "chain": with_gradient(chain),
    "normalized": with_gradient(normalize),
    "written": with_gradient(fill_by_writes),
    "first axis gone": lambda x: [np.sum(x, 0), np.max(np.exp(x), 0), np.mean(x, 0)],
    "last axis gone": lambda x: [np.sum(x, -1), np.min(x * x, -1), np.mean(x, -1)],
    "all gone": lambda x: [np.sum(x), np.mean(x), np.max(x), np.min(-x), np.sum(x * x)],
    "products": lambda x: np.prod(1 + x / 1e4),
    "transposed": lambda x: np.exp(x.T) + 1.0,
    "backwards": lambda x: np.sum(np.sin(x[::-1]) * x),
    "bits": lambda x: [(x > 0.3) & ~(x < 0.5), np.where(x > 0, x, 2 * x)],
}
SHAPES = [(5000,), (5003,), (8 * 700,), (3, 2000), (2000, 3), (61, 83), (2, 3, 1001), (1, 4001), (600, 11)]


@sampled
@for_each("name", PROGRAMS)
@for_each("shape", SHAPES)
@for_each("dtype", [np.float64, np.float32])
def test_thread_pool_bits_are_independent_of_thread_count(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    rng = np.random.default_rng(0)
    at, recorded_at = (rng.standard_normal(shape).astype(dtype) for _ in "ab")
    f = PROGRAMS[name]
    expected = cg.Executor(f(cg.placeholder(shape, dtype, name="x", example=recorded_at))).run({"x": at})
    first, cuts = results_of(f, at, recorded_at, 1)
    assert cuts
    single = dtype == np.float32
    for a, e in zip(first, expected if isinstance(expected, list) else [expected], strict=True):
        assert np.shape(a) == np.shape(e)
        assert np.asarray(a).dtype == np.asarray(e).dtype
        np.testing.assert_allclose(a, e, rtol=2e-4 if single else 1e-10, atol=2e-3 if single else 1e-9)
    for number in NUMBERS[1:]:
        for a, b in zip(results_of(f, at, recorded_at, number)[0], first, strict=True):
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("order", ["F", "strided", "reversed", "broadcast", "empty", "none"])
def test_thread_pool_reads_inputs_of_any_layout(order: str) -> None:
    whole = np.random.default_rng(0).standard_normal((140, 180))
    at = {
        "F": np.asfortranarray(whole[:70, :90]),
        "strided": whole[::2, ::2],
        "reversed": whole[:70, :90][::-1, ::-1],
        "broadcast": np.broadcast_to(whole[0, :90], (70, 90)),
        "empty": whole[:0, :90],
        "none": whole[0, 0],
    }[order]
    x = cg.placeholder(at.shape, name="x", example=at * 0.5)
    nodes = [x * 2 + 1, x.T - 1.0, np.sum(x * x)]
    executor = cg.Executor(nodes, jit=True, threads=3)
    executor._backend = "llvm"
    for a, e in zip(executor.run({"x": at}), cg.Executor(nodes).run({"x": at}), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-12)
        assert np.shape(a) == np.shape(e)
        assert a.strides == e.strides


def test_thread_pool_integers_and_signed_zeros_keep_bits() -> None:
    at = np.arange(-3000, 3000)
    assert results_of(lambda x: x * 7 - 3, at, at + 1, 3)[0][0].tobytes() == (at * 7 - 3).tobytes()
    zeros = np.where(at % 2, 0.0, -0.0)
    assert results_of(lambda x: x * 3.0, zeros, zeros + 1, 3)[0][0].tobytes() == (zeros * 3.0).tobytes()


def test_thread_pool_long_sums_have_pairwise_error() -> None:
    import math

    at = np.random.default_rng(2).random(1_000_003)
    exact = math.fsum(at)
    (total,), cuts = results_of(np.sum, at, at[::-1], 2)
    assert cuts
    assert abs(total - exact) <= 4 * max(abs(np.sum(at) - exact), np.spacing(exact))


def test_thread_pool_does_not_split_small_nests() -> None:
    assert not _cuts(cg.jit(lambda x: np.sin(x) + 1).compile(np.ones(20)))


def test_thread_pool_does_not_split_repeated_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_tiling, "MIN_WORK", 0)
    buffer = dense_view(np.float64, (1000,)).buffer
    apart, twice = BufferView(buffer, 0, (30, 30), (30, 1)), BufferView(buffer, 0, (30, 30), (20, 1))
    for place, is_cut in ((apart, True), (twice, False)):
        nest = LoopNest(place.shape)
        nest.add(Map("copy", (1.0,), place, buffer.dtype, is_write=True))
        parallel_tiling.tile_nests([nest], [place], 64)
        assert (nest.tiling is not None) == is_cut


def _cuts(jitted: Any) -> int:
    programs = [v.program for p in jitted._caches_by_signature.values() for v in p.specializations]
    return sum(getattr(step, "tiles", 0) > 0 for program in programs for step in program._steps)


# --------------------------------------------------------------------------------------------- flags


@pytest.mark.parametrize("position", [0, 2500, 4999])
def test_thread_pool_warnings_of_every_chunk(position: int) -> None:
    good = np.linspace(1.0, 2.0, 5000)
    bad = good.copy()
    bad[position] = 0.0
    f = cg.jit(lambda x: [np.log(x), 1 / x], threads=2).compile(good)
    assert _cuts(f)
    with np.errstate(all="raise"):
        for _ in range(20):
            f(good)
            with pytest.raises(FloatingPointError, match="divide by zero"):
                f(bad)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        f(bad)


def test_thread_pool_collects_flags_of_all_threads() -> None:
    both = threading.Barrier(2, timeout=60)

    def piece(number: int) -> int:
        both.wait()  # two threads are at it
        return 1 << number

    assert thread_pool.run_tiles(piece, (), 2, 2, None) == 3
    assert thread_pool.run_tiles(lambda number: 1 << number, (), 5, 1, None) == 31


# --------------------------------------------------------------------------------------------- callers, interrupts, forks


def test_thread_pool_concurrent_callers_get_own_results() -> None:
    f = cg.jit(ad.value_and_grad(chain), threads=3)
    points = [np.random.default_rng(k).standard_normal(4000) for k in range(4)]
    f.compile(points[0])
    expected = [f(x)[1].tobytes() for x in points]
    wrong: list[int] = []

    def call(k: int) -> None:
        wrong.extend([k for _ in range(100) if f(points[k])[1].tobytes() != expected[k]])

    callers = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=120)
    assert not any(caller.is_alive() for caller in callers)
    assert wrong == []


def test_thread_pool_nested_run_ends() -> None:
    def outer(number: int) -> int:
        return thread_pool.run_tiles(lambda k: 1 << k, (), 6, 4, None)

    assert thread_pool.run_tiles(outer, (), 6, 4, None) == 63


def test_thread_pool_raises_error_of_worker() -> None:
    both = threading.Barrier(2, timeout=60)
    caller = threading.current_thread()

    def piece(number: int) -> int:
        both.wait()
        if threading.current_thread() is not caller:
            raise MemoryError("no memory")
        return 0

    with pytest.raises(MemoryError, match="no memory"):
        thread_pool.run_tiles(piece, (), 2, 2, None)
    assert thread_pool.run_tiles(lambda number: 0, (), 4, 2, None) == 0


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals of this kind are POSIX's")
def test_thread_pool_interrupt_waits_for_running_chunks() -> None:
    at_work: set[int] = set()
    started = threading.Event()
    main = threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def piece(number: int) -> int:
        if threading.current_thread() is main:
            started.wait(60)
            signal.raise_signal(signal.SIGINT)
            time.sleep(60)
        at_work.add(number)
        started.set()
        time.sleep(0.1)
        signal.pthread_kill(main.ident or 0, signal.SIGINT)  # and another, while it waits
        time.sleep(0.2)
        at_work.discard(number)
        return 0

    try:
        with pytest.raises(KeyboardInterrupt):
            thread_pool.run_tiles(piece, (), 50, 2, None)
        assert at_work == set()
        mask = thread_pool.run_tiles(lambda number: 1 << number, (), 8, 2, None)
    finally:
        signal.signal(signal.SIGINT, before)
    assert mask == 255


PROGRAM = """
import os, signal, sys, threading
import numpy as np
import autodiff as ad
import compgraph as cg

x = np.linspace(-1.0, 1.0, 200_000)
f = cg.jit(ad.value_and_grad(lambda x: np.sum(np.tanh(np.sin(np.tanh(x)) * x))), threads=3).compile(x)
expected = f(x)[1].tobytes()

def always():
    while True:
        f(x)

for _ in range(3):
    threading.Thread(target=always, daemon=True).start()
hung = wrong = 0
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if not child:
        signal.alarm(30)
        os._exit(any(f(x)[1].tobytes() != expected for _ in range(5)))
    status = os.waitpid(child, 0)[1]
    hung += os.WIFSIGNALED(status)
    wrong += os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0
print(hung, wrong, flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform lacks fork")
@pytest.mark.parametrize("forks", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_thread_pool_forked_child_has_own_threads(forks: int) -> None:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(forks)], capture_output=True, text=True, timeout=300, check=False
    )
    assert process.stdout.split() == ["0", "0"], process.stderr
    assert process.returncode == 0, process.stderr


def test_thread_pool_bad_thread_count_raises() -> None:
    x = cg.variable(np.ones(3))
    for wrong, error in ((0, ValueError), (-2, ValueError), (1.5, TypeError), (True, TypeError), ("2", TypeError)):
        with pytest.raises(error, match="threads must be"):
            cg.jit(np.sin, threads=wrong)
        with pytest.raises(error, match="threads must be"):
            cg.Executor(x * 2, jit=True, threads=wrong)
    assert cg.Executor(x * 2, jit=True, threads=np.int64(2)).run().tolist() == [2.0, 2.0, 2.0]
    assert thread_pool.processors() >= 1
    assert LoopNest((3,)).tiling is None
