"""Train the network of `mnist.py` on several machines, and kill one of them during training.

The program starts a cluster of processes on this machine; for another cluster only the line that creates the client differs. It
splits each batch among the machines, kills one of them, and continues with the others and a new one. Then it trains the same
network in this process alone, and compares the parameters bit for bit.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from digits import Array, Batches, load_data
from networks import dense, dense_parameters
from options import require_plot

import compgraph as cg

try:
    from distributed import Client, LocalCluster

    from autodiff.distributed import DataParallel
except ImportError:
    sys.exit('this example needs dask.distributed: pip install ".[distributed]"')

from autodiff.optimizers import Adam


def loss(parameters: dict[str, Array], images: Array, labels: Array) -> Any:
    """The mean cross-entropy of some images."""
    return cg.softmax_cross_entropy(dense(images, parameters), labels)


def train(mean: DataParallel, images: Array, labels: Array, options: argparse.Namespace, disturb: Callable[[int], None]) -> Any:
    """The parameters after all steps; `disturb` is called before each."""
    rng = np.random.default_rng(options.seed)
    parameters = {name: np.array(p.value) for name, p in dense_parameters(images.shape[1], rng).items()}
    optimizer = Adam(parameters, learning_rate=0.01)
    batches = Batches(len(images), options.batch_size, rng)
    x, y = mean.put(images, labels)  # the images travel once; in each step, row numbers do
    for step in mean.steps(range(options.iterations)):
        disturb(step)
        rows = next(batches)
        optimizer.step(mean.value_and_grad(parameters, x[rows], y[rows])[1])
    return parameters


def kill_one(client: Client, mean: DataParallel) -> None:
    """Kill the process of a machine by SIGKILL."""
    address = mean.machines[0].address
    process = client.run(os.getpid, workers=[address])[address]
    print(f"Killing the process {process}", file=sys.stderr)
    os.kill(process, signal.SIGKILL)


def read_options(parser: argparse.ArgumentParser, argv: list[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser.add_argument("--machines", type=int, default=2, metavar="N", help="default: %(default)s")
    parser.add_argument("--iterations", type=int, default=100, metavar="N", help="default: %(default)s")
    parser.add_argument("--batch-size", type=int, default=256, metavar="N", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of all random numbers; default: %(default)s")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="where to draw the work of each machine over time; needs Matplotlib"
    )
    options = parser.parse_args(argv)
    for name in ("machines", "iterations", "batch_size"):
        if getattr(options, name) < 1:
            parser.error(f"argument --{name.replace('_', '-')}: must be at least 1")
    if options.seed < 0:
        parser.error("argument --seed: must not be negative")
    if options.plot:
        require_plot(parser, "--plot", options.plot, "leave the option out")
    return options


def main(argv: list[str] | None = None) -> int:
    """Train on several machines and on one, and compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options = read_options(parser, argv)
    images, held_out_images, labels, held_out_labels = load_data("digits")
    if options.batch_size > len(images):
        parser.error(f"argument --batch-size: must be at most {len(images)}, the number of images to train on")
    machines = {"n_workers": options.machines, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": ":0"}
    half = options.iterations // 2
    with (
        LocalCluster(**machines) as cluster,
        Client(cluster, direct_to_workers=True) as client,
        DataParallel(loss, client) as mean,
    ):
        there = train(mean, images, labels, options, lambda step: kill_one(client, mean) if step == half else None)
        lost = {r.machine for r in mean.log.faults if r.fault.startswith("lost")}
        if options.plot:
            mean.log.plot(range(max(half - 8, 0), half + 8)).savefig(options.plot)
    here = train(DataParallel(loss), images, labels, options, lambda step: None)
    with cg.no_graph():
        guessed = np.argmax(dense(held_out_images, there), axis=-1)
    print(f"Accuracy: {np.mean(guessed == held_out_labels):.2%}")
    print(f"Machines lost: {len(lost)}")
    same = all(here[name].tobytes() == there[name].tobytes() for name in here)
    print("The same bits as in one process" if same else "Other bits than in one process")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
