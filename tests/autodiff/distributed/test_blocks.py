"""Losses over arrays in blocks: values, bits, memory, and failures of machines."""

from __future__ import annotations

import dataclasses
import functools
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import autodiff as ad
import autodiff.distributed as dist
import compgraph as cg
from tests.support.clusters import processes_of, threads_of
from tests.support.failures import Failures

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(103, 7)), RNG.normal(size=103)
P = {"w": RNG.normal(size=7), "b": 0.3}


def loss(p: Any, x: Any, y: Any) -> Any:
    return np.mean((np.tanh(x @ p["w"]) + p["b"] - y) ** 2)


@pytest.fixture
def expected_all_rows() -> Any:
    """The value and gradient of all rows in memory."""
    return ad.value_and_grad(loss)(P, X, Y)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Compute blocks sequentially, unless a test sets another scheduler."""
    with dask.config.set(scheduler="synchronous"):
        yield


def same_bits(one: Any, other: Any) -> bool:
    pairs = zip(ad.arguments.flatten(one)[0], ad.arguments.flatten(other)[0], strict=True)
    return all(
        np.asarray(a).dtype == np.asarray(b).dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs
    )


def close(one: Any, other: Any) -> bool:
    pairs = zip(ad.arguments.flatten(one)[0], ad.arguments.flatten(other)[0], strict=True)
    return all(np.allclose(a, b, rtol=1e-13, atol=1e-14) for a, b in pairs)


# ------------------------------------------------------------------------------------------- the numbers


def test_block_gradient_equals_gradient_of_all_rows(expected_all_rows: Any) -> None:
    arrays = {
        "equal blocks": (da.from_array(X, chunks=(20, 7)), da.from_array(Y, chunks=20)),
        "columns": (da.from_array(X, chunks=(20, 3)), da.from_array(Y, chunks=20)),
        "second of NumPy": (da.from_array(X, chunks=(20, 7)), Y),
        "first of NumPy": (X, da.from_array(Y, chunks=20)),
        "other blocks": (da.from_array(X, chunks=(20, 2)), da.from_array(Y, chunks=17)),
        "empty blocks": (da.from_array(X, chunks=((20, 0, 20, 60, 3, 0), 7)), Y),
        "rows": (da.from_array(X, chunks=(1, 7)), Y),
        "one block": (da.from_array(X, chunks=-1), Y),
        "strides": (da.from_array(X.T, chunks=3).T, Y),
    }
    with Failures("blocks") as failures:
        for name, (x, y) in arrays.items():
            with failures.case(name):
                actual = dist.value_and_grad(loss)(P, x, y)
                assert close(actual, expected_all_rows)
                assert ad.arguments.flatten(actual)[1] == ad.arguments.flatten(expected_all_rows)[1]


def test_single_block_has_bits_of_all_rows(expected_all_rows: Any) -> None:
    assert same_bits(dist.value_and_grad(loss)(P, da.from_array(X, chunks=-1), Y), expected_all_rows)


def test_blocks_along_other_axes_are_concatenated() -> None:
    images = RNG.normal(size=(11, 4, 5, 3))
    weights = RNG.normal(size=(4, 5, 3))

    def mean(w: Any, x: Any) -> Any:
        return np.mean(np.sum(np.sin(x * w), axis=(1, 2, 3)))

    actual = dist.value_and_grad(mean)(weights, da.from_array(images, chunks=(3, 2, 2, 1)))
    assert close(actual, ad.value_and_grad(mean)(weights, images))


def test_float32_is_preserved() -> None:
    p = {"w": P["w"].astype(np.float32), "b": np.float32(0.3)}
    x, y = X.astype(np.float32), Y.astype(np.float32)
    value, slope = dist.value_and_grad(loss)(p, da.from_array(x, chunks=(20, 7)), y)
    assert {value.dtype, slope["w"].dtype, slope["b"].dtype} == {np.dtype(np.float32)}
    with cg.default_dtype(np.float32):
        value, slope = dist.value_and_grad(loss)({"w": p["w"], "b": 0.3}, da.from_array(x, chunks=(20, 7)), y)
    assert slope["b"].dtype == np.float32


@dataclasses.dataclass
class Line:
    """Parameters of a line."""

    slope: Any
    offset: Any


def test_argnums_selects_nested_parameters() -> None:
    x = da.from_array(X, chunks=(20, 7))

    def of_line(line: Line, x: Any) -> Any:
        return np.mean((x @ line.slope + line.offset) ** 2)

    actual = dist.value_and_grad(of_line)(Line(P["w"], 0.5), x)
    assert isinstance(actual[1], Line)
    assert close(actual, ad.value_and_grad(of_line)(Line(P["w"], 0.5), X))

    def of_three(x: Any, w: Any, *, b: Any, power: int) -> Any:
        return np.mean((x @ w + b) ** power)

    for argnums in (1, "w", (1,), (1, "b"), ["b", 1]):
        actual = dist.value_and_grad(of_three, argnums)(x, P["w"], b=0.5, power=4)
        assert close(actual, ad.value_and_grad(of_three, argnums)(X, P["w"], b=0.5, power=4))
        assert type(actual[1]) is type(ad.value_and_grad(of_three, argnums)(X, P["w"], b=0.5, power=4)[1])


def test_data_nested_and_keyword() -> None:
    def of_batch(p: Any, batch: Any, *, scale: float) -> Any:
        return scale * loss(p, batch["x"], batch["more"][0])

    batch = {"x": da.from_array(X, chunks=(20, 7)), "more": [Y]}
    actual = dist.value_and_grad(of_batch)(P, batch, scale=2.0)
    assert close(actual, ad.value_and_grad(of_batch)(P, {"x": X, "more": [Y]}, scale=2.0))
    assert close(dist.value_and_grad(loss)(P, X, y=da.from_array(Y, chunks=20)), ad.value_and_grad(loss)(P, X, Y))


def test_aux_is_list_over_blocks(expected_all_rows: Any) -> None:
    def with_count(p: Any, x: Any, y: Any) -> Any:
        return loss(p, x, y), {"rows": len(x), "first": x[0, 0] * p["b"]}

    (value, aux), slope = dist.value_and_grad(with_count, has_aux=True)(P, da.from_array(X, chunks=(30, 7)), Y)
    assert close((value, slope), expected_all_rows)
    assert [a["rows"] for a in aux] == [30, 30, 30, 13]
    assert all(type(a["first"]) is np.float64 for a in aux)
    assert np.allclose([a["first"] for a in aux], X[::30, 0] * 0.3)


def test_errstate_of_caller_applies_in_blocks() -> None:
    def divides(p: Any, x: Any) -> Any:
        return np.mean(p / x)

    x = da.from_array(np.array([1.0, 0.0, 2.0]), chunks=1)
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler):
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                assert np.isinf(dist.value_and_grad(divides)(1.0, x)[0])
            with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
                dist.value_and_grad(divides)(1.0, x)


# --------------------------------------------------------------------------------------------------- errors


def blocks_of(x: Any) -> Any:
    return da.from_array(x, chunks=(20, *x.shape[1:]))


WRONG_ARGUMENTS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no dask array": (lambda: dist.value_and_grad(loss)(P, X, Y), TypeError, "no argument except.*autodiff.value_and_grad"),
    "a parameter": (
        lambda: dist.value_and_grad(loss)(blocks_of(X), X, Y),
        TypeError,
        "argument 0 is a dask Array among the parameters",
    ),
    "rows": (
        lambda: dist.value_and_grad(loss)(P, blocks_of(X), Y[1:]),
        ValueError,
        "argument 2 has 102 rows, the first array 103",
    ),
    "rows of dask": (lambda: dist.value_and_grad(loss)(P, blocks_of(X), blocks_of(Y)[1:]), ValueError, "102 rows"),
    "none": (lambda: dist.value_and_grad(loss)(P, blocks_of(X)[:0], Y[:0]), ValueError, "no rows"),
    "unknown": (
        lambda: dist.value_and_grad(loss)(P, blocks_of(X)[blocks_of(Y) > 0], Y),
        ValueError,
        r"unknown numbers of rows. Call x\.compute_chunk_sizes\(\)",
    ),
    "a node": (lambda: dist.value_and_grad(loss)(cg.variable(P["w"]), blocks_of(X)), TypeError, "argument 0 is a node"),
    "data are a node": (lambda: dist.value_and_grad(loss)(P, blocks_of(X), cg.variable(Y)), TypeError, "argument 2 is a node"),
    "differentiated around": (
        lambda: ad.grad(lambda b: dist.value_and_grad(loss)({**P, "b": b}, blocks_of(X), Y)[0])(0.3),
        TypeError,
        r"argument 0\['b'\] is a node",
    ),
    "a number": (lambda: dist.value_and_grad(loss)(P, blocks_of(X), blocks_of(Y)[0]), TypeError, "a dask Array without axes"),
    "a list": (lambda: dist.value_and_grad(loss)(P, blocks_of(X), Y.tolist()), TypeError, r"Pass np.array\(\.\.\.\)"),
    "delayed": (lambda: dist.value_and_grad(loss)(P, blocks_of(X), dask.delayed(Y)), TypeError, "argument 2 is a dask Delayed"),
    "masked": (
        lambda: dist.value_and_grad(loss)(P, da.ma.masked_less(blocks_of(X), 0), Y),
        TypeError,
        "of class MaskedArray",
    ),
    "integers": (lambda: dist.value_and_grad(np.sum)(np.arange(3), blocks_of(X)), TypeError, "argument 0 has dtype int"),
    "no scalar": (
        lambda: dist.value_and_grad(lambda p, x: x @ p)(P["w"], blocks_of(X)),
        ValueError,
        r"shape \(20,\), not a scalar",
    ),
    "argnums": (lambda: dist.value_and_grad(loss, 3)(P, blocks_of(X), Y), ValueError, "argnums 3 is out of range"),
}


def test_wrong_arguments_raise() -> None:
    with Failures("arguments") as failures:
        for name, (call, error, words) in WRONG_ARGUMENTS.items():
            with failures.case(name), pytest.raises(error, match=words):
                call()


def test_enclosing_variable_raises() -> None:
    outside = cg.variable(2.0, "outside")
    with pytest.raises(TypeError, match="a variable of an enclosing scope, so its derivative would be lost"):
        dist.value_and_grad(lambda w, x: np.mean(x @ w) * outside)(P["w"], blocks_of(X))
    actual = dist.value_and_grad(lambda w, x: np.mean(x @ w) * outside.value)(P["w"], blocks_of(X))
    assert np.allclose(actual[1], 2 * X.mean(axis=0))


def test_loss_error_is_raised_unchanged() -> None:
    def fails(p: Any, x: Any) -> Any:
        if x[0, 0] == X[40, 0]:
            raise KeyError("the third block")
        return np.mean(x @ p)

    with pytest.raises(KeyError, match="the third block") as caught:
        dist.value_and_grad(fails)(P["w"], blocks_of(X))
    assert any(entry.name == "fails" for entry in caught.traceback)


def test_autodiff_does_not_import_dask() -> None:
    code = """
import sys, autodiff
assert "autodiff.distributed" not in sys.modules
import autodiff.distributed
assert not {"dask", "distributed"} & {*sys.modules}
assert "value_and_grad" in dir(autodiff.distributed)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# -------------------------------------------------------------------------------------------------- memory


class Alive:
    """Count the blocks that exist at the same time."""

    def __init__(self) -> None:
        self.alive_count = self.max_alive = self.doubled = 0
        self._lock = threading.RLock()

    def made_of(self, block: Any) -> Any:
        doubled = block * 2.0
        if block.size:
            with self._lock:
                self.alive_count, self.doubled = self.alive_count + 1, self.doubled + 1
                self.max_alive = max(self.max_alive, self.alive_count)
            weakref.finalize(doubled, self._count_deleted)
        return doubled

    def _count_deleted(self) -> None:
        with self._lock:
            self.alive_count -= 1


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("columns", [4, 2])
def test_live_blocks_at_most_threads(threads: int, columns: int) -> None:
    """A block is freed before its thread computes the next one, also if it is concatenated from several pieces."""
    alive = Alive()
    x = da.ones((400, 4), chunks=(10, columns)).map_blocks(alive.made_of, dtype=float, meta=np.empty((0, 0)))
    y = da.zeros(400, chunks=10).map_blocks(alive.made_of, dtype=float, meta=np.empty(0))

    def mean(p: Any, x: Any, y: Any) -> Any:
        time.sleep(0.002)
        return np.mean((x @ p - y) ** 2)

    with dask.config.set(scheduler="threads", num_workers=threads):
        value, _ = dist.value_and_grad(mean)(np.ones(4), x, y)
    assert value == 64
    pieces = 4 // columns + 1
    assert alive.doubled == 40 * pieces
    assert alive.max_alive <= threads * (pieces + 1)


MEASURED = """
import resource, sys
import dask, dask.array as da, numpy as np
import autodiff.distributed as dist

x = da.random.default_rng(0).normal(size=(500_000, 50), chunks=(12_500, 50))  # 200 MB in blocks of 5
of = dist.value_and_grad(lambda p, x: np.mean((x @ p - 1.0) ** 2))
with dask.config.set(scheduler="threads", num_workers=2):
    of(np.ones(50), x[:25_000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    value, slope = of(np.ones(50), x)
    assert abs(value - 51) < 1
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3)
"""


@pytest.mark.slow
def test_memory_is_bounded() -> None:
    actual = subprocess.run([sys.executable, "-c", MEASURED], check=True, capture_output=True, text=True, timeout=100)
    assert float(actual.stdout) < 40, actual.stdout


# ------------------------------------------------------------------------------------------------- machines


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with Client(cluster) as actual:
        yield actual


def by(scheduler: Any, *arguments: Any, of: Any = loss) -> Any:
    with dask.config.set(scheduler=scheduler):
        return dist.value_and_grad(of)(*arguments)


def test_bits_do_not_depend_on_scheduler(client: Any) -> None:
    """One thread, several threads, and several machines, with local data and data computed by tasks."""
    doubled = da.random.default_rng(1).normal(size=(1000, 7), chunks=(90, 7))
    for x, y in ((da.from_array(X, chunks=(9, 4)), Y), (doubled, doubled[:, 0] * 2 + 1)):
        expected = by("synchronous", P, x, y)
        with dask.config.set(num_workers=3):
            assert same_bits(by("threads", P, x, y), expected)
        assert same_bits(by("distributed", P, x, y), expected)
    with threads_of(1):
        assert same_bits(by("distributed", P, x, y), expected)


def test_block_memory_layout_does_not_change_bits() -> None:
    """A received block may be unaligned, or have another order of axes."""
    rows, p = RNG.normal(size=(90, 7)), {"w": RNG.normal(size=7), "b": 0.3}
    y = RNG.normal(size=90)
    memory = np.frombuffer(b"xyz" + rows.tobytes(), np.uint8)[3:]
    unaligned = memory.view(float).reshape(rows.shape)
    assert not unaligned.flags.aligned
    actual = [dist.value_and_grad(loss)(p, da.from_array(x, chunks=-1), y) for x in (rows, unaligned, np.asfortranarray(rows))]
    assert same_bits(actual[1], actual[0])
    assert same_bits(actual[2], actual[0])


def slow(p: Any, x: Any, y: Any) -> Any:
    time.sleep(0.05)
    return loss(p, x, y)


@pytest.mark.slow
def test_killed_machine_does_not_change_bits() -> None:
    x = da.from_array(X, chunks=(5, 7))
    expected = by("synchronous", P, x, Y)
    with processes_of(2) as cluster, Client(cluster) as client:
        victim = next(iter(client.run(os.getpid).values()))
        killer = threading.Timer(0.3, os.kill, (victim, signal.SIGKILL))
        killer.start()
        actual = by("distributed", P, x, Y, of=slow)
        killer.join()
        assert same_bits(actual, expected)
        client.wait_for_workers(2, timeout=30)
        assert victim not in client.run(os.getpid).values()


def test_loss_error_on_machine_is_raised(client: Any) -> None:
    def fails(p: Any, x: Any) -> Any:
        raise KeyError("there")

    with pytest.raises(KeyError, match="there") as caught:
        by("distributed", P["w"], blocks_of(X), of=fails)
    assert any(entry.name == "fails" for entry in caught.traceback)


def test_no_machine_raises() -> None:
    with (
        LocalCluster(n_workers=0, processes=True, dashboard_address=":0") as empty,
        Client(empty),
        dask.config.set(scheduler="distributed"),
    ):
        start = time.monotonic()
        with pytest.raises(TimeoutError, match=r"the scheduler at tcp://127.* had no machine for 0\.5 seconds"):
            dist.value_and_grad(loss, wait=0.5)(P, blocks_of(X), Y)
        assert time.monotonic() - start < 10


SCHEDULER = """
import sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0")
    print(cluster.scheduler_address, flush=True)
    time.sleep(100)
"""


@pytest.mark.slow
def test_killed_scheduler_raises(tmp_path: Any) -> None:
    program = tmp_path / "scheduler.py"
    program.write_text(SCHEDULER)
    there = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }  # it loads the function by the name of this module
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, str(program)], env=there, text=True, **streams)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with Client(address, timeout=20) as client:
            client.wait_for_workers(1, timeout=30)
            threading.Timer(1.0, process.kill).start()
            start = time.monotonic()
            with (
                pytest.raises(ConnectionError, match=f"the scheduler at {address} does not answer"),
                dask.config.set(scheduler="distributed"),
            ):
                dist.value_and_grad(functools.partial(slow))(P, da.from_array(X, chunks=(1, 7)), Y)
            assert time.monotonic() - start < 30
    finally:
        process.kill()
        process.communicate()
