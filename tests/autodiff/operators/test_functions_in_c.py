"""Functions implemented in C, such as ``math.sin``, as the function of an operator."""

from __future__ import annotations

import functools
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg

FUNCTIONS: dict[str, tuple[Callable[..., Any], float]] = {
    "math.sin": (math.sin, math.cos(0.7)),
    "math.erf": (math.erf, 2 / math.sqrt(math.pi) * math.exp(-0.49)),
    "partial": (functools.partial(math.pow, 2.0), math.log(2) * 2**0.7),
    "partial of a partial": (functools.partial(functools.partial(math.atan2), 1.0), -1 / 1.49),
    "abs": (abs, 1.0),
    "operator.neg": (operator.neg, -1.0),
}
OPERATORS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: ad.grad(f)(0.7),
    "value_and_grad": lambda f: ad.value_and_grad(f)(0.7)[1],
    "jacobian": lambda f: ad.jacobian(f)(0.7),
    "jvp": lambda f: ad.jvp(f, (0.7,), (1.0,))[1],
    "vjp": lambda f: ad.vjp(f, 0.7)[1](1.0)[0],
    "linearize": lambda f: ad.linearize(f, 0.7)[1](1.0),
    "taylor": lambda f: ad.taylor(f, 0.7, 1)[1],
    "vmap": lambda f: ad.grad(lambda x: ad.vmap(f)(x * np.ones(2))[0])(0.7),
    "checkpoint": lambda f: ad.grad(ad.checkpoint(f))(0.7),
    "jit": lambda f: ad.grad(cg.jit(f))(0.7),
    "pickle": lambda f: pickle.loads(pickle.dumps(ad.grad(f)))(0.7),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("transform", OPERATORS)
def test_function_in_c_has_right_derivative(name: str, transform: str) -> None:
    f, slope = FUNCTIONS[name]
    np.testing.assert_allclose(OPERATORS[transform](f), slope, rtol=1e-12)


@pytest.mark.parametrize("f", [float, np.float64, np.eye(2).dot, math.nextafter])
@pytest.mark.parametrize("transform", ["grad", "jvp", "taylor"])
def test_function_in_c_without_derivative_raises(f: Callable[..., Any], transform: str) -> None:
    f = functools.partial(f, 1.0) if f is math.nextafter else f
    x = np.ones(2) if getattr(f, "__name__", "") == "dot" else 0.7
    calls: dict[str, Callable[[], Any]] = {
        "grad": lambda: ad.grad(f)(x),
        "jvp": lambda: ad.jvp(f, (x,), (x,)),
        "taylor": lambda: ad.taylor(f, x, 1),
    }
    with pytest.raises(cg.LeakError):
        calls[transform]()


def test_derivative_of_function_in_c_has_its_name() -> None:
    assert ad.grad(math.sin).__name__ == "sin"
    assert repr(ad.grad(math.sin)) == "<grad of sin>"
