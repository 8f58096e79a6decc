"""Each of ArrayFlow's elementary functions has its counterpart, whose value and gradients are right."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import compgraph as cg
from autodiff.reverse import check_gradient
from tests.support.arguments import positive
from tests.support.failures import Failures

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "arrayflow.md").read_text()
LINES: dict[str, str] = dict(re.findall(r"^\| `(.+)` \| `(.+)` \|$", PAGE, re.MULTILINE))
VALUES = {"a": positive(12, seed=1), "b": positive(12, seed=2), "k": positive(3, seed=3), "m": positive(3, 4, seed=4)}

# What each gives, in plain NumPy.
EXPECTED: dict[str, Callable[..., Any]] = {
    "abs": lambda a, b, k, m: np.sqrt(a * a),
    "add": lambda a, b, k, m: 2 * a + b,
    "ccor": lambda a, b, k, m: np.correlate(a, k),
    "concat": lambda a, b, k, m: np.append(a, b),
    "cos": lambda a, b, k, m: np.cos(a),
    "div": lambda a, b, k, m: np.divide(a, b),
    "exp": lambda a, b, k, m: np.exp(a),
    "expand": lambda a, b, k, m: a.reshape(12, 1),
    "log": lambda a, b, k, m: np.log(a),
    "matmul": lambda a, b, k, m: np.sum(m * a[:4], axis=1).reshape(3, 1),
    "max": lambda a, b, k, m: np.where(a > b, a, b),
    "maxpool": lambda a, b, k, m: a.reshape(4, 3).max(axis=1),
    "mean": lambda a, b, k, m: a.sum() / 12,
    "min": lambda a, b, k, m: np.where(a < b, a, b),
    "pow": lambda a, b, k, m: a * a * a,
    "sin": lambda a, b, k, m: np.sin(a),
    "slice": lambda a, b, k, m: np.array([a[2], a[3], a[4]]),
    "sqrt": lambda a, b, k, m: np.power(a, 0.5),
    "subtract": lambda a, b, k, m: np.subtract(a, b),
    "sum": lambda a, b, k, m: a @ np.ones(12),
    "tanh": lambda a, b, k, m: np.sinh(a) / np.cosh(a),
    "times": lambda a, b, k, m: np.multiply(a, b),
}


def test_arrayflow_functions_are_all_listed() -> None:
    assert [line.partition("(")[0] for line in LINES] == list(EXPECTED)
    assert len(EXPECTED) == 22


def test_arrayflow_counterparts_match() -> None:
    with Failures("functions of ArrayFlow") as failures:
        for line, ours in LINES.items():
            with failures.case(line):

                def here(*args: Any, ours: str = ours) -> Any:
                    return eval(ours, {"np": np, "cg": cg}, dict(zip(VALUES, args, strict=True)))

                node = here(*map(cg.variable, VALUES.values()))
                expected = EXPECTED[line.partition("(")[0]](*VALUES.values())
                assert isinstance(node, cg.Node)
                np.testing.assert_allclose(node.value, expected, rtol=1e-12)
                assert check_gradient(lambda *args, f=here: np.sum(f(*args) ** 2), [*VALUES.values()])
