"""The tasks of the table, in its order."""

from __future__ import annotations

from loops import heat, pairs, recurrence
from tasks import OURS, Task, chain, chain_derivative, convolution, layers, loop, network, rosenbrock, vector_map


def all_tasks() -> list[Task]:
    """List the tasks."""
    return [
        chain(1),
        chain(1000),
        chain(1_000_000),
        chain(1_000_000, threads=2),
        network(fused=False),
        network(fused=True),
        pairs(200),
        layers(1000, checkpointed=False),
        layers(1000, checkpointed=True),
        loop(2000),
        loop(4000, peers=OURS),
        recurrence(2000),
        heat(100, 200),
        convolution(),
        convolution(side=7),
        rosenbrock(100, "hessian"),
        vector_map(50),
        *(chain_derivative(n, operator, OURS) for n in (1, 100, 1000) for operator in ("gradient", "hvp")),
        chain_derivative(1_000_000, "forward", peers=("numpy",)),
        chain_derivative(1_000_000, "jvp", peers=OURS),
        rosenbrock(10_000, "gradient", peers=OURS),
        rosenbrock(10_000, "hvp", peers=OURS),
        rosenbrock(10_000, "sparse hessian", peers=OURS),
    ]
