"""Python numbers as arguments raise Python's errors (`ZeroDivisionError`); NumPy numbers give infinity and a warning."""

import itertools

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.failures import Failures

FAILING = {
    "1 / x": lambda x: 1 / x, "x / x": lambda x: x / x, "2 / (x - x * 1)": lambda x: 2 / (x - x * 1), "x // 0": lambda x: x // 0,
    "x % (x * 0)": lambda x: x % (x * 0), "divmod(1, x)": lambda x: divmod(1.0, x)[1], "x ** -1": lambda x: x**-1,
    "0 ** (x - 1)": lambda x: 0.0 ** (x - 1), "(x + 1e200) ** 2": lambda x: (x + 1e200) ** 2, "abs": lambda x: -1 / abs(-x),
}  # fmt: skip


def test_python_number_raises_arithmetic_errors() -> None:
    with Failures("calls") as failures:
        for name, x in itertools.product(FAILING, [0.0, 0]):
            with failures.case(f"{name} of {x!r}"):
                check_arithmetic_error(name, x)


def check_arithmetic_error(name, x):
    """Differentiate code that catches the error of a call by zero."""

    def f(x):
        try:
            return FAILING[name](x)
        except ArithmeticError:
            return x * x + x * 5

    assert ad.value_and_grad(f)(x) == (0, 5)
    assert ad.jvp(f, (x,), (1.0,)) == (0, 5)
    assert (ad.jacfwd(f)(x), ad.hessian(f)(x)) == (5, 2)
    assert ad.jvp(ad.grad(f), (x,), (1.0,)) == (5, 2)
    assert ad.grad(lambda v: ad.jvp(f, (v,), (1.0,))[0])(x) == 5
    assert ad.grad(lambda row: f(row[0]))([x]) == [5]
    with pytest.raises(ArithmeticError):
        ad.grad(FAILING[name])(x)


def test_numpy_number_warns_of_division_by_zero():
    for derive in (ad.grad(lambda x: 1 / x), lambda x: ad.jvp(lambda x: 1 / x, (x,), (1.0,)), cg.jit(ad.grad(lambda x: 1 / x))):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            derive(np.float64(0.0))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        ad.vmap(lambda x: 1 / x)(np.zeros(2))
