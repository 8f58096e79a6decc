"""Functions whose result does not depend on the argument: the derivative is zero, unless values left the graph."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each

POINT = np.array([0.7, 1.3, 2.1])
LIST = [1.0, 5.0, 2.0, 7.0]

CONSTANT: dict[str, Callable[[Any], Any]] = {
    "float on a branch": lambda x: 0.0 if np.sum(x) > 2.5 else np.sum(x),
    "int": lambda x: 3,
    "bool": lambda x: bool(x[0] > 0),
    "NumPy scalar": lambda x: np.float64(2.0),
    "0-d array": lambda x: np.zeros(()),
    "of an array that is made": lambda x: np.arange(3.0).sum(),
    "int of a sum": lambda x: int(np.sum(x)),
    "a count": lambda x: sum(1 for v in x if v > 1),
    "of a place": lambda x: LIST[int(x[2])] * 2,
    "length": lambda x: len(x),
    "text": lambda x: print(x[0], end="") or 4.0,
}


@for_each("name", CONSTANT)
def test_constant_result_has_zero_derivative(name: str) -> None:
    f = CONSTANT[name]
    zeros, value = np.zeros(3), float(f(POINT))
    for result in (ad.grad(f)(POINT), ad.jacobian(f)(POINT), ad.jacfwd(f)(POINT), cg.jit(ad.grad(f))(POINT)):
        assert np.array_equal(result, zeros)
    assert np.array_equal(ad.hessian(f)(POINT), np.zeros((3, 3)))
    assert ad.jvp(f, (POINT,), (POINT,)) == (value, 0.0)
    result, pull = ad.vjp(f, POINT)
    assert (result, *pull(1.0)[0]) == (value, 0, 0, 0)
    assert ad.value_and_grad(f)(POINT)[0] == value
    assert ad.taylor(f, POINT, 2) == [value, 0.0, 0.0]


def test_constant_result_of_several_nested_and_batched_arguments() -> None:
    f = lambda x, y: 1.5  # noqa: E731
    assert (ad.grad(f, argnums=1)(1.0, 2.0), ad.grad(f, argnums=(0, 1))(1.0, 2.0)) == (0, (0, 0))
    assert ad.grad(lambda p: 0.0)({"a": 1.0, "b": [2.0]}) == {"a": 0, "b": [0]}
    assert ad.grad(lambda x: (0.0, {"n": 3}), has_aux=True)(1.0) == (0, {"n": 3})
    rows = np.ones((2, 3))
    assert np.array_equal(ad.vmap(ad.grad(lambda x: 2.0))(rows), np.zeros((2, 3)))
    assert np.array_equal(ad.grad(lambda x: ad.grad(lambda y: 2.0)(x).sum())(POINT), np.zeros(3))
    ones, doubled, nothing = ad.jacobian(lambda x: (np.ones(2), x * 2, None))(POINT)
    assert np.array_equal(ones, np.zeros((2, 3)))
    assert np.array_equal(doubled, 2 * np.eye(3))
    assert nothing is None


LEAKS: dict[str, Callable[[Any], Any]] = {
    "value": lambda x: x.value.sum(),
    "text": lambda x: float(str(x[0])),
    "format": lambda x: float(f"{x[0]:.9f}"),
    "percent": lambda x: float("%.9f" % x[0]),  # noqa: UP031
    "array2string": lambda x: float(np.array2string(x[:1])[1:-1]),
}


@for_each("name", LEAKS)
def test_constant_result_after_leak_raises(name: str) -> None:
    for operator in (ad.grad, ad.jacobian, lambda f: lambda x: ad.jvp(f, (x,), (x,)), lambda f: lambda x: ad.taylor(f, x, 1)):
        with pytest.raises(ad.LostGraphError, match="was not recorded"):
            operator(LEAKS[name])(POINT)
    with pytest.warns(RuntimeWarning, match=r"float\(\)"), pytest.raises(ad.LostGraphError, match="was not recorded"):
        ad.grad(lambda x: float(x[0]))(POINT)
    with pytest.raises(cg.errors.LeakError, match="savetxt"):
        ad.grad(lambda x: (np.savetxt(io.StringIO(), x), 1.0)[1])(POINT)
    for operator in (ad.grad, lambda f: lambda x: ad.jvp(f, (x,), (x,))):
        with pytest.raises(TypeError, match="returned None") as raised:
            operator(lambda x: None)(POINT)
        assert not isinstance(raised.value, ad.LostGraphError)


def _interpolate(x: Any) -> Any:
    place = x[1] / 0.5
    k = int(place)
    return LIST[k] * (1 - (place - k)) + LIST[k + 1] * (place - k)


INDEXED: dict[str, Callable[[Any], Any]] = {
    "int": lambda x: LIST[int(x[2])] * x[0],
    "round": lambda x: LIST[round(x[1])] * x[0],
    "floor": lambda x: LIST[math.floor(x[2])] * x[0] + x[math.ceil(x[0])],
    "trunc": lambda x: LIST[math.trunc(x[2])] * x[0],
    "range": lambda x: sum(x[0] * k for k in range(int(x[2]))),
    "slice": lambda x: sum(LIST[: int(x[2])]) * x[0] + np.sum(x[: int(x[1])]),
    "searchsorted": lambda x: LIST[np.searchsorted([0.0, 1.0, 2.0], x[1])] * x[0],
    "argmin": lambda x: LIST[np.argmin(x)] * x[1],
    "interpolation": _interpolate,
    "dictionary": lambda x: {0: 1.0, 2: 3.0}[int(x[2])] * x[1],
}


@for_each("name", INDEXED)
def test_integer_conversion_adds_guard(name: str) -> None:
    f = INDEXED[name]
    step = 1e-6 * np.eye(3)
    compiled = cg.jit(ad.grad(f))
    for x in (POINT, POINT, POINT + 0.05, np.array([0.4, 1.4, 2.9])):
        expected = np.array([(f(x + e) - f(x - e)) / 2e-6 for e in step])
        for result in (ad.grad(f)(x), ad.jacfwd(f)(x), compiled(x)):
            np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-8)
