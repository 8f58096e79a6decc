"""reduce, accumulate, reduceat and outer of ufuncs: values bit for bit, derivatives against central differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arguments import positive

import compgraph as cg
from autodiff import check_grads
from autodiff.reverse import gradient

BINARY = [
    np.add, np.subtract, np.multiply, np.divide, np.hypot, np.maximum, np.minimum, np.fmax, np.fmin,
    np.logaddexp, np.logaddexp2, np.remainder, np.fmod, np.heaviside,
]  # fmt: skip
X = positive(3, 4)


def agree(function: Any, *args: Any) -> None:
    found, expected = function(*map(cg.variable, args)), function(*args)
    assert isinstance(found, cg.Node)
    assert (found.shape, found.dtype) == (np.shape(expected), np.asarray(expected).dtype)
    assert np.array_equal(found.value, expected, equal_nan=True)


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
class TestEveryBinaryUfunc:
    def test_outer(self, ufunc: np.ufunc) -> None:
        agree(ufunc.outer, X[0], X[:, 0])
        agree(lambda x: ufunc.outer(X, x), X[0, 0])
        agree(lambda x: ufunc.outer(x, [1.5, 0.7]), X)
        check_grads(ufunc.outer, [X[0], positive(2, seed=3)], order=1)

    @pytest.mark.parametrize("axis", [0, 1, -1])
    def test_reduce(self, ufunc: np.ufunc, axis: int) -> None:
        agree(lambda x: ufunc.reduce(x, axis=axis), X)
        agree(lambda x: ufunc.reduce(x, axis=axis, keepdims=True), X)
        check_grads(lambda x: ufunc.reduce(x, axis), [X], order=2 if ufunc not in (np.remainder, np.fmod) else 1)

    def test_reduce_of_a_vector(self, ufunc: np.ufunc) -> None:
        agree(ufunc.reduce, X[0])
        agree(ufunc.reduce, X[0, :1])
        agree(lambda x: ufunc.reduce(x, dtype=np.float64), X[0].astype(np.float32))

    def test_accumulate(self, ufunc: np.ufunc) -> None:
        for axis in (0, 1):
            agree(lambda x, axis=axis: ufunc.accumulate(x, axis=axis), X)
        check_grads(lambda x: ufunc.accumulate(x, axis=1), [X], order=1)

    def test_reduceat(self, ufunc: np.ufunc) -> None:
        for indices in ([0, 2], [1, 0, 3], [0, 1, 2, 3]):
            agree(lambda x, at=indices: ufunc.reduceat(x, at, axis=1), X)
        check_grads(lambda x: ufunc.reduceat(x, [0, 2], axis=1), [X], order=1)

    @pytest.mark.parametrize("rows", [[0], [2, 0], [1, 1], [0, 2, 0, 0]])
    def test_at(self, ufunc: np.ufunc, rows: list[int]) -> None:
        def changed(x: Any, y: Any) -> Any:
            target = x * 1.0
            ufunc.at(target, rows, y)
            return target

        others = positive(len(rows), 4, seed=5)
        agree(changed, X, others)
        agree(lambda x: changed(x, 0.8), X)
        check_grads(changed, [X, others], order=2 if ufunc not in (np.remainder, np.fmod) else 1)


def test_where_and_initial() -> None:
    mask = X > 1.2
    agree(lambda x: np.logaddexp.reduce(x, axis=1, where=mask), X)
    agree(lambda x: np.hypot.reduce(x, axis=1, where=mask, initial=2.0), X)
    agree(lambda x: np.subtract.reduce(x, axis=0, initial=2.0), X)
    check_grads(lambda x: np.logaddexp.reduce(x, axis=1, where=mask), [X])
    with pytest.raises(ValueError, match="does not have an identity"):
        np.subtract.reduce(cg.variable(X), where=mask)


def test_what_cannot_be_composed_is_refused() -> None:
    x = cg.variable(X)
    with pytest.raises(TypeError, match="one at a time"):
        gradient(np.logaddexp.reduce(x, axis=(0, 1)))
    with pytest.raises(TypeError, match=r"np\.logaddexp\.reduce\(\.\.\., out=plain array\)"):
        np.logaddexp.reduce(x, out=np.empty(4))
    with pytest.raises(TypeError, match=r"np\.logaddexp\.reduce.*same dtype"):
        np.logaddexp.reduce(x, out=cg.zeros(4, np.float32))
    with pytest.raises(IndexError, match="out-of-bounds"):
        np.add.reduceat(x, [0, 9])


@pytest.mark.parametrize("ufunc", [np.power, np.arctan2, np.float_power], ids=lambda u: u.__name__)
def test_accumulate_and_outer_of_those_whose_reductions_are_unreliable(ufunc: np.ufunc) -> None:
    agree(lambda x: ufunc.accumulate(x, axis=1), X)
    agree(ufunc.outer, X[0], X[:, 0])
    check_grads(lambda x: ufunc.accumulate(x, axis=1), [X], order=1)
    if ufunc is not np.float_power:
        with pytest.raises(TypeError, match=r"use np\.\w+\.accumulate"):
            ufunc.reduce(cg.variable(X))
