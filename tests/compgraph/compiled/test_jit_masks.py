"""Masks in compiled functions: they are data, so that other masks need no new program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each
from tests.support.jitting import is_compiled

X = np.array([0.1, 0.9, 0.3, 0.7, 0.2, 0.6])
FEWER = np.array([0.1, 0.9, 0.3, 0.4, 0.2, 0.0])
OTHERS = np.array([0.9, 0.1, 0.8, 0.3, 0.2, 0.6])  # as many elements are greater than 1/2, at other places


def number_written(x: Any) -> Any:
    """A number in place of large elements."""
    y = x * 2
    y[y > 1] = 0.5
    return (y * x).sum()


def node_written(x: Any) -> Any:
    """A computed number in place of small elements of the rows of a matrix."""
    y = np.outer(x, x)
    y[x < 0.5] = x[0]
    return (y * y).sum()


def integers_written(x: Any) -> Any:
    """Counters, which have no derivative."""
    counts = np.zeros(6, dtype=int)
    counts[x > 0.5] = 3
    counts[1] = 2
    counts[counts == 3] = 7
    return (x * counts).sum()


def booleans_written(x: Any) -> Any:
    """A mask that is changed at another mask."""
    is_chosen = np.ones(6, dtype=bool)
    is_chosen[x > 0.8] = False
    return np.where(is_chosen, x * x, 0).sum()


ANY_MASK = [number_written, node_written, integers_written, booleans_written]


@for_each("f", ANY_MASK)
def test_masked_writes_of_numbers_take_any_mask(f: Any) -> None:
    differentiate = ad.value_and_grad(f)
    jitted = cg.jit(differentiate, cache=False).compile(X)
    for x in (X, FEWER, OTHERS, np.zeros(6), np.ones(6)):
        np.testing.assert_allclose(jitted(x)[0], differentiate(x)[0], rtol=1e-14)
        np.testing.assert_allclose(jitted(x)[1], differentiate(x)[1], rtol=1e-14)
    assert is_compiled(jitted)
    assert "program 2" not in jitted.report(), jitted.report()
    assert "calls NumPy" not in jitted.report(), jitted.report()


def elements_read(x: Any) -> Any:
    """The large elements."""
    return (x[x > 0.5] ** 3).sum()


def elements_moved(x: Any) -> Any:
    """The large elements in a new array."""
    y = np.zeros(6)
    y[x > 0.5] = x[x > 0.5] * 2
    return (y**2).sum()


def elements_incremented(x: Any) -> Any:
    """The large elements, incremented."""
    y = x * 1
    y[x > 0.5] += y[x > 0.5] ** 2
    return (y * x).sum()


def counters_incremented(x: Any) -> Any:
    """Integers, incremented."""
    counts = np.zeros(6, dtype=int)
    counts[x > 0.5] += 1
    return (x * counts).sum()


def elements_of_matrix(x: Any) -> Any:
    """Elements of a matrix."""
    y = np.outer(x, x)
    return (y[y > 0.25] ** 2).mean()


def rows_of_matrix(x: Any) -> Any:
    """Rows of a matrix."""
    y = np.outer(x, x[::-1])
    return (y[x > 0.5] ** 2).sum()


def repeated(x: Any) -> Any:
    """A recurrence of the elements that are small."""
    y = x * 1.0
    for _ in range(3):
        is_small = np.abs(y) < 0.9
        y[is_small] = y[is_small] ** 2 + x[is_small]
    return y.sum()


FIXED_COUNT = [
    elements_read, elements_moved, elements_incremented, counters_incremented, elements_of_matrix, rows_of_matrix, repeated,
]  # fmt: skip


@for_each("f", FIXED_COUNT)
def test_masked_elements_match_eager_evaluation(f: Any) -> None:
    differentiate = ad.value_and_grad(f)
    jitted = cg.jit(differentiate, cache=False).compile(X)
    for x in (X, OTHERS, FEWER, np.ones(6), X):
        jitted.compile(x)
        value, gradient = jitted(x)
        expected, expected_gradient = differentiate(x)
        np.testing.assert_allclose(value, expected, rtol=1e-14)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-14)
    assert is_compiled(jitted)
    assert "calls NumPy" not in jitted.report(), jitted.report()


@for_each("f", [elements_read, elements_moved, rows_of_matrix])
def test_masks_of_equal_counts_share_a_program(f: Any) -> None:
    jitted = cg.jit(f, cache=False).compile(X)
    for x in (X, OTHERS):
        np.testing.assert_allclose(jitted(x), f(x), rtol=1e-14)
    assert "program 2" not in jitted.report(), jitted.report()


@for_each("f", [elements_read, elements_moved])
def test_masks_without_elements_match_numpy(f: Any) -> None:
    jitted = cg.jit(ad.grad(f), cache=False).compile(np.zeros(6))
    np.testing.assert_array_equal(jitted(np.zeros(6)), np.zeros(6))
    np.testing.assert_allclose(jitted(X), ad.grad(f)(X), rtol=1e-14)


def write_complex(x: Any) -> Any:
    """A complex number cannot be stored as a real one."""
    y = x * 1
    y[x > 0.5] = 1j
    return y


def write_too_many(x: Any) -> Any:
    """More values than elements."""
    y = x * 1
    y[x > 0.5] = x[:4]
    return y


def write_at_long_mask(x: Any) -> Any:
    """A mask of another length."""
    y = x[:4] * 1
    y[x > 0.5] = 0
    return y


@for_each("f, error", [(write_complex, TypeError), (write_too_many, ValueError), (write_at_long_mask, IndexError)])
def test_invalid_masked_writes_raise_as_numpy(f: Any, error: Any) -> None:
    with pytest.raises(error):
        f(X)
    with pytest.raises(error):
        cg.jit(f, cache=False)(X)


def test_float_at_mask_of_integers_is_truncated() -> None:
    def f(x: Any) -> Any:
        counts = np.zeros(6, dtype=int)
        counts[x > 0.5] = 2.9
        return counts

    jitted = cg.jit(f, cache=False).compile(X)
    np.testing.assert_array_equal(jitted(X), f(X))
    np.testing.assert_array_equal(jitted(OTHERS), f(OTHERS))


def test_written_mask_selects_elements_of_its_time() -> None:
    def f(x: Any) -> Any:
        is_chosen = x > 0.5
        before = x[is_chosen].sum()
        is_chosen[0] = True
        is_chosen[1] = False
        return before * x[is_chosen].sum()

    differentiate = ad.value_and_grad(f)
    jitted = cg.jit(differentiate, cache=False).compile(X)
    for x in (X, OTHERS):
        np.testing.assert_allclose(jitted(x)[0], f(x), rtol=1e-14)
        np.testing.assert_allclose(jitted(x)[1], differentiate(x)[1], rtol=1e-14)
