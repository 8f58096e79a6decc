"""Benchmark against hand-written NumPy, HIPS/autograd, MyGrad, PyTorch and JAX, in one run on one thread."""

from __future__ import annotations

import os

os.environ.update(
    OMP_NUM_THREADS="1",
    OPENBLAS_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    NPROC="1",
    JAX_PLATFORMS="cpu",
    XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
)

import argparse
import gc
import importlib.metadata
import platform
import random
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from catalogue import all_tasks
from peers import PEERS, Peer, Run
from tasks import Task
from tqdm import tqdm

README = Path(__file__).with_name("README.md")
MARKERS = ("<!-- table: begin -->", "<!-- table: end -->")
SHORTEST = 0.02  # seconds that one measurement lasts at least
RATIOS = (  # numerators and denominators
    ("compgraph", "numpy"),
    ("compgraph", "autograd"),
    ("compgraph", "torch"),
    ("jit", "numpy"),
    ("jit", "torch"),
    ("jit", "jax"),
)

Times = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Target:
    """A limit of the time of `who`, this package, relative to `peer` on the same task or on the task `of`."""

    task: str
    peer: str
    limit: float
    of: str | None = None
    who: str = "compgraph"


TARGETS = [
    Target("chain-1", "autograd", 0.35),
    Target("chain-1", "torch", 0.75),
    Target("chain-1000", "torch", 1.0),
    Target("chain-1000000", "numpy", 1.2),
    Target("chain-1000000", "numpy", 0.95, who="executor"),
    Target("chain-1000000", "numpy", 0.85, who="fused"),
    Target("network-composed", "numpy", 1.8),
    Target("network-composed", "numpy", 1.1, who="executor"),
    Target("network-composed", "torch", 1.0),
    Target("network-fused", "numpy", 1.4),
    Target("layers-1000-checkpointed", "compgraph", 2.0, of="layers-1000-stored"),
    Target("loop-2000", "torch", 0.4),
    Target("loop-4000", "compgraph", 2.5, of="loop-2000"),
    Target("convolution", "torch", 2.0),
    Target("hessian-100", "autograd", 0.25),
    Target("hessian-100", "torch", 1.0),
    Target("jacobian-50", "autograd", 0.25),
    Target("jacobian-50", "torch", 1.0),
    Target("hvp-chain-1", "compgraph", 3.0, of="gradient-chain-1"),
    Target("hvp-chain-100", "compgraph", 3.0, of="gradient-chain-100"),
    Target("hvp-chain-1000", "compgraph", 3.0, of="gradient-chain-1000"),
    Target("jvp-chain-1000000", "numpy", 2.5, of="forward-chain-1000000"),
    Target("hvp-10000", "compgraph", 3.0, of="gradient-10000"),
    Target("sparse-hessian-10000", "compgraph", 50.0, of="gradient-10000"),
    Target("chain-1", "jax", 0.75, who="jit"),
    Target("chain-1000", "jax", 0.2, who="jit"),
    Target("chain-1000", "torch", 0.2, who="jit"),
    Target("chain-1000000", "torch", 0.4, who="jit"),
    Target("chain-1000000", "jax", 0.2, who="jit"),
    Target("chain-1000000-threads", "jit", 0.6, who="jit", of="chain-1000000"),
    Target("loop-2000", "jax", 0.6, who="jit"),
    Target("recurrence-2000", "jax", 1.0, who="jit"),
    Target("heat-100-200", "jax", 1.2, who="jit"),
    Target("network-composed", "numpy", 1.0, who="jit"),
    Target("network-composed", "jax", 0.8, who="jit"),
    Target("pairs-200", "jax", 0.5, who="jit"),
    Target("pairs-200", "torch", 0.2, who="jit"),
    Target("hessian-100", "jax", 0.6, who="jit"),
    Target("convolution", "torch", 1.1, who="jit"),
    Target("convolution-7", "torch", 1.3, who="jit"),
]


# ------------------------------------------------------------------------------------------ measuring


def available(names: Iterable[str]) -> tuple[dict[str, Peer], list[str]]:
    """Make the peers that are installed; return them, and the names of the others."""
    found, missing = {}, []
    for name in names:
        try:
            found[name] = PEERS[name][0]()
        except ImportError:
            missing.append(name)
    return found, missing


def check(task: Task, name: str, peer: Peer, reference: Peer) -> None:
    """Raise ValueError if a peer's value or gradients differ from those by hand, now or after one step."""
    run, expected = task.start(name, peer), task.start("numpy", reference)
    for when in ("at first", "after one step"):
        (value, gradients), (right_value, right_gradients) = run(), expected()
        for what, a, b in [
            ("value", value, right_value),
            *((f"gradient {i}", *pair) for i, pair in enumerate(zip(gradients, right_gradients, strict=True))),
        ]:
            near = 1e-3 * task.tolerance * max(1.0, float(np.max(np.abs(b), initial=0)))
            if np.shape(_plain(a)) != np.shape(b) or not np.allclose(_plain(a), b, rtol=task.tolerance, atol=near):
                raise ValueError(f"{task.name}: the {what} that {name} gives {when} is wrong")


def _plain(value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(value.detach() if hasattr(value, "detach") else value)


def seconds(run: Run, number: int) -> float:
    """Time `number` calls, with the garbage collector enabled and just run."""
    gc.collect()
    start = time.perf_counter()
    for _ in range(number):
        run()
    return time.perf_counter() - start


def reach_steady_state() -> None:
    """Bring the allocator and the collector into a steady state, so that no task depends on earlier ones.

    Once 24 megabytes have been freed, glibc keeps freed blocks of that size for the next array; until then it hands each back to
    the system, and a step of the network spends more time on getting memory than on arithmetic. The objects of the imported
    packages are permanent, and are hidden from the collector.
    """
    np.ones(3_000_000)
    gc.freeze()


def calibrated(run: Run, shortest: float) -> int:
    """Find how many calls last at least `shortest` seconds: a power of two. The first call, which may compile, is not counted."""
    run()
    number = 1
    while seconds(run, number) < shortest:
        number *= 2
    return number


def race(tasks: Sequence[Task], peers: dict[str, Peer], rounds: int, shortest: float = SHORTEST) -> Times:
    """Check the peers, then time them in rounds: each goes through all tasks and peers, in a new order.

    Parameters
    ----------
    tasks : sequence of Task
        The tasks.
    peers : dict
        The packages, by name.
    rounds : int
        How often each peer is measured.
    shortest : float
        How many seconds one measurement lasts at least.

    Returns
    -------
    dict
        The median time of one call in microseconds, by names of task and peer.
    """
    reference = PEERS["numpy"][0]()
    runs: dict[str, dict[str, tuple[Run, int]]] = {task.name: {} for task in tasks}
    for task in tqdm(tasks, "checking", file=sys.stderr):
        for name in (name for name in peers if name in task.peers):
            check(task, name, peers[name], reference)
            run = task.start(name, peers[name])
            runs[task.name][name] = run, calibrated(run, shortest)
    samples: dict[str, dict[str, list[float]]] = {task: {name: [] for name in runs[task]} for task in runs}
    order = random.Random(0)
    for _ in tqdm(range(rounds), "rounds", file=sys.stderr):
        for task_name in order.sample(list(runs), len(runs)):
            for name in order.sample(list(runs[task_name]), len(runs[task_name])):
                run, number = runs[task_name][name]
                samples[task_name][name].append(seconds(run, number) / number)
    return {task: {name: 1e6 * statistics.median(times) for name, times in row.items()} for task, row in samples.items()}


# ------------------------------------------------------------------------------------------ reporting


def ratio(times: Times, target: Target) -> float | None:
    """Return the ratio of a target's two times; None if one was not measured."""
    ours = times.get(target.task, {}).get(target.who)
    theirs = times.get(target.of or target.task, {}).get(target.peer)
    return ours / theirs if ours and theirs else None


def time_table(times: Times, titles: dict[str, str]) -> list[list[str]]:
    """Make the table of times and ratios, its header first."""
    names = [name for name in PEERS if any(name in row for row in times.values())]
    pairs = [(who, peer) for who, peer in RATIOS if who in names and peer in names]
    rows = [["task", *(PEERS[n][1] for n in names), *(f"{PEERS[who][1]} / {PEERS[peer][1]}" for who, peer in pairs)]]
    for task, row in times.items():
        quotients = [ratio(times, Target(task, peer, 0, who=who)) for who, peer in pairs]
        rows.append([titles[task], *(_digits(row.get(n)) for n in names), *(_digits(q) for q in quotients)])
    return rows


def target_table(times: Times, titles: dict[str, str]) -> list[list[str]]:
    """List the targets that were measured and whether they are reached, the header first."""
    rows = [["target", "at most", "measured", "reached"]]
    for target in TARGETS:
        quotient = ratio(times, target)
        if quotient is not None:
            who = "itself" if target.peer == "compgraph" else PEERS[target.peer][1]
            to = f"{who}, {titles[target.of]}" if target.of else who
            reached = "yes" if quotient <= target.limit else "no"
            rows.append(
                [f"{titles[target.task]}: {PEERS[target.who][1]} / {to}", f"{target.limit:g}", _digits(quotient), reached]
            )
    return rows


def _digits(number: float | None) -> str:
    """Format with three significant digits, or all digits before the point."""
    if number is None:
        return "-"
    return f"{number:,.0f}" if number >= 100 else f"{number:#.3g}"


def layout(rows: list[list[str]], markdown: bool) -> str:
    """Set rows of cells as text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (w - 1) + (":" if markdown else "-") for w in widths[1:])]
    lines = [[row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))] for row in rows]
    lines.insert(1, rule)
    return "\n".join(f"| {' | '.join(line)} |" if markdown else "  ".join(line) for line in lines)


def report(times: Times, titles: dict[str, str], missing: Sequence[str], rounds: int, markdown: bool = False) -> str:
    """Return the caption, with the missing peers, and both tables."""
    text = f"Microseconds for value and gradient, or as named: medians of {rounds} interleaved rounds; "
    text += "on one thread and float64, if not named."
    text += f"\n{machine()}."
    if missing:
        text += f"\nNot installed, and left out: {', '.join(PEERS[name][1] for name in missing)}."
    targets = target_table(times, titles)
    tables = [time_table(times, titles), *([targets] if len(targets) > 1 else [])]
    return "\n\n".join([text, *(layout(table, markdown) for table in tables)])


def machine() -> str:
    """Name the processor, and the versions of Python and the packages."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    versions = [f"Python {platform.python_version()}"]
    for name in ("numpy", "autograd", "mygrad", "torch", "jax", "llvmlite"):
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"{processor}; {', '.join(versions)}"


def update(table: str, readme: Path = README) -> None:
    """Write the table between the markers of the README."""
    before, rest = readme.read_text(encoding="utf-8").split(MARKERS[0])
    after = rest.split(MARKERS[1])[1]
    readme.write_text(f"{before}{MARKERS[0]}\n\n{table}\n\n{MARKERS[1]}{after}", encoding="utf-8")


# --------------------------------------------------------------------------------------- command line


def arguments(argv: Sequence[str] | None, tasks: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="how often each is measured (default 15)")
    parser.add_argument(
        "--only", action="append", choices=tasks, metavar="NAME", help=f"one task of {', '.join(tasks)}; repeatable"
    )
    parser.add_argument("--peers", default=",".join(PEERS), metavar="A,B", help="the packages (default %(default)s)")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--update", action="store_true", help="write the table into the README as well")
    options = parser.parse_args(argv)
    options.peers = options.peers.split(",")
    unknown = set(options.peers) - set(PEERS)
    if unknown:
        parser.error(f"unknown peers: {', '.join(sorted(unknown))}; known: {', '.join(PEERS)}")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    if options.update and (options.only or set(options.peers) != set(PEERS)):
        parser.error("--update needs all tasks and all peers")
    return options


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its tables."""
    tasks = all_tasks()
    options = arguments(argv, [task.name for task in tasks])
    tasks = [task for task in tasks if not options.only or task.name in options.only]
    peers, missing = available(options.peers)
    reach_steady_state()
    times = race(tasks, peers, options.rounds)
    titles = {task.name: task.title for task in tasks}
    print(report(times, titles, missing, options.rounds, options.markdown))
    if options.update:
        update(report(times, titles, missing, options.rounds, markdown=True))


if __name__ == "__main__":
    main()
