"""The names of ``autograd.misc`` (flattening, optimizers, fixed points) and of ``autograd.test_util`` (checks of derivatives)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph.array_types import Array

from .operators import make_jvp_at, make_vjp, make_vjp_at, unary_to_nary
from .primitives import defvjp, primitive
from .vspaces import vspace

Function = Callable[..., Any]


def flatten(value: Any) -> tuple[Any, Function]:
    """Flatten nested lists, tuples and dictionaries to a vector; return it and the inverse function.

    Parameters
    ----------
    value : array, number, list, tuple or dict
        Dictionaries are flattened in the order of their sorted keys.

    Returns
    -------
    vector : array
        Of one axis.
    unflatten : callable
        Takes a vector of the same length.

    Examples
    --------
    >>> vector, unflatten = flatten({"b": np.ones(2), "a": 3.0})
    >>> vector, unflatten(vector)
    (array([3., 1., 1.]), {'b': array([1., 1.]), 'a': np.float64(3.0)})
    """
    parts: list[Any] = []
    unflatten = _collect(value, parts)
    vector = np.concatenate([np.ravel(part) for part in parts]) if parts else np.array([])
    return vector, unflatten


def _collect(value: Any, parts: list[Any]) -> Function:
    """Append the arrays in a value to `parts`; return a function that restores the value from the vector of all arrays."""
    if isinstance(value, dict):
        restore_by_key = {key: _collect(value[key], parts) for key in sorted(value)}
        return lambda vector: {key: restore_by_key[key](vector) for key in value}
    if isinstance(value, (list, tuple)):
        restore_parts = [_collect(part, parts) for part in value]
        cls = type(value)
        return lambda vector: cls([restore(vector) for restore in restore_parts])
    start, shape = sum(np.size(part) for part in parts), np.shape(value)
    stop = start + np.size(value)
    parts.append(value)
    return lambda vector: np.reshape(vector[start:stop], shape)[()]


def flatten_func(func: Function, example: object) -> tuple[Function, Function, Any]:
    """Return `func` as a function of vectors, the function that unflattens a vector, and `example` as a vector."""
    vector, unflatten = flatten(example)
    return lambda x, *args: flatten(func(unflatten(x), *args))[0], unflatten, vector


def const_graph(fun: Function, *args: object, **kwargs: object) -> Function:
    """Bind the first arguments of `fun`. autograd records the graph once; this package records it in each call."""
    return functools.partial(fun, *args, **kwargs)


def unflatten_optimizer(optimize: Function) -> Function:
    """Extend an optimizer of vectors to nested lists, tuples and dictionaries."""

    @functools.wraps(optimize)
    def nested(grad: Function, x0: object, callback: Function | None = None, *args: object, **kwargs: object) -> Any:
        start, unflatten = flatten(x0)

        def call_nested(x: Array, i: int, g: Array) -> None:
            if callback:
                callback(unflatten(x), i, unflatten(g))

        return unflatten(optimize(lambda x, i: flatten(grad(unflatten(x), i))[0], start, call_nested, *args, **kwargs))

    return nested


@unflatten_optimizer
def sgd(grad: Function, x: Any, callback: Function, num_iters: int = 200, step_size: float = 0.1, mass: float = 0.9) -> Any:
    """Gradient descent with momentum.

    Parameters
    ----------
    grad : callable
        ``(x, i)`` returns the gradient at `x` in iteration `i`.
    x : array or nested arrays
        The initial value.
    callback : callable, optional
        Called as ``callback(x, i, g)`` in each iteration.
    num_iters, step_size, mass : int, float, float
        The number of iterations, the learning rate, the momentum.

    Returns
    -------
    array or nested arrays
        The last iterate.

    Examples
    --------
    >>> sgd(lambda x, i: 2 * x, np.array([1.0]), num_iters=1000).round(3) + 0
    array([0.])
    """
    velocity = np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        callback(x, i, g)
        velocity = mass * velocity - (1.0 - mass) * g
        x = x + step_size * velocity
    return x


@unflatten_optimizer
def rmsprop(
    grad: Function,
    x: Any,
    callback: Function,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """RMSprop: the gradient divided by the root of its running mean square. The parameters are those of `sgd`.

    Examples
    --------
    >>> rmsprop(lambda x, i: 2 * x, np.array([1.0]), step_size=0.01, num_iters=2).round(4)
    array([0.9667])
    """
    square = np.ones(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        callback(x, i, g)
        square = square * gamma + g**2 * (1 - gamma)
        x = x - step_size * g / (np.sqrt(square) + eps)
    return x


@unflatten_optimizer
def adam(
    grad: Function,
    x: Any,
    callback: Function,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Adam (arXiv:1412.6980). The parameters are those of `sgd`.

    Examples
    --------
    >>> adam(lambda x, i: 2 * x, np.array([1.0]), num_iters=100, step_size=0.1).round(2) + 0
    array([0.])
    """
    m, v = np.zeros(len(x)), np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        callback(x, i, g)
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * g**2 + b2 * v
        x = x - step_size * (m / (1 - b1 ** (i + 1))) / (np.sqrt(v / (1 - b2 ** (i + 1))) + eps)
    return x


@primitive
def fixed_point(f: Function, a: Any, x0: object, distance: Function, tol: float) -> Any:
    """The fixed point of ``f(a)``, by iteration; its derivative with respect to `a` follows from the implicit function theorem.

    Parameters
    ----------
    f : callable
        ``f(a)`` returns the function that is iterated.
    a : array or nested arrays
        The parameters.
    x0 : array
        The initial value.
    distance : callable
        ``distance(x, y)`` returns a number for two iterates.
    tol : float
        The distance of successive iterates at which to stop.

    Returns
    -------
    array
        The fixed point.

    Examples
    --------
    >>> from autodiff.compat.hips.operators import grad
    >>> newton = lambda a: lambda x: 0.5 * (x + a / x)
    >>> grad(lambda a: fixed_point(newton, a, 1.0, lambda x, y: abs(x - y), 1e-12))(4.0)
    np.float64(0.25)
    """
    step = f(a)
    x, previous = step(x0), x0
    while distance(x, previous) > tol:
        x, previous = step(x), x
    return x


def _fixed_point_vjp(ans: object, f: Function, a: Any, x0: float, distance: Function, tol: float) -> Function:
    def adjoint_step(params: Any) -> Function:
        a, x, cotangent = params
        pull, _ = make_vjp(f(a))(x)
        return lambda g: vspace(x).add(pull(g), cotangent)

    pull_a, _ = make_vjp(lambda a, x: f(a)(x))(a, ans)
    return lambda g: pull_a(fixed_point(adjoint_step, (a, ans, g), vspace(ans).zeros(), distance, tol))


defvjp(fixed_point, None, _fixed_point_vjp, None)


TOL = RTOL = EPS = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """Whether two numbers are equal up to an absolute or a relative error of 1e-6."""
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL)


def _name(f: Function) -> str:
    return getattr(f, "__name__", "[unknown name]")


def make_numerical_jvp(f: Function, x: Any) -> Function:
    """Return the function that computes a directional derivative of `f` at `x`, by a central difference."""
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
