"""The cost of executors with many guards, or many fused operations, grows linearly: counted, not timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from tests.support.growth import calls


def branch_at_each_value(n: int) -> Any:
    """A chain with a decision about each of its values, which is gone afterwards."""
    x = cg.variable(np.ones(3), "x")
    y = x
    for _ in range(n):
        y = y * 1.0001
        if np.sum(y) > 0:
            y = y + 0.001
    return y


def nested_branches(n: int) -> Any:
    """Decisions about values that grow out of each other and are gone afterwards."""
    x = cg.variable(1.0, "x")
    s, count = x, 0
    for _ in range(n):
        s = s * 1.0001
        if s > 0:
            count += 1
    return x * count


def smooth(n: int) -> Any:
    x = cg.variable(np.ones(20_000), "x")
    y = x
    for _ in range(n):
        y = np.sin(y)
    return y


def branching(n: int) -> Any:
    """Elementwise operations that cannot join the previous group, between others."""
    x = cg.variable(np.ones(20_000), "x")
    y = x
    for _ in range(n // 2):
        y = np.sin(y) * np.mean(y)
    return y


@pytest.mark.parametrize("build", [branch_at_each_value, nested_branches])
def test_executor_cost_of_guards_is_linear(build: Callable[[int], Any]) -> None:
    counts = []
    for n in (50, 100, 200):
        out = build(n)
        counts.append(calls(lambda out=out: cg.Executor(out).run({"x": np.ones(out.shape) * 2})))  # type: ignore[misc]
    assert counts[1] < 2.2 * counts[0]
    assert counts[2] < 2.2 * counts[1]


@pytest.mark.parametrize("build", [smooth, branching])
@pytest.mark.parametrize("fuse", [True, False])
def test_executor_cost_of_batched_operations_is_linear(build: Callable[[int], Any], fuse: bool) -> None:
    counts = []
    for n in (100, 200, 400):
        executor = cg.Executor(build(n), fuse=fuse)
        counts.append(calls(lambda executor=executor: executor.source({"x": np.ones(20_000)})))  # type: ignore[misc]
    assert counts[1] < 2.2 * counts[0]
    assert counts[2] < 2.2 * counts[1]


def test_guard_recording_visits_each_node_once() -> None:
    counts = [calls(lambda n=n: nested_branches(n)) for n in (50, 100, 200)]  # type: ignore[misc]
    assert counts[2] < 2.2 * counts[1]
