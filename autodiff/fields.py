"""Derivatives of functions that act element by element, and the operators of vector calculus."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from compgraph.nodes import Node
from compgraph.operands import to_plain

from .along import as_argument, jvp
from .operators import grad, vjp

Function = Callable[..., Any]


def elementwise_grad(f: Function, argnum: int = 0) -> Function:
    """The function that returns the derivative of an elementwise function, at each element.

    Parameters
    ----------
    f : callable
        A function that works element by element on one of its arguments, and returns an array of its shape.
    argnum : int
        The position of that argument.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> derivative``, of the shape of the argument.

    Raises
    ------
    ValueError
        When called: if the result has another shape than the argument, or an element of it depends on another element.

    Notes
    -----
    The Jacobian J is diagonal if and only if ``v @ J`` is ``v * (1 @ J)`` for every v; one random v is tried, which
    another J passes with probability zero.

    Examples
    --------
    >>> import numpy as np
    >>> elementwise_grad(np.square)(np.array([1.0, 2.0, 3.0]))
    array([2., 4., 6.])
    """

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        if not -len(args) <= argnum < len(args):
            raise ValueError(f"elementwise_grad: argnum asks for argument {argnum}, but {len(args)} were given by position")
        place = argnum % len(args)
        value, pull = vjp(lambda x: f(*args[:place], x, *args[place + 1 :], **kwargs), args[place])
        shape = np.shape(args[place])
        if value.shape != shape:
            raise ValueError(f"elementwise_grad: the function made shape {value.shape} of {shape}; it is not elementwise")
        (found,) = pull(np.ones(shape, value.dtype))
        weights = np.random.default_rng(0).uniform(1, 2, shape).astype(value.dtype)
        weighted, expected = to_plain(pull(weights)[0]), weights * to_plain(found)
        close = float(np.sqrt(np.finfo(found.dtype).eps))
        size = np.max(np.abs(expected[np.isfinite(expected)]), initial=0) if shape else np.abs(expected)
        if not np.allclose(weighted, expected, rtol=close, atol=close * size, equal_nan=True):
            raise ValueError(
                "elementwise_grad: an element of the result depends on other elements of the argument; use grad of a "
                "scalar, or a Jacobian"
            )
        return found

    return differentiated


def directional_derivative(f: Function, x: Any, v: Any) -> Any:
    """The derivative of a function along a direction: that of ``f(x + t * v)`` with respect to t at 0.

    Parameters
    ----------
    f : callable
        A function of one array that returns an array.
    x, v : array_like
        The point, and the direction, of its shape; it is not normalised.

    Returns
    -------
    array
        Of the shape of ``f(x)``.

    See Also
    --------
    autodiff.jvp : the same of several arguments, with the value.

    Examples
    --------
    >>> import numpy as np
    >>> float(directional_derivative(np.prod, np.array([2.0, 3.0]), np.array([1.0, 0.0])))
    3.0
    """
    return jvp(f, (x,), (v,))[1]


def _columns(f: Function, x: Any) -> list[Any]:
    """The derivatives of a vector field along each axis: the columns of the Jacobian, as vectors."""
    x = as_argument(x)
    units = np.eye(x.size, dtype=x.dtype).reshape(-1, *x.shape)
    return [np.ravel(jvp(f, (x,), (unit,))[1]) for unit in units]


def _require_field(operator: str, found: list[Any], size: int) -> None:
    for column in found:
        if column.size != size:
            raise ValueError(f"{operator}: a vector field gives as many numbers as it takes, not {column.size} of {size}")


def divergence(f: Function) -> Function:
    """The function that returns the divergence of a vector field: the trace of its Jacobian.

    Parameters
    ----------
    f : callable
        A function of an array that returns as many numbers as it takes.

    Returns
    -------
    callable
        ``(x) -> scalar``, by one forward pass for each element of x.

    Raises
    ------
    ValueError
        When called: if `f` returns another number of elements.

    Examples
    --------
    >>> import numpy as np
    >>> float(divergence(lambda x: x**2)(np.array([1.0, 2.0, 3.0])))
    12.0
    """

    @functools.wraps(f)
    def diverging(x: Any) -> Any:
        columns = _columns(f, x)
        _require_field("divergence", columns, np.size(x))
        return _total([column[i] for i, column in enumerate(columns)])

    return diverging


def curl(f: Function) -> Function:
    """The function that returns the curl (rotation) of a vector field in three dimensions, or in two.

    Parameters
    ----------
    f : callable
        A function of a vector of three elements that returns three, or of two that returns two.

    Returns
    -------
    callable
        ``(x) -> vector`` of three elements; in two dimensions a scalar, ``d f_1 / d x_0 - d f_0 / d x_1``.

    Raises
    ------
    ValueError
        When called: if the argument or the result has another shape.

    Examples
    --------
    >>> import numpy as np
    >>> print(curl(lambda x: np.cross([0.0, 0.0, 1.0], x))(np.array([1.0, 2.0, 3.0])))
    [0. 0. 2.]
    """

    @functools.wraps(f)
    def curling(x: Any) -> Any:
        size = np.size(x)
        if np.shape(x) not in ((2,), (3,)):
            raise ValueError(f"curl: the argument is a vector of two or three elements, not of shape {np.shape(x)}")
        d = _columns(f, x)
        _require_field("curl", d, size)
        if size == 2:
            return d[0][1] - d[1][0]
        return np.stack([d[1][2] - d[2][1], d[2][0] - d[0][2], d[0][1] - d[1][0]])

    return curling


def laplacian(f: Function) -> Function:
    """The function that returns the Laplacian of a scalar function: the trace of its Hessian.

    Parameters
    ----------
    f : callable
        A function of an array that returns a scalar.

    Returns
    -------
    callable
        ``(x) -> scalar``, by one forward pass over the gradient for each element of x.

    Examples
    --------
    >>> import numpy as np
    >>> float(laplacian(lambda x: np.sum(x**3))(np.array([1.0, 2.0])))
    18.0
    """
    flow = divergence(grad(f))
    return functools.wraps(f)(lambda x: flow(x))


def _total(parts: list[Any]) -> Any:
    """The sum of scalars; zero of none."""
    if not parts:
        return np.float64(0)
    return np.sum(np.stack(parts)) if any(isinstance(p, Node) for p in parts) else np.sum(parts)
