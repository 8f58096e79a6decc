"""Graphs of any length are freed with their last reference, and do not mix between threads."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff.forward import jvp
from autodiff.operators.grad import grad, value_and_grad, vjp
from autodiff.reverse import gradient, gradients
from tests.support.failures import Failures


@pytest.fixture
def _without_collector() -> Iterator[None]:
    """Whatever is freed here is freed by reference counts alone."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def graph_of(node: Any) -> list[Any]:
    """All that a node was computed from, itself included."""
    nodes, ids, waiting = [], set(), [node]
    while waiting:
        current = waiting.pop()
        if id(current) not in ids:
            ids.add(id(current))
            nodes.append(current)
            waiting += [current.args[p] for p in current.parent_argnums]
    return nodes


# ------------------------------------------------------------------------------------- no reference cycles

LOSSES: dict[str, Callable[[Any], Any]] = {
    "operators": lambda x: -((x * 2 + 1) / x - x**2) @ x,
    "reflected": lambda x: np.sum(2 - 1 / (3 * x)),
    "ufuncs": lambda x: np.sum(np.exp(np.sin(x)) + np.hypot(x, 1.0)),
    "functions": lambda x: np.mean(np.concatenate([x, np.reshape(x, (2, 2)).ravel()])) + np.var(x),
    "methods": lambda x: x.reshape(2, 2).T.sum(axis=0).max() + x.std(),
    "indexing": lambda x: x[0] * x[1:].sum() + x[[0, 0, 1]].sum() + x[x > 0].sum(),
    "several outputs": lambda x: sum(divmod(x, 0.3)[1]) + np.split(x, 2)[0].sum(),
    "keywords": lambda x: np.sum(x, where=x > 1, axis=0),
    "einsum": lambda x: np.einsum("i,i", x, x),
    "composed": lambda x: np.vstack([x, x]).sum() + np.column_stack([x, x]).sum(),
    "named": lambda x: cg.sum(cg.exp(x, name="e"), name="total"),
    "losses": lambda x: cg.softmax_cross_entropy(x[None], np.array([1])),
    "lists": lambda x: np.sum(x * [1.0, 2.0, 3.0, 4.0]) + np.sum([x[0], x[1], 1.0, 2.0] * x),
    "python sum": lambda x: sum(v * v for v in x),
    "rebinding": lambda x: _rebound(x),
    "piecewise": lambda x: np.sum(np.floor(x) * x) + x[np.argmax(x)],
}


def _rebound(x: Any) -> Any:
    total = x[0]
    for k in range(1, 4):
        total += x[k] * total
    return total


def check_freed(loss_of: Callable[[Any], Any]) -> None:
    """Check that all nodes of a graph are freed with the last reference to it."""
    x = cg.variable([1.0, 2.0, 3.0, 4.0], "x")
    loss = loss_of(x)
    watched = [weakref.ref(node) for node in graph_of(loss) if isinstance(node, cg.Node) and node is not x]
    assert watched
    del loss
    assert not [ref() for ref in watched if ref() is not None]


def check_freed_after_sweeps(loss_of: Callable[[Any], Any]) -> None:
    """Check that a graph and its derivatives are freed with the last reference to them."""
    x = cg.variable([1.0, 2.0, 3.0, 4.0], "x")
    loss = loss_of(x)
    watched = [weakref.ref(node) for node in graph_of(loss) if isinstance(node, cg.Node) and node is not x]
    g = gradient(loss)
    assert g["x"].shape == (4,)
    (higher,) = gradients(loss, [x])
    watched += [weakref.ref(node) for node in graph_of(higher) if isinstance(node, cg.Node) and node is not x]
    del g, loss, higher
    assert not [ref() for ref in watched if ref() is not None]


@pytest.mark.usefixtures("_without_collector")
@pytest.mark.parametrize("check", [check_freed, check_freed_after_sweeps])
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_graph_is_freed_with_last_reference(check: Callable[[Callable[[Any], Any]], None]) -> None:
    with Failures("losses") as failures:
        for label, loss_of in LOSSES.items():
            with failures.case(label):
                check(loss_of)


@pytest.mark.usefixtures("_without_collector")
def test_graph_is_freed_after_inspection() -> None:
    x = cg.variable([1.0, 2.0], "x")
    y = np.sum(x * 2.5 + [1.0, 2.0])
    assert [n.name for n in graph_of(y) if isinstance(n, cg.Node)]
    assert repr(y)
    for node in graph_of(y):
        assert all(isinstance(operand, cg.Node) for operand in node.operands)
    watched = [weakref.ref(node) for node in graph_of(y) if node is not x]
    watched += [weakref.ref(operand) for node in graph_of(y) for operand in node.operands if operand is not x]
    del y, node
    assert not [ref() for ref in watched if ref() is not None]


@pytest.mark.usefixtures("_without_collector")
def test_graph_frees_variables_and_raw_operands() -> None:
    x, a = cg.variable([1.0, 2.0]), np.array([3.0, 4.0])
    y = np.dot(x * a, a)
    operand = y.args[1]
    watched = [weakref.ref(x), weakref.ref(operand), weakref.ref(y), weakref.ref(a)]
    del x, a, operand
    assert watched[0]() is not None, "a graph holds its leaves"
    assert watched[1]() is not None
    assert watched[3]() is None, "the graph has a copy"
    del y
    assert [ref() for ref in watched] == [None, None, None, None]


@pytest.mark.usefixtures("_without_collector")
def test_operators_keep_nothing() -> None:
    references: list[Any] = []

    def f(z: Any) -> Any:
        y = np.sin(z) * z
        references.append(weakref.ref(y))
        return np.sum(y * y)

    a = np.array([1.0, 2.0])
    grad(f)(a)
    value_and_grad(f)(a)
    grad(lambda z: np.sum(grad(f)(z)))(a)
    jvp(f, (a,), (a,))
    assert len(references) == 4
    assert not [ref() for ref in references if ref() is not None]
    _, pull = vjp(f, a)
    assert references[-1]() is not None, "what can be pulled again is kept"
    pull(np.array(1.0))
    del pull
    assert references[-1]() is None


@pytest.mark.usefixtures("_without_collector")
def test_error_keeps_nothing() -> None:
    x = cg.variable([1.0, 2.0])

    def fail() -> None:
        y = x * 2
        watched.append(weakref.ref(y))
        np.cumsum(np.exp(y)) + np.zeros(7)

    watched: list[Any] = []
    for _ in range(2):
        with pytest.raises((TypeError, ValueError)):
            fail()
    del _
    gc.collect()  # the traceback itself is a cycle
    assert not [ref() for ref in watched if ref() is not None]


@pytest.mark.usefixtures("_without_collector")
def test_no_graph_keeps_nothing() -> None:
    x = cg.variable(np.ones(1000))
    reference_count = sys.getrefcount(x)
    with cg.no_graph():
        y = x
        for _ in range(10):
            y = np.sin(y) * 2 + x
    assert sys.getrefcount(x) == reference_count
    assert y.base is None


# --------------------------------------------------------------------------------------------- long chains


@pytest.mark.slow
@pytest.mark.usefixtures("_without_collector")
def test_graph_of_million_operations() -> None:
    """Built, swept and freed without recursion, in time and memory linear in the length."""
    count = 1_000_000
    x = cg.variable(1.0, "x")
    y = x
    started = time.process_time()
    for _ in range(count):
        y = y * 1.000001
    assert np.isclose(gradient(y)["x"], np.exp(1.0), rtol=1e-5)
    last = weakref.ref(y)
    del y
    assert last() is None
    assert sys.getrefcount(x) <= 3
    assert time.process_time() - started < 60


CHAINS: dict[str, Callable[[Any], Any]] = {
    "reflected": lambda y: 1e-9 + y,
    "ufunc": np.positive,
    "function": lambda y: np.clip(y, -9.0, 9.0),
    "view": lambda y: y[::-1],
    "transpose": lambda y: y.T,
    "reshape": lambda y: y.reshape(-1),
    "negation": lambda y: -y,
    "several outputs": lambda y: divmod(y, 100.0)[1],
    "of two": lambda y: 0.5 * y + 0.5 * y,
    "inert": lambda y: y + np.floor(y),
    "list": lambda y: y * [1.0, 1.0],
}


USUAL_CHAINS = ("reflected", "view", "several outputs", "of two")


@pytest.mark.usefixtures("_without_collector")
@pytest.mark.parametrize(
    "label", [pytest.param(label, marks=[] if label in USUAL_CHAINS else pytest.mark.exhaustive) for label in CHAINS]
)
def test_long_chain_of_every_kind(label: str) -> None:
    step = CHAINS[label]
    x = cg.variable([0.25, 0.5], "x")
    y = x
    for _ in range(20_000):
        y = step(y)
    assert np.all(np.isfinite(gradient(np.sum(y))["x"]))
    last = weakref.ref(y)
    del y
    assert last() is None
    assert sys.getrefcount(x) <= 3


@pytest.mark.usefixtures("_without_collector")
def test_long_chain_differentiated_twice() -> None:
    x = cg.variable(1.0, "x")
    y = x
    for _ in range(20_000):
        y = y * 1.00001
    (first,) = gradients(y * y, [x])
    (second,) = gradients(first, [x])
    assert np.isclose(float(second), 2 * 1.00001**40_000)
    watched = [weakref.ref(n) for n in (y, first, second)]
    del y, first, second
    assert [ref() for ref in watched] == [None, None, None]


@pytest.mark.usefixtures("_without_collector")
def test_sweep_of_long_diamond_chain_is_linear() -> None:
    """Each step doubles the number of paths: only a sweep that waits for all cotangents of a node is linear."""
    x = cg.variable(1.0, "x")
    y = x
    for _ in range(500):
        y = y + y * 1e-3
    assert np.isclose(gradient(y)["x"], 1.001**500)


@pytest.mark.usefixtures("_without_collector")
def test_indexing_in_loop_is_linear() -> None:
    def seconds(count: int) -> float:
        x = cg.variable(np.ones(count), "x")
        started = time.process_time()
        total = x[0]
        for k in range(1, count):
            total += x[k]
        g = gradient(total)["x"]
        assert np.array_equal(g, np.ones(count))
        return time.process_time() - started

    seconds(100)
    short = min(seconds(2_000) for _ in range(3))
    assert seconds(32_000) < 16 * 5 * short


# --------------------------------------------------------------------------------------------------- sizes


def peak_of(call: Callable[[], Any]) -> int:
    """The peak memory of a call, in bytes, minus the memory held before it."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_sweep_frees_cotangents() -> None:
    x = cg.variable(np.linspace(0.0, 1.0, 100_000), "x")
    y = x
    for _ in range(50):
        y = np.sin(y) * y
    loss = np.sum(y)
    assert peak_of(lambda: gradient(loss)) < 12 * x.nbytes


def test_recording_copies_nothing() -> None:
    x, a = cg.variable(np.ones(200_000)), np.ones(200_000)  # more than a megabyte, which must not be copied
    results: list[Any] = []
    assert peak_of(lambda: results.append((x[1:], x.T, x.reshape(-1, 10), x[None], np.broadcast_to(x, (9, 200_000))))) < 50_000
    assert peak_of(lambda: results.append(x * a)) < 1.2 * x.nbytes
    assert np.shares_memory(results[1].args[1], a)


def test_compilation_takes_twice_the_memory_of_numpy() -> None:
    def product(a: Any, x: Any) -> Any:
        return a @ x

    def loss(a: Any, x: Any) -> Any:
        return np.sum(np.tanh(a @ x))

    a, x = np.random.default_rng(0).normal(size=(2500, 2500)), np.ones(2500)
    for f in (product, value_and_grad(loss, (0, 1))):
        cg.jit(f, cache=False).compile(a[:3, :3].copy(), x[:3])  # modules are imported once
        eager = peak_of(lambda f=f: f(a, x))
        compiling = peak_of(lambda f=f: cg.jit(f, cache=False).compile(a, x))
        steps = 8_000_000  # of the program, whatever the size of its arrays
        assert a.nbytes + compiling < 2 * (a.nbytes + eager) + steps
        assert compiling < 2 * max(eager, a.nbytes) + steps


def test_forward_mode_stores_no_graph() -> None:
    def f(z: Any) -> Any:
        for _ in range(100):
            z = np.sin(z) * 1.01
        return z

    a = np.ones(100_000)
    assert peak_of(lambda: jvp(f, (a,), (a,))) < 12 * a.nbytes


def test_node_is_small() -> None:
    x = cg.variable(1.0)
    count = 1000

    def build() -> None:
        y = x
        for _ in range(count):
            y = y * 1.5
        nodes.append(y)

    nodes: list[Any] = []
    assert peak_of(build) / count < 700, "bytes for one operation on numbers"
    assert not hasattr(x, "__dict__")


# ------------------------------------------------------------------------------------------------- threads


def in_threads(work: Callable[[int], Any], count: int = 8) -> list[Any]:
    """The results of `work` in as many threads, started together; the first error is raised."""
    results: list[Any] = [None] * count
    errors: list[BaseException] = []
    together = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            together.wait(10)
            results[number] = work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def network(x: Any, w: Any) -> Any:
    hidden = np.tanh(x @ w)
    return np.sum(hidden * hidden) + cg.logsumexp(hidden[0]) + np.mean(np.exp(-hidden))


@pytest.fixture
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@pytest.mark.usefixtures("_switching_often")
def test_threads_build_and_differentiate() -> None:
    shared = cg.variable(np.random.default_rng(0).normal(size=(3, 4)), "w")
    inputs = [np.random.default_rng(k).normal(size=(2, 3)) for k in range(8)]

    def work(number: int) -> Any:
        for _ in range(30):
            x = cg.variable(inputs[number], "x")
            g = gradient(network(x, shared))
        (higher,) = gradients(network(x, shared), [x])
        return g["x"], g["w"], higher.value, grad(network)(inputs[number], shared.value)

    expected = [work(k) for k in range(8)]
    for actual, reference in zip(in_threads(work), expected, strict=True):
        for a, b in zip(actual, reference, strict=True):
            assert np.array_equal(a, b)


@pytest.mark.usefixtures("_switching_often")
def test_threads_update_their_own_variables() -> None:
    def work(number: int) -> Any:
        w = cg.variable([float(number), 1.0], "w")
        for _ in range(100):
            loss = np.sum((w - 3.0) ** 2)
            w -= 0.1 * gradient(loss)["w"]
        return w.value

    for values in in_threads(work):
        assert np.allclose(values, 3.0)


@pytest.mark.usefixtures("_switching_often")
def test_sequence_numbers_are_unique_over_threads() -> None:
    def work(number: int) -> list[int]:
        x = cg.variable(float(number))
        return [(x + k).sequence_number for k in range(1000)]

    sequence_numbers = in_threads(work)
    assert all(a < b for per_thread in sequence_numbers for a, b in pairwise(per_thread))
    assert len({t for per_thread in sequence_numbers for t in per_thread}) == 8000


@pytest.mark.usefixtures("_switching_often")
def test_no_graph_is_per_thread() -> None:
    x = cg.variable([1.0, 2.0], "x")

    def work(number: int) -> bool:
        for _ in range(200):
            if number % 2:
                with cg.no_graph():
                    silent = not isinstance(x * 2, cg.Node) and not isinstance(np.sum(x), cg.Node)
                if not silent:
                    return False
            elif not isinstance(np.sum(x * 2), cg.Node):
                return False
        return isinstance(x * 2, cg.Node)

    assert in_threads(work) == [True] * 8


@pytest.mark.usefixtures("_switching_often")
def test_no_graph_object_serves_many_threads() -> None:
    """As a decorator, and as a context that is created once and entered repeatedly."""
    x = cg.variable([1.0, 2.0], "x")
    quiet = cg.no_graph()

    @cg.no_graph()
    def infer() -> bool:
        return not any(isinstance(np.sum(x * k), cg.Node) for k in range(20))

    def work(number: int) -> bool:
        for _ in range(100):
            with quiet:
                silent = not any(isinstance(x * k, cg.Node) for k in range(20))
            if not (silent and isinstance(x * 2, cg.Node) and infer() and isinstance(x * 2, cg.Node)):
                return False
        return True

    assert in_threads(work) == [True] * 8


def test_recording_is_enabled_in_new_thread() -> None:
    """A new thread does not inherit the state of its parent."""
    x = cg.variable(1.0)
    with cg.no_graph():
        assert in_threads(lambda number: isinstance(x * 2, cg.Node), 2) == [True, True]


def test_no_graph_is_per_task() -> None:
    x = cg.variable(1.0, "x")

    async def task(number: int) -> bool:
        for _ in range(20):
            if number % 2:
                with cg.no_graph():
                    await asyncio.sleep(0)
                    if isinstance(x * 2, cg.Node):
                        return False
            else:
                await asyncio.sleep(0)
                if gradient(x * 2)["x"] != 2:
                    return False
        return isinstance(x * 2, cg.Node)

    async def all_tasks() -> list[bool]:
        return list(await asyncio.gather(*(task(k) for k in range(8))))

    assert asyncio.run(all_tasks()) == [True] * 8


def test_no_graph_is_inherited_by_task() -> None:
    x = cg.variable(1.0)

    async def compute() -> bool:
        return isinstance(x * 2, cg.Node)

    async def start() -> tuple[bool, bool]:
        with cg.no_graph():
            inherited = asyncio.create_task(compute())
        return await inherited, await asyncio.create_task(compute())

    assert asyncio.run(start()) == (False, True)
