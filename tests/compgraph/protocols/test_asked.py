"""Functions that ask whether an argument is a Python number: they have the same value for a node, or it is said."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import autodiff as ad


def squared(x: Any) -> Any:
    return x**2 if isinstance(x, (float, int)) else x * 0.0


class Model:
    """What is called in other ways."""

    def __call__(self, x: Any) -> Any:
        return squared(x)

    def method(self, x: Any) -> Any:
        return squared(x)


@functools.wraps(squared)
def wrapped(*args: Any) -> Any:
    return squared(*args)


class Case(NamedTuple):
    """A function as a field, called by a method that another calls."""

    function: Callable[..., Any]

    def value(self, x: Any) -> Any:
        return self.function(x)

    def beside(self, x: Any) -> Any:
        return self.value(x) + x


def enclosing() -> Callable[[Any], Any]:
    def inner(x: Any) -> Any:
        return x**2 if np.isscalar(x) else x * 0.0

    return lambda x: inner(x)


ASKING: dict[str, tuple[Callable[..., Any], str]] = {
    "isscalar": (lambda x: x**2 if np.isscalar(x) else x * 0.0, "np.isscalar"),
    "isinstance": (squared, "isinstance"),
    "Number": (lambda x: x**2 if isinstance(x, numbers.Number) else x, "isinstance"),
    "called": (lambda x: squared(x) + x, "isinstance"),
    "enclosed": (enclosing(), "np.isscalar"),
    "object": (Model(), "isinstance"),
    "method": (Model().method, "isinstance"),
    "field": (Case(squared).value, "isinstance"),
    "field, of a method's method": (Case(squared).beside, "isinstance"),
    "field of what is enclosed": ((lambda case: lambda x: case.function(x))(Case(squared)), "isinstance"),
    "partial": (functools.partial(lambda n, x: squared(x) * n, 2), "isinstance"),
    "wrapped": (wrapped, "isinstance"),
}
OPERATORS: dict[str, Callable[..., Any]] = {
    "grad": lambda f, x: ad.grad(f)(x),
    "value_and_grad": lambda f, x: ad.value_and_grad(f)(x)[1],
    "jvp": lambda f, x: ad.jvp(f, (x,), (1.0,))[1],
    "vjp": lambda f, x: ad.vjp(f, x)[1](1.0)[0],
    "jacobian": lambda f, x: ad.jacobian(f)(x),
    "hessian": lambda f, x: ad.hessian(f)(x),
}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", ASKING)
def test_another_value_is_told(name: str, operator: str) -> None:
    f, asked = ASKING[name]
    for number in (3.0, np.float64(3.0), 3):
        for _ in range(2):  # each time
            message = rf"gives .* for the number .* for a node\. It asks {asked}.*np\.ndim"
            with pytest.raises(ad.DetachedGradientError, match=message):
                OPERATORS[operator](f, number)
    OPERATORS[operator](f, np.array(3.0))  # for which the answer is the same


def test_within_other_operators_and_trees() -> None:
    with pytest.raises(ad.DetachedGradientError, match="It asks"):
        ad.grad(ad.grad(lambda x: x**3 if np.isscalar(x) else x))(3.0)
    with pytest.raises(ad.DetachedGradientError, match="It asks"):
        ad.grad(lambda p: squared(p["a"]) + np.sum(p["b"]))({"a": 3.0, "b": np.ones(2)})
    with pytest.raises(ad.DetachedGradientError, match="It asks"):
        ad.grad(lambda x: (squared(x), "aux"), has_aux=True)(3.0)


def test_the_same_value_is_let_through() -> None:
    rng, calls = np.random.default_rng(0), []

    def counted(x: Any) -> Any:
        calls.append(x)
        return x * x if np.isscalar(x) else np.sum(x**2)

    for _ in range(3):
        assert ad.grad(counted)(3.0) == 6.0
    assert [type(x) for x in calls].count(float) == 2  # in the first call alone
    assert ad.grad(lambda x, n: x**n if np.isscalar(n) else x)(3.0, 2) == 6.0
    assert ad.grad(lambda x: x * rng.normal() if np.isscalar(x) else x * 2)(3.0) == 2.0
    assert ad.grad(lambda x: x.operands and x if isinstance(x, float) else x**2)(3.0) == 6.0
    assert ad.grad(lambda x: np.ndim(x) == 0 and x**2)(3.0) == 6.0
