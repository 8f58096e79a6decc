"""The fast path for scalars written to single elements gives the results of the general path."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import checkpoint, grad, jacfwd, jacrev, value_and_grad
from autodiff.reverse import gradient
from tests.support.growth import calls
from tests.support.interruption import Interruption

Array = np.ndarray[Any, Any]


def along(x: Any, dtype: Any = float) -> Any:
    """Partial products of five factors, stored in a buffer with one axis."""
    a = np.zeros(6, dtype)
    a[0] = x
    for i in np.arange(1, 6):
        a[i] = a[i - 1] * x
    return a[-1]


def across(x: Any) -> Any:
    """The same in a buffer with two axes and negative indices."""
    a = np.zeros((2, 3))
    a[0, 0] = x
    for i in range(1, 6):
        a[i // 3 - 2, i % 3] = a[(i - 1) // 3, (i - 1) % 3] * x
    return a[1, 2]


def in_one_place(x: Any) -> Any:
    """The same with one element that is overwritten; earlier reads keep their value."""
    a = np.zeros(2)
    a[0] = x
    old = []
    for _ in range(5):
        old.append(a[0])
        a[0] *= x
        a[1] = 7.0
    return a[0] + 0 * old[2] + (a[1] - 7.0) * x


def through_a_view(x: Any) -> Any:
    """The same, read through a view that was created before the writes and whose values the rules need."""
    a = np.zeros(6)
    v = a[1:].reshape(5, 1)
    a[0] = x
    for i in range(1, 6):
        a[i] = a[i - 1]
        v[i - 1 :] *= x
    return v[4, 0]


@pytest.mark.parametrize("program", [along, across, in_one_place, through_a_view])
def test_element_writes_derivatives(program: Callable[[Any], Any]) -> None:
    value, slope = value_and_grad(program)(1.25)
    assert math.isclose(value, 1.25**6, rel_tol=1e-15)
    assert math.isclose(slope, 6 * 1.25**5, rel_tol=1e-14)
    for derive in (jacrev, jacfwd):
        assert math.isclose(derive(program)(1.25), 6 * 1.25**5, rel_tol=1e-14)
    assert math.isclose(grad(grad(program))(1.25), 30 * 1.25**4, rel_tol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, complex, np.longdouble])
def test_element_writes_into_other_dtypes(dtype: Any) -> None:
    derivative = grad(lambda x: np.real(along(x, dtype)))(1.25)
    np.testing.assert_allclose(float(derivative), 6 * 1.25**5, rtol=1e-6 if dtype is np.float32 else 1e-14)


def test_element_writes_rejected_by_numpy_change_nothing() -> None:
    def f(x: Any) -> Any:
        a = np.zeros(3)
        a[0] = x
        a[1] = x * 2
        with pytest.raises(IndexError):
            a[3] = x
        with pytest.raises(TypeError):
            a[1] = 1j
        a.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            a[1] = x
        return a[0] * a[1]

    assert grad(f)(1.5) == 6.0


def test_element_write_to_outer_array_in_checkpoint_raises() -> None:
    def f(x: Any) -> Any:
        a = np.zeros(3)
        a[0] = x

        def inner(y: Any) -> Any:
            a[1] = y
            return y * a[0]

        return checkpoint(inner)(x)

    with pytest.raises(TypeError, match="would write twice"):
        grad(f)(1.5)


def test_element_writes_within_no_graph_are_not_recorded() -> None:
    def f(x: Any) -> Any:
        a = np.zeros(3)
        a[0] = x
        a[1] = x * 2
        with cg.no_graph():
            a[1] = x * 3
        return a[0] * a[1]

    assert value_and_grad(f)(2.0) == (12.0, 6.0)


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("value", ["a node", "a number"])
def test_element_write_interrupted_is_consistent(value: str, step: int) -> None:
    """Afterwards the number is the old or the new one, with its derivative, or its use raises."""
    results: set[Any] = set()
    at = 1
    while True:
        with cg.strict():
            x = cg.variable(2.0, "x")
            a = cg.zeros(3)
            a[1] = x * 3
            number = x * 5 if value == "a node" else 10.0
            was_interrupted = Interruption(at)(lambda a=a, number=number: operator.setitem(a, 1, number))
            try:
                result = a[1] * x
                results.add((float(result.value), float(gradient(result, x)["x"])))
            except RuntimeError as error:
                results.add("interrupted" if "interrupted" in str(error) else str(error))
        if not was_interrupted:
            break
        at += step
    assert at > 30
    assert results - {"interrupted"} == {(12.0, 12.0), (20.0, 20.0 if value == "a node" else 10.0)}


def test_element_write_takes_few_calls() -> None:
    def steps(x: Any, n: int) -> Any:
        a = np.zeros(n)
        a[0] = x
        for i in range(1, n):
            a[i] = a[i - 1] * 0.99 + 0.01 * x
        return a[-1]

    derive = value_and_grad(steps)
    derive(1.5, 10)
    counted = calls(lambda: derive(1.5, 200)) - calls(lambda: derive(1.5, 100))
    assert counted < 100 * 190, counted  # without id(), by which sweeps find nodes, whose own hash is that of their value
