"""Floating-point warnings are attributed to the user's line; Python shows each once per line."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient

POINT = np.array([0.0, 1.0])


def eager() -> None:
    x = cg.variable(POINT)
    for _ in range(3):
        1 / x  # here: divide by zero
    np.log(x - 1)  # here: divide by zero, invalid value
    np.sqrt(-x - 1.0)  # here: invalid value
    np.exp(x * 1e4)  # here: overflow
    np.divide(x, np.zeros(2))  # here: divide by zero, invalid value


def reverse() -> None:
    out = np.sum(np.sqrt(cg.variable(POINT)))
    for _ in range(2):
        gradient(out)  # here: divide by zero


def operators() -> None:
    ad.grad(lambda t: np.sum(np.sqrt(t)))(POINT)  # here: divide by zero
    ad.jvp(lambda t: np.log(t), (POINT,), (POINT,))  # here: divide by zero, divide by zero, invalid value
    ad.vmap(lambda t: np.log(t))(POINT)  # here: divide by zero


def executor() -> None:
    x = cg.variable(np.ones(2))
    run = cg.Executor([np.log(x)]).run
    run({x: POINT})  # here: divide by zero


def compiled() -> None:
    f = cg.jit(lambda t: np.sum(np.log(t) * 2))  # here: divide by zero
    for _ in range(3):
        f(POINT)


@pytest.mark.parametrize("program", [eager, reverse, operators, executor, compiled], ids=lambda f: f.__name__)
def test_floating_point_warning_has_user_line(program: Callable[[], Any]) -> None:
    lines, start = inspect.getsourcelines(program)
    expected = {start + k: line.partition("# here: ")[2].strip().split(", ") for k, line in enumerate(lines) if "# here" in line}
    for _ in range(2):  # a second time, as Python has it after its filters were changed
        with warnings.catch_warnings(record=True) as records:
            warnings.simplefilter("default")
            program()
        assert {w.filename for w in records} == {__file__}
        at = {line: {str(w.message).split()[0] for w in records if w.lineno == line} for line in expected}
        assert at == {line: {kind.split()[0] for kind in kinds} for line, kinds in expected.items()}
        assert len(records) <= sum(map(len, expected.values()))


def test_warning_filters_of_user_module_apply() -> None:
    x = cg.variable(POINT)
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module=__name__.replace(".", r"\."))
        np.log(x)
        assert not records
        warnings.filterwarnings("error", message="divide by zero", module=__name__.replace(".", r"\."))
        with pytest.raises(RuntimeWarning, match="divide by zero encountered in log"):
            np.log(x)
        assert np.array_equal((x * 2).value, POINT * 2)


def test_warnings_of_scipy_have_users_line() -> None:
    """Also once operators have replaced the code of its functions, in calls without nodes and in those with nodes."""
    integrate, optimize = pytest.importorskip("scipy.integrate"), pytest.importorskip("scipy.optimize")
    ad.grad(lambda a: integrate.quad(lambda t: a * t, 0, 1)[0])(1.0)
    ad.grad(lambda a: optimize.fsolve(lambda t: t - a, a)[0])(1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        start = inspect.currentframe().f_lineno  # type: ignore[union-attr]
        integrate.quad(lambda t: np.sin(1e6 * t) / np.sqrt(t), 0, 10)
        optimize.fsolve(lambda t: t**2 + 1, 1.0)
        ad.grad(lambda a: integrate.quad(lambda t: np.sin(1e6 * a * t) / np.sqrt(t), 0, 10)[0])(1.0)
    assert {warning.filename for warning in caught} == {__file__}
    assert {warning.lineno - start for warning in caught} == {1, 2, 3}


def test_nodes_of_scipy_functions_have_users_line() -> None:
    special, linalg = pytest.importorskip("scipy.special"), pytest.importorskip("scipy.linalg")
    x = cg.variable(POINT)
    start = inspect.currentframe().f_lineno  # type: ignore[union-attr]
    total = special.logsumexp(x)
    solution = linalg.solve(np.eye(2), x)
    assert f'File "{__file__}", line {start + 1}, ' in total.line
    assert f'File "{__file__}", line {start + 2}, ' in solution.line
