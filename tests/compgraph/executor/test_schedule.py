"""`Schedule`: adding a pass or a backend takes one function and one registration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff.reverse import gradients
from compgraph.executor import passes
from compgraph.executor.schedule import Schedule
from compgraph.ops import Output
from compgraph.storage import Write
from compgraph.values import MultiOutput, Node


class InterpretedProgram:
    """A program that looks at its schedule again in each run."""

    source = "for unit in schedule.units: ..."

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        environment = dict(zip(self.schedule.inputs, values, strict=True))
        for item in self.schedule.items:
            if item not in environment:
                environment[item] = self.computed(
                    item, [environment[a] if isinstance(a, (Node, MultiOutput)) else a for a in item.args]
                )
            for require, expected in self.schedule.checks.get(item, ()):
                require(environment[item], expected)
        return tuple([np.array(environment[node])[()] for node in self.schedule.outputs])

    def computed(self, item: Any, args: list[Any]) -> Any:
        assert not isinstance(item, Write)  # would have to be remembered
        if not isinstance(item, (Node, MultiOutput)):
            return item.check(*args)
        if not item.args:
            return item.raw_value
        if isinstance(item.function, Output):
            return args[0][item.function.index]
        buffer = self.schedule.buffers.get(item)
        return item.function(*args, **item.options) if buffer is None else item.function(*args, out=buffer)


class Backend:
    def compile(self, schedule: Schedule) -> InterpretedProgram:
        return InterpretedProgram(schedule)


def graph() -> tuple[Any, list[Any]]:
    """A network whose loss depends on a branch, its gradient, and the results of a decomposition."""
    x = cg.placeholder((5000,), name="x", example=np.linspace(-1.0, 1.0, 5000))
    y = np.tanh(x) * 2 + np.exp(np.sin(x)) if x[0] < 0 else x
    loss = np.sum(y[y > 0] ** 2) + np.sum(np.linalg.qr(np.outer(x[:3], x[-3:]) + np.eye(3))[1])
    return x, [loss, *gradients(loss, [x]), y]


@pytest.mark.parametrize("fuse", [True, False])
def test_schedule_registers_another_backend(fuse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(passes.BACKENDS, "interpreted", Backend())
    x, nodes = graph()
    usual, other = cg.Executor(nodes), cg.Executor(nodes, fuse=fuse)
    other._backend = "interpreted"
    for point in (x.value, x.value * 0.5, np.linspace(-2.0, 3.0, 5000)):
        for a, b in zip(usual.run({x: point}), other.run({x: point}), strict=True):
            np.testing.assert_array_equal(a, b)
    with pytest.raises(cg.GuardError, match=r"x\[0\] < 0"):
        other.run({x: -x.value})


def test_schedule_registers_another_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []

    def count(schedule: Schedule) -> Schedule:
        counts.append(sum(isinstance(item, Node) and item.function is np.sin for item in schedule.items))
        return schedule

    monkeypatch.setattr(passes, "PASSES", {"count before": count, **passes.PASSES, "count after": count})
    x = cg.variable(0.5, "x")
    assert cg.Executor(np.sin(x) * np.sin(x)).run({x: 1.0}) == np.sin(1.0) ** 2
    assert counts == [2, 1]
