"""`Split` on machines: bits, failures of machines, the pipeline, and errors of workers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

import autodiff.distributed as dist
import compgraph as cg
from autodiff.optimizers import Adam, clip_by_global_norm
from tests.support.clusters import processes_of, threads_of
from tests.support.split_parts import dying, failing, network, resting, rows

TWO = {"first": 0, "second": 1}
ADAM = partial(Adam, learning_rate=0.01)


@contextmanager
def three_machines() -> Iterator[Any]:
    """A client of three processes. A killed process is started again, unless it was just starting."""
    with processes_of(3) as machines, Client(machines, direct_to_workers=True) as client:
        yield client


@pytest.fixture(scope="module")
def three_workers() -> Iterator[Any]:
    with three_machines() as client:
        yield client


@pytest.fixture
def client(three_workers: Any) -> Any:
    """The client of the shared processes, with at least two machines."""
    three_workers.wait_for_workers(2, timeout=60)
    return three_workers


@pytest.fixture(scope="module")
def threads() -> Iterator[Client]:
    """Three machines, as threads of this process, for tests that do not disturb them."""
    with threads_of(3) as client:
        yield client


def train(net: Any, steps: range, rows_of: Any = rows) -> list[float]:
    return [float(net.step(rows_of(10, k))) for k in steps]


def bits(net: Any) -> list[bytes]:
    return [np.asarray(value).tobytes() for _, value in sorted(net.state_dict().items())]


async def passes_under_way() -> int:
    """Count the running tasks of passes on a machine."""
    return sum("Pass." in repr(task.get_coro()) for task in asyncio.all_tasks())


def pid_of(client: Any, address: str) -> int:
    actual: dict[str, int] = client.run(os.getpid, workers=[address])
    return actual[address]


CLIPPED = partial(Adam, learning_rate=0.01, clip=lambda gradients: clip_by_global_norm(gradients, 0.25))


@pytest.mark.parametrize(
    ("place", "optimizer"), [({"first": 0, "second": 0}, CLIPPED), (TWO, ADAM), ({"first": 2, "second": 0}, CLIPPED)]
)
def test_split_threads_bits_equal_one_process(threads: Any, place: Any, optimizer: Any) -> None:
    require_same_bits(threads, place, optimizer)


def test_split_processes_bits_equal_one_process(cluster: LocalCluster) -> None:
    with Client(cluster, direct_to_workers=True) as client:
        require_same_bits(client, TWO, CLIPPED)


def test_split_client_by_address(cluster: LocalCluster) -> None:
    loss, parameters = network()
    here = dist.Split(loss, parameters, None, place=TWO, optimizer=ADAM)
    with dist.Split(loss, parameters, cluster.scheduler_address, place=TWO, optimizer=ADAM) as net:
        assert train(net, range(2)) == train(here, range(2))
        assert len(set(net.machines.values())) == 2
    net.close()
    with pytest.raises(RuntimeError, match=r"the client of this Split is closed"):
        net.run(rows(7))


def require_same_bits(client: Client, place: Any, optimizer: Any) -> None:
    loss, parameters = network()
    here = dist.Split(loss, parameters, None, place=TWO, micro_batches=3, optimizer=optimizer)
    with dist.Split(loss, parameters, client, place=place, micro_batches=3, optimizer=optimizer) as net:
        assert train(net, range(4)) == train(here, range(4))
        assert bits(net) == bits(here)
        assert len(set(net.machines.values())) == len(set(place.values()))
        value, actual = net.value_and_grad(rows(7))
        expected, slopes = here.value_and_grad(rows(7))
        assert value == expected
        assert [g.tobytes() for g in actual] == [g.tobytes() for g in slopes]
        assert net.run(rows(7)) == here.run(rows(7))
    assert net.machines == {}
    assert net.run(rows(7)) == here.run(rows(7))  # it takes its parts up again
    net.close()


def test_split_auto_places_by_measurement(threads: Any) -> None:
    x, u, v = cg.placeholder((None, 4), name="x"), cg.variable(np.ones(4), "u"), cg.variable(np.ones(4), "v")
    h = resting(resting(x * u, seconds=0.01) + 1.0, seconds=0.01)
    out = cg.mean(resting(resting(h * v, seconds=0.01) * 2.0, seconds=0.01) ** 2)
    with dist.Split(out, [u, v], threads, optimizer=ADAM) as net:
        here = dist.Split(out, [u, v], None, optimizer=ADAM)
        feed = {"x": np.ones((6, 4))}
        assert net.step(feed) == here.step(feed)
        assert bits(net) == bits(here)
        assert len(net.machines) in (2, 3)
        slow = [p for p in net._plan.stage_plans if any(i.opname == "resting" for i in _operations(net, p))]
        assert len(slow) == len(net.machines)  # no part without work


def _operations(net: Any, stage_plan: Any) -> list[Any]:
    return [item for item, stage in net._plan.stage_of.items() if stage == stage_plan.stage and isinstance(item, cg.Node)]


@pytest.mark.slow
def test_split_micro_batches_run_concurrently(client: Any) -> None:
    x, u, v = cg.placeholder((None, 4), name="x"), cg.variable(np.ones(4), "u"), cg.variable(np.ones(4), "v")
    feed, whole = {"x": np.ones((16, 4))}, 2.0
    for count in (1, 2, 4, 8):
        with cg.scope("first"):
            h = resting(x * u, seconds=whole / 6 / count)  # two stages, and the way back takes twice as long
        with cg.scope("second"):
            out = cg.mean(resting(h * v, seconds=whole / 6 / count))
        ideal = whole * (count + 1) / (2 * count)
        with dist.Split(out, [u, v], client, place=TWO, micro_batches=count, optimizer=ADAM) as net:
            net.run(feed)
            best = np.inf
            for _ in range(12):  # other tests run beside; on a quiet machine one is enough, and stays within a twentieth
                start = time.perf_counter()
                net.step(feed)
                best = min(best, time.perf_counter() - start)
                if best < 1.1 * ideal:
                    break
            assert best < 1.1 * ideal


@pytest.mark.slow
@pytest.mark.parametrize("keep_every", [1, 4])
def test_split_machine_killed_during_step(client: Any, tmp_path: Path, keep_every: int) -> None:
    x, u, v = cg.placeholder((None, 4), name="x"), cg.variable(np.ones(4), "u"), cg.variable(np.ones(4), "v")
    path = tmp_path / "die"
    with cg.scope("first"):
        h = cg.tanh(x * u)
    with cg.scope("second"):
        out = cg.mean((dying(h * v, path=str(path)) - 1) ** 2)

    def points(count: int, seed: int) -> dict[str, Any]:
        return {"x": np.random.default_rng(seed).normal(size=(count, 4))}

    here = dist.Split(out, [u, v], None, place=TWO, micro_batches=2, optimizer=ADAM)
    with dist.Split(out, [u, v], client, place=TWO, micro_batches=2, optimizer=ADAM, keep_every=keep_every) as net:
        values = train(net, range(6), points)
        before = net.machines[1]
        path.touch()
        values += train(net, range(6, 9), points)
        assert not path.exists()
        assert net.machines[1] != before
        assert values == train(here, range(9), points)
        assert bits(net) == bits(here)


@pytest.mark.slow
def test_split_all_machines_killed() -> None:
    loss, parameters = network()
    here = dist.Split(loss, parameters, None, place=TWO, optimizer=ADAM)
    with (
        three_machines() as client,
        dist.Split(loss, parameters, client, place=TWO, optimizer=ADAM, keep_every=3) as net,
    ):
        values = train(net, range(4))
        for pid in client.run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)
        values += train(net, range(4, 6))
        assert values == train(here, range(6))
        assert bits(net) == bits(here)


@pytest.mark.slow
def test_split_machine_stopped_and_continued(client: Any) -> None:
    loss, parameters = network()
    here = dist.Split(loss, parameters, None, place=TWO, optimizer=ADAM)
    with dist.Split(loss, parameters, client, place=TWO, optimizer=ADAM) as net:
        values = train(net, range(2))
        pid, machines = pid_of(client, net.machines[1]), dict(net.machines)
        os.kill(pid, signal.SIGSTOP)
        timer = threading.Timer(1.0, os.kill, (pid, signal.SIGCONT))
        timer.start()
        values += train(net, range(2, 4))
        timer.join()
        assert net.machines == machines
        assert values == train(here, range(4))
        assert bits(net) == bits(here)


@pytest.mark.slow
def test_split_machine_stopped(client: Any) -> None:
    loss, parameters = network()
    here = dist.Split(loss, parameters, None, place=TWO, optimizer=ADAM)
    with dist.Split(loss, parameters, client, place=TWO, optimizer=ADAM, wait=5.0) as net:
        values = train(net, range(2))
        pid, stopped = pid_of(client, net.machines[1]), net.machines[1]
        os.kill(pid, signal.SIGSTOP)
        try:
            values += train(net, range(2, 4))
        finally:
            os.kill(pid, signal.SIGCONT)
        assert net.machines[1] != stopped
        assert values == train(here, range(4))
        assert bits(net) == bits(here)


@pytest.mark.slow
def test_split_interrupted_step_is_not_taken(client: Any) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored, where it runs in the background
    x, u, v = cg.placeholder((None, 4), name="x"), cg.variable(np.ones(4), "u"), cg.variable(np.ones(4), "v")
    with cg.scope("first"):
        h = cg.sin(x * u)
    with cg.scope("second"):
        out = cg.mean(resting(h * v, seconds=0.2) ** 2)
    feed = {"x": np.arange(8.0).reshape(2, 4)}
    here = dist.Split(out, [u, v], None, place=TWO, optimizer=ADAM)
    with dist.Split(out, [u, v], client, place=TWO, optimizer=ADAM, keep_every=3) as net:
        values = [net.step(feed), net.step(feed)]
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            net.step(feed)
        timer.join()
        values += [net.step(feed), net.step(feed)]
        assert values == [here.step(feed) for _ in range(4)]
        assert bits(net) == bits(here)


@pytest.mark.slow
def test_split_killing_every_machine_raises(client: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from autodiff.distributed.split import splitting

    monkeypatch.setattr(splitting, "MAX_LOSSES", 2)
    x, u = cg.placeholder((None, 4), name="x"), cg.variable(np.ones(4), "u")
    paths = [tmp_path / "one", tmp_path / "two"]
    with cg.scope("first"):
        h = dying(x * u, path=str(paths[0]))
        out = cg.mean(dying(h, path=str(paths[1])))
    with dist.Split(out, [u], client, place={"first": 0}) as net:
        for path in paths:
            path.touch()
        with pytest.raises(RuntimeError, match=r"2 machines failed during this call\. The computation may end"):
            net.run({"x": np.ones((2, 4))})
        assert net.run({"x": np.ones((2, 4))}) == 1.0


def test_split_error_keeps_traceback(threads: Any) -> None:
    x, u = cg.placeholder((None, 4), name="x"), cg.variable(np.ones(4), "u")
    with cg.scope("first"):
        out = cg.mean(failing(x * u))
    with dist.Split(out, [u], threads, place={"first": 0}, micro_batches=2) as net:
        with pytest.raises(ArithmeticError, match="too large for this function") as caught:
            net.run({"x": np.full((4, 4), 1e3)})
        assert 'raise ArithmeticError("too large for this function")' in str(caught.value.__cause__)
        assert any("test_split_machines.py" in note for note in caught.value.__notes__)
        assert net.run({"x": np.ones((4, 4))}) == 1.0


def test_split_error_cancels_other_parts(threads: Any) -> None:
    x, u, v = cg.placeholder((None, 4), name="x"), cg.variable(np.ones(4), "u"), cg.variable(np.ones(4), "v")
    with cg.scope("first"):
        h = cg.tanh(x * u)
    with cg.scope("second"):
        out = cg.mean(failing(h * v * x) ** 2)
    options: dict[str, Any] = {"place": TWO, "micro_batches": 2, "optimizer": ADAM}
    large = np.vstack([np.ones((2, 4)), np.full((2, 4), 1e3)])  # the second micro-batch fails
    with dist.Split(out, [u, v], threads, **options) as net, dist.Split(out, [u, v], None, **options) as here:
        for rows in (np.ones((4, 4)), large, large, np.eye(4)):
            for each in (net, here) if rows is not large else (net,):
                if rows is large:
                    with pytest.raises(ArithmeticError, match="too large for this function"):
                        each.step({"x": rows})
                else:
                    each.step({"x": rows})
        assert bits(net) == bits(here)
        assert sum(threads.run(passes_under_way).values()) == 0  # nothing is left of those that were given up


# ------------------------------------------------------------------------------ clusters that are brought down


@contextmanager
def processes(folder: Path, machines: int) -> Iterator[tuple[str, subprocess.Popen[bytes], list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler, its process, and the processes of workers, which are not restarted."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1"}
    file = folder / "scheduler.json"

    def start(kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", kind, "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
        return subprocess.Popen([*command, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    started = [start("scheduler", "--port", "0")]
    try:
        until = time.monotonic() + 30
        while not file.exists() or not file.read_text().endswith("}"):
            assert time.monotonic() < until
            time.sleep(0.05)
        started += [start("worker", "--no-nanny", "--nthreads", "1", "--death-timeout", "20") for _ in range(machines)]
        yield json.loads(file.read_text())["address"], started[0], started[1:]
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_split_lost_machine_and_scheduler_raise(tmp_path: Path) -> None:
    loss, parameters = network()
    here = dist.Split(loss, parameters, None, place=TWO, optimizer=ADAM)
    train(here, range(3))
    with processes(tmp_path, 1) as (address, scheduler, workers):
        net = dist.Split(loss, parameters, address, place=TWO, optimizer=ADAM, wait=30.0)
        train(net, range(3))
        assert len(set(net.machines.values())) == 1
        net._hosts.wait = 2.0
        workers[0].kill()
        start = time.monotonic()
        with pytest.raises(TimeoutError, match="there was no machine for 2 s"):
            net.step(rows(10, 3))
        assert time.monotonic() - start < 20
        assert bits(net) == bits(here)
        net._hosts.wait = 60.0
        scheduler.kill()
        start = time.monotonic()
        with pytest.raises(ConnectionError, match=r"the scheduler at tcp://127.* does not answer"):
            net.step(rows(10, 3))
        assert time.monotonic() - start < 30
        state = net.kept_state_dict()
        net.close()
    other = dist.Split(loss, parameters, None, place=TWO, optimizer=ADAM)
    other.load_state_dict(state)
    assert train(other, range(3, 5)) == train(here, range(3, 5))
    assert bits(other) == bits(here)
