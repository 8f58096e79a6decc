"""Gradients, and products of adjoints with Jacobians: the operators of reverse mode."""

from __future__ import annotations

import functools
from typing import Any

from compgraph.context import recording_on

from ..arguments import Argnums, Arguments, as_direction, flatten, function_operator
from ..forward import jvp
from ..numeric import require_known, verify_gradient
from .trace import Function, Trace, concatenated

__all__ = ["grad", "jvp", "value_and_grad", "vjp"]


@function_operator
def value_and_grad(f: Function, argnums: Argnums = 0, has_aux: bool = False, verify: str | None = None) -> Function:
    """The function that returns the value of `f` and its gradient.

    Parameters
    ----------
    f : callable
        A function of arrays that returns a scalar (an array of shape ``()``), or with `has_aux` a pair of it and
        anything else.
    argnums : int, str, or sequence of them
        The arguments to differentiate with respect to: positions, or names of parameters. Each may be an array, or
        arrays in lists, tuples, dictionaries, named tuples and dataclasses, nested in any way.
    has_aux : bool
        Whether `f` returns a pair ``(value, aux)``; arrays in `aux` are returned as plain arrays.
    verify : {None, "first", "always"}
        Whether the first gradient, or each, is compared with a central difference of `f` on plain arrays along one
        random direction, which costs two or more further calls of `f`. It finds what left the graph without being
        noticed; see ``docs/escapes.md``.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> (value, gradient)``, or ``((value, aux), gradient)``. The gradient is an array of the shape
        of the argument, or arrays nested as it is; a tuple of them if `argnums` is a sequence.

    Raises
    ------
    TypeError
        When called: if an argument is an integer array, `f` returns no node, or the result is complex.
    ValueError
        When called: if the result is not a scalar, or `argnums` is out of range. At once: if `verify` is unknown.
    DetachedGradientError
        When called: if the gradient is found not to be that of `f`.

    Warns
    -----
    RuntimeWarning
        If an argument has no part in the result by its graph, and values were noticed to leave it.

    Examples
    --------
    >>> import numpy as np
    >>> value, g = value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    >>> float(value), g
    (5.0, array([2., 4.]))
    """
    call = _differentiated(f, argnums, has_aux, verify)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, gradient, aux = call(*args, **kwargs)
        return ((value, aux), gradient) if has_aux else (value, gradient)

    return differentiated


@function_operator
def grad(f: Function, argnums: Argnums = 0, has_aux: bool = False, verify: str | None = None) -> Function:
    """The function that returns the gradient of `f`.

    Parameters
    ----------
    f : callable
        A function of arrays that returns a scalar (an array of shape ``()``), or with `has_aux` a pair of it and
        anything else.
    argnums : int, str, or sequence of them
        The arguments to differentiate with respect to; see `value_and_grad`.
    has_aux : bool
        Whether `f` returns a pair ``(value, aux)``; the result is then ``(gradient, aux)``.
    verify : {None, "first", "always"}
        Whether the first gradient, or each, is compared with a central difference; see `value_and_grad`.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> gradient``: an array of the shape of the argument, or arrays nested as it is; a tuple of
        them if `argnums` is a sequence.

    Raises
    ------
    TypeError, ValueError, DetachedGradientError
        When called, as `value_and_grad` does.

    Examples
    --------
    >>> import numpy as np
    >>> print(grad(lambda x: x**3)(2.0), grad(grad(lambda x: x**3))(2.0))
    12.0 12.0
    >>> grad(lambda p, x: np.sum(p["w"] * x) + p["b"])({"w": np.ones(2), "b": 0.5}, np.array([3.0, 4.0]))
    {'w': array([3., 4.]), 'b': np.float64(1.0)}
    """
    call = _differentiated(f, argnums, has_aux, verify)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        _, gradient, aux = call(*args, **kwargs)
        return (gradient, aux) if has_aux else gradient

    return differentiated


def _differentiated(f: Function, argnums: Argnums, has_aux: bool, verify: str | None) -> Function:
    """The function that returns the value of `f`, its gradient and what `f` returns beside the value."""
    require_known(verify)
    unverified = [verify is not None]

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        trace = Trace(Arguments("grad", f, args, kwargs, argnums), has_aux)
        out = trace.scalar("sum it, or use vjp or jvp for functions of several results")
        adjoints = trace.pull(out)
        if unverified[0]:
            if trace.levels:
                raise TypeError("grad: verify= is not supported within vmap; verify the function of one example outside")
            verify_gradient(trace.function, trace.arguments.leaves, out, adjoints, trace.escapes, trace.again)
            unverified[0] = verify == "always"
        aux = trace.values(trace.aux) if has_aux else None
        return trace.value(out), trace.arguments.nest(adjoints), aux

    return differentiated


def vjp(f: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function, and the function that takes adjoints back through it.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array, or several, nested in any way; with `has_aux` a pair of that and
        anything else.
    *primals : array_like
        The arguments, which may nest too.
    has_aux : bool
        Whether `f` returns a pair ``(value, aux)``.

    Returns
    -------
    value : array
        ``f(*primals)``.
    pull : callable
        ``pull(adjoint)`` returns the tuple of the arguments' adjoints (vector-Jacobian products), given that of the
        value, of its shape and nested as it is. It can be called again.
    aux : object
        Only with `has_aux`.

    Raises
    ------
    TypeError
        If an argument is an integer array, or `f` returns no node.
    ValueError
        From `pull`, if the adjoint has another shape than the value.

    Examples
    --------
    >>> import numpy as np
    >>> value, pull = vjp(lambda x: x**2, np.array([1.0, 2.0]))
    >>> pull(np.array([1.0, 10.0]))
    (array([ 2., 40.]),)
    """
    trace = Trace(Arguments("vjp", f, primals, {}, range(len(primals))), has_aux)
    outs = trace.outs()
    with recording_on():
        out = concatenated(outs)

    def pull(adjoint: Any) -> tuple[Any, ...]:
        adjoints, given = flatten(adjoint)
        if given != trace.structure:
            raise ValueError(f"vjp: the adjoint nests as {given}, the value as {trace.structure}")
        adjoints = [as_direction(a, o, "vjp: the adjoint", "the value") for a, o in zip(adjoints, outs, strict=True)]
        return trace.arguments.nest(trace.pull(out, concatenated(adjoints)))  # type: ignore[no-any-return]

    return trace.answer(trace.values(trace.result), pull)
