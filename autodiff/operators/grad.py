"""Reverse-mode operators: `grad`, `value_and_grad` and `vjp`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, overload

from compgraph.context import recording_on

from ..arguments import Argnums, Arguments, as_direction, flatten, function_operator, require_primals, short_tracebacks
from ..forward import jvp
from ..numeric import require_verify_option, verify_gradient
from .trace import Function, P, R, Trace, concatenate_raveled

__all__ = ["grad", "jvp", "value_and_grad", "vjp"]


@function_operator
def value_and_grad(
    f: Callable[P, R], argnums: Argnums = 0, has_aux: bool = False, verify: str | None = None, *, argnum: Argnums | None = None
) -> Callable[P, tuple[R, Any]]:
    """Create a function that evaluates both `f` and its gradient.

    Parameters
    ----------
    f : callable
        A function that returns a real scalar (an array of shape ``()``); with `has_aux`, a pair ``(value, aux)`` of a scalar and
        any other object.
    argnums : int, str, or sequence of them, default 0
        The arguments to differentiate with respect to: positions, or names of parameters. Each may be an array of floating or
        complex dtype, a Python number, or such values nested in lists, tuples, dictionaries, named tuples and dataclasses.
    has_aux : bool, default False
        Whether `f` returns a pair ``(value, aux)``. Arrays in `aux` are returned as plain arrays.
    verify : {None, "first", "always"}, optional
        The gradients to compare with a central difference of `f` along one random direction: none, the first, or all. A
        comparison calls `f` two or more times on plain arrays, and detects values that left the graph; see
        ``docs/leaks.md``.
    argnum : int, str, or sequence of them, optional
        Another name of `argnums`, as in HIPS/autograd.

    Returns
    -------
    callable
        A function of the same arguments as `f` that returns ``(value, gradient)``; with `has_aux`,
        ``((value, aux), gradient)``. The gradient nests like the argument, with arrays of its shapes and dtypes. If `argnums` is
        a sequence, it is a tuple of gradients.

    Raises
    ------
    TypeError
        When called: if an argument has an integer dtype, or `f` returns a complex number or a container of results.
    ValueError
        When called: if the result is not a scalar, or `argnums` is out of range. At once: if `verify` is unknown.
    LostGraphError
        When called: if `f` returns a plain number because a value left the graph.
    DetachedGradientError
        When called: if `verify` finds that the gradient is wrong.

    Warns
    -----
    LeakWarning
        If the graph of the result does not contain an argument, and values left the graph.

    See Also
    --------
    autodiff.vjp : for results that are not scalars.
    autodiff.check_grads : compares derivatives with central differences.

    Notes
    -----
    `f` is called once, and its graph is swept in reverse, at a cost of a small multiple of that of `f` [1]_. The gradient with
    respect to a complex argument ``z = x + iy`` is ``df/dx - i df/dy``, as in JAX.

    References
    ----------
    .. [1] A. Griewank, A. Walther, "Evaluating Derivatives", 2nd ed., SIAM 2008, ch. 3.

    Examples
    --------
    >>> import numpy as np
    >>> value, g = value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    >>> float(value), g
    (5.0, array([2., 4.]))
    """
    compute_gradient = _gradient_function("value_and_grad", f, argnums, has_aux, verify)

    @functools.wraps(f)
    def wrapper(*args: object, **kwargs: object) -> Any:
        value, gradient, aux = compute_gradient(*args, **kwargs)
        return ((value, aux), gradient) if has_aux else (value, gradient)

    return wrapper


@function_operator
def grad(
    f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, verify: str | None = None, *, argnum: Argnums | None = None
) -> Callable[P, Any]:
    """Create a function that evaluates the gradient of `f`.

    Parameters
    ----------
    f : callable
        A function that returns a real scalar (an array of shape ``()``); with `has_aux`, a pair ``(value, aux)`` of a scalar and
        any other object.
    argnums : int, str, or sequence of them, default 0
        The arguments to differentiate with respect to: positions, or names of parameters. Each may be an array, a Python number,
        or nested arrays; see `value_and_grad`.
    has_aux : bool, default False
        Whether `f` returns a pair ``(value, aux)``.
    verify : {None, "first", "always"}, optional
        The gradients to compare with a central difference: none, the first, or all; see `value_and_grad`.
    argnum : int, str, or sequence of them, optional
        Another name of `argnums`, as in HIPS/autograd.

    Returns
    -------
    callable
        A function of the same arguments as `f` that returns the gradient; with `has_aux`, ``(gradient, aux)``. The gradient
        nests like the argument, with arrays of its shapes and dtypes. If `argnums` is a sequence, it is a tuple of gradients.

    Raises
    ------
    TypeError, ValueError, LostGraphError, DetachedGradientError
        When called, as for `value_and_grad`.

    See Also
    --------
    autodiff.value_and_grad : returns the value too, at no extra cost.
    autodiff.jacobian, autodiff.elementwise_grad : for functions that return arrays.

    Examples
    --------
    >>> import numpy as np
    >>> print(grad(lambda x: x**3)(2.0), grad(grad(lambda x: x**3))(2.0))
    12.0 12.0
    >>> grad(lambda p, x: np.sum(p["w"] * x) + p["b"])({"w": np.ones(2), "b": 0.5}, np.array([3.0, 4.0]))
    {'w': array([3., 4.]), 'b': np.float64(1.0)}
    """
    compute_gradient = _gradient_function("grad", f, argnums, has_aux, verify)

    @functools.wraps(f)
    def wrapper(*args: object, **kwargs: object) -> Any:
        _, gradient, aux = compute_gradient(*args, **kwargs)
        return (gradient, aux) if has_aux else gradient

    return wrapper


def _gradient_function(operator: str, f: Function, argnums: Argnums, has_aux: bool, verify: str | None) -> Function:
    """Return a function that computes the value of `f`, its gradient, and the auxiliary data or None."""
    require_verify_option(verify)
    needs_check = verify is not None

    def compute_gradient(*args: object, **kwargs: object) -> Any:
        nonlocal needs_check
        trace = Trace(Arguments(operator, f, args, kwargs, argnums), has_aux)
        out = trace.scalar("Sum it, or use vjp, jvp or jacobian for results that are not scalars")
        cotangents = trace.pull(out)
        if needs_check:
            if trace.levels:
                raise TypeError(
                    f"{operator}: verify= is not supported under vmap. Verify the function of one batch element outside of vmap"
                )
            verify_gradient(trace.function, trace.arguments.leaves, out, cotangents, trace.leaks, trace.gradient_at)
            needs_check = verify == "always"
        aux = trace.convert_results(trace.aux) if has_aux else None
        return trace.convert_result(out), trace.arguments.nest(cotangents), aux

    return compute_gradient


@overload
def vjp(f: Callable[..., R], *primals: object, has_aux: Literal[False] = False) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(f: Function, *primals: object, has_aux: bool) -> Any: ...
@short_tracebacks
def vjp(f: Function, *primals: object, has_aux: bool = False) -> Any:
    """Compute the value of a function, and return its pullback, which computes vector-Jacobian products.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array or nested arrays; with `has_aux`, a pair ``(value, aux)``.
    *primals : array_like
        The arguments: arrays of floating or complex dtype, Python numbers, or nested arrays.
    has_aux : bool, default False
        Whether `f` returns a pair ``(value, aux)``.

    Returns
    -------
    value : array
        ``f(*primals)``.
    pullback : callable
        ``pullback(cotangent)`` returns a tuple with the cotangent of each argument, which has the shape and dtype of the
        argument. `cotangent` has the shape and nesting of the value. Each call is one reverse sweep.
    aux : object
        The auxiliary data; only with `has_aux`.

    Raises
    ------
    TypeError
        If an argument has an integer dtype, or the value is not floating or complex.
    ValueError
        From `pullback`, if the cotangent differs from the value in shape or nesting.

    See Also
    --------
    autodiff.jvp, autodiff.linearize : forward mode.

    Examples
    --------
    >>> import numpy as np
    >>> value, pullback = vjp(lambda x: x**2, np.array([1.0, 2.0]))
    >>> pullback(np.array([1.0, 10.0]))
    (array([ 2., 40.]),)
    """
    f = require_primals("vjp", f, primals)
    trace = Trace(Arguments("vjp", f, primals, {}, range(len(primals))), has_aux)
    outs = trace.outs()
    with recording_on():
        joined_out = concatenate_raveled(outs)

    def pullback(cotangent: object) -> tuple[Any, ...]:
        cotangents, structure = flatten(cotangent)
        if structure != trace.structure:
            raise ValueError(
                f"vjp: the cotangent nests as {structure}, but the value nests as {trace.structure}. Nest it like the value"
            )
        cotangents = [as_direction(c, o, "vjp: the cotangent", "the value") for c, o in zip(cotangents, outs, strict=True)]
        return trace.arguments.nest(trace.pull(joined_out, concatenate_raveled(cotangents)))  # type: ignore[no-any-return]

    return trace.with_aux(trace.convert_results(trace.result), pullback)
