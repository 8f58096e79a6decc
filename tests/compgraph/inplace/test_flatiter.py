"""``node.flat`` as an operand of NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each

X = np.array([[1.1, -2.0], [1.5, 0.3]])
OTHER = np.array([1.0, 4.0, 2.0, 3.0])

# Functions of an array; each uses `.flat`, which NumPy has, too.
USES: dict[str, Callable[[Any], Any]] = {
    "operand": lambda y: np.add(y.flat, OTHER),
    "keyword": lambda y: np.sum(a=y.flat) * y[0, 0],
    "list": lambda y: np.concatenate([y.flat, (2 * y).flat, OTHER]),
    "tuple": lambda y: np.stack((y.flat, OTHER)) ** 2,
    "where": lambda y: np.sum(y.ravel() ** 2, where=np.asarray(y.flat > 0)),
    "less": lambda y: np.where(y.flat < 1, y.ravel() ** 2, 0),
    "less or equal": lambda y: np.where(y.flat <= 1, y.ravel() ** 2, 0),
    "greater": lambda y: np.where(y.flat > OTHER, y.ravel() ** 2, 0),
    "greater or equal": lambda y: np.where(y.flat >= 1, y.ravel() ** 2, 0),
}


@for_each("use", USES)
def test_flat_operands_match_numpy_and_differences(use: str) -> None:
    def f(x: Any) -> Any:
        return np.sum(USES[use](x * 2))

    step = 1e-6
    value, gradient = ad.value_and_grad(f)(X)
    assert value == f(X)
    for index in np.ndindex(X.shape):
        shift = np.zeros(X.shape)
        shift[index] = step
        assert gradient[index] == pytest.approx((f(X + shift) - f(X - shift)) / (2 * step), abs=1e-6)


def test_flat_output_raises() -> None:
    y = cg.variable(X) * 1
    with pytest.raises(TypeError, match="cannot be an output"):
        np.add(OTHER, 1, out=y.flat)
