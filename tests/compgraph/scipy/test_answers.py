"""Replacements of SciPy functions that are defined outside of ``compgraph``."""

from __future__ import annotations

import subprocess
import sys

import autodiff as ad
from compgraph.scipy import policy_of

LATE = """
import scipy.integrate
import compgraph as cg
p = cg.variable(2.0, "p")
try:
    scipy.integrate.quad(lambda x, p: p * x, 0, 1, args=(p,))
except TypeError as error:
    assert "autodiff" in str(error), error
else:
    raise AssertionError("no error without derivatives")
import autodiff as ad
slope = ad.grad(lambda p: scipy.integrate.quad(lambda x: p * p * x, 0, 1)[0])(3.0)
assert abs(slope - 3.0) < 1e-12, slope
"""


def test_policy_lists_functions_with_replacement() -> None:
    policy = policy_of("integrate")
    assert ad is not None
    assert {"quad", "solve_ivp"} <= policy.replacements.keys()
    assert {"quad", "solve_ivp"} <= policy.always_replaced
    assert "nquad" in policy.replacements
    assert "nquad" not in policy.always_replaced
    assert not {"quad", "nquad", "solve_ivp"} & policy.unsupported.keys()


def test_policy_accepts_late_replacement() -> None:
    """The family was registered, its functions as unsupported, before autodiff was imported."""
    process = subprocess.run([sys.executable, "-W", "error", "-c", LATE], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
