"""Functions that call ``np.ndarray``, or methods of ufuncs on lists of nodes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each
from tests.support.jitting import is_compiled

X = np.array([0.5, 2.0, 3.0])


def allocated(x: Any) -> Any:
    """Fill an array that the class makes."""
    y = np.ndarray((2, 3), dtype=np.float64)
    y[0] = x**2
    y[1] = 3
    y[1, 1] = x[0]
    return y.sum()


def allocated_by_helper(x: Any) -> Any:
    """Fill it in a function that is called."""
    return filled_by(x).sum() * x[0]


def filled_by(x: Any) -> Any:
    y = np.ndarray(len(x))
    for k in range(len(x)):
        y[k] = x[k] ** 3
    return y


def checks_of_classes(x: Any) -> Any:
    """The class in checks beside the call."""
    y = np.ndarray(3)
    y[:] = x * 2
    assert isinstance(x, np.ndarray)
    assert isinstance(y, np.ndarray)
    assert not isinstance(1.0, np.ndarray)
    assert issubclass(type(y), np.ndarray)
    return y.sum()


def view_of_memory(x: Any) -> Any:
    """A view of given memory is NumPy's own."""
    memory = np.arange(3.0)
    return (np.ndarray(2, float, memory.data, 8) * x[1:]).sum()


def reduced(x: Any) -> Any:
    """A method of a ufunc."""
    return np.maximum.reduce([x[0], x[1], 1.0])


CASES: dict[str, tuple[Callable[..., Any], Any]] = {
    "allocated": (allocated, [2 * X[0] + 1, 2 * X[1], 2 * X[2]]),
    "allocated by helper": (allocated_by_helper, [(X**3).sum() + 3 * X[0] ** 3, *(3 * X[1:] ** 2 * X[0])]),
    "checks of classes": (checks_of_classes, [2, 2, 2]),
    "view of memory": (view_of_memory, [0, 1, 2]),
    "reduced": (reduced, [0, 1, 0]),
}


@for_each("case", CASES)
def test_substitute_keeps_derivatives(case: str) -> None:
    f, gradient = CASES[case]
    np.testing.assert_allclose(ad.grad(f)(X), gradient, rtol=1e-14)
    np.testing.assert_allclose(ad.jvp(f, (X,), (np.ones(3),))[1], np.sum(gradient), rtol=1e-14)
    assert f.__globals__["np"] is np


@for_each("f", [allocated, allocated_by_helper])
def test_allocated_arrays_are_compiled(f: Any) -> None:
    jitted = cg.jit(ad.grad(f), cache=False).compile(X)
    np.testing.assert_allclose(jitted(X + 1), ad.grad(f)(X + 1), rtol=1e-14)
    assert is_compiled(jitted), jitted.report()


def test_substitute_allocates_plain_arrays_for_other_threads() -> None:
    kinds = []

    def f(x: Any) -> Any:
        thread = threading.Thread(target=lambda: kinds.append(type(filled_by(X))))
        thread.start()
        thread.join()
        return filled_by(x).sum()

    np.testing.assert_allclose(ad.grad(f)(X), 3 * X**2)
    assert kinds == [np.ndarray]


def test_allocation_raises_in_module_that_compares_class_by_identity() -> None:
    namespace: dict[str, Any] = {"np": np, "__name__": "comparing"}
    exec(
        "def f(x):\n    y = np.ndarray(3)\n    y[:] = x\n    return y.sum()\n"
        "class Checker:\n    def is_array(self, x):\n        return type(x) is np.ndarray\n",
        namespace,
    )
    with pytest.raises(cg.LeakError):
        ad.grad(namespace["f"])(X)
    del namespace["Checker"]
    np.testing.assert_array_equal(ad.grad(namespace["f"])(X), np.ones(3))
