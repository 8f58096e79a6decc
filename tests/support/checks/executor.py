"""A case recorded once and replayed with other values, in another memory order, and with other lengths.

A run gives the bits of the eager computation, or raises; it never gives other numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient, gradients
from tests.support.arguments import Case

Array = np.ndarray[Any, Any]
# Rules whose formula or number of terms depends on the size of the operands: the last bits may differ.
LAST_BITS = {"i0", "emath_power", "cov", "histogram", "histogramdd", "histogram2d", "special_tklmbda", "linalg_det"}


def longer(x: Array) -> Array:
    """One more element along the first axis."""
    return np.concatenate([x, x[:1] * 0.97 + 0.013]) if x.ndim and x.shape[0] else x


CHANGES: dict[str, Callable[[Array], Array]] = {
    "the same": lambda x: x,
    "other values": lambda x: np.asarray(x * 0.93 + 0.011, x.dtype),
    "another order": lambda x: np.flip(x).copy() * 1.01,
    "other lengths": longer,
}


def real_part(out: Any) -> Any:
    """The real part, which has a gradient."""
    return np.real(out) if out.dtype.kind == "c" else out


def eager(case: Case, args: list[Array]) -> list[Any] | None:
    """The value and gradients at a point; None if the function is not defined there."""
    variables = [cg.variable(x) for x in args]
    try:
        out = case.function(*variables)
        if out.dtype.kind not in "fc":
            return [out.value]
        slopes = gradient(real_part(out), variables, unused="zero")
    except (ValueError, TypeError, IndexError, RuntimeError, ArithmeticError):
        return None
    return [out.value, *[slopes[v] for v in variables]]


def agree(case: Case, actual: Any, expected: Any) -> bool:
    """Whether two arrays are equal bit for bit, or up to rounding for rules with several formulas."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False
    if case.opname in LAST_BITS:
        return bool(np.allclose(actual, expected, rtol=1e-9, atol=1e-12, equal_nan=True))
    return bool(np.array_equal(actual, expected, equal_nan=True))


def run(executor: cg.Executor, feed: dict[Any, Any]) -> Any:
    """The results of an executor, or the error that it raises."""
    try:
        return executor.run(feed)
    except (cg.GuardError, ValueError) as error:
        return error


def check_executor(case: Case) -> None:
    """A recorded graph gives the eager bits at other arguments, or raises."""
    cg.reset()
    holders = [cg.placeholder((None,) * x.ndim, x.dtype, example=x) for x in case.args]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = case.function(*holders)
        nodes = [out]
        if out.dtype.kind in "fc" and set(cg.topological_order([out])).issuperset(holders):
            nodes += gradients(real_part(out), holders)
        executor = cg.Executor(nodes)
        for label, change in CHANGES.items():
            args = [change(x) for x in case.args]
            expected = eager(case, args)
            if expected is None:
                continue
            outcome = run(executor, dict(zip(holders, args, strict=True)))
            if isinstance(outcome, cg.GuardError):
                assert label != "the same", outcome
                continue
            if isinstance(outcome, ValueError):
                assert label == "other lengths", outcome
                assert "fed shapes" in str(outcome), outcome
                continue
            for place, (a, b) in enumerate(zip(outcome, expected, strict=False)):
                assert agree(case, a, b), f"{label}: output {place} is {a}, not {b}"


def by_vjp(function: Any, args: list[Any]) -> list[Any]:
    """The value, and the cotangents of the arguments."""
    value, pull = ad.vjp(function, *args)
    return [value, *pull(np.ones_like(value))]


def by_jvp(function: Any, args: list[Any]) -> list[Any]:
    """The value, and its tangent."""
    return list(ad.jvp(function, args, [np.ones_like(x) for x in args]))


def check_recorded_derivatives(case: Case) -> None:
    """Derivatives recorded by operators are right for other lengths, or raise."""
    for derive in (by_vjp, by_jvp):
        cg.reset()
        holders = [cg.placeholder((None,) * x.ndim, x.dtype, example=x) for x in case.args]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            executor = cg.Executor(derive(case.function, holders))
            for change in CHANGES.values():
                args = [change(x) for x in case.args]
                if eager(case, args) is None:
                    continue
                outcome = run(executor, dict(zip(holders, args, strict=True)))
                if isinstance(outcome, Exception):
                    assert change is not CHANGES["the same"], outcome
                    continue
                for a, b in zip(outcome, derive(case.function, args), strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
