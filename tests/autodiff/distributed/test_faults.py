"""Failures of machines during training: the final bits equal those of an undisturbed run, or an error states the cause.

Schedulers and workers are separate processes on this computer. Each test ends the processes that it starts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from distributed import Client

import autodiff.distributed as dist
from autodiff.optimizers import Adam
from tests.support.clusters import ROOT, Processes, processes
from tests.support.losses import deadly, network, network_parameters, slowed

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(64, 20)), RNG.integers(0, 4, 64)
STEPS = 24


def train(loss: dist.DataParallel, disturb: Callable[[int], None] = lambda step: None, steps: int = STEPS) -> list[bytes]:
    """Return the bits of a network after some steps; call `disturb` before each step."""
    p = network_parameters()
    optimizer = Adam(p, learning_rate=0.01)
    rng = np.random.default_rng(1)
    for step in range(steps):
        rows = rng.permutation(len(X))[:48]
        disturb(step)
        optimizer.step(loss.value_and_grad(p, X[rows], Y[rows])[1])
    return [p[name].tobytes() for name in p]


@pytest.fixture(scope="module")
def undisturbed() -> list[bytes]:
    return train(dist.DataParallel(network))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Two machines, for tests after which two machines remain."""
    with processes(tmp_path_factory.mktemp("cluster"), 2) as cluster:
        yield cluster


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of files that set the slowness of machines, by process id."""
    return tmp_path


def process_of(client: Client, address: str) -> int:
    process_id: int = client.run(os.getpid, workers=[address])[address]
    return process_id


def slow_down(folder: Path, process: int, seconds_a_row: float) -> None:
    part = folder / f"{process}.part"
    part.write_text(str(seconds_a_row))
    part.rename(folder / str(process))


def faults(loss: dist.DataParallel) -> list[str]:
    return [r.fault for r in loss.log.faults if r.fault != "joined"]


def test_machine_killed_during_step(cluster: Processes, folder: Path, undisturbed: list[bytes]) -> None:
    cluster.add()
    with cluster.client() as client, dist.DataParallel(partial(slowed, folder), client, patience=1e9) as loss:

        def disturb(step: int) -> None:
            if step == 10:
                (address,) = [m.address for m in loss.machines if process_of(client, m.address) == cluster.workers[-1].pid]
                slow_down(folder, process_of(client, address), 60.0)  # so that it certainly works when it is killed
                threading.Timer(0.1, cluster.workers[-1].kill).start()

        assert train(loss, disturb) == undisturbed
        (step,) = {r.step for r in loss.log if r.fault.startswith("lost")}
        shares = [r for r in loss.log if r.step == step and len(r.rows)]
        assert max(r.end for r in shares) - min(r.begin for r in shares) < 1 + 0.1  # it was killed after 0.1 s
        assert any(f.startswith("lost") for f in faults(loss))
        assert {len(r.rows) > 0 for r in loss.log if r.fault.startswith("lost")} == {True, False}  # its rows, and the machine
        cluster.workers.pop().wait()
        assert len(loss.machines) == 2


def test_machine_stopped_and_continued(cluster: Processes, undisturbed: list[bytes]) -> None:
    stopped = cluster.workers[0]
    with cluster.client() as client, dist.DataParallel(network, client) as loss:

        def disturb(step: int) -> None:
            if step == 6:
                stopped.send_signal(signal.SIGSTOP)
            elif step == 12:
                stopped.send_signal(signal.SIGCONT)
            elif step == 18:
                until = time.monotonic() + 20
                while not all(m.is_free for m in loss.machines):
                    assert time.monotonic() < until
                    time.sleep(0.05)

        try:
            assert train(loss, disturb) == undisturbed
        finally:
            stopped.send_signal(signal.SIGCONT)
        assert any(f.startswith("overtaken") for f in faults(loss))
        last = {r.machine for r in loss.log if r.step == STEPS - 1 and len(r.rows)}
        assert len(last) == 2, "it takes part again"


def test_all_machines_stopped_raises(cluster: Processes) -> None:
    with cluster.client() as client, dist.DataParallel(network, client, wait=3.0) as loss:
        loss.value_and_grad(network_parameters(), X, Y)
        try:
            for process in cluster.workers:
                process.send_signal(signal.SIGSTOP)
            start = time.monotonic()
            with pytest.raises(TimeoutError, match="no reply from any of 2 machines"):
                loss.value_and_grad(network_parameters(), X, Y)
            assert time.monotonic() - start < 10
        finally:
            for process in cluster.workers:
                process.send_signal(signal.SIGCONT)
        loss.value_and_grad(network_parameters(), X, Y)  # and training continues


def test_slower_machine_gets_fewer_rows(cluster: Processes, folder: Path, undisturbed: list[bytes]) -> None:
    with cluster.client() as client, dist.DataParallel(partial(slowed, folder), client, patience=1e9) as loss:
        processes_of = {m.address: process_of(client, m.address) for m in loss.machines}
        slow, fast = processes_of
        for process in processes_of.values():
            slow_down(folder, process, 0.002)

        def disturb(step: int) -> None:
            if step == 8:
                slow_down(folder, processes_of[slow], 0.008)

        assert train(loss, disturb) == undisturbed
        rows = {(r.step, r.machine): len(r.rows) for r in loss.log}
        assert rows[7, slow] >= 12
        assert rows[STEPS - 1, slow] < rows[STEPS - 1, fast] / 2
        assert rows[STEPS - 1, slow] > 0
        assert faults(loss) == []


def test_machine_joins_during_training(tmp_path: Path, undisturbed: list[bytes]) -> None:
    with processes(tmp_path, 1) as cluster, cluster.client() as client, dist.DataParallel(network, client) as loss:

        def disturb(step: int) -> None:
            if step == 4:
                cluster.add()
                client.wait_for_workers(2, timeout=60)
            elif step == 14:
                assert len(loss.machines) == 2  # which waits until it was made ready

        assert train(loss, disturb) == undisturbed
        new = loss.log.faults[-1]
        assert new.fault == "joined"
        assert new.step >= 4
        assert {r.machine for r in loss.log if r.step == STEPS - 1} == {m.address for m in loss.machines}
        assert len(loss.machines) == 2


def test_all_machines_killed_and_restarted(tmp_path: Path, folder: Path, undisturbed: list[bytes]) -> None:
    slow = partial(slowed, folder)
    with processes(tmp_path, 2, nanny=True) as cluster, cluster.client() as client, dist.DataParallel(slow, client) as loss:
        x = loss.put(X)

        def disturb(step: int) -> None:
            if step == 10:
                for m in loss.machines:
                    process = process_of(client, m.address)
                    slow_down(folder, process, 60.0)
                    threading.Timer(0.1, os.kill, (process, signal.SIGKILL)).start()

        assert train(loss, disturb) == undisturbed
        assert sum(f.startswith("lost") for f in faults(loss)) >= 2
        expected = dist.DataParallel(network)(network_parameters(), X, Y)
        assert loss(network_parameters(), x, Y) == expected  # those that came were given the data


def test_no_machine_raises(tmp_path: Path) -> None:
    with processes(tmp_path, 0) as cluster, cluster.client() as client, dist.DataParallel(network, client, wait=1) as loss:
        start = time.monotonic()
        with pytest.raises(TimeoutError, match="no machine for 1 s"):
            loss.value_and_grad(network_parameters(), X, Y)
        assert time.monotonic() - start < 5


def test_loss_that_kills_its_process_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autodiff.distributed.parallel.step.MAX_LOSSES", 2)
    with processes(tmp_path, 2) as cluster, cluster.client() as client:
        loss = dist.DataParallel(deadly, client, grains=1)
        with loss, pytest.raises(RuntimeError, match="2 machines failed in succession"):
            loss.value_and_grad(network_parameters(), X, Y)


@pytest.mark.filterwarnings("ignore")  # of the client, whose scheduler is gone
def test_killed_scheduler_raises_and_training_resumes(tmp_path: Path, undisturbed: list[bytes]) -> None:
    p = network_parameters()
    optimizer = Adam(p, learning_rate=0.01)
    rng = np.random.default_rng(1)
    batches = [rng.permutation(len(X))[:48] for _ in range(STEPS)]

    def resume(client: Client, disturb: Callable[[int], None]) -> None:
        with dist.DataParallel(network, client) as loss:
            for step in range(optimizer.steps, STEPS):
                disturb(step)
                optimizer.step(loss.value_and_grad(p, X[batches[step]], Y[batches[step]])[1])

    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with processes(tmp_path / "one", 2) as cluster:
        client = cluster.client()

        def disturb(step: int) -> None:
            if step == 10:
                cluster.scheduler.kill()
                start.append(time.monotonic())
            if step > 10:
                time.sleep(0.5)

        start: list[float] = []
        with pytest.raises(ConnectionError, match=r"the scheduler at tcp://127.* does not answer"):
            resume(client, disturb)
        assert time.monotonic() - start[0] < 30
        client.close(timeout=1)
    np.savez(tmp_path / "state.npz", **optimizer.state_dict())
    optimizer = Adam(p, learning_rate=0.01)
    optimizer.load_state_dict(dict(np.load(tmp_path / "state.npz")))
    assert optimizer.steps < STEPS
    with processes(tmp_path / "two", 1) as cluster, cluster.client() as client:
        resume(client, lambda step: None)
    assert [p[name].tobytes() for name in p] == undisturbed


PROGRAM = """
import os, signal, sys
import numpy as np
import tests.autodiff.distributed.test_faults as t
from distributed import Client
from autodiff.optimizers import Adam
import autodiff.distributed as dist
file, state = sys.argv[1:]
if __name__ == "__main__":
    with Client(scheduler_file=file, direct_to_workers=True, timeout=20) as client, dist.DataParallel(t.network, client) as loss:
        p = t.network_parameters()
        optimizer = Adam(p, learning_rate=0.01)
        if os.path.exists(state):
            optimizer.load_state_dict(dict(np.load(state)))
        begun, rng = optimizer.steps, np.random.default_rng(1)
        batches = [rng.permutation(len(t.X))[:48] for _ in range(t.STEPS)]
        for step in range(begun, t.STEPS):
            if step % 5 == 0:
                np.savez(state, **optimizer.state_dict())
            if step == 13 and not begun:
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.step(loss.value_and_grad(p, t.X[batches[step]], t.Y[batches[step]])[1])
        print(begun, b"".join(p[name].tobytes() for name in p).hex())
"""


def test_killed_client_resumes_from_state_dict(cluster: Processes, tmp_path: Path, undisturbed: list[bytes]) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, str(cluster.file), str(tmp_path / "state.npz")]
    runs = [subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False) for _ in range(2)]
    assert runs[0].returncode == -signal.SIGKILL
    assert runs[1].returncode == 0, runs[1].stderr
    assert runs[1].stdout.split() == ["10", b"".join(undisturbed).hex()]
