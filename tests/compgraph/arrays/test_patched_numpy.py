"""cg.patched_numpy: NumPy's own names keep the graph inside, and are NumPy's again afterwards."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient
from compgraph.arrays.patched_numpy import OURS

ORIGINALS = {name: getattr(np, name) for name in OURS}


def is_restored() -> bool:
    return all(getattr(np, name) is original for name, original in ORIGINALS.items())


def filled(make: Callable[[], Any], x: Any) -> Any:
    b = make()
    b[0] = x[0] ** 2
    b[1] = x[1] * b[0]
    return b[0] + b[1]


MADE: dict[str, Callable[[Any], Any]] = {
    "array": lambda x: np.sum(np.array([x[0], x[1] * x[0]])),
    "array of a node": lambda x: np.sum(np.array(x) ** 2),
    "asarray": lambda x: np.sum(np.asarray(x) ** 2),
    "asarray, dtype": lambda x: np.sum(np.asarray([x[0], 1.0], dtype=float) ** 2),
    "asanyarray": lambda x: np.sum(np.asanyarray([x[0], 2.0]) ** 2),
    "ascontiguousarray": lambda x: np.sum(np.ascontiguousarray(x[::-1]) ** 2),
    "asfortranarray": lambda x: np.sum(np.asfortranarray([[x[0], 2.0]]) ** 2),
    "asarray_chkfinite": lambda x: np.sum(np.asarray_chkfinite(x) ** 2),
    "like": lambda x: filled(lambda: np.zeros(2, like=x), x),
    "zeros": lambda x: filled(lambda: np.zeros(2), x),
    "ones": lambda x: filled(lambda: np.ones(2), x),
    "empty": lambda x: filled(lambda: np.empty(2), x),
    "full": lambda x: filled(lambda: np.full(2, 7.0), x),
    "full of a node": lambda x: np.sum(np.full((2, 2), x[0])),
    "array, copied if needed": lambda x: np.sum(np.array(x, copy=np._CopyMode.IF_NEEDED, subok=True) ** 2),
    "asarray, copied if needed": lambda x: np.sum(np.asarray([x[0], 1.0], copy=np._CopyMode.IF_NEEDED) ** 2),
    "array to be filled": lambda x: filled(lambda: np.array([0.0, 0.0]), x),
    "inner functions": lambda x: np.linalg.norm(np.array([x[0], x[1]])) + np.var(np.asarray(x)) + np.median(np.array(x)),
}


@pytest.mark.parametrize("name", MADE)
def test_the_graph_is_kept(name: str) -> None:
    f, point = MADE[name], np.array([0.7, 1.9])

    def patched(x: Any) -> Any:
        with cg.patched_numpy():
            return f(x)

    ad.check_grads(patched, [point])
    assert is_restored()


@pytest.mark.parametrize("options", [{"dtype": np.float32}, {"order": "F"}, {"dtype": int}, {}])
@pytest.mark.parametrize("name", ["zeros", "ones"])
def test_options_are_honoured(name: str, options: dict[str, Any]) -> None:
    expected = ORIGINALS[name]((2, 3), **options)
    with cg.patched_numpy():
        found = getattr(np, name)((2, 3), **options)
    assert isinstance(found, cg.Node)
    assert (found.dtype, found.flags.f_contiguous) == (expected.dtype, expected.flags.f_contiguous)
    assert np.array_equal(found, expected)


def test_what_ours_cannot_do_is_refused_or_numpys() -> None:
    x = cg.variable([1.0, 2.0])
    with cg.patched_numpy():
        assert type(np.array(np.ma.array([1.0]), subok=True)) is np.ma.MaskedArray
        assert type(np.zeros(2, object)) is np.ndarray
        own = np.asarray(x.value)
        assert np.array(own, copy=None) is own
        assert gradient(np.array([x[0]], subok=True) ** 2)[x][0] == 2
        assert gradient(np.asarray([x[0]], device="cpu") ** 2)[x][0] == 2
        with pytest.raises(TypeError, match="like= is not supported on nodes within"):
            np.array([x[0]], like=x.value)
        with pytest.raises(ValueError, match="evice"):
            np.asarray([x[0]], device="moon")


def test_it_nests_and_survives_exceptions() -> None:
    x = cg.variable(2.0)
    with cg.patched_numpy():
        with pytest.raises(RuntimeError, match="inner"), cg.patched_numpy():
            raise RuntimeError("inner")
        assert isinstance(np.array([x]), cg.Node)
    assert is_restored()
    assert type(np.array([1.0])) is np.ndarray


def test_without_recording_arrays_are_plain() -> None:
    x = cg.variable(2.0)
    with cg.patched_numpy(), cg.no_graph():
        assert type(np.zeros(2)) is np.ndarray
        assert not isinstance(np.array([x.value]), cg.Node)


def test_other_threads_keep_numpys_own() -> None:
    found: dict[str, Any] = {}
    inside, done = threading.Event(), threading.Event()

    def other() -> None:
        inside.wait(10)
        found["array"], found["zeros"] = np.array([1.0, 2.0]), np.zeros(3)
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with cg.patched_numpy():
        inside.set()
        assert done.wait(10)
    thread.join()
    assert {type(a) for a in found.values()} == {np.ndarray}


def test_contexts_of_several_threads_may_overlap() -> None:
    barrier, found = threading.Barrier(4), []

    def work(k: int) -> None:
        x = cg.variable(float(k), "x")
        for _ in range(50):
            barrier.wait(10)
            with cg.patched_numpy():
                y = np.array([x * x, 1.0])
            found.append(float(gradient(y[0])[x]) == 2.0 * k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 200
    assert all(found)
    assert is_restored()


def test_asyncio_tasks_do_not_share_it() -> None:
    async def patched(ready: asyncio.Event, go: asyncio.Event) -> Any:
        with cg.patched_numpy():
            ready.set()
            await go.wait()
            return np.zeros(1)

    async def main() -> tuple[Any, Any]:
        ready, go = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(patched(ready, go))
        await ready.wait()
        own = np.zeros(1)
        go.set()
        return own, await task

    own, theirs = asyncio.run(main())
    assert type(own) is np.ndarray
    assert isinstance(theirs, cg.Node)
    assert is_restored()
