"""Losses over arrays in blocks: values, bits, memory, and the machines that compute them."""

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
def together() -> Any:
    """The value and gradient of all rows at once."""
    return ad.value_and_grad(loss)(P, X, Y)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Without a client: one block after the other, unless a test says otherwise."""
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


def test_gradient_is_that_of_all_rows(together: Any) -> None:
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
                found = dist.value_and_grad(loss)(P, x, y)
                assert close(found, together)
                assert ad.arguments.flatten(found)[1] == ad.arguments.flatten(together)[1]


def test_one_block_has_the_bits_of_all_rows(together: Any) -> None:
    assert same_bits(dist.value_and_grad(loss)(P, da.from_array(X, chunks=-1), Y), together)


def test_pieces_along_several_axes_are_put_together() -> None:
    images = RNG.normal(size=(11, 4, 5, 3))
    weights = RNG.normal(size=(4, 5, 3))

    def mean(w: Any, x: Any) -> Any:
        return np.mean(np.sum(np.sin(x * w), axis=(1, 2, 3)))

    found = dist.value_and_grad(mean)(weights, da.from_array(images, chunks=(3, 2, 2, 1)))
    assert close(found, ad.value_and_grad(mean)(weights, images))


def test_float32_stays() -> None:
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


def test_parameters_nest_and_are_chosen() -> None:
    x = da.from_array(X, chunks=(20, 7))

    def of_line(line: Line, x: Any) -> Any:
        return np.mean((x @ line.slope + line.offset) ** 2)

    found = dist.value_and_grad(of_line)(Line(P["w"], 0.5), x)
    assert isinstance(found[1], Line)
    assert close(found, ad.value_and_grad(of_line)(Line(P["w"], 0.5), X))

    def of_three(x: Any, w: Any, *, b: Any, power: int) -> Any:
        return np.mean((x @ w + b) ** power)

    for chosen in (1, "w", (1,), (1, "b"), ["b", 1]):
        found = dist.value_and_grad(of_three, chosen)(x, P["w"], b=0.5, power=4)
        assert close(found, ad.value_and_grad(of_three, chosen)(X, P["w"], b=0.5, power=4))
        assert type(found[1]) is type(ad.value_and_grad(of_three, chosen)(X, P["w"], b=0.5, power=4)[1])


def test_data_nest_and_may_be_named() -> None:
    def of_batch(p: Any, batch: Any, *, scale: float) -> Any:
        return scale * loss(p, batch["x"], batch["more"][0])

    batch = {"x": da.from_array(X, chunks=(20, 7)), "more": [Y]}
    found = dist.value_and_grad(of_batch)(P, batch, scale=2.0)
    assert close(found, ad.value_and_grad(of_batch)(P, {"x": X, "more": [Y]}, scale=2.0))
    assert close(dist.value_and_grad(loss)(P, X, y=da.from_array(Y, chunks=20)), ad.value_and_grad(loss)(P, X, Y))


def test_aux_is_a_list_of_what_each_block_gave(together: Any) -> None:
    def with_count(p: Any, x: Any, y: Any) -> Any:
        return loss(p, x, y), {"rows": len(x), "first": x[0, 0] * p["b"]}

    (value, aux), slope = dist.value_and_grad(with_count, has_aux=True)(P, da.from_array(X, chunks=(30, 7)), Y)
    assert close((value, slope), together)
    assert [a["rows"] for a in aux] == [30, 30, 30, 13]
    assert all(type(a["first"]) is np.float64 for a in aux)
    assert np.allclose([a["first"] for a in aux], X[::30, 0] * 0.3)


def test_settings_of_the_caller_hold_in_every_block() -> None:
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


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no dask array": (lambda: dist.value_and_grad(loss)(P, X, Y), TypeError, "no argument except.*autodiff.value_and_grad"),
    "a parameter": (lambda: dist.value_and_grad(loss)(blocks_of(X), X, Y), TypeError, "argument 0 is a dask Array, but a param"),
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
        for name, (call, error, words) in REFUSED.items():
            with failures.case(name), pytest.raises(error, match=words):
                call()


def test_a_variable_from_outside_is_refused() -> None:
    outside = cg.variable(2.0, "outside")
    with pytest.raises(TypeError, match="a variable of an enclosing scope, so its derivative would be lost"):
        dist.value_and_grad(lambda w, x: np.mean(x @ w) * outside)(P["w"], blocks_of(X))
    found = dist.value_and_grad(lambda w, x: np.mean(x @ w) * outside.value)(P["w"], blocks_of(X))
    assert np.allclose(found[1], 2 * X.mean(axis=0))


def test_an_error_of_the_loss_comes_back_as_it_is() -> None:
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
    """How many blocks there are at once."""

    def __init__(self) -> None:
        self.now = self.most = self.made = 0
        self._lock = threading.RLock()

    def made_of(self, block: Any) -> Any:
        made = block * 2.0
        if block.size:
            with self._lock:
                self.now, self.made = self.now + 1, self.made + 1
                self.most = max(self.most, self.now)
            weakref.finalize(made, self._gone)
        return made

    def _gone(self) -> None:
        with self._lock:
            self.now -= 1


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("columns", [4, 2])
def test_no_more_blocks_are_there_than_threads(threads: int, columns: int) -> None:
    """A block is gone before its thread makes another; in pieces along other axes there are those of one block."""
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
    assert alive.made == 40 * pieces
    assert alive.most <= threads * (pieces + 1)


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
    found = subprocess.run([sys.executable, "-c", MEASURED], check=True, capture_output=True, text=True, timeout=100)
    assert float(found.stdout) < 40, found.stdout


# ------------------------------------------------------------------------------------------------- machines


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with Client(cluster) as found:
        yield found


def by(scheduler: Any, *arguments: Any, of: Any = loss) -> Any:
    with dask.config.set(scheduler=scheduler):
        return dist.value_and_grad(of)(*arguments)


def test_bits_are_the_same_everywhere(client: Any) -> None:
    """One thread, several, and several machines; whether the data are here, or made there."""
    made = da.random.default_rng(1).normal(size=(1000, 7), chunks=(90, 7))
    for x, y in ((da.from_array(X, chunks=(9, 4)), Y), (made, made[:, 0] * 2 + 1)):
        alone = by("synchronous", P, x, y)
        with dask.config.set(num_workers=3):
            assert same_bits(by("threads", P, x, y), alone)
        assert same_bits(by("distributed", P, x, y), alone)
    with threads_of(1):
        assert same_bits(by("distributed", P, x, y), alone)


def test_memory_layout_of_a_block_changes_no_bit() -> None:
    """A block from another machine may start at any byte, and have its axes in another order."""
    rows, p = RNG.normal(size=(90, 7)), {"w": RNG.normal(size=7), "b": 0.3}
    y = RNG.normal(size=90)
    memory = np.frombuffer(b"xyz" + rows.tobytes(), np.uint8)[3:]
    unaligned = memory.view(float).reshape(rows.shape)
    assert not unaligned.flags.aligned
    found = [dist.value_and_grad(loss)(p, da.from_array(x, chunks=-1), y) for x in (rows, unaligned, np.asfortranarray(rows))]
    assert same_bits(found[1], found[0])
    assert same_bits(found[2], found[0])


def slow(p: Any, x: Any, y: Any) -> Any:
    time.sleep(0.05)
    return loss(p, x, y)


@pytest.mark.slow
def test_a_machine_that_is_killed_changes_nothing() -> None:
    x = da.from_array(X, chunks=(5, 7))
    alone = by("synchronous", P, x, Y)
    with processes_of(2) as cluster, Client(cluster) as client:
        victim = next(iter(client.run(os.getpid).values()))
        killer = threading.Timer(0.3, os.kill, (victim, signal.SIGKILL))
        killer.start()
        found = by("distributed", P, x, Y, of=slow)
        killer.join()
        assert same_bits(found, alone)
        client.wait_for_workers(2, timeout=30)
        assert victim not in client.run(os.getpid).values()


def test_an_error_on_a_machine_comes_back(client: Any) -> None:
    def fails(p: Any, x: Any) -> Any:
        raise KeyError("there")

    with pytest.raises(KeyError, match="there") as caught:
        by("distributed", P["w"], blocks_of(X), of=fails)
    assert any(entry.name == "fails" for entry in caught.traceback)


def test_no_machine_is_an_error() -> None:
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
def test_a_scheduler_that_is_killed_is_an_error(tmp_path: Any) -> None:
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
