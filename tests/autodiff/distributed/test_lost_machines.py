"""Machines that leave, fail and fall silent, as threads of this process.

Killed and stopped processes are tested in test_faults and test_split_machines.
"""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import autodiff.distributed as dist
import compgraph as cg
from autodiff.distributed import blocks, cluster
from autodiff.distributed.cluster import Actor
from autodiff.distributed.parallel import pool
from autodiff.distributed.parallel import step as step_module
from autodiff.distributed.split import hosts, splitting
from autodiff.optimizers import Adam
from tests.support.clusters import close_thread, threads_of
from tests.support.losses import network, network_parameters, slow_once
from tests.support.split_parts import network as split_network
from tests.support.split_parts import resting, rows

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(101, 20)), RNG.integers(0, 4, 101)
ONE, TWO = {"first": 0, "second": 0}, {"first": 0, "second": 1}
ADAM = partial(Adam, learning_rate=0.01)


def bits(actual: tuple[Any, dict[str, Any]]) -> list[bytes]:
    value, slopes = actual
    return [np.asarray(value).tobytes(), *(slopes[name].tobytes() for name in slopes)]


@pytest.fixture(scope="module")
def expected() -> list[bytes]:
    """The bits of a run in one process."""
    return bits(dist.DataParallel(network).value_and_grad(network_parameters(), X, Y))


def fail_once(monkeypatch: pytest.MonkeyPatch, method: str) -> list[str]:
    """Let the next call of a method of an actor raise as for a lost machine. The returned list is empty after that call."""
    call, pending = Actor.call, [method]

    async def failing(self: Actor, name: str, *args: Any) -> Any:
        if name in pending:
            pending.clear()
            raise ConnectionError("the machine is gone")
        return await call(self, name, *args)

    monkeypatch.setattr(Actor, "call", failing)
    return pending


# ----------------------------------------------------------------------------------------- DataParallel


def test_data_parallel_continues_without_machine(expected: list[bytes]) -> None:
    with threads_of(3) as client, dist.DataParallel(network, client) as loss:
        assert bits(loss.value_and_grad(network_parameters(), X, Y)) == expected
        leaving = loss.machines[0].address
        close_thread(client, leaving)
        assert bits(loss.value_and_grad(network_parameters(), X, Y)) == expected
        assert leaving not in {m.address for m in loss.machines}
        assert len(loss.machines) == 2


def test_data_parallel_replaces_machine_lost_in_step(expected: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    with threads_of(2) as client, dist.DataParallel(network, client) as loss:
        pending = fail_once(monkeypatch, "compute_sums")
        assert bits(loss.value_and_grad(network_parameters(), X, Y)) == expected
        assert pending == []
        assert any(record.fault.startswith("lost: the machine is gone") for record in loss.log.faults)
        monkeypatch.setattr(step_module, "MAX_LOSSES", 1)
        fail_once(monkeypatch, "compute_sums")
        with pytest.raises(RuntimeError, match="1 machines failed in succession on rows"):
            loss.value_and_grad(network_parameters(), X, Y)


def test_data_parallel_overtakes_silent_machine(expected: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_module, "MIN_PATIENCE", 0.1)
    file = tmp_path / "slow"
    with threads_of(2) as client, dist.DataParallel(partial(slow_once, file), client, patience=1.0) as loss:
        for _ in range(3):
            assert bits(loss.value_and_grad(network_parameters(), X, Y)) == expected
        file.touch()
        assert bits(loss.value_and_grad(network_parameters(), X, Y)) == expected
        assert any(record.fault.startswith("overtaken") for record in loss.log.faults)


def test_data_parallel_without_machine_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "REFRESH_INTERVAL", 0.05)
    with threads_of(1) as client, dist.DataParallel(network, client, wait=0.5) as loss:
        loss.value_and_grad(network_parameters(), X, Y)
        close_thread(client, loss.machines[0].address)
        with pytest.raises(TimeoutError, match=r"no machine for 0\.5 s"):
            loss.value_and_grad(network_parameters(), X, Y)


def test_data_parallel_without_scheduler_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(**options: Any) -> Any:
        raise OSError("no answer")

    monkeypatch.setattr(cluster, "SCHEDULER_TIMEOUTS", {})
    monkeypatch.setattr(cluster, "DISCONNECTED_TIMEOUT", 0.2)
    with threads_of(1) as client, dist.DataParallel(network, client, wait=5) as loss:
        monkeypatch.setattr(client.scheduler, "identity", failing, raising=False)
        with pytest.raises(ConnectionError, match=r"the scheduler at inproc://\S+ does not answer"):
            loss.value_and_grad(network_parameters(), X, Y)


# ------------------------------------------------------------------------------------------------ blocks


def test_blocks_whose_task_is_cancelled_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_wait_for_result", lambda client, future, timeout, where: future.cancel())
    with (
        threads_of(1),
        dask.config.set(scheduler="distributed"),
        pytest.raises(ConnectionError, match="does not answer"),
    ):
        dist.value_and_grad(lambda w, x: np.mean(x @ w))(np.ones(20), da.from_array(X, chunks=(20, 20)))


# ------------------------------------------------------------------------------------------------- Split


def train(net: Any, steps: range) -> list[float]:
    return [float(net.step(rows(10, k))) for k in steps]


def require_same_state(net: Any, here: Any) -> None:
    for (name, actual), (_, expected) in zip(sorted(net.state_dict().items()), sorted(here.state_dict().items()), strict=True):
        assert np.asarray(actual).tobytes() == np.asarray(expected).tobytes(), name


@pytest.mark.parametrize("age", [hosts.POLL_INTERVAL, 0.0], ids=["unnoticed", "noticed"])
def test_split_continues_without_machine(age: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of machines is as old as allowed, or updated before the next call."""
    monkeypatch.setattr(hosts, "POLL_INTERVAL", age)
    loss, parameters = split_network()
    here = dist.Split(loss, parameters, None, place=TWO, optimizer=ADAM)
    with threads_of(3) as client, dist.Split(loss, parameters, client, place=TWO, optimizer=ADAM) as net:
        values = train(net, range(2))
        leaving = net.machines[1]
        close_thread(client, leaving)
        values += train(net, range(2, 4))
        assert net.machines[1] != leaving
        assert values == train(here, range(4))
        require_same_state(net, here)


@pytest.mark.parametrize("method", ["install", "pass_through", "call"])
def test_split_replaces_machine_lost_in_step(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loss, parameters = split_network()
    here = dist.Split(loss, parameters, None, place=TWO, optimizer=ADAM)
    pending = fail_once(monkeypatch, method)
    with threads_of(3) as client, dist.Split(loss, parameters, client, place=TWO, optimizer=ADAM) as net:
        assert train(net, range(2)) == train(here, range(2))
        require_same_state(net, here)
        assert pending == []


def test_split_replaces_silent_machine_that_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    loss, parameters = split_network()
    here = dist.Split(loss, parameters, None, place=ONE, optimizer=ADAM)
    with threads_of(3) as client, dist.Split(loss, parameters, client, place=ONE, optimizer=ADAM) as net:
        values = train(net, range(1))
        call, leaving = Actor.call, net.machines[0]

        async def hanging(self: Actor, method: str, *args: Any) -> Any:
            if self._address == leaving:
                await asyncio.sleep(60)
            return await call(self, method, *args)

        monkeypatch.setattr(Actor, "call", hanging)
        timer = threading.Timer(0.1, close_thread, (client, leaving))
        timer.start()
        values += train(net, range(1, 3))
        timer.join()
        assert net.machines[0] != leaving
        assert values == train(here, range(3))
        require_same_state(net, here)


@pytest.mark.parametrize("part", [0, 1])
def test_split_machine_that_leaves_during_pass(part: int) -> None:
    x, u, v = cg.placeholder((None, 4), name="x"), cg.variable(np.ones(4), "u"), cg.variable(np.ones(4), "v")
    with cg.scope("first"):
        h = resting(cg.sin(x * u), seconds=0.05 if part == 0 else 0.0)
    with cg.scope("second"):
        out = cg.mean(resting(h * v, seconds=0.05 if part == 1 else 0.0) ** 2)
    feed = {"x": np.arange(8.0).reshape(2, 4)}
    here = dist.Split(out, [u, v], None, place=TWO, optimizer=ADAM)
    with threads_of(3) as client, dist.Split(out, [u, v], client, place=TWO, optimizer=ADAM) as net:
        values = [net.step(feed)]
        leaving = net.machines[part]
        timer = threading.Timer(0.025, close_thread, (client, leaving))
        timer.start()
        values.append(net.step(feed))
        timer.join()
        values.append(net.step(feed))
        assert net.machines[part] != leaving
        assert values == [here.step(feed) for _ in range(3)]


def test_split_without_machine_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    loss, parameters = split_network()
    with threads_of(2) as client, dist.Split(loss, parameters, client, place=TWO, optimizer=ADAM, wait=0.5) as net:
        train(net, range(1))
        monkeypatch.setattr(splitting, "MAX_LOSSES", 1)
        fail_once(monkeypatch, "pass_through")
        with pytest.raises(RuntimeError, match="1 machines failed during this call"):
            train(net, range(1, 2))
        for address in set(net.machines.values()) | {*client.scheduler_info()["workers"]}:
            close_thread(client, address)
        with pytest.raises(TimeoutError, match=r"there was no machine for 0\.5 s"):
            train(net, range(1, 2))
