"""Jacobians, Hessians, and products with them.

A function is called once; the graph it recorded is then swept for all directions together (see `batching`). Where it
wrote in place, directions are passed one by one.

Complex numbers: of real arguments and complex results, the Jacobian holds the derivatives of both parts as complex
numbers; of complex arguments and real results, each row is a gradient as `grad` gives it (``df/dx - i df/dy``); where
both are complex the function must be analytic.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from compgraph.nodes import Node, describe

from .along import as_argument, jvp
from .broadcasting import conform
from .operators import Function, Trace, _positions
from .recorded import Recorded, gradient_nodes, with_tangents, without_tangents
from .sparsity import sparse_hessian, sparse_jacobian

__all__ = ["hessian", "hvp", "jacfwd", "jacobian", "jacrev", "linearize"]


def _differentiated(operator: str, f: Function, argnums: int | Sequence[int], has_aux: bool, derive: Function) -> Function:
    """The function that calls `f` once and returns what `derive` makes of the trace and the result."""

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        trace = Trace(operator, f, args, _positions(operator, argnums, len(args)), kwargs)
        result, aux = trace.result if has_aux else (trace.result, None)
        found = derive(trace, trace.output(result))
        return (found, aux) if has_aux else found

    return differentiated


def _one_or_all(argnums: int | Sequence[int], found: Sequence[Any]) -> Any:
    return found[0] if isinstance(argnums, (int, np.integer)) else tuple(found)


def jacrev(f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """The function that returns the Jacobian of `f`, in reverse mode: good for more arguments than results.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array, or with `has_aux` a pair of it and anything else.
    argnums : int or sequence of int
        The positions of the arguments to differentiate with respect to.
    has_aux : bool
        Whether `f` returns a pair ``(value, aux)``; the result is then ``(jacobian, aux)``.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> jacobian``: an array of the shape of the result followed by that of the argument, and of
        the argument's precision; a tuple of them if `argnums` is a sequence.

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
    """

    def derive(trace: Trace, out: Any) -> Any:
        return _one_or_all(argnums, with_tangents(out, [], lambda o, _: Recorded(trace, o).rows()))

    return _differentiated("jacrev", f, argnums, has_aux, derive)


def jacfwd(f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """The function that returns the Jacobian of `f`, in forward mode: good for more results than arguments.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array, or with `has_aux` a pair of it and anything else.
    argnums : int or sequence of int
        The positions of the arguments to differentiate with respect to.
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

    def derive(trace: Trace, out: Any) -> Any:
        return _one_or_all(argnums, with_tangents(out, [], lambda o, _: Recorded(trace, o).columns()))

    return _differentiated("jacfwd", f, argnums, has_aux, derive)


def jacobian(f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False, *, sparse: bool = False) -> Function:
    """The function that returns the Jacobian of `f`, in the mode that needs fewer directions.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array, or with `has_aux` a pair of it and anything else.
    argnums : int or sequence of int
        The positions of the arguments to differentiate with respect to.
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

    def derive(trace: Trace, out: Any) -> Any:
        if sparse:
            return _one_or_all(argnums, sparse_jacobian(trace, out))
        forward = sum(math.prod(x.shape) for x in trace.inputs) <= math.prod(out.shape)

        def dense(o: Any, _: Any) -> Any:
            return Recorded(trace, o).columns() if forward else Recorded(trace, o).rows()

        return _one_or_all(argnums, with_tangents(out, [], dense))

    return _differentiated("jacobian", f, argnums, has_aux, derive)


def _scalar(operator: str, trace: Trace, out: Any) -> Any:
    """A result of which second derivatives are taken."""
    if out.shape != ():
        raise ValueError(f"{operator}: the function returned shape {out.shape}, not a scalar; sum it, or take jacobian twice")
    for node in (out, *trace.inputs):
        if node.dtype.kind == "c":
            raise TypeError(
                f"{operator}: of complex numbers, here the {describe(node)}, second derivatives are not one matrix; give real "
                "and imaginary parts as real arguments"
            )
    return out


def hessian(f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False, *, sparse: bool = False) -> Function:
    """The function that returns the Hessian of `f`: its second derivatives.

    The gradient is recorded once, and swept for all directions together.

    Parameters
    ----------
    f : callable
        A function of arrays that returns a scalar, or with `has_aux` a pair of it and anything else.
    argnums : int or sequence of int
        The positions of the arguments to differentiate with respect to.
    has_aux : bool
        Whether `f` returns a pair ``(value, aux)``; the result is then ``(hessian, aux)``.
    sparse : bool
        Whether to return a sparse matrix, with respect to one argument; see `jacobian`.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> hessian``: an array of twice the shape of the argument; if `argnums` is a sequence, a tuple
        of tuples, with rows by the first derivative. If `sparse`, a ``scipy.sparse.csr_array``.

    Raises
    ------
    TypeError, ValueError
        When called, as `grad` does; TypeError also for complex numbers, or if `sparse` is asked for inside another
        derivative; ValueError if it is asked for with respect to several arguments.

    Examples
    --------
    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    single = isinstance(argnums, (int, np.integer))
    if sparse and not single:
        raise ValueError("hessian: sparse=True needs a single argument; concatenate the arguments into one")

    def blocks(trace: Trace, out: Any) -> list[Any]:
        return [block for g in gradient_nodes(trace, out) for block in Recorded(trace, g).rows()]

    def derive(trace: Trace, out: Any) -> Any:
        _scalar("hessian", trace, out)
        if sparse:
            return sparse_hessian(trace, out)
        found = with_tangents(out, [], lambda o, _: blocks(trace, o))
        count = len(trace.inputs)
        return found[0] if single else tuple([tuple(found[i * count : (i + 1) * count]) for i in range(count)])

    return _differentiated("hessian", f, argnums, has_aux, derive)


def hvp(f: Function) -> Function:
    """The function that returns the product of the Hessian of `f` with a vector, without the Hessian.

    Parameters
    ----------
    f : callable
        A function of arrays that returns a scalar.

    Returns
    -------
    callable
        ``(x, v, *args, **kwargs) -> product``: that of the second derivatives of ``f(x, *args, **kwargs)`` with respect
        to `x` with `v`, which has the shape of `x`; so has the product.

    Raises
    ------
    TypeError, ValueError
        When called, as `hessian` does; ValueError also if `v` has another shape than `x`.

    Examples
    --------
    >>> import numpy as np
    >>> hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([6., 0.])
    """

    @functools.wraps(f)
    def product(x: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
        trace = Trace("hvp", f, (x, *args), [0], kwargs)
        out = _scalar("hvp", trace, trace.output(trace.result))
        (along,) = _directions("hvp", trace, [v])
        return with_tangents(out, [along], lambda o, vs: [_second(trace, o, vs[0])])[0]

    return product


def _second(trace: Trace, out: Any, v: Any) -> Any:
    """The adjoint of the input from that of the gradient."""
    (gradient,) = gradient_nodes(trace, out)
    if isinstance(v, Node):
        return trace.pull(gradient, v)[0]
    recorded = Recorded(trace, gradient)
    (found,) = recorded.pull_one(v)
    return found if recorded.live else np.array(found)[()]  # it may be v itself


def _directions(operator: str, trace: Trace, tangents: Sequence[Any]) -> list[Any]:
    """Tangents of the inputs, in their dtypes."""
    if len(tangents) != len(trace.inputs):
        raise ValueError(f"{operator}: {len(tangents)} tangents were given for {len(trace.inputs)} arguments")
    found = list(map(as_argument, tangents))
    for position, (tangent, x) in enumerate(zip(found, trace.inputs, strict=True)):
        if np.shape(tangent) != x.shape:
            raise ValueError(f"{operator}: tangent {position} has shape {np.shape(tangent)}, its argument {x.shape}")
    return [conform(tangent, x) for tangent, x in zip(found, trace.inputs, strict=True)]


def linearize(f: Function, *primals: Any) -> tuple[Any, Function]:
    """The value of a function, and its derivative there as a linear function of tangents.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array.
    *primals : array_like
        The arguments.

    Returns
    -------
    value : array
        ``f(*primals)``.
    push : callable
        ``push(*tangents)`` returns the tangent of the value (the Jacobian-vector product), given those of the arguments.
        It passes them through the recorded graph, and calls `f` again only where that wrote in place.

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
    trace = Trace("linearize", f, primals, range(len(primals)), {})
    out = trace.output(trace.result)
    recorded = {o: Recorded(trace, o) for o in without_tangents(out)}
    written = any(r.written for r in recorded.values())

    def along(o: Any, tangents: list[Any]) -> list[Any]:
        return [recorded[o].push(dict(zip(trace.inputs, tangents, strict=True)), None)]

    def push(*tangents: Any) -> Any:
        directions = _directions("linearize", trace, tangents)
        if written:
            return jvp(f, primals, directions)[1]
        (pushed,) = with_tangents(out, directions, along)
        return pushed if isinstance(pushed, Node) else np.array(pushed)[()]  # the tangent itself may have come through

    return trace.value(out), push
