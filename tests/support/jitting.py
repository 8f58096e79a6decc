"""Helpers for tests of `jit`: compiled functions are compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import optree

import compgraph as cg


def same(actual: Any, expected: Any) -> bool:
    """Whether two results have the same structure, types, dtypes, shapes and, up to rounding, values."""
    one, how = optree.tree_flatten(actual, namespace="compgraph")
    two, like = optree.tree_flatten(expected, namespace="compgraph")
    return how == like and all(map(_same_leaf, one, two))


def _same_leaf(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, (np.ndarray, np.generic)):
        rounding = 64 * float(np.finfo(a.dtype).eps) if a.dtype.kind in "fc" else 0.0  # sums in another order
        return a.dtype == b.dtype and a.shape == b.shape and np.allclose(a, b, max(1e-9, rounding), 1e-12, equal_nan=True)
    return repr(a) == repr(b)


def compiled(f: Any, *args: Any, **kwargs: Any) -> Any:
    """The compiled function, with a program for some arguments."""
    return cg.jit(f).compile(*args, **kwargs)


def is_compiled(jitted: Any) -> bool:
    """Whether no call runs as NumPy."""
    return "program 1" in jitted.report() and "as NumPy" not in jitted.report()


def assert_agrees(f: Any, *calls: tuple[Any, ...], programs: int | None = 1) -> Any:
    """Assert that a function is compiled to so many programs, and that all calls return its results."""
    jitted = compiled(f, *calls[0])
    assert is_compiled(jitted), jitted.report()
    for args in calls:
        jitted.compile(*args)
        assert same(jitted(*args), f(*args)), args
    assert is_compiled(jitted), jitted.report()
    if programs is not None:
        assert sum(line.lstrip().startswith("program ") for line in jitted.report().splitlines()) == programs, jitted.report()
    return jitted


def assert_not_compiled(f: Any, *args: Any, words: str = "", **kwargs: Any) -> Any:
    """Assert that nothing is compiled, that the report has the reason, and that the results are NumPy's."""
    jitted = compiled(f, *args, **kwargs)
    assert "runs as NumPy" in jitted.report(), jitted.report()
    assert words in jitted.report(), jitted.report()
    return jitted
