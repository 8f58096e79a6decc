"""Executors that compile machine code, compared with NumPy bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

import compgraph as cg


def compiled(nodes: Any) -> cg.Executor:
    """An executor that compiles machine code."""
    executor = cg.Executor(nodes)
    executor._backend = "llvm"
    return executor


def program_of(executor: cg.Executor) -> Any:
    """The program of a compiled executor."""
    return next(iter(executor._programs.values()))


def assert_same(actual: Any, expected: Any) -> None:
    """Same shapes, dtypes, numbers and signs of zeros."""
    assert np.shape(actual) == np.shape(expected)
    assert np.asarray(actual).dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(actual, expected)
    if np.asarray(expected).dtype.kind == "f":
        is_number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual) & is_number, np.signbit(expected) & is_number)
