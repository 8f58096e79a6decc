"""Executors of derivative rules need few guards. `tests/test_operations.py` replays the graph of every operation."""

from __future__ import annotations

import pytest

import compgraph as cg
from tests.support.cases.tables import CASES
from tests.support.checks.executor import eager, longer

pytestmark = pytest.mark.portable


@pytest.mark.filterwarnings("ignore:no operation of the graph reads:RuntimeWarning")  # not a refusal
def test_executor_guards_are_rare() -> None:
    """Only a small part of the cases cannot be run with other lengths."""
    raised = ran = 0
    for case in CASES[::7]:
        args = [longer(x) for x in case.args]
        if all(a.shape == x.shape for a, x in zip(args, case.args, strict=True)) or eager(case, args) is None:
            continue
        holders = [cg.placeholder((None,) * x.ndim, x.dtype, example=x) for x in case.args]
        try:
            cg.Executor(case.function(*holders)).run(dict(zip(holders, args, strict=True)))
            ran += 1
        except (cg.GuardError, ValueError):
            raised += 1
    assert raised < 0.1 * ran
