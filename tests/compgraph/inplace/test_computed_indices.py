"""Reads at computed indices, such as ``a[np.argmax(x)]``, are copies, also where NumPy returns a view."""

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
def test_computed_index_executor_keeps_rows_as_read(options: dict[str, bool]) -> None:
    p = cg.variable(X.copy(), name="p")
    out = row_read_before_a_write(p)
    slope = ad.gradient(out, create_graph=True)[p]
    executor = cg.Executor([out, slope], **options)
    value, outputs = executor.run({p: X})
    np.testing.assert_allclose(value, row_read_before_a_write(X))
    np.testing.assert_allclose(outputs, ad.grad(row_read_before_a_write)(X))


def test_computed_index_jit_records_again_for_other_values() -> None:
    compiled = cg.jit(ad.value_and_grad(row_read_before_a_write), cache=False).compile(X)
    for x in (X, OTHER, OTHER[::-1].copy()):
        for actual, expected in zip(compiled(x), ad.value_and_grad(row_read_before_a_write)(x), strict=True):
            np.testing.assert_allclose(actual, expected)


TRANSFORMS: dict[str, Any] = {
    "graph": lambda f: f(cg.variable(X)),
    "grad": lambda f: ad.grad(f)(X),
    "jvp": lambda f: ad.jvp(f, (X,), (OTHER,)),
    "vmap": lambda f: ad.vmap(f)(np.stack([X, 2 * X])),
    "vmap of grad": lambda f: ad.vmap(ad.grad(f))(np.stack([X, 2 * X])),
    "jacfwd of grad": lambda f: ad.jacfwd(ad.grad(f))(X),
}


def set_element(row: Any) -> None:
    row[0] = 1.0


def add_in_place(row: Any) -> None:
    row += 1.0


def set_element_of_view(row: Any) -> None:
    row[1:][0] = 1.0


def write_out(row: Any) -> None:
    np.multiply(row, 2.0, out=row)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("write", [set_element, add_in_place, set_element_of_view, write_out])
@pytest.mark.parametrize("index", [lambda i: i, lambda i: (i, slice(0, 3)), lambda i: (Ellipsis, i, slice(None))])
def test_computed_index_write_through_row_raises(index: Any, write: Any, transform: str) -> None:
    def f(x: Any) -> Any:
        a = np.outer(x, x)
        row = a[index(np.argmax(x))]
        write(row)
        return np.sum(a * a)

    with pytest.raises(TypeError, match=r"read at a computed index.*a\[index\]\.copy\(\)"):
        TRANSFORMS[transform](f)


def test_computed_index_write_through_row_in_list_raises() -> None:
    p = cg.variable(X)
    a = np.outer(p, p)
    rows = [a[np.argmax(p)]]
    with pytest.raises(TypeError, match="read at a computed index"):
        rows[0] += 1.0


def augment(x: Any, index: Any) -> Any:
    a = np.outer(x, x)
    a[index] += x
    a[index, :2] *= 0.5
    return np.sum(a * a * a)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("lines", [True, False])
def test_computed_index_augmented_assignment_writes(transform: str, lines: bool) -> None:
    cg.record_lines(lines)
    try:
        result = TRANSFORMS[transform](lambda x: augment(x, np.argmax(x)))
    finally:
        cg.record_lines(True)
    expected = TRANSFORMS[transform](lambda x: augment(x, 1))
    for one, other in zip(np.atleast_1d(result), np.atleast_1d(expected), strict=True):
        np.testing.assert_allclose(one, other)


def test_computed_index_copies_and_elements_are_writable() -> None:
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
