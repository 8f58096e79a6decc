"""Hessians, and products with them: the gradient is recorded, and then differentiated as any other result is."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from compgraph.context import recording_on
from compgraph.values import Value, describe

from ..arguments import Argnums, Arguments, function_operator
from ..reverse import gradient_nodes
from .jacobians import derived, directions_of, refuse_sparse, warn_of_unreached
from .sparse import sparse_hessian
from .trace import Function, Trace, concatenated

__all__ = ["hessian", "hessian_vector_product", "hvp"]


@function_operator
def hessian(f: Function, argnums: Argnums = 0, has_aux: bool = False, *, sparse: bool = False) -> Function:
    """The function that returns the Hessian of `f`: its second derivatives.

    The gradient is recorded once, and swept for all directions together.

    Parameters
    ----------
    f : callable
        A function of arrays that returns a scalar, or with `has_aux` a pair of it and anything else.
    argnums : int, str, or sequence of them
        The arguments to differentiate with respect to; see `value_and_grad`. They may nest.
    has_aux : bool
        Whether `f` returns a pair ``(value, aux)``; the result is then ``(hessian, aux)``.
    sparse : bool
        Whether to return a sparse matrix, with respect to one argument; see `jacobian`.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> hessian``: an array of twice the shape of the argument; if `argnums` is a sequence, a tuple
        of tuples, with rows by the first derivative; of a nested argument, a tree as it nests, with such trees for
        leaves. If `sparse`, a ``scipy.sparse.csr_array``.

    Raises
    ------
    TypeError, ValueError
        When called, as `grad` does; TypeError also for complex numbers, or if `sparse` is asked for inside another
        derivative; ValueError if it is asked for with respect to several or nested arguments.

    Examples
    --------
    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    if sparse and not isinstance(argnums, (int, str, np.integer)):
        raise ValueError("hessian: sparse=True needs a single argument; concatenate the arguments into one")

    def blocks(trace: Trace, out: Any) -> list[Any]:
        return [block for g in gradient_nodes(trace.operator, trace.inputs, out) for block in trace.linearized(g).rows()]

    def derive(trace: Trace) -> Any:
        out = _scalar(trace)
        if sparse:
            refuse_sparse(trace)
            return sparse_hessian(trace, out)
        found = trace.linear(out, [], lambda o, _: blocks(trace, o))
        count = len(trace.inputs)
        shaped = trace.arguments.nest
        return shaped([shaped(found[i : i + count]) for i in range(0, count * count, count)])

    return derived("hessian", f, argnums, has_aux, derive)


@function_operator
def hvp(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that returns the product of the Hessian of `f` with a vector, without the Hessian.

    Parameters
    ----------
    f : callable
        A function of arrays that returns a scalar, or with `has_aux` a pair of it and anything else.
    argnums : int, str, or sequence of them
        The arguments of `f` to differentiate with respect to; see `value_and_grad`. They may nest.
    has_aux : bool
        Whether `f` returns a pair ``(value, aux)``; the result is then ``(product, aux)``.

    Returns
    -------
    callable
        ``(x, v, *args, **kwargs) -> product``: that of the second derivatives of ``f(x, *args, **kwargs)`` with respect
        to the arguments asked for, which is `x` by default, with `v`. This has the shape of the argument, and nests as it
        does, or is a tuple of such if `argnums` is a sequence; so does the product.

    Raises
    ------
    TypeError, ValueError
        When called, as `hessian` does; ValueError also if `v` has another shape than the argument, or nests otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([6., 0.])
    >>> hvp(lambda p: p["a"] ** 2 * p["b"])({"a": 3.0, "b": 1.0}, {"a": 1.0, "b": 0.0})
    {'a': np.float64(2.0), 'b': np.float64(6.0)}
    """

    def product(x: Any, v: Any, /, *args: Any, **kwargs: Any) -> Any:
        trace = Trace(Arguments("hvp", f, (x, *args), kwargs, argnums), has_aux)
        out = _scalar(trace)
        directions = directions_of(trace, v)
        found = trace.linear(out, directions, lambda o, vs: _second(trace, o, vs))
        warn_of_unreached(trace)
        return trace.answer(trace.arguments.nest(found))

    functools.update_wrapper(product, f)
    del product.__wrapped__  # type: ignore[attr-defined]  # its parameters are not those of f
    return product


@function_operator
def hessian_vector_product(f: Function, argnums: Argnums = 0) -> Function:
    """`hvp` as HIPS/autograd has it: the vector comes after all arguments.

    Parameters
    ----------
    f : callable
        A function of arrays that returns a scalar.
    argnums : int, str, or sequence of them
        The arguments of `f` to differentiate with respect to; autograd's name ``argnum`` is understood here and elsewhere.

    Returns
    -------
    callable
        ``(*args, v, **kwargs) -> product``.

    Raises
    ------
    TypeError, ValueError
        When called, as `hvp` does; TypeError also without a vector.

    Examples
    --------
    >>> import numpy as np
    >>> hessian_vector_product(lambda x, k: k * np.sum(x**3))(np.array([1.0, 2.0]), 2.0, np.array([1.0, 0.0]))
    array([12.,  0.])
    """

    def product(*args: Any, **kwargs: Any) -> Any:
        if len(args) < 2:
            raise TypeError("hessian_vector_product: the vector is the last argument, after those of the function")
        x, *others, v = args
        return hvp(f, argnums)(x, v, *others, **kwargs)

    return product


def _second(trace: Trace, out: Any, directions: list[Any]) -> list[Any]:
    """The product of the Hessian with directions: adjoints are passed back through the gradient, as the Hessian is symmetric."""
    with recording_on():
        gradient = concatenated(gradient_nodes(trace.operator, trace.inputs, out))
    v = concatenated(directions)
    if isinstance(v, Value):
        return trace.swept(gradient, v)
    linearization = trace.linearized(gradient)
    found = linearization.pull_one(v)
    return found if linearization.live else [np.array(x)[()] for x in found]  # parts of v itself may be among them


def _scalar(trace: Trace) -> Any:
    """The result of which second derivatives are taken."""
    out = trace.scalar("sum it, or take jacobian twice")
    for node in (out, *trace.inputs):
        if node.dtype.kind == "c":
            raise TypeError(
                f"{trace.operator}: of complex numbers, here the {describe(node)}, second derivatives are not one matrix; give "
                "real and imaginary parts as real arguments"
            )
    return out
