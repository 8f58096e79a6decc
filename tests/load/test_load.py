"""Under load: many threads, deep graphs, long runs, little memory.

By default the sizes are small. COMPGRAPH_LOAD=full in the environment sets the documented ones: 10,000 nested gradients in
each of 8 threads, a graph of a million operations, 100,000 steps.
"""

from __future__ import annotations

import copy
import gc
import os
import pickle
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff.forward import jvp
from autodiff.operators.grad import grad
from autodiff.reverse import gradient, replay
from compgraph.inplace import stores
from compgraph.storage.write_log import CycleCollector

FULL = os.environ.get("COMPGRAPH_LOAD") == "full"


def number(reduced: int, full: int) -> int:
    """How often something is done."""
    return full if FULL else reduced


# ------------------------------------------------------------------------------------------------ threads


@pytest.fixture
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def written(x: Any, shift: float) -> Any:
    """``x**3 + shift * x`` by writing in place, with values computed where nothing is recorded."""
    b = cg.zeros(2)
    b[0] = x * x
    b[1] = shift
    b *= x
    with cg.no_graph():
        silent = x * 2.0
    if isinstance(silent, cg.OperationalNode):  # a tangent is carried on
        raise AssertionError("recorded inside no_graph")
    return b[0] + b[1] + 0.0 * silent


def nested(start: float, shift: float) -> list[tuple[float, float]]:
    """Derivatives of derivatives at a point, and their expected values."""
    f: Callable[[Any], Any] = lambda x: written(x, shift)  # noqa: E731
    second = grad(grad(f))(start)
    slope, along = jvp(grad(f), (start,), (2.0,))
    third = grad(lambda x: x * grad(f)(x))(start)
    x = cg.variable(start, f"x{shift}")
    first = gradient(written(x, shift))[x]
    return [
        (second, 6 * start),
        (slope, 3 * start**2 + shift),
        (along, 12 * start),
        (third, 9 * start**2 + shift),
        (first, 3 * start**2 + shift),
    ]


@pytest.mark.usefixtures("_switching_often")
def test_gradients_nested_in_threads() -> None:
    wrong: list[Any] = []

    def work(thread: int) -> None:
        try:
            for k in range(number(20, 10_000)):
                pairs = nested(1.0 + 0.001 * k, float(thread))
                if not all(abs(value - expected) <= 1e-12 * abs(expected) for value, expected in pairs):
                    wrong.append((thread, k, pairs))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]


@pytest.mark.usefixtures("_switching_often")
def test_names_are_unique_over_threads() -> None:
    names: list[str] = []

    def work() -> None:
        for _ in range(500):
            names.append(cg.variable(1.0).name)  # noqa: PERF401

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names)) == 4000


# -------------------------------------------------------------------------------------------- deep graphs


def test_graph_of_great_depth_supports_all_operations() -> None:
    count = number(20_000, 1_000_000)
    x = y = cg.variable(1.0, "x")
    for _ in range(count):
        y = y * 1.0000001
    expected = gradient(y)[x]
    assert abs(expected - 1.0000001**count) < 1e-6
    started = time.perf_counter()
    assert len(repr(y)) + len(str(y)) < 200
    assert time.perf_counter() - started < 1
    data = pickle.dumps((y, x))
    assert len(data) < 100 * count
    x2, y2 = pickle.loads(data)[::-1]
    del data
    assert gradient(y2)[x2] == expected
    del y2
    y3 = copy.deepcopy(y)
    assert gradient(y3)["x"] == expected
    del y3, y


# ------------------------------------------------------------------------------------------------- memory

LAYERS, SIZE = 50, 64


def network(inputs: Any, weights: list[Any], in_place: bool) -> Any:
    h = inputs
    for w in weights:
        h = h @ w
        if in_place:
            h += 0.1
        h = np.tanh(h)
    return np.sum(h * h)


@pytest.mark.parametrize("in_place", [False, True])
def test_sweep_peak_memory_is_bounded(in_place: bool) -> None:
    """Two layers beyond the gradients; three for a moment, while a rule computes (see benchmarks/memory.py)."""
    rng = np.random.default_rng(0)
    weights = [cg.variable(rng.normal(size=(SIZE, SIZE)) / 8) for _ in range(LAYERS)]
    layer = 8 * SIZE * SIZE
    for wrt, results in ((weights, LAYERS), (weights[:1], 1)):
        loss = network(rng.normal(size=(SIZE, SIZE)), weights, in_place)
        gradient(loss, wrt)
        gc.collect()
        tracemalloc.start()
        try:
            gradients = gradient(loss, wrt)
            current, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(gradients) == results
        overhead = 4_000 * LAYERS  # lists and sets of nodes, whatever the size of a layer
        assert peak - overhead < (results + 3.2) * layer
        assert current - overhead < (results + 0.2) * layer


def peak_of(work: Callable[[], object]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def step_plain(x: Any) -> None:
    x -= 1e-9 * gradient(np.sum(np.tanh(x) * x))["x"]


def step_in_place(x: Any) -> None:
    h = x * 2.0
    h += x
    h[1:] *= h[:-1]
    x -= 1e-9 * gradient(np.sum(h))["x"]


def step_filling(x: Any) -> None:
    b = cg.zeros(3)
    b[0] = x[0]
    for k in (1, 2):
        b[k] = b[k - 1] * x[k]
    total = cg.zeros(())
    total += np.sum(b)
    x -= 1e-9 * gradient(total)["x"]


@pytest.mark.parametrize(
    "step", [*[pytest.param(step, marks=pytest.mark.exhaustive) for step in (step_plain, step_in_place)], step_filling]
)
def test_training_steps_release_memory(step: Callable[[Any], None]) -> None:
    x = cg.variable([1.0, 2.0, 3.0], "x")

    def steps(count: int) -> None:
        for _ in range(count):
            step(x)

    steps(100)
    few = peak_of(lambda: steps(200))
    many = peak_of(lambda: steps(number(800, 100_000)))
    assert many < few + 1_000_000
    gc.collect()
    before = len(gc.get_objects())
    steps(50)
    gc.collect()
    assert len(gc.get_objects()) <= before + 10


@pytest.mark.parametrize("is_collected", [True, False])
def test_written_buffers_are_collected(is_collected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs with writes are cycles; the collector counts objects, and receives their sizes as well."""
    collector = CycleCollector()
    collector.limit = collector.min_limit = 2**24 if is_collected else 2**40
    monkeypatch.setattr(stores, "cycle_collector", collector)
    monkeypatch.setattr(replay, "cycle_collector", collector)
    x = cg.variable(np.ones(50_000), "x")

    def steps() -> None:
        for _ in range(15):
            h = x * 2.0
            h += x
            h *= h
            total = cg.zeros(())
            total += np.sum(h)
            gradient(total)

    piled = 15 * 6 * x.nbytes
    assert (peak_of(steps) < piled / 2) == is_collected


def test_collector_runs_less_often_without_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    counts = [0, 0, 5]
    monkeypatch.setattr(gc, "collect", lambda: calls.append(1) or counts[len(calls) - 1])
    collector = CycleCollector()
    least = collector.min_limit
    for k in range(3):
        collector.add_bytes(least * 2**k)
        assert len(calls) == k
        collector.add_bytes(1)
        assert len(calls) == k + 1
    assert collector.limit == least
    monkeypatch.setattr(gc, "isenabled", lambda: False)
    collector.add_bytes(4 * least)
    assert len(calls) == 3
