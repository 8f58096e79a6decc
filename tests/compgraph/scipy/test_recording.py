"""SciPy's functions in a program that imports `compgraph` alone: recorded as with `autodiff`, which has their rules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


def output_of(*arguments: str) -> str:
    """The output of Python, called with some arguments in a separate process."""
    process = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=ROOT)
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def alone() -> Any:
    """The operations recorded by a program without `autodiff`."""
    return json.loads(output_of("-m", "tests.support.recorded_scipy"))


@pytest.fixture(scope="module")
def beside_autodiff() -> Any:
    """The operations recorded by the same program after it has imported `autodiff`."""
    return json.loads(output_of("-m", "tests.support.recorded_scipy", "autodiff"))


def test_scipy_functions_record_equally_without_autodiff(alone: Any, beside_autodiff: Any) -> None:
    assert alone["recorded"] == beside_autodiff["recorded"]
    without = [(module, name) for module, calls in alone["recorded"].items() for name, opnames in calls.items() if not opnames]
    assert without == []


def test_smooth_operations_equal_rules(alone: Any, beside_autodiff: Any) -> None:
    assert alone["rules"] == []
    recorded_by_sweeps = {"window", "scatter_to_buffer"}  # functions of buffers, applied to cotangents only
    assert {*alone["smooth"]} == {*beside_autodiff["rules"]} - recorded_by_sweeps


def test_graph_recorded_before_autodiff_is_differentiable() -> None:
    program = """
import numpy as np
import compgraph as cg
import scipy.linalg, scipy.special
x = cg.variable(0.5)
y = scipy.special.erf(x)
z = scipy.linalg.inv(np.eye(2) * x)[0, 0]
assert y.opname == "special_erf"
import autodiff as ad
assert np.isclose(ad.gradient(y)[x], 2 / np.sqrt(np.pi) * np.exp(-0.25))
assert np.isclose(ad.gradient(z)[x], -4)
"""
    output_of("-W", "error", "-c", program)


def test_missing_rule_raises() -> None:
    program = """
import compgraph as cg, autodiff as ad
import scipy.special
from compgraph import operations
x = cg.variable(0.5)
y = scipy.special.erf(x)
del ad.rules.rules["special_erf"]
ad.rules.by_function.clear()
try:
    ad.gradient(y)
except TypeError as error:
    print(error)
"""
    assert output_of("-c", program).startswith("special_erf has no derivative rule. ")
