"""A write and its entry in the log are atomic under signals, which may arrive between any two bytecodes.

An exception is raised before every bytecode of every form of writing, one at a time, as a signal's handler raises
KeyboardInterrupt. Afterwards nothing has changed, the write is complete, or later uses raise. No result is silently wrong.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import jvp
from autodiff.forward import variables
from autodiff.reverse import gradient
from compgraph.storage import Memory
from tests.support.for_each import for_each
from tests.support.interruption import Interruption

# An interrupt while a generator is closed is reported as a warning.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

Array = np.ndarray[Any, Any]
X = np.array([0.7, -1.2, 0.4])
W = np.array([1.0, 2.0, -3.0])


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "y *= 10": lambda y, x: operator.imul(y, 10),
    "y += node": lambda y, x: operator.iadd(y, np.sin(x)),
    "y[1:] = node": lambda y, x: operator.setitem(y, slice(1, None), x[:2]),
    "y[mask] = number": lambda y, x: operator.setitem(y, np.array([True, False, True]), 5.0),
    "y[1:] *= 2": lambda y, x: operator.imul(y[1:], 2.0),
    "np.add out": lambda y, x: np.add(x, 1.0, out=y),
    "np.add out where": lambda y, x: np.add(x, 1.0, out=y, where=[True, False, True]),
    "y.flat": lambda y, x: operator.setitem(y.flat, slice(1, None), x[:2]),
    "y.sort()": lambda y, x: y.sort(),
    "np.copyto": lambda y, x: np.copyto(y, x),
    "np.add.at": lambda y, x: np.add.at(y, [0, 0, 2], x),
    "np.put": lambda y, x: np.put(y, [0, 2], x[1]),
    "y.fill": lambda y, x: y.fill(2.0),
    "y.T[...] of a view": lambda y, x: operator.setitem(y[::-1].T, ..., x),
}
BUFFERS: dict[str, Callable[[Any], Any]] = {
    "of a derivative": lambda x: x * 3,
    "blank": lambda x: cg.zeros(3),
    "of no derivative": lambda x: np.floor(x),
}


def derivative(node: Any, x: Any) -> Any:
    """The gradient, or the message of its error."""
    try:
        return gradient(node, x)["x"]
    except (RuntimeError, ValueError) as error:
        return str(error)


def slope(make: Callable[[Any], Any], change: Callable[[Any, Any], Any] | None) -> Array:
    """The uninterrupted gradient of values read from a buffer, with or without a change."""
    x = cg.variable(X, "x")
    y = make(x)
    if change is not None:
        change(y, x)
    return np.asarray(gradient(np.sum(y * y * W) + 0 * np.sum(x), x)["x"])


def run_through(make: Callable[[Any], Any], change: Callable[[Any, Any], Any], first: int, step: int) -> int:
    """Interrupt a write before its bytecodes, one after the other; return how often it was."""
    old, new = make(X.copy()), make(X.copy())
    old, new = np.array(old), np.array(new)
    change(new, X)
    slopes = {"old": slope(make, None), "new": slope(make, change)}
    x = cg.variable(X, "x")
    expected = gradient(np.sum(np.sin(make(x)) * W) + 0 * np.sum(x), x)["x"]
    interrupted, at = 0, first
    while True:
        x = cg.variable(X, "x")
        y = make(x)
        before = np.sum(np.sin(y) * W) + 0 * np.sum(x)
        if not Interruption(at)(lambda x=x, y=y: change(y, x)):
            return interrupted
        interrupted += 1
        current = np.array(y.value)
        state = "old" if np.array_equal(current, old) else "new" if np.array_equal(current, new) else "between"
        for computed, reference in ((before, expected), (np.sum(y * y * W) + 0 * np.sum(x), slopes.get(state))):
            outcome = derivative(computed, x)
            if isinstance(outcome, str):
                assert "interrupted" in outcome
                continue
            assert reference is not None, at
            np.testing.assert_allclose(outcome, reference, rtol=1e-13, atol=1e-13, err_msg=f"bytecode {at}")
        at += step


# Writes, buffers, and steps between interrupted bytecodes: each form of writing with one kind of buffer, and all others.
USUAL_PAIRS = [*zip(WRITES, itertools.cycle(BUFFERS))]
USUAL = [*((write, buffer, 41) for write, buffer in USUAL_PAIRS), ("y *= 10", "of a derivative", 7)]
OTHERS = [(write, buffer, 41) for write, buffer in itertools.product(WRITES, BUFFERS) if (write, buffer) not in USUAL_PAIRS]


@for_each(("write", "buffer", "step"), USUAL, rest=[*OTHERS, ("y *= 10", "of a derivative", 3)])
def test_interrupted_writes_are_atomic(write: str, buffer: str, step: int) -> None:
    seed = sum(map(ord, write + buffer))
    assert run_through(BUFFERS[buffer], WRITES[write], 1 + seed % step, step) > 0


OTHER_WRITES = [pytest.param(write, marks=pytest.mark.exhaustive) for write in ("x *= 10", "np.multiply out", "x.sort()")]


@pytest.mark.parametrize("write", ["x[1:] = 2", "x.flat", *OTHER_WRITES])
def test_interrupted_update_is_atomic(write: str) -> None:
    changes: dict[str, Callable[[Any], Any]] = {
        "x *= 10": lambda x: operator.imul(x, 10),
        "x[1:] = 2": lambda x: operator.setitem(x, slice(1, None), 2),
        "np.multiply out": lambda x: np.multiply(x, 10, out=x),
        "x.sort()": lambda x: x.sort(),
        "x.flat": lambda x: operator.setitem(x.flat, slice(1, None), 2),
    }
    changes[write](cg.variable(X, "x"))  # fill caches first, since standard-library code that fills them swallows errors
    at, count = 1, 0
    while True:
        x = cg.variable(X, "x")
        before = np.sum(np.sin(x) * W)
        if not Interruption(at)(lambda x=x: changes[write](x)):
            break
        outcome = derivative(before, x)
        if isinstance(outcome, str):
            assert "updated in place" in outcome
            count += 1
        else:
            assert np.array_equal(x.value, X)
            np.testing.assert_allclose(outcome, np.cos(X) * W)
        np.testing.assert_allclose(gradient(np.sum(np.sin(x) * W), x)["x"], np.cos(x.value) * W)
        at += 3
    assert count


@pytest.mark.parametrize(
    ("write", "carried"),
    [
        ("y *= 10", False),
        ("y[1:] = node", True),
        *[
            pytest.param(write, carried, marks=pytest.mark.exhaustive)
            for write, carried in itertools.product(("y *= 10", "y[1:] = node", "np.add out", "y.sort()"), (False, True))
            if (write, carried) not in (("y *= 10", False), ("y[1:] = node", True))
        ],
    ],
)
def test_interrupted_write_keeps_value_and_tangent_consistent(write: str, carried: bool) -> None:
    """A function that catches the interrupt and continues has a tangent that matches its value, or raises."""
    direction = np.array([1.0, -2.0, 0.5])
    interrupted = True

    def f(x: Any, change: Any = None) -> Any:
        nonlocal interrupted
        y = x * 3
        y[0] = x[0]
        if change is not None:
            interrupted = change(lambda: WRITES[write](y, x)) is True
        return y * W

    def pushed(f: Any) -> tuple[Array, Array]:
        if carried:
            y = f(variables(X))
            return np.array(y.value), y.jacobian @ direction
        return jvp(f, [X], [direction])

    at = 1 + len(write)
    states = [pushed(f), pushed(lambda x: f(x, lambda run: run()))]
    raised, interrupted = 0, True
    while interrupted:
        try:
            value, tangent = pushed(lambda x, at=at: f(x, Interruption(at)))
        except RuntimeError as error:
            raised += "interrupted" in str(error)
        else:
            assert any(np.array_equal(value, v) and np.allclose(tangent, t, rtol=1e-13) for v, t in states), at
        at += 23
    assert raised
    assert set(np.geterr().values()) == {"warn", "ignore"}, "what an operation set is still set"


def test_interrupted_rollback_makes_reads_raise() -> None:
    """If the rollback is interrupted too, the write stays in the log, and reads of its target raise."""
    count = 0
    for at in range(1, 200, 3):
        x = cg.variable(X, "x")
        y = x * 3
        before = np.sum(np.sin(y) * W)
        original = Memory._roll_back

        def twice(memory: Any, write: Any, at: int = at, original: Any = original) -> None:
            if Interruption(at)(lambda: original(memory, write)):
                raise KeyboardInterrupt

        Memory._roll_back = twice  # type: ignore[method-assign]
        try:
            with pytest.raises(KeyboardInterrupt):
                y[...] = Interrupting(7.0)
        finally:
            Memory._roll_back = original  # type: ignore[method-assign]
        np.testing.assert_allclose(gradient(before, x)["x"], 3 * np.cos(3 * X) * W)
        after = np.sum(y * W)
        outcome = derivative(after, x)
        if isinstance(outcome, str):
            assert "interrupted" in outcome
            assert "test_interrupted_writes.py" in outcome
            count += 1
            with pytest.raises(RuntimeError, match="interrupted"):
                y[0] = 1
            with pytest.raises(RuntimeError, match="interrupted"):
                cg.Executor([after])
        else:
            assert np.array_equal(y.value, 3 * X)
            np.testing.assert_allclose(outcome, 3 * W)
    assert count > 5


class Interrupting:
    """A number whose conversion is interrupted by a signal."""

    def __init__(self, number: float) -> None:
        self.number = number

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise KeyboardInterrupt
