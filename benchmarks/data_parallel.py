"""The overhead of data parallelism, and when it pays.

Run ``python benchmarks/data_parallel.py`` with nothing else running. It starts ``--machines``
processes on this machine, and prints the overhead of a step, the time per megabyte of parameters, the efficiency with simulated
work (sleeping), and the times of steps of three networks in one process and in several.
"""

from __future__ import annotations

import argparse
import os

for library in ("OMP", "OPENBLAS", "MKL"):  # one thread each, so that a process is a machine
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import time  # noqa: E402  (after the threads are set)
from collections.abc import Callable  # noqa: E402
from itertools import pairwise  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

import compgraph as cg  # noqa: E402
from autodiff.distributed import DataParallel  # noqa: E402

NETWORKS = {  # name: layers, rows of a batch, steps
    "digits, 64-64-10, batch 32": ([64, 64, 10], 32, 40),
    "MNIST, 784-256-10, batch 512": ([784, 256, 10], 512, 12),
    "MNIST, 784-1024-1024-10, batch 4096": ([784, 1024, 1024, 10], 4096, 4),
}
IMITATED = [(0.01, 0.04), (0.1, 0.04), (0.1, 1), (1, 1), (1, 15)]  # seconds in one process, megabytes of parameters


def light(params: Any, x: Any) -> Any:
    """A loss of negligible cost, with a gradient of the size of the parameters."""
    return np.mean(x) * params[0][0] + np.mean(params[1])


def waiting(params: Any, seconds: Any) -> Any:
    """Simulated work: sleeps for so many seconds in total."""
    time.sleep(float(np.sum(seconds)))
    return np.mean(params) * np.mean(seconds)


def network(params: Any, x: Any, y: Any) -> Any:
    """The loss of a fully connected network."""
    for w, b in params[:-1]:
        x = cg.relu(x @ w + b)
    w, b = params[-1]
    return cg.softmax_cross_entropy(x @ w + b, y)


def best(run: Callable[[], Any], count: int) -> float:
    """The shortest of several times, in seconds; the first calls, which load and measure, do not count."""
    for _ in range(3):
        run()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def overhead(client: Client, machines: int) -> float:
    """Milliseconds of a step with next to no work and one shard per machine."""
    p, x = [np.zeros(1), np.zeros(10)], np.ones(64)
    here = best(lambda: DataParallel(light, grains=1).value_and_grad(p, x), 50)
    with DataParallel(light, client, grains=machines, patience=1e9) as mean:
        return (best(lambda: mean.value_and_grad(p, x), 100) - here) * 1000


def of_parameters(client: Client, machines: int, megabytes: float, count: int) -> float:
    """Milliseconds that parameters add to a step, beside what their gradient costs a machine itself."""
    p, x = [np.zeros(1), np.zeros(int(megabytes * 1e6 / 8))], np.ones(64)
    here = DataParallel(light, grains=1)
    alone = best(lambda: here.value_and_grad(p, x), count)
    with DataParallel(light, client, grains=machines, patience=1e9) as mean:
        return (best(lambda: mean.value_and_grad(p, x), count) - alone) * 1000


def imitated(client: Client, machines: int, seconds: float, megabytes: float, grains: int = 16) -> float:
    """Seconds of a step with simulated work, which sleeps, so that each process behaves as a separate machine."""
    p, x = np.zeros(int(megabytes * 1e6 / 8)), np.full(160, seconds / 160)
    with DataParallel(waiting, client, grains=grains) as mean:
        return best(lambda: mean.value_and_grad(p, x), 5)


def steps(client: Client, layers: list[int], rows: int, count: int) -> tuple[float, float]:
    """Milliseconds of a step in this process, and on the machines, where the data was left."""
    rng = np.random.default_rng(0)
    p = [(rng.normal(scale=m**-0.5, size=(m, n)), np.zeros(n)) for m, n in pairwise(layers)]
    x, y = rng.normal(size=(2 * rows, layers[0])), rng.integers(0, 10, 2 * rows)
    chosen = rng.permutation(2 * rows)[:rows]
    alone = DataParallel(network, grains=1)
    here = best(lambda: alone.value_and_grad(p, x[chosen], y[chosen]), count)
    with DataParallel(network, client) as mean:
        there_x, there_y = mean.put(x, y)
        there = best(lambda: mean.value_and_grad(p, there_x[chosen], there_y[chosen]), count)
    return here * 1000, there * 1000


def main(argv: list[str] | None = None) -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description="Measure what sharing the rows of a batch among machines costs.")
    parser.add_argument("--machines", type=int, default=2, metavar="N", help="default: %(default)s")
    machines = parser.parse_args(argv).machines
    options = {"n_workers": machines, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster, direct_to_workers=True) as client:
        print(f"{machines} processes of one machine")
        base = overhead(client, machines)
        print(f"a step with no work: {base:.1f} ms")
        for megabytes, count in ((0.04, 50), (1, 30), (15, 8), (80, 4)):
            added = of_parameters(client, machines, megabytes, count)
            each = (added - base) / megabytes / machines
            print(f"parameters of {megabytes:5g} MB: {added:7.1f} ms a step, {each:.2f} ms a MB and machine")
        print(f"work that waits, 1 s a step, 0.04 MB: efficiency {1 / imitated(client, machines, machines, 0.04):.1%}")
        for seconds, megabytes in IMITATED:
            there = imitated(client, machines, seconds, megabytes, machines)
            print(f"work that waits, {seconds * 1000:g} ms in one process, {megabytes} MB: {seconds / there:.2f} times as fast")
        for name, (layers, rows, count) in NETWORKS.items():
            here, there = steps(client, layers, rows, count)
            print(f"{name}: {here:.1f} ms in one process, {there:.1f} ms on {machines}, {here / there:.2f} times as fast")


if __name__ == "__main__":
    main()
