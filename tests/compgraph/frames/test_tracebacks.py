"""Tracebacks of errors that leave an operator: the user's frames stay, those of the packages are removed."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from statistics import harmonic_mean
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from compgraph.frames import source_lines

pytestmark = pytest.mark.portable

POINT = np.array([1.0, 2.0])


def dividing(x: Any) -> Any:
    return np.sum(x) * (1 // 0)


def mismatched(x: Any) -> Any:
    return np.sum(x * np.ones(3))


def leaking(x: Any) -> Any:
    return x[0] + harmonic_mean(x)


OPERATORS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: ad.grad(f)(POINT),
    "jacobian": lambda f: ad.jacobian(f)(POINT),
    "vmap": lambda f: ad.vmap(f)(np.ones((2, 2))),
    "jvp": lambda f: ad.jvp(f, (POINT,), (POINT,)),
    "vjp": lambda f: ad.vjp(f, POINT),
    "linearize": lambda f: ad.linearize(f, POINT),
    "taylor": lambda f: ad.taylor(f, POINT, 2, POINT),
    "directional_derivative": lambda f: ad.directional_derivative(f, POINT, POINT),
    "nested": lambda f: ad.jacobian(ad.grad(f))(POINT),
}


def entries(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


def names(error: BaseException) -> list[str]:
    """The functions in the traceback, from the operator's caller on, with "package" for those of the packages."""
    entry_names = ["package" if source_lines.is_in_packages(entry.filename) else entry.name for entry in entries(error)]
    return entry_names[1:]


def raised(f: Callable[[Any], Any], operator: str) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        OPERATORS[operator](f)
    return caught.value


@pytest.mark.parametrize("operator", OPERATORS)
def test_traceback_of_user_error_has_no_package_frames(operator: str) -> None:
    error = raised(dividing, operator)
    assert type(error) is ZeroDivisionError
    assert names(error) == ["<lambda>", "dividing"]
    assert entries(error)[-1].line == "return np.sum(x) * (1 // 0)"


@pytest.mark.parametrize("operator", OPERATORS)
def test_traceback_of_package_error_keeps_innermost_frame(operator: str) -> None:
    error = raised(mismatched, operator)
    assert names(error)[:2] == ["<lambda>", "mismatched"]
    assert names(error).count("package") <= 1
    assert names(error)[-1] == "package"


def test_traceback_keeps_frames_of_other_libraries() -> None:
    error = raised(leaking, "grad")
    assert type(error) is cg.LeakError
    assert names(error)[:3] == ["<lambda>", "leaking", "harmonic_mean"]
    assert names(error).count("package") == 1


def test_traceback_without_frame_of_function_keeps_call() -> None:
    error = raised(lambda x: None, "grad")
    assert "the function returned None" in str(error)
    assert names(error) == ["<lambda>", "package"]


def test_traceback_of_chained_errors_is_kept() -> None:
    def f(x: Any) -> Any:
        try:
            return 1 // 0
        except ZeroDivisionError as error:
            raise ValueError("wrong") from error

    error = raised(f, "grad")
    assert type(error.__cause__) is ZeroDivisionError
    assert names(error) == ["<lambda>", "f"]
    assert [entry.name for entry in entries(error.__cause__)] == ["f"]


def test_traceback_keeps_notes() -> None:
    @ad.custom_gradient
    def own(x: Any) -> Any:
        return np.sum(x), lambda g: g * (1 // 0)

    error = raised(own, "grad")
    assert "in the derivative of" in error.__notes__[0]
    assert names(error)[-1] == "<lambda>"


@pytest.mark.parametrize("operator", ["grad", "vjp"])
def test_traceback_within_debug_has_all_frames(operator: str) -> None:
    with cg.debug(tracebacks="full"):
        full = names(raised(dividing, operator))
    assert full[0] == "<lambda>"
    assert full[-1] == "dividing"
    assert full.count("package") > 4
    with cg.debug():
        assert names(raised(dividing, operator)) == ["<lambda>", "dividing"]
    with cg.debug(tracebacks="full"), cg.debug():
        assert names(raised(dividing, operator)) == ["<lambda>", "dividing"]


def test_debug_unknown_tracebacks_option_raises() -> None:
    with pytest.raises(ValueError, match='tracebacks must be "short" or "full", not \'long\''):
        cg.debug(tracebacks="long")


@pytest.mark.parametrize("context", [cg.strict, cg.debug])
def test_traceback_reading_contexts_do_not_change_errors(context: Any) -> None:
    """`strict` explains errors by their tracebacks; it sees those that an operator has shortened."""
    for f in (dividing, mismatched, leaking, lambda x: np.linalg.solve(np.ones((2, 2)), x)):
        alone = raised(f, "grad")
        with pytest.raises(type(alone)) as caught, context():
            OPERATORS["grad"](f)
        assert str(caught.value) == str(alone)
        assert getattr(caught.value, "__notes__", []) == getattr(alone, "__notes__", [])
