"""Interrupts, as by Ctrl-C, while names are patched or restored: later derivatives are right, and objects are unchanged."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from types import CodeType
from typing import Any

import numpy as np
import pytest

import autodiff as ad
from tests.support.for_each import for_each
from tests.support.interruption import Interruption

ARRAY = np.ndarray
X = np.array([0.1, 0.2, 0.3])
# In these, an interrupt is undone at once; elsewhere when its traceback is released.
UNDONE_AT_ONCE = {"_apply_patches", "bind", "restore_locations", "restore", "replace_in_objects", "_replace_at", "write"}


class Model:
    """An object whose arrays are replaced while its method is differentiated."""

    def __init__(self) -> None:
        self.weights = np.arange(3.0)
        self.parts = [np.ones(2)]

    def loss(self, x: Any) -> Any:
        y = np.zeros(3)
        for i in range(3):
            y[i] = np.sin(x[i]) * self.weights[i]
        return np.sum(y * y) + np.sum(self.parts[0])

    def is_plain(self) -> bool:
        """Whether the arrays are NumPy's; the name ``type`` may be patched after an interrupt."""
        return {builtins.type(self.weights), builtins.type(self.parts[0])} == {ARRAY}


def total(x: Any) -> Any:
    y = np.zeros(3)
    for i in range(3):
        y[i] = np.sin(x[i])
    return np.sum(y)


@pytest.fixture
def kept() -> Iterator[list[BaseException]]:
    """Interrupts, whose tracebacks refer to the frames, as ``sys.last_traceback`` does after an interrupt at the prompt."""
    interrupts: list[BaseException] = []
    yield interrupts
    interrupts.clear()


def interrupt(model: Model, step: int, names: set[str] | None, kept: list[BaseException]) -> bool:
    """Interrupt a gradient at a step of the interception, or of some of its functions; return False if it has fewer steps."""

    def is_counted(code: CodeType) -> bool:
        return "interception" in code.co_filename and "tests" not in code.co_filename and (names is None or code.co_name in names)

    def run() -> None:
        try:
            ad.grad(model.loss)(X)
        except KeyboardInterrupt as error:
            kept.append(error)
            raise

    kept.clear()
    return Interruption(step, is_counted)(run)


@for_each("start", range(1, 13), rest=range(13, 121))
def test_gradients_are_right_after_interrupt(start: int, kept: list[BaseException]) -> None:
    model, step = Model(), start
    while interrupt(model, step, None, kept):
        np.testing.assert_allclose(ad.grad(total)(X), np.cos(X))
        np.testing.assert_allclose(ad.grad(model.loss)(X), np.sin(2 * X) * np.arange(3.0) ** 2)
        kept.clear()
        assert model.is_plain()
        assert not hasattr(np.zeros, "__wrapped__")
        model, step = Model(), step + 120
    assert step > 1000


@pytest.mark.parametrize("names", [{"bind"}, {"apply"}, {"restore"}])
def test_gradients_are_right_after_interrupt_of_patching(names: set[str], kept: list[BaseException]) -> None:
    model, step = Model(), 1
    while interrupt(model, step, names, kept):
        np.testing.assert_allclose(ad.grad(total)(X), np.cos(X))
        model, step = Model(), step + 3
    assert step > 10


def test_objects_are_restored_by_interrupt(kept: list[BaseException]) -> None:
    model, step = Model(), 1
    while interrupt(model, step, UNDONE_AT_ONCE, kept):
        assert model.is_plain(), step
        model, step = Model(), step + 2
    assert step > 100
