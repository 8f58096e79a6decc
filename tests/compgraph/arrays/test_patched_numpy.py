"""cg.patched_numpy: NumPy's own names keep the graph inside, and are NumPy's again afterwards."""

from __future__ import annotations

import asyncio
import functools
import inspect
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.ndimage
import scipy.spatial

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient
from compgraph.arrays.patched_numpy import REPLACEMENTS
from tests.support.failures import Failures

pytestmark = pytest.mark.portable

ORIGINALS = {name: getattr(np, name) for name in REPLACEMENTS}


def is_restored() -> bool:
    """Whether names mean NumPy's own functions, or the patches that record lists."""
    return all(
        inspect.unwrap(now := getattr(np, name)) is inspect.unwrap(original) and not hasattr(now, "is_dispatching")
        for name, original in ORIGINALS.items()
    )


def filled(make: Callable[[], Any], x: Any) -> Any:
    b = make()
    b[0] = x[0] ** 2
    b[1] = x[1] * b[0]
    return b[0] + b[1]


CONSTRUCTIONS: dict[str, Callable[[Any], Any]] = {
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


def test_patched_numpy_keeps_graph() -> None:
    with Failures("programs") as failures:
        for name in CONSTRUCTIONS:
            with failures.case(name):
                check_graph_is_kept(name)


def check_graph_is_kept(name: str) -> None:
    """Check derivatives within a patched NumPy, which is restored afterwards."""
    f, point = CONSTRUCTIONS[name], np.array([0.7, 1.9])

    def patched(x: Any) -> Any:
        with cg.patched_numpy():
            return f(x)

    ad.check_grads(patched, [point])
    assert is_restored()


@pytest.mark.parametrize("options", [{"dtype": np.float32}, {"order": "F"}, {"dtype": int}, {}])
@pytest.mark.parametrize("name", ["zeros", "ones"])
def test_patched_numpy_honors_options(name: str, options: dict[str, Any]) -> None:
    expected = ORIGINALS[name]((2, 3), **options)
    with cg.patched_numpy():
        result = getattr(np, name)((2, 3), **options)
    assert isinstance(result, cg.Node)
    assert (result.dtype, result.flags.f_contiguous) == (expected.dtype, expected.flags.f_contiguous)
    assert np.array_equal(result, expected)


def test_patched_numpy_unsupported_calls_raise_or_use_numpy() -> None:
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


def test_patched_numpy_nests_and_survives_exceptions() -> None:
    x = cg.variable(2.0)
    with cg.patched_numpy():
        with pytest.raises(RuntimeError, match="inner"), cg.patched_numpy():
            raise RuntimeError("inner")
        assert isinstance(np.array([x]), cg.Node)
    assert is_restored()
    assert type(np.array([1.0])) is np.ndarray


def test_patched_numpy_within_no_graph_gives_plain_arrays() -> None:
    x = cg.variable(2.0)
    with cg.patched_numpy(), cg.no_graph():
        assert type(np.zeros(2)) is np.ndarray
        assert not isinstance(np.array([x.value]), cg.Node)


def test_patched_numpy_does_not_affect_other_threads() -> None:
    arrays: dict[str, Any] = {}
    inside, finish = threading.Event(), threading.Event()

    def other() -> None:
        inside.wait(10)
        arrays["array"], arrays["zeros"] = np.array([1.0, 2.0]), np.zeros(3)
        finish.set()

    thread = threading.Thread(target=other)
    thread.start()
    with cg.patched_numpy():
        inside.set()
        assert finish.wait(10)
    thread.join()
    assert {type(a) for a in arrays.values()} == {np.ndarray}


def test_patched_numpy_contexts_of_threads_overlap() -> None:
    barrier, checks = threading.Barrier(4), []

    def work(k: int) -> None:
        x = cg.variable(float(k), "x")
        for _ in range(50):
            barrier.wait(10)
            with cg.patched_numpy():
                y = np.array([x * x, 1.0])
            checks.append(float(gradient(y[0])[x]) == 2.0 * k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(checks) == 200
    assert all(checks)
    assert is_restored()


def test_patched_numpy_is_per_asyncio_task() -> None:
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


def _pandas() -> Any:
    return pytest.importorskip("pandas", reason="pip install pandas")


# Functions in C that call NumPy's constructors by name, and read or write the memory of the arrays.
POINTS = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1.5]])
COMPILED: dict[str, Callable[[], Any]] = {
    "Generator.normal": lambda: np.random.default_rng(0).normal(size=3),
    "RandomState.uniform": lambda: np.random.RandomState(0).uniform(size=3),
    "Generator.multivariate_normal": lambda: np.random.default_rng(0).multivariate_normal([0.0, 1.0], np.eye(2)),
    "CubicSpline": lambda: scipy.interpolate.CubicSpline([0.0, 1, 2, 3], [1.0, 2, 0, 1])(0.5),
    "cKDTree": lambda: scipy.spatial.cKDTree(POINTS).query([0.0, 0])[0],
    "gaussian_filter": lambda: scipy.ndimage.gaussian_filter([1.0, 2, 3, 4], 1.0),
    "ConvexHull": lambda: scipy.spatial.ConvexHull(POINTS).volume,
    "Voronoi": lambda: scipy.spatial.Voronoi(POINTS).vertices,
    "Series.rolling": lambda: _pandas().Series([1.0, 2, 3]).rolling(2).mean().fillna(0.0),
    "pandas.cut": lambda: _pandas().cut([1.5, 2.5, 1.5, 3.0], 3).codes,
}


@pytest.mark.parametrize("outer", [cg.patched_numpy, cg.strict, cg.debug])
def test_patched_numpy_c_code_with_plain_data_works(outer: Any) -> None:
    for name, f in COMPILED.items():
        expected = np.asarray(f(), float)
        with outer(), cg.patched_numpy():
            array = np.asarray(f(), float)
        assert np.array_equal(array, expected), name


def test_patched_numpy_c_code_with_nodes_raises() -> None:
    corners, matrix = np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]])
    programs: list[Callable[[Any], Any]] = [
        lambda x: scipy.interpolate.LinearNDInterpolator(corners, x)(0.2, 0.3)[()],
        lambda x: scipy.spatial.ConvexHull(np.concatenate([(matrix + np.outer(x, x))[:, :2], corners])).volume,
        lambda x: scipy.spatial.cKDTree(np.outer(x, x)).query(x)[0],
    ]
    for f in programs:
        for _ in range(3):
            with cg.patched_numpy(), np.errstate(all="ignore"), pytest.raises(TypeError):
                ad.grad(f)(np.array([0.7, 1.3, 2.1]))


def _by_partial(x: Any) -> Any:
    make = functools.partial(np.array, dtype=float)
    return make([x[0] ** 2, x[1]])


def _by_table(x: Any) -> Any:
    table = {"make": np.array}
    return table["make"]([x[0] * x[1], x[1]])


SELECTED: dict[str, Callable[[Any], Any]] = {
    "getattr": lambda x, name="array": getattr(np, name)([x[0] * x[1], x[1]]),
    "subscript": _by_table,
    "partial": _by_partial,
    "list of a map": lambda x: np.concatenate(list(map(np.array, [[x[0] ** 2, 1.0], [x[1], x[0]]]))),
    "comprehension": lambda x: np.concatenate([row**2 for row in map(np.asarray, [[x[0], 1.0], [x[1], x[0]]])]),
    "choice": lambda x: filled(lambda: (np.zeros if x.ndim else np.ones)(2), x),
    "buffer by getattr": lambda x, name="zeros": filled(lambda: getattr(np, name)(2), x),
}


@pytest.mark.parametrize("name", SELECTED)
def test_patched_numpy_selected_functions_keep_graph(name: str) -> None:
    f, point = SELECTED[name], np.array([0.7, 1.9])

    def patched(x: Any) -> Any:
        with cg.patched_numpy():
            return np.sum(f(x))

    def strict(x: Any) -> Any:
        x = cg.variable(x)
        with cg.strict(), cg.patched_numpy():
            return gradient(np.sum(f(x)))[x]

    ad.check_grads(patched, [point])
    assert np.allclose(ad.grad(patched)(point), strict(point))


FIRST = """
import numpy as np, compgraph as cg, autodiff as ad

def f(x):
    y = np.zeros(3)
    y[0] = x[0] ** 2
    return y.sum()

x = np.array([0.7, 1.3, 2.1])
with cg.patched_numpy():
    inside = ad.grad(f)(x)
assert inside.tolist() == ad.grad(f)(x).tolist() == [1.4, 0, 0]
assert type(np.zeros(3)) is np.ndarray and np.zeros.__module__ == "numpy"
"""


def test_patched_numpy_first_gradient_keeps_interception() -> None:
    subprocess.run([sys.executable, "-c", FIRST], check=True)


def test_patched_numpy_exit_during_gradient_in_thread() -> None:
    inside, exit_event = threading.Event(), threading.Event()

    def f(x: Any) -> Any:
        inside.set()
        assert exit_event.wait(10)
        y = np.zeros(2)
        y[0] = x**2
        return y.sum()

    gradients: list[Any] = []
    thread = threading.Thread(target=lambda: gradients.append(ad.grad(f)(3.0)))
    with cg.patched_numpy():
        thread.start()
        assert inside.wait(10)
    exit_event.set()
    thread.join()
    assert gradients == [6.0]
    assert is_restored()


def test_patched_numpy_entry_during_gradient_in_thread() -> None:
    inside, entered = threading.Event(), threading.Event()

    def f(x: Any) -> Any:
        inside.set()
        assert entered.wait(10)
        return x * x

    x = cg.variable([1.0, 2.0])
    thread = threading.Thread(target=lambda: ad.grad(f)(3.0))
    thread.start()
    assert inside.wait(10)
    with cg.patched_numpy():
        entered.set()
        thread.join()
        assert gradient(np.array([x[0] ** 2, x[1]])[0])[x].tolist() == [2.0, 0.0]
    assert is_restored()
