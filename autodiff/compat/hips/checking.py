"""The names of ``autograd.test_util``: comparison of derivatives with central differences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from .operators import make_jvp_at, make_vjp_at, unary_to_nary
from .vspaces import vspace

Function = Callable[..., Any]
TOL = RTOL = EPS = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """Whether two numbers are equal up to an absolute or a relative error of 1e-6."""
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL)


def _name(f: Function) -> str:
    return getattr(f, "__name__", "[unknown name]")


def make_numerical_jvp(f: Function, x: Any) -> Function:
    """The derivative of `f` at `x` along a direction, by a central difference."""
    x_space, y_space = vspace(x), vspace(f(x))

    def jvp(v: Any) -> Any:
        above, below = (f(x_space.add(x, x_space.scalar_mul(v, half))) for half in (EPS / 2, -EPS / 2))
        return y_space.scalar_mul(y_space.add(above, y_space.scalar_mul(below, -1.0)), 1.0 / EPS)

    return jvp


def check_vjp(f: Function, x: Any) -> None:
    """Raise an AssertionError if the derivative in reverse mode is wrong along random directions."""
    vjp, y = make_vjp_at(f, x)
    x_space, y_space = vspace(x), vspace(y)
    v, w = x_space.randn(), y_space.randn()
    cotangent = x_space.covector(vjp(y_space.covector(w)))
    assert vspace(cotangent) == x_space, f"the cotangent has the space {vspace(cotangent)}, the argument {x_space}"
    exact = x_space.inner_prod(v, cotangent)
    numeric = y_space.inner_prod(w, make_numerical_jvp(f, x)(v))
    assert scalar_close(numeric, exact), (
        f"Derivative (VJP) check of {_name(f)} failed with arg {x}:\nanalytic: {exact}\nnumeric:  {numeric}"
    )


def check_jvp(f: Function, x: Any) -> None:
    """Raise an AssertionError if the derivative in forward mode is wrong along a random direction."""
    v = vspace(x).randn()
    check_equivalent(make_jvp_at(f, x)(v)[1], make_numerical_jvp(f, x)(v))


def check_equivalent(x: Any, y: Any) -> None:
    """Raise an AssertionError if two values have different spaces, or different products with a random value."""
    x_space, y_space = vspace(x), vspace(y)
    assert x_space == y_space, f"VSpace mismatch:\nx: {x_space}\ny: {y_space}"
    v = x_space.randn()
    assert scalar_close(x_space.inner_prod(x, v), x_space.inner_prod(y, v)), f"Value mismatch:\nx: {x}\ny: {y}"


@unary_to_nary
def check_grads(f: Function, x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2) -> None:
    """Compare the derivatives of a function with central differences: ``check_grads(f, argnum, modes, order)(*args)``.

    Parameters
    ----------
    f : callable
        A function of arrays.
    x : int, or tuple or list of int
        The positions of the arguments to differentiate by. `unary_to_nary` replaces this parameter by ``argnum``.
    modes : sequence of {"fwd", "rev"}
        The modes.
    order : int
        The highest order of derivatives.

    Returns
    -------
    callable
        A function of the arguments of `f`.

    Raises
    ------
    AssertionError
        When called: if they differ.

    Examples
    --------
    >>> import numpy as np
    >>> check_grads(lambda x, y: np.sin(x) * y, (0, 1))(np.array([0.5, 1.0]), 2.0)
    """
    assert all(mode in ("fwd", "rev") for mode in modes), f"modes are 'fwd' and 'rev', not {modes}"
    if "fwd" in modes:
        check_jvp(f, x)
        if order > 1:
            v = vspace(x).randn()
            _check_derivative(lambda x, v: make_jvp_at(f, x)(v)[1], f"jvp_{_name(f)}", modes, order - 1, x, v)
    if "rev" in modes:
        check_vjp(f, x)
        if order > 1:
            v = vspace(f(x)).randn()
            _check_derivative(lambda x, v: make_vjp_at(f, x)[0](v), f"vjp_{_name(f)}", modes, order - 1, x, v)


def _check_derivative(derivative: Function, name: str, modes: Sequence[str], order: int, *point: object) -> None:
    derivative.__name__ = name
    check_grads(derivative, (0, 1), modes, order=order)(*point)


def combo_check(fun: Function, *args: object, **kwargs: object) -> Function:
    """Return a function that takes a list of values for each argument, and calls `check_grads` for all combinations."""

    def check(*lists: Any, **named: Any) -> None:
        for values in itertools.product(*lists):
            for options in itertools.product(*[[(name, value) for value in choices] for name, choices in named.items()]):
                check_grads(fun, *args, **kwargs)(*values, **dict(options))

    return check
