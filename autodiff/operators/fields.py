"""Derivatives of elementwise functions, and the operators of vector calculus."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.array_types import Array, Operand
from compgraph.graph import to_values
from compgraph.values import Value

from ..arguments import Argnums, Arguments, function_operator, short_tracebacks
from ..forward import jvp
from ..reverse import complex_jacobian
from .grad import grad
from .trace import P, Trace

Function = Callable[..., Any]


@function_operator
def elementwise_grad(
    f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, *, argnum: Argnums | None = None
) -> Callable[P, Any]:
    """Create a function that evaluates the derivative of an elementwise function, at each element.

    Parameters
    ----------
    f : callable
        A function that acts element by element on the selected arguments. It returns an array of their shape, or nested arrays;
        with `has_aux`, a pair ``(value, aux)``.
    argnums : int, str, or sequence of them, default 0
        The arguments to differentiate with respect to; see `value_and_grad`. They may nest.
    has_aux : bool, default False
        Whether `f` returns a pair ``(value, aux)``.
    argnum : int, str, or sequence of them, optional
        The name of `argnums` in HIPS/autograd.

    Returns
    -------
    callable
        A function of the same arguments as `f` that returns the derivative, of the shape and dtype of the argument, nested as
        by `jacrev`; with `has_aux`, ``(derivative, aux)``.

    Raises
    ------
    ValueError
        When called: if the result differs from the argument in shape, or one of its elements depends on another element of it.
    TypeError
        When called: if an argument has an integer dtype, or a function of complex arguments with complex results is not
        analytic.

    Notes
    -----
    The Jacobian J is diagonal if and only if ``v @ J`` equals ``v * (1 @ J)`` for every vector v. It is tested with one random v,
    for which another Jacobian passes with probability zero.

    Examples
    --------
    >>> import numpy as np
    >>> elementwise_grad(np.square)(np.array([1.0, 2.0, 3.0]))
    array([2., 4., 6.])
    """

    @functools.wraps(f)
    def evaluate(*args: object, **kwargs: object) -> Any:
        trace = Trace(Arguments("elementwise_grad", f, args, kwargs, argnums), has_aux)
        return trace.with_aux(trace.map_leaves(lambda out: trace.apply_linear(out, [], lambda o, _: _diagonals(trace, o))))

    return evaluate


def _diagonals(trace: Trace, out: Array) -> list[Any]:
    """Return the diagonals of the Jacobians of one result; raise if an off-diagonal element is not zero."""
    for x in trace.inputs:
        if out.shape != x.shape:
            shapes = f"shape {out.shape[trace.depth :]} for an argument of shape {x.shape[trace.depth :]}"
            raise ValueError(f"elementwise_grad: the function returned {shapes}, so it is not elementwise. Use jacobian")
    diagonals = _pull_weights(trace, out, np.ones(out.shape, out.dtype))
    weights = np.random.default_rng(0).uniform(1, 2, out.shape)
    for derivative, weighted in zip(diagonals, _pull_weights(trace, out, weights.astype(out.dtype)), strict=True):
        _require_equal(to_values(weighted), weights.astype(derivative.dtype) * to_values(derivative))
    return diagonals


def _pull_weights(trace: Trace, out: Array, weights: NDArray[Any]) -> list[Any]:
    """Return the products of real weights with the Jacobians of one result, which may be complex."""
    products = trace.sweep_cotangents(out, weights)
    if out.dtype.kind != "c":
        return products
    triples = zip(trace.inputs, products, trace.sweep_cotangents(out, -1j * weights), strict=True)
    return [complex_jacobian(trace.operator, x, a + 1j * b, a - 1j * b) for x, a, b in triples]


def _require_equal(weighted: Operand, expected: Any) -> None:
    """Raise unless two products are equal up to rounding."""
    tolerance = float(np.sqrt(np.finfo(expected.dtype).eps))
    magnitude = np.max(np.abs(expected[np.isfinite(expected)]), initial=0) if expected.shape else np.abs(expected)
    if not np.allclose(weighted, expected, rtol=tolerance, atol=tolerance * magnitude, equal_nan=True):
        raise ValueError(
            "elementwise_grad: an element of the result depends on other elements of the argument. Use jacobian, or grad of a "
            "scalar"
        )


@short_tracebacks
def directional_derivative(f: Function, x: object, v: object) -> Any:
    """Compute the derivative of ``f(x + t * v)`` with respect to t at 0.

    Parameters
    ----------
    f : callable
        A function of one argument that returns an array or nested arrays.
    x : array_like
        The point: an array of floating or complex dtype, a Python number, or nested arrays.
    v : array_like
        The direction, of the shape and nesting of `x`. It is not normalized.

    Returns
    -------
    array
        The derivative, of the shape, dtype and nesting of ``f(x)``.

    Raises
    ------
    TypeError, ValueError
        As for `jvp`.

    See Also
    --------
    autodiff.jvp : several arguments; returns the value too.

    Examples
    --------
    >>> import numpy as np
    >>> float(directional_derivative(np.prod, np.array([2.0, 3.0]), np.array([1.0, 0.0])))
    3.0
    """
    return jvp(f, (x,), (v,))[1]


class Field:
    """A vector field, as a function of one of its arguments.

    Parameters
    ----------
    operator : str
        The name of the operator, for messages.
    f, args, kwargs, argnums : callable, sequence, mapping, int or str
        The function, its arguments, and the selected argument.
    """

    def __init__(self, operator: str, f: Function, args: Sequence[Any], kwargs: Mapping[str, Any], argnums: int | str) -> None:
        self.operator = operator
        self.f = Arguments(operator, f, args, kwargs, argnums)
        if not self.f.is_single or self.f.is_nested:
            raise ValueError(
                f"{operator}: the function must be differentiated by a single array, not by nested or several ones. Pass the "
                "numbers in one array, and split it in the function"
            )
        (self.x,) = self.f.arrays()

    def columns(self) -> list[Any]:
        """Return the columns of the Jacobian as vectors: the derivative along each axis."""
        units = np.eye(self.x.size, dtype=self.x.dtype).reshape(-1, *self.x.shape)
        return [self._column(unit) for unit in units]

    def _column(self, unit: Array) -> Any:
        slope = jvp(self.f, (self.x,), (unit,))[1]
        if not isinstance(slope, np.ndarray | np.generic):
            raise TypeError(
                f"{self.operator}: the function returned a {type(slope).__name__}, not one array. Stack its components (np.stack)"
            )
        if slope.size != self.x.size:
            raise ValueError(
                f"{self.operator}: the function returned {slope.size} numbers for an argument of {self.x.size}. A vector field "
                "returns as many numbers as it takes"
            )
        return np.ravel(slope)


@function_operator
def divergence(f: Callable[P, Any], argnums: int | str = 0) -> Callable[P, Any]:
    """Create a function that evaluates the divergence of a vector field, the trace of its Jacobian.

    Parameters
    ----------
    f : callable
        A function of an array that returns one array with as many elements.
    argnums : int or str, default 0
        The position or the name of that argument. `f` may have others.

    Returns
    -------
    callable
        A function of the same arguments as `f` that returns a scalar, of the dtype of the result. It takes one forward pass for
        each element of the argument.

    Raises
    ------
    ValueError
        When called: if `f` returns an array with another number of elements, or the argument is nested.
    TypeError
        When called: if the argument has an integer dtype, or `f` returns several arrays.

    Examples
    --------
    >>> import numpy as np
    >>> float(divergence(lambda x: x**2)(np.array([1.0, 2.0, 3.0])))
    12.0
    """

    @functools.wraps(f)
    def evaluate(*args: object, **kwargs: object) -> Any:
        return _jacobian_trace(Field("divergence", f, args, kwargs, argnums))

    return evaluate


def _jacobian_trace(field: Field) -> Any:
    """Return the trace of the Jacobian of a field."""
    diagonal = [column[i] for i, column in enumerate(field.columns())]
    if not diagonal:
        return np.zeros((), field.x.dtype)[()]
    return np.sum(np.stack(diagonal)) if any(isinstance(x, Value) for x in diagonal) else np.sum(diagonal)


@function_operator
def curl(f: Callable[P, Any], argnums: int | str = 0) -> Callable[P, Any]:
    """Create a function that evaluates the curl of a vector field in three or two dimensions.

    Parameters
    ----------
    f : callable
        A function of an array of shape ``(3,)`` or ``(2,)`` that returns one array of that shape.
    argnums : int or str, default 0
        The position or the name of that argument. `f` may have others.

    Returns
    -------
    callable
        A function of the same arguments as `f` that returns an array of shape ``(3,)``; in two dimensions the scalar
        ``d f_1 / d x_0 - d f_0 / d x_1``.

    Raises
    ------
    ValueError
        When called: if the argument or the result has another shape, or the argument is nested.
    TypeError
        When called: if the argument has an integer dtype, or `f` returns several arrays.

    Examples
    --------
    >>> import numpy as np
    >>> print(curl(lambda x: np.cross([0.0, 0.0, 1.0], x))(np.array([1.0, 2.0, 3.0])))
    [0. 0. 2.]
    """

    @functools.wraps(f)
    def evaluate(*args: object, **kwargs: object) -> Any:
        field = Field("curl", f, args, kwargs, argnums)
        if field.x.shape not in ((2,), (3,)):
            raise ValueError(f"curl: the argument must have shape (2,) or (3,), not {field.x.shape}")
        d = field.columns()
        if len(d) == 2:
            return d[0][1] - d[1][0]
        return np.stack([d[1][2] - d[2][1], d[2][0] - d[0][2], d[0][1] - d[1][0]])

    return evaluate


@function_operator
def laplacian(f: Callable[P, Any], argnums: int | str = 0) -> Callable[P, Any]:
    """Create a function that evaluates the Laplacian of a scalar function, the trace of its Hessian.

    Parameters
    ----------
    f : callable
        A function of an array that returns a real scalar.
    argnums : int or str, default 0
        The position or the name of that argument. `f` may have others.

    Returns
    -------
    callable
        A function of the same arguments as `f` that returns a scalar. It takes one forward pass over the gradient for each
        element of the argument.

    Raises
    ------
    ValueError
        When called: if `f` does not return a scalar, or the argument is nested.
    TypeError
        When called: if the argument has an integer dtype, or `f` returns several arrays.

    Examples
    --------
    >>> import numpy as np
    >>> float(laplacian(lambda x: np.sum(x**3))(np.array([1.0, 2.0])))
    18.0
    """

    @functools.wraps(f)
    def evaluate(*args: object, **kwargs: object) -> Any:
        return _jacobian_trace(Field("laplacian", grad(f, argnums), args, kwargs, argnums))

    return evaluate
