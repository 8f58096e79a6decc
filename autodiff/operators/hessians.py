"""Hessians and Hessian-vector products, by differentiating the recorded gradient."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from compgraph.context import recording_on
from compgraph.values import Value, describe

from ..arguments import Argnums, Arguments, function_operator
from ..reverse import gradient_nodes
from .jacobians import differentiate_trace, directions_of, require_sparse_support, warn_of_unreached_inputs
from .sparse import SparseDerivative
from .trace import Function, P, Trace, concatenate_raveled

__all__ = ["hessian", "hessian_diagonal", "hessian_vector_product", "hvp"]


@function_operator
def hessian(
    f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, *, sparse: bool = False, argnum: Argnums | None = None
) -> Callable[P, Any]:
    """Create a function that evaluates the Hessian of `f`, the matrix of its second derivatives.

    Parameters
    ----------
    f : callable
        A function that returns a real scalar; with `has_aux`, a pair ``(value, aux)``.
    argnums : int, str, or sequence of them, default 0
        The arguments to differentiate with respect to; see `value_and_grad`. They are real, and may nest.
    has_aux : bool, default False
        Whether `f` returns a pair ``(value, aux)``.
    sparse : bool, default False
        Whether to return a sparse matrix, with respect to one array; see `jacobian`.
    argnum : int, str, or sequence of them, optional
        The name of `argnums` in HIPS/autograd.

    Returns
    -------
    callable
        A function of the same arguments as `f` that returns the Hessian; with `has_aux`, ``(hessian, aux)``. For an argument of
        shape ``s`` it has shape ``s + s`` and the dtype of the argument. If `argnums` is a sequence, it is a tuple of tuples,
        whose rows belong to the first derivative. For a nested argument, it nests like the argument, and each leaf does again.
        With `sparse`, it is a ``scipy.sparse.csr_array`` of shape ``(x.size, x.size)``.

    Raises
    ------
    TypeError
        When called: as for `grad`; also for complex arguments or results, and if `sparse` is requested in forward mode of
        another derivative or under `vmap`.
    ValueError
        When called: as for `grad`; also if `sparse` is requested for several or nested arguments.

    See Also
    --------
    autodiff.hvp : products with the Hessian, without forming it.
    autodiff.hessian_diagonal : the diagonal alone.

    Notes
    -----
    The gradient is recorded once, and swept for a batch of all directions. For sparse Hessians, columns that share no row are
    computed together [1]_.

    References
    ----------
    .. [1] A. R. Curtis, M. J. D. Powell, J. K. Reid, "On the estimation of sparse Jacobian matrices", IMA J. Appl. Math. 13
       (1974).

    Examples
    --------
    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    if sparse and not isinstance(argnums, (int, str, np.integer)):
        raise ValueError("hessian: sparse=True needs a single argument. Concatenate the arguments into one array")

    def blocks(trace: Trace, out: object) -> list[Any]:
        return [block for g in gradient_nodes(trace.operator, trace.inputs, out) for block in trace.linearized(g).rows()]

    sparse_derivative = SparseDerivative()

    def derive(trace: Trace) -> Any:
        out = _real_scalar(trace)
        if sparse:
            require_sparse_support(trace)
            return sparse_derivative.hessian(trace, out)
        hessian_blocks = trace.apply_linear(out, [], lambda o, _: blocks(trace, o))
        count = len(trace.inputs)
        nest = trace.arguments.nest
        return nest([nest(hessian_blocks[i : i + count]) for i in range(0, count * count, count)])

    return differentiate_trace("hessian", f, argnums, has_aux, derive)


@function_operator
def hessian_diagonal(
    f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, *, sparse: bool = False
) -> Callable[P, Any]:
    """Create a function that evaluates the diagonal of the Hessian of `f`, the second derivative by each element.

    Parameters
    ----------
    f : callable
        A function that returns a real scalar; with `has_aux`, a pair ``(value, aux)``.
    argnums : int, str, or sequence of them, default 0
        The arguments to differentiate with respect to; see `value_and_grad`. They are real, and may nest.
    has_aux : bool, default False
        Whether `f` returns a pair ``(value, aux)``.
    sparse : bool, default False
        Whether to use the sparsity pattern of the Hessian, with respect to one array; see `jacobian`. If each element interacts
        with few others, a few directions suffice.

    Returns
    -------
    callable
        A function of the same arguments as `f` that returns the diagonal; with `has_aux`, ``(diagonal, aux)``. It has the shape,
        the nesting and the dtype of the argument. If `argnums` is a sequence, it is a tuple.

    Raises
    ------
    TypeError, ValueError
        When called: as for `hessian`.

    See Also
    --------
    autodiff.hessian : the whole matrix.

    Notes
    -----
    The gradient is recorded once, and swept for batches of directions, one direction per element. The Hessian is not stored:
    memory holds one batch.

    Examples
    --------
    >>> import numpy as np
    >>> hessian_diagonal(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([4., 0.])
    >>> hessian_diagonal(lambda p: p["a"] ** 2 * p["b"])({"a": 3.0, "b": 1.0})
    {'a': np.float64(2.0), 'b': np.float64(0.0)}
    """
    if sparse and not isinstance(argnums, (int, str, np.integer)):
        raise ValueError("hessian_diagonal: sparse=True needs a single argument. Concatenate the arguments into one array")

    def diagonals(trace: Trace, out: object) -> list[Any]:
        gradients = gradient_nodes(trace.operator, trace.inputs, out)
        return [trace.linearized(g).diagonal(position) for position, g in enumerate(gradients)]

    sparse_derivative = SparseDerivative()

    def derive(trace: Trace) -> Any:
        out = _real_scalar(trace)
        if sparse:
            require_sparse_support(trace)
            return np.reshape(sparse_derivative.hessian(trace, out).diagonal(), trace.points[0].shape)[()]
        return trace.arguments.nest(trace.apply_linear(out, [], lambda o, _: diagonals(trace, o)))

    return differentiate_trace("hessian_diagonal", f, argnums, has_aux, derive)


@function_operator
def hvp(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """Create a function that evaluates the product of the Hessian of `f` with a vector, without forming the Hessian.

    Parameters
    ----------
    f : callable
        A function that returns a real scalar; with `has_aux`, a pair ``(value, aux)``.
    argnums : int, str, or sequence of them, default 0
        The arguments of `f` to differentiate with respect to; see `value_and_grad`. They may nest.
    has_aux : bool, default False
        Whether `f` returns a pair ``(value, aux)``.

    Returns
    -------
    callable
        ``(x, v, *args, **kwargs) -> product``, where ``f(x, *args, **kwargs)`` is differentiated; with `has_aux`,
        ``(product, aux)``. `v` and the product have the shape and nesting of the argument, and the product has its dtype. If
        `argnums` is a sequence, both are tuples.

    Raises
    ------
    TypeError, ValueError
        When called: as for `hessian`; ValueError also if `v` differs from the argument in shape or nesting.

    Notes
    -----
    The cost is a small multiple of that of the gradient, whatever the size of the argument [1]_.

    References
    ----------
    .. [1] B. A. Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6 (1994).

    Examples
    --------
    >>> import numpy as np
    >>> hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([6., 0.])
    >>> hvp(lambda p: p["a"] ** 2 * p["b"])({"a": 3.0, "b": 1.0}, {"a": 1.0, "b": 0.0})
    {'a': np.float64(2.0), 'b': np.float64(6.0)}
    """

    def product(x: object, v: object, /, *args: object, **kwargs: object) -> Any:
        trace = Trace(Arguments("hvp", f, (x, *args), kwargs, argnums), has_aux)
        out = _real_scalar(trace)
        directions = directions_of(trace, v)
        products = trace.apply_linear(out, directions, lambda o, vs: _hessian_product(trace, o, vs))
        warn_of_unreached_inputs(trace)
        return trace.with_aux(trace.arguments.nest(products))

    functools.update_wrapper(product, f)
    del product.__wrapped__  # type: ignore[attr-defined]  # its parameters are not those of f
    return product


@function_operator
def hessian_vector_product(f: Function, argnums: Argnums = 0) -> Function:
    """Create a Hessian-vector product with the signature of HIPS/autograd: the vector is the last argument.

    Parameters
    ----------
    f : callable
        A function that returns a real scalar.
    argnums : int, str, or sequence of them, default 0
        The arguments of `f` to differentiate with respect to. All operators accept autograd's name ``argnum`` too.

    Returns
    -------
    callable
        ``(*args, v, **kwargs) -> product``, of the shape and dtype of the argument.

    Raises
    ------
    TypeError, ValueError
        When called: as for `hvp`; TypeError also without a vector.

    See Also
    --------
    autodiff.hvp : takes the vector second.

    Examples
    --------
    >>> import numpy as np
    >>> hessian_vector_product(lambda x, k: k * np.sum(x**3))(np.array([1.0, 2.0]), 2.0, np.array([1.0, 0.0]))
    array([12.,  0.])
    """

    def product(*args: object, **kwargs: object) -> Any:
        if len(args) < 2:
            raise TypeError(
                "hessian_vector_product: the vector is missing. Pass it as the last argument, after those of the function"
            )
        x, *others, v = args
        return hvp(f, argnums)(x, v, *others, **kwargs)

    return product


def _hessian_product(trace: Trace, out: object, directions: list[Any]) -> list[Any]:
    """Return the product of the Hessian, which is symmetric, with directions, by a pullback through the gradient."""
    with recording_on():
        gradient = concatenate_raveled(gradient_nodes(trace.operator, trace.inputs, out))
    v = concatenate_raveled(directions)
    if isinstance(v, Value):
        return trace.sweep_cotangents(gradient, v)
    linearization = trace.linearized(gradient)
    products = linearization.pull_one(v)
    if linearization.create_graph:
        return products
    return [np.array(x)[()] for x in products]  # copies, because parts of v may be among them


def _real_scalar(trace: Trace) -> Any:
    """Return the result; raise unless it is a real scalar of real arguments, for which the Hessian is defined."""
    out = trace.scalar("Sum it, or use jacobian of a Jacobian")
    for node in (out, *trace.inputs):
        if node.dtype.kind == "c":
            raise TypeError(
                f"{trace.operator}: the {describe(node)} is complex, for which second derivatives do not form one matrix. Pass "
                "real and imaginary parts as real arguments"
            )
    return out
