"""Reads at computed indices, as ``a[np.argmax(x)]``, are copies, also where NumPy has a view."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg

X = np.array([0.3, 0.9, 0.2])
OTHER = np.array([1.3, 0.4, 0.7])


def row_read_before_a_write(x: Any) -> Any:
    a = np.outer(x, x)
    a[0, 1] = x[2]
    total = np.sum(a[np.argmax(x)] * x)
    a[1] *= -0.3 * x[0]
    a[np.argmax(a[0])] *= x[1]
    return total + np.sum(a * a)


@pytest.mark.parametrize("options", [{}, {"simplify": False}, {"fuse": True}, {"jit": True}])
def test_executor_keeps_rows_as_they_were_read(options: dict[str, bool]) -> None:
    p = cg.variable(X.copy(), name="p")
    out = row_read_before_a_write(p)
    slope = ad.gradient(out, create_graph=True)[p]
    executor = cg.Executor([out, slope], **options)
    value, found = executor.run({p: X})
    np.testing.assert_allclose(value, row_read_before_a_write(X))
    np.testing.assert_allclose(found, ad.grad(row_read_before_a_write)(X))


def test_jit_records_again_for_other_indices() -> None:
    compiled = cg.jit(ad.value_and_grad(row_read_before_a_write), cache=False).compile(X)
    for x in (X, OTHER, OTHER[::-1].copy()):
        for found, expected in zip(compiled(x), ad.value_and_grad(row_read_before_a_write)(x), strict=True):
            np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("index", [lambda i: i, lambda i: (i, slice(1, None)), lambda i: (Ellipsis, i)])
def test_writing_through_a_row_at_a_computed_index_raises(index: Any) -> None:
    p = cg.variable(X)
    a = np.outer(p, p)
    row = a[index(np.argmax(p))]
    with pytest.raises(TypeError, match=r"read at a computed index.*a\[index\]\.copy\(\)"):
        row[0] = 1.0
    with pytest.raises(TypeError, match="read at a computed index"):
        row += 1.0


def test_copies_and_elements_at_computed_indices_can_be_written() -> None:
    def f(x: Any) -> Any:
        a = np.outer(x, x)
        row = a[np.argmax(x)].copy()
        row[0] = x[1] * 7
        a[np.argmax(x), 1] = x[0] * 2
        a[np.argsort(x)][0] = 5.0  # of a copy, in NumPy as well
        return np.sum(a * a) + np.sum(row * x)

    value, slope = ad.value_and_grad(f)(X)
    assert value == pytest.approx(f(X))
    unit = 1e-6 * np.eye(3)
    np.testing.assert_allclose(slope, [(f(X + e) - f(X - e)) / 2e-6 for e in unit], rtol=1e-7)
