"""NumPy functions that write, with their targets and values passed by keyword: derivatives in all modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg

POINT = np.array([0.7, 1.4, 2.3])
MASK, INDICES, FACTORS = np.array([True, False, True]), np.array([0, 2]), np.array([1.0, 2.0, 3.0])
WRITES: dict[str, Callable[[Any, Any], object]] = {
    "copyto": lambda a, x: np.copyto(dst=a, src=x**2),
    "copyto with a mask": lambda a, x: np.copyto(src=x**2, dst=a, where=MASK),
    "copyto of a list": lambda a, x: np.copyto(dst=a, src=[x[0], 1.0, x[1]]),
    "put": lambda a, x: np.put(a=a, ind=INDICES, v=x[:2] ** 2),
    "put of a list": lambda a, x: np.put(ind=[0, 2], v=[x[0], x[1]], a=a, mode="clip"),
    "place": lambda a, x: np.place(arr=a, mask=MASK, vals=x[:2] ** 2),
    "place of a list": lambda a, x: np.place(a, mask=MASK, vals=[x[0], x[1]]),
    "putmask": lambda a, x: np.putmask(a, values=x**2, mask=MASK),
    "put_along_axis": lambda a, x: np.put_along_axis(arr=a, indices=INDICES, values=x[:2], axis=0),
    "put_along_axis without axis": lambda a, x: np.put_along_axis(arr=a, indices=INDICES, values=x[:2], axis=None),
    "fill_diagonal": lambda a, x: np.fill_diagonal(a=a.reshape(3, 1), val=x[1]),
    "add.reduce": lambda a, x: np.add.reduce(array=np.outer(x, x), axis=0, out=a),
    "add.accumulate": lambda a, x: np.add.accumulate(array=x, out=a),
}
BATCHED: dict[str, Callable[[Any, Any], object]] = {  # at places that differ between batch elements
    "copyto": lambda a, x: np.copyto(dst=a, src=2.0, where=x > 1.0),
    "putmask": lambda a, x: np.putmask(a, values=x**2, mask=x > 1.0),
    "put_along_axis": lambda a, x: np.put_along_axis(arr=a, indices=np.argsort(x), values=x**2, axis=0),
    "put": lambda a, x: a.put(indices=INDICES, values=x[:2]),
}


def _differences(f: Callable[[Any], Any]) -> Any:
    return np.array([(f(POINT + step) - f(POINT - step)) / 2e-6 for step in 1e-6 * np.eye(3)])


@pytest.mark.parametrize("is_buffer", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_write_by_keyword_derivatives(name: str, is_buffer: bool) -> None:
    def f(x: Any) -> Any:
        a = np.zeros(3) if is_buffer else x * 1.0
        WRITES[name](a, x)
        return np.sum(a * FACTORS * x)

    expected = _differences(f)
    compiled = cg.jit(ad.grad(f)).compile(POINT)
    for derivative in (ad.grad(f)(POINT), ad.jacfwd(f)(POINT), compiled(POINT), *ad.vmap(ad.grad(f))(np.stack([POINT, POINT]))):
        np.testing.assert_allclose(derivative, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", BATCHED)
def test_write_by_keyword_at_places_of_each_batch_element(name: str) -> None:
    def f(x: Any) -> Any:
        a = x * 1.0
        BATCHED[name](a, x)
        return np.sum(a * FACTORS * x)

    expected = _differences(f)
    points = np.stack([POINT, POINT[::-1]])
    np.testing.assert_allclose(ad.grad(f)(POINT), expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ad.vmap(f)(points), [f(point) for point in points])
    np.testing.assert_allclose(ad.vmap(ad.grad(f))(points), [ad.grad(f)(point) for point in points])
