"""`tests.support.for_each`, the decorator that calls a test for each value."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import compgraph as cg
from tests.support.failures import Failures
from tests.support.for_each import for_each, sampled


def test_for_each_reports_every_failure_with_its_name() -> None:
    @for_each("x", [1, 2, 3])
    @for_each("y", ["a", "b"])
    def test_of_two(x: int, y: str) -> None:
        assert (x, y) not in [(1, "b"), (3, "a")]

    with pytest.raises(ExceptionGroup, match="1, b; 3, a") as caught:
        test_of_two()
    assert len(caught.value.exceptions) == 2


def test_for_each_gives_each_call_a_monkeypatch_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []

    class Counter:
        count = 0

    @for_each("x", [1, 2])
    def test_that_patches(x: int, monkeypatch: pytest.MonkeyPatch) -> None:
        counts.append(Counter.count)
        monkeypatch.setattr(Counter, "count", x)

    test_that_patches(monkeypatch=monkeypatch)
    assert counts == [0, 0]


def test_for_each_skips_if_all_calls_skip() -> None:
    calls = []

    @for_each("x", [1, 2])
    def test_that_may_skip(x: int, most: int) -> None:
        calls.append(x)
        if x <= most:
            pytest.skip("small")

    test_that_may_skip(most=1)
    with pytest.raises(pytest.skip.Exception):
        test_that_may_skip(most=2)
    assert calls == [1, 2, 1, 2]


def test_sampled_runs_each_combination_once_in_both_parts() -> None:
    calls = []

    @sampled
    @for_each("x", range(7))
    @for_each("y", range(2))
    @for_each(("z", "w"), [(0, 0), (1, 1)])
    def test_of_three(x: int, y: int, z: int, w: int) -> None:
        calls.append((x, y, z))

    assert list(inspect.signature(test_of_three).parameters) == ["part"]
    test_of_three(part="sample")
    assert {x for x, _, _ in calls} == set(range(7))
    assert {(y, z) for _, y, z in calls} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert len(calls) == 7
    test_of_three(part="rest")
    assert len(calls) == len(set(calls)) == 28


def test_for_each_leaves_further_values_to_the_rest() -> None:
    calls = []

    @for_each("x", "ab", rest="c")
    @for_each("y", [1, 2])
    def test_of_two(x: str, y: int) -> None:
        calls.append(f"{x}{y}")

    marks = test_of_two.pytestmark  # type: ignore[attr-defined]
    assert [mark.name for mark in marks] == ["parametrize"]
    test_of_two(part="sample")
    assert calls == ["a1", "a2", "b1", "b2"]
    test_of_two(part="rest")
    assert calls[4:] == ["c1", "c2"]


@pytest.mark.parametrize("rest", ["", "ab"])
def test_for_each_without_cases_fails(rest: str) -> None:
    def test_of_nothing(x: str) -> None: ...

    with pytest.raises(AssertionError, match="test_of_nothing: no cases"):
        for_each("x", "", rest=rest)(test_of_nothing)()
    with pytest.raises(AssertionError, match="test_of_nothing: no cases"):
        sampled(for_each("x", [])(for_each("y", [1])(test_of_nothing)))()


def test_for_each_isolates_cases() -> None:
    states = []

    @for_each("x", [1, 2])
    def test_of_state(x: int) -> None:
        states.append((np.geterr()["over"], len(warnings.filters), cg.variable(1.0).name))
        np.seterr(over="raise")
        warnings.simplefilter("error")

    test_of_state()
    assert states[0] == states[1]


def test_for_each_failures_precede_skip_or_error() -> None:
    for later in (pytest.skip.Exception("later"), ZeroDivisionError("later")):
        with pytest.raises(ExceptionGroup, match="subject: first"), Failures("subject") as failures:  # noqa: PT012
            with failures.case("first"):
                raise AssertionError
            raise later
