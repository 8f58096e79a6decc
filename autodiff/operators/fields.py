"""Derivatives of functions that act element by element, and the operators of vector calculus."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from compgraph.graph import to_values
from compgraph.values import Value

from ..arguments import Argnums, Arguments, function_operator
from ..forward import jvp
from ..reverse import complex_jacobian
from .grad import grad
from .trace import Trace

Function = Callable[..., Any]


@function_operator
def elementwise_grad(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that returns the derivative of an elementwise function, at each element.

    Parameters
    ----------
    f : callable
        A function that works element by element on the arguments asked for, and returns an array of their shape, or
        several, nested in any way; with `has_aux` a pair of that and anything else.
    argnums : int, str, or sequence of them
        The arguments to differentiate with respect to; see `value_and_grad`. They may nest.
    has_aux : bool
        Whether `f` returns a pair ``(value, aux)``; the result is then ``(derivative, aux)``.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> derivative``, of the shape of the argument, nested as `jacrev` nests it.

    Raises
    ------
    ValueError
        When called: if the result has another shape than the argument, or an element of it depends on another element.
    TypeError
        When called: if an argument is an integer array, `f` returns no node, or a function of complex arguments with
        complex results is not analytic.

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
        trace = Trace(Arguments("elementwise_grad", f, args, kwargs, argnums), has_aux)
        return trace.answer(trace.each(lambda out: trace.linear(out, [], lambda o, _: _diagonals(trace, o))))

    return differentiated


def _diagonals(trace: Trace, out: Any) -> list[Any]:
    """The diagonals of the Jacobians of one result; raises if an element beside them is not zero."""
    for x in trace.inputs:
        if out.shape != x.shape:
            shapes = f"{out.shape[trace.depth :]} of {x.shape[trace.depth :]}"
            raise ValueError(f"elementwise_grad: the function made shape {shapes}; it is not elementwise")
    found = _products(trace, out, np.ones(out.shape, out.dtype))
    weights = np.random.default_rng(0).uniform(1, 2, out.shape)
    for derivative, weighted in zip(found, _products(trace, out, weights.astype(out.dtype)), strict=True):
        _require_same(to_values(weighted), weights.astype(derivative.dtype) * to_values(derivative))
    return found


def _products(trace: Trace, out: Any, weights: Any) -> list[Any]:
    """The products of weights with the Jacobians of one result."""
    found = trace.swept(out, weights)
    if out.dtype.kind != "c":
        return found
    both = zip(trace.inputs, found, trace.swept(out, -1j * weights), strict=True)
    return [complex_jacobian(trace.operator, x, a + 1j * b, a - 1j * b) for x, a, b in both]


def _require_same(weighted: Any, expected: Any) -> None:
    close = float(np.sqrt(np.finfo(expected.dtype).eps))
    size = np.max(np.abs(expected[np.isfinite(expected)]), initial=0) if expected.shape else np.abs(expected)
    if not np.allclose(weighted, expected, rtol=close, atol=close * size, equal_nan=True):
        raise ValueError(
            "elementwise_grad: an element of the result depends on other elements of the argument; use grad of a scalar, or "
            "a Jacobian"
        )


def directional_derivative(f: Function, x: Any, v: Any) -> Any:
    """The derivative of a function along a direction: that of ``f(x + t * v)`` with respect to t at 0.

    Parameters
    ----------
    f : callable
        A function of one argument that returns an array, or several, nested in any way.
    x, v : array_like
        The point, which may nest, and the direction, of its shape and nested as it is; it is not normalised.

    Returns
    -------
    array
        Of the shape of ``f(x)``, nested as it is.

    Raises
    ------
    TypeError, ValueError
        As `jvp` does.

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


class Field:
    """A function of one of its arguments, where its derivatives along each axis are wanted.

    Parameters
    ----------
    operator : str
        Who asks, for messages.
    f, args, kwargs, argnums : callable, sequence, mapping, int or str
        The function, its arguments, and which of them.
    """

    def __init__(self, operator: str, f: Function, args: Sequence[Any], kwargs: Mapping[str, Any], argnums: int | str) -> None:
        self.operator = operator
        self.f = Arguments(operator, f, args, kwargs, argnums)
        if not self.f.single or self.f.nested:
            raise ValueError(
                f"{operator}: the derivatives are with respect to a single array, not nested or several ones; give the numbers "
                "in one array, and take it apart in the function"
            )
        (self.x,) = self.f.arrays()

    def columns(self) -> list[Any]:
        """The columns of the Jacobian, as vectors: the derivative along each axis."""
        units = np.eye(self.x.size, dtype=self.x.dtype).reshape(-1, *self.x.shape)
        return [self._column(unit) for unit in units]

    def _column(self, unit: Any) -> Any:
        found = jvp(self.f, (self.x,), (unit,))[1]
        if not isinstance(found, np.ndarray | np.generic):
            raise TypeError(
                f"{self.operator}: the function returned a {type(found).__name__}, not one array; stack its parts (np.stack)"
            )
        if found.size != self.x.size:
            raise ValueError(
                f"{self.operator}: a vector field gives as many numbers as it takes, not {found.size} of {self.x.size}"
            )
        return np.ravel(found)


@function_operator
def divergence(f: Function, argnums: int | str = 0) -> Function:
    """The function that returns the divergence of a vector field: the trace of its Jacobian.

    Parameters
    ----------
    f : callable
        A function of an array that returns as many numbers as it takes, in one array.
    argnums : int or str
        The position or the name of that argument; `f` may have others.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> scalar``, by one forward pass for each element of the argument.

    Raises
    ------
    ValueError
        When called: if `f` returns another number of elements, or the argument is nested.
    TypeError
        When called: if the argument holds integers, or `f` returns no node, or several.

    Examples
    --------
    >>> import numpy as np
    >>> float(divergence(lambda x: x**2)(np.array([1.0, 2.0, 3.0])))
    12.0
    """

    @functools.wraps(f)
    def diverging(*args: Any, **kwargs: Any) -> Any:
        return _trace_of(Field("divergence", f, args, kwargs, argnums))

    return diverging


def _trace_of(field: Field) -> Any:
    """The sum of the derivatives of each element along its own axis."""
    parts = [column[i] for i, column in enumerate(field.columns())]
    if not parts:
        return np.zeros((), field.x.dtype)[()]
    return np.sum(np.stack(parts)) if any(isinstance(p, Value) for p in parts) else np.sum(parts)


@function_operator
def curl(f: Function, argnums: int | str = 0) -> Function:
    """The function that returns the curl (rotation) of a vector field in three dimensions, or in two.

    Parameters
    ----------
    f : callable
        A function of a vector of three elements that returns three, or of two that returns two, in one array.
    argnums : int or str
        The position or the name of that argument; `f` may have others.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> vector`` of three elements; in two dimensions a scalar, ``d f_1 / d x_0 - d f_0 / d x_1``.

    Raises
    ------
    ValueError
        When called: if the argument or the result has another shape, or the argument is nested.
    TypeError
        When called: if the argument holds integers, or `f` returns no node, or several.

    Examples
    --------
    >>> import numpy as np
    >>> print(curl(lambda x: np.cross([0.0, 0.0, 1.0], x))(np.array([1.0, 2.0, 3.0])))
    [0. 0. 2.]
    """

    @functools.wraps(f)
    def curling(*args: Any, **kwargs: Any) -> Any:
        field = Field("curl", f, args, kwargs, argnums)
        if field.x.shape not in ((2,), (3,)):
            raise ValueError(f"curl: the argument is a vector of two or three elements, not of shape {field.x.shape}")
        d = field.columns()
        if len(d) == 2:
            return d[0][1] - d[1][0]
        return np.stack([d[1][2] - d[2][1], d[2][0] - d[0][2], d[0][1] - d[1][0]])

    return curling


@function_operator
def laplacian(f: Function, argnums: int | str = 0) -> Function:
    """The function that returns the Laplacian of a scalar function: the trace of its Hessian.

    Parameters
    ----------
    f : callable
        A function of an array that returns a scalar.
    argnums : int or str
        The position or the name of that argument; `f` may have others.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> scalar``, by one forward pass over the gradient for each element of the argument.

    Raises
    ------
    ValueError
        When called: if `f` returns no scalar, or the argument is nested.
    TypeError
        When called: if the argument holds integers, or `f` returns no node.

    Examples
    --------
    >>> import numpy as np
    >>> float(laplacian(lambda x: np.sum(x**3))(np.array([1.0, 2.0])))
    18.0
    """

    @functools.wraps(f)
    def flowing(*args: Any, **kwargs: Any) -> Any:
        return _trace_of(Field("laplacian", grad(f, argnums), args, kwargs, argnums))

    return flowing
