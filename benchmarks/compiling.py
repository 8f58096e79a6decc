"""Compile times of `cg.jit` and JAX: seconds from the first call of a function to its compiled value and gradient.

Disk caches are not used, and modules are loaded before. Each time is the median over several new functions. The loop is a Python
loop for `cg.jit`, and a `fori_loop` for JAX, which would unroll a Python loop.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", NPROC="1", JAX_PLATFORMS="cpu")

import argparse
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from compare import layout
from peers import PEERS, Peer
from tasks import chain, loop

Function = Callable[..., Any]
ELEMENTWISE = ("tanh", "sin", "cos", "arctan")


def irregular(peer: Peer, operations: int = 2000) -> Function:
    """A chain of operations in random order, without loops; with its gradient it has some 5,000."""
    order = random.Random(0)
    chosen = [(getattr(peer.xp, order.choice(ELEMENTWISE)), order.uniform(0.5, 1.0)) for _ in range(operations // 2)]

    def value(x: Any) -> Any:
        for operation, factor in chosen:
            x = operation(factor * x)
        return x.sum()

    return value


def programs(peer: Peer, name: str) -> dict[str, tuple[Function, Any]]:
    """Functions and their arguments, by their names in the table."""
    rng = np.random.default_rng(1)
    looped = loop(2000)
    return {
        "chain of 51 operations": (chain(1).function(peer), rng.standard_normal(1000)),
        "2,000 operations, irregular": (irregular(peer), rng.standard_normal(1000)),
        "loop of 2,000": (looped.special.get(name, looped.function)(peer), looped.parameters[0]),
    }


def by_jit(function: Function, x: Any) -> tuple[float, int]:
    """The compile time of `cg.jit` in seconds, and the number of operations."""
    import autodiff
    import compgraph as cg

    compiled = cg.jit(autodiff.value_and_grad(function), cache=False, threads=1)
    begun = time.perf_counter()
    compiled.compile(x)(x)
    seconds = time.perf_counter() - begun
    return seconds, int(compiled.report().split(" operations")[0].split()[-1])


def by_jax(function: Function, x: Any) -> tuple[float, int]:
    """The seconds that JAX takes."""
    import jax

    compiled = jax.jit(jax.value_and_grad(function))
    begun = time.perf_counter()
    jax.block_until_ready(compiled(jax.numpy.asarray(x)))
    return time.perf_counter() - begun, 0


def measured(rounds: int) -> list[list[str]]:
    """The table, its header first."""
    ways: dict[str, tuple[Peer, Callable[..., tuple[float, int]]]] = {}
    for name, way in (("jit", by_jit), ("jax", by_jax)):
        try:
            ways[name] = PEERS[name][0](), way
        except ImportError:
            continue
        way(chain(1).function(ways[name][0]), np.ones(3))  # loads everything that is needed once
    rows = [["value and gradient of", "operations", *(PEERS[name][1] for name in ways)]]
    for title in programs(PEERS["numpy"][0](), "numpy"):
        cells, operations = [], 0
        for name, (peer, way) in ways.items():
            times = [way(*programs(peer, name)[title]) for _ in range(rounds)]
            operations = max(operations, times[0][1])
            cells.append(f"{statistics.median(seconds for seconds, _ in times):.2f} s")
        rows.append([title, f"{operations:,}", *cells])
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often each is compiled (default %(default)s)")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    options = parser.parse_args()
    print(layout(measured(options.rounds), options.markdown))


if __name__ == "__main__":
    main()
