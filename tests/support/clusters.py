"""Clusters of processes on this machine, for tests: on loopback only; the caller that starts a cluster shuts it down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster

ROOT = Path(__file__).parents[2]


@contextmanager
def processes_of(machines: int) -> Iterator[LocalCluster]:
    """A cluster of processes, which are restarted when killed."""
    options: dict[str, Any] = {"n_workers": machines, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": ":0"}
    with LocalCluster(processes=True, silence_logs=50, **options) as cluster:
        yield cluster


@contextmanager
def threads_of(machines: int) -> Iterator[Client]:
    """A client of worker threads in this process, which start at once."""
    with Client(processes=False, n_workers=machines, threads_per_worker=1, dashboard_address=":0") as client:
        yield client


def close_thread(client: Client, address: str) -> None:
    """Close one of the workers of `threads_of` without notifying its users."""
    (worker,) = [worker for worker in client.cluster.workers.values() if worker.address == address]
    client.sync(worker.close, nanny=False)


class Processes:
    """A scheduler and workers in separate processes that can be killed.

    Parameters
    ----------
    folder : Path
        For their files.
    machines : int
        Number of workers.
    nanny : bool
        Whether each worker has a nanny process that restarts it.
    """

    def __init__(self, folder: Path, machines: int, nanny: bool = False) -> None:
        self.folder, self.nanny = folder, nanny
        self.file = folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", str(self.file), "--no-dashboard")
        until = time.monotonic() + 30
        while not self.file.exists() or not self.file.read_text().endswith("}"):
            assert time.monotonic() < until, "the scheduler did not start"
            time.sleep(0.02)
        for _ in range(machines):
            self.add()

    def _start(self, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
        path = str(ROOT)
        environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | variables
        with (self.folder / f"{arguments[0]}.log").open("ab") as log:
            command = [sys.executable, "-m", "dask", arguments[0], "--host", "127.0.0.1", *arguments[1:]]
            return subprocess.Popen(command, env=environment, cwd=self.folder, stdout=log, stderr=log)

    def add(self, **variables: str) -> None:
        """Start another worker."""
        options = ["--nthreads", "1", "--no-dashboard", "--nanny" if self.nanny else "--no-nanny", "--death-timeout", "20"]
        self.workers.append(self._start("worker", "--scheduler-file", str(self.file), *options, **variables))

    def client(self) -> Client:
        """A client, after all workers have connected."""
        client = Client(scheduler_file=str(self.file), direct_to_workers=True, timeout=20)
        if self.workers:
            client.wait_for_workers(len(self.workers), timeout=60)
        return client

    def close(self) -> None:
        """Terminate all processes."""
        for process in [*self.workers, self.scheduler]:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGTERM if self.nanny else signal.SIGKILL)
        for process in [*self.workers, self.scheduler]:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def processes(folder: Path, machines: int, nanny: bool = False) -> Iterator[Processes]:
    """Start processes, and terminate them at the end of the block."""
    cluster = Processes(folder, machines, nanny)
    try:
        yield cluster
    finally:
        cluster.close()
