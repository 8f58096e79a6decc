"""Jacobians, and products with them.

A function is called once, and a batch of directions passes the graph it recorded, all at once (see `autodiff.batching`).
Where the function wrote in place, it is always a batch of adjoints, passed back through what the writes had overwritten.

Complex numbers: of real arguments and complex results, the Jacobian holds the derivatives of both parts as complex
numbers; of complex arguments and real results, each row is a gradient as `grad` gives it (``df/dx - i df/dy``); where
both are complex the function must be analytic.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from compgraph.graph import Value, require_unchanged

from ..arguments import Argnums, Arguments, as_direction, of_functions, unflatten
from ..batching import base_of, levels_around
from ..forward import jvp
from ..reverse import collect, without_tangents
from ..rules import conform
from .sparse import sparse_jacobian
from .trace import Function, Trace

__all__ = ["jacfwd", "jacobian", "jacrev", "linearize"]


def derived(operator: str, f: Function, argnums: Argnums, has_aux: bool, derive: Callable[[Trace], Any]) -> Function:
    """The function that calls `f` once and returns what `derive` makes of the trace."""

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        trace = Trace(Arguments(operator, f, args, kwargs, argnums), has_aux)
        found = derive(trace)
        warn_of_unreached(trace)
        return trace.answer(found)

    return differentiated


def warn_of_unreached(trace: Trace) -> None:
    """Warn if the graph does not reach an argument, and values were seen to leave it."""
    if trace.escapes:
        parts = [part for out in trace.leaves for part in without_tangents(base_of(out))]
        trace.warn_of_zeros({node for part in parts for node in collect(part, stop=trace.inputs)})


@of_functions
def jacrev(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that returns the Jacobian of `f`, in reverse mode: good for more arguments than results.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array, or several, nested in any way; with `has_aux` a pair of that and
        anything else.
    argnums : int, str, or sequence of them
        The arguments to differentiate with respect to; see `value_and_grad`. They may nest.
    has_aux : bool
        Whether `f` returns a pair ``(value, aux)``; the result is then ``(jacobian, aux)``.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> jacobian``: an array of the shape of the result followed by that of the argument, and of
        the argument's precision; a tuple of them if `argnums` is a sequence. Of nested results with respect to nested
        arguments, it nests as the results do, with trees that nest as the arguments do for leaves.

    Raises
    ------
    TypeError
        When called: if an argument is an integer array, `f` returns no node, or a function of complex arguments with
        complex results is not analytic.
    ValueError
        When called: if `argnums` is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> jacrev(lambda x: x[:2] * x[1:])(np.array([1.0, 2.0, 3.0]))
    array([[2., 1., 0.],
           [0., 3., 2.]])
    >>> jacrev(lambda p, x: {"y": p["w"] * x, "z": p["b"]}, "p")({"w": 2.0, "b": 1.0}, 3.0)["y"]
    {'w': np.float64(3.0), 'b': np.float64(0.0)}
    """

    def derive(trace: Trace) -> Any:
        return trace.each(lambda out: trace.linear(out, [], lambda o, _: trace.linearized(o).rows()))

    return derived("jacrev", f, argnums, has_aux, derive)


@of_functions
def jacfwd(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that returns the Jacobian of `f`, in forward mode: good for more results than arguments.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array, or several, nested in any way; with `has_aux` a pair of that and
        anything else.
    argnums : int, str, or sequence of them
        The arguments to differentiate with respect to; see `value_and_grad`. They may nest.
    has_aux : bool
        Whether `f` returns a pair ``(value, aux)``; the result is then ``(jacobian, aux)``.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> jacobian``: as of `jacrev`, in the precision of the result. Tangents are passed through
        the graph that `f` recorded; where it wrote in place, adjoints are passed back instead.

    Raises
    ------
    TypeError, ValueError
        When called, as `jacrev` does.

    Examples
    --------
    >>> import numpy as np
    >>> jacfwd(lambda t: np.stack([np.cos(t), np.sin(t)]))(0.0)
    array([-0.,  1.])
    """

    def derive(trace: Trace) -> Any:
        return trace.each(lambda out: trace.linear(out, [], lambda o, _: trace.linearized(o).columns()))

    return derived("jacfwd", f, argnums, has_aux, derive)


@of_functions
def jacobian(f: Function, argnums: Argnums = 0, has_aux: bool = False, *, sparse: bool = False) -> Function:
    """The function that returns the Jacobian of `f`, in the mode that needs fewer directions.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array, or several, nested in any way; with `has_aux` a pair of that and
        anything else.
    argnums : int, str, or sequence of them
        The arguments to differentiate with respect to; see `value_and_grad`. They may nest.
    has_aux : bool
        Whether `f` returns a pair ``(value, aux)``; the result is then ``(jacobian, aux)``.
    sparse : bool
        Whether to return sparse matrices. Which elements may differ from zero is found on the recorded graph; elements
        that do not meet in any row, or column, are found together.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> jacobian``: as of `jacrev` or `jacfwd`. If `sparse`, a ``scipy.sparse.csr_array`` with a
        row for each element of the result and a column for each of the argument.

    Raises
    ------
    TypeError, ValueError
        When called, as `jacrev` does; TypeError also if `sparse` is asked for of complex numbers, or inside another
        derivative.

    Examples
    --------
    >>> import numpy as np
    >>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    >>> jacobian(np.diff, sparse=True)(np.arange(1000.0)).nnz
    1998
    """

    def derive(trace: Trace) -> Any:
        if sparse:
            refuse_sparse(trace)
            return trace.each(lambda out: sparse_jacobian(trace, out))
        size = sum(math.prod(x.shape) for x in trace.points)

        def dense(o: Any, _: Any) -> Any:
            is_tall = size <= math.prod(o.shape[trace.depth :])
            return trace.linearized(o).columns() if is_tall else trace.linearized(o).rows()

        return trace.each(lambda out: trace.linear(out, [], dense))

    return derived("jacobian", f, argnums, has_aux, derive)


def refuse_sparse(trace: Trace) -> None:
    """Refuse a sparse matrix where arguments or results nest, or are others for each of many examples."""
    if trace.levels:
        raise TypeError(
            f"{trace.operator}: sparse=True is not supported within vmap, which would need a sparse matrix for each example; "
            "leave it out, or loop over the examples in Python"
        )
    if trace.leaves and (trace.arguments.nested or not trace.structure.is_leaf()):
        raise ValueError(
            f"{trace.operator}: sparse=True needs a single array for argument and result, not nested ones; join the arrays "
            "in them (np.concatenate), or leave it out"
        )


def directions_of(trace: Trace, tree: Any) -> list[Any]:
    """Tangents of the inputs, in their dtypes, from a tree that nests as the arguments do."""
    pairs = enumerate(zip(trace.arguments.tangents(tree), trace.points, strict=True))
    return [conform(as_direction(t, x, f"{trace.operator}: tangent {k}", "its argument"), x) for k, (t, x) in pairs]


def linearize(f: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function, and its derivative there as a linear function of tangents.

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
    push : callable
        ``push(*tangents)`` returns the tangent of the value (the Jacobian-vector product), nested as it is, given those of
        the arguments, nested as they are. It passes them through the recorded graph, and calls `f` again only where an
        array in it was written into.
    aux : object
        Only with `has_aux`.

    Raises
    ------
    TypeError
        If an argument is an integer array, or `f` returns no node.
    ValueError
        From `push`, if a tangent has another shape than its argument, or there are too few or many.

    Examples
    --------
    >>> import numpy as np
    >>> value, push = linearize(lambda x: x**2, np.array([1.0, 2.0]))
    >>> push(np.array([1.0, 10.0]))
    array([ 2., 40.])
    """
    trace = Trace(Arguments("linearize", f, primals, {}, range(len(primals))), has_aux)
    linearizations = {o: trace.linearized(o) for out in trace.outs() for o in without_tangents(base_of(out))}
    warn_of_unreached(trace)

    def push_one(o: Any, tangents: list[Any]) -> list[Any]:
        found = linearizations.get(o) or trace.linearized(o)
        return [found.push(dict(zip(trace.inputs, tangents, strict=True)), None)]

    def push(*tangents: Any) -> Any:
        directions = directions_of(trace, tangents)
        for linearization in linearizations.values():  # plain arrays may have been written into since
            require_unchanged(linearization.nodes)
        if levels_around() != trace.levels or any(linearization.written for linearization in linearizations.values()):
            return jvp(trace.function, trace.arguments.leaves, directions)[1]
        pushed = [trace.linear(out, directions, push_one)[0] for out in trace.leaves]
        # copied, since what was pushed may be the tangent that was given
        return unflatten(trace.structure, [p if isinstance(p, Value) else np.array(p)[()] for p in pushed])

    return trace.answer(trace.values(trace.result), push)
