"""Jacobians, and Jacobian-vector products of a recorded function.

A function is called once, and batches of directions are passed through its graph (see `autodiff.batching`). Cotangents also
pass in-place writes. Tangents do not, so a function that writes is called again with tangents.

Complex numbers: for real arguments and complex results, the Jacobian contains the derivatives of both parts as complex numbers.
For complex arguments and real results, each row is a gradient as of `grad` (``df/dx - i df/dy``). If both are complex, the
function must be analytic.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from compgraph.context import active_checks, records_for_replay
from compgraph.graph import to_values
from compgraph.values import Value, require_unchanged

from ..arguments import Argnums, Arguments, as_direction, function_operator, require_primals, short_tracebacks, unflatten
from ..batching import active_levels, base_of
from ..forward import TangentNode, jvp, run_with_tangent_batch
from ..reverse import Linearization, collect, contains_nan, report_unmasked, without_tangents
from ..rules import conform
from .sparse import SparseDerivative
from .trace import Function, P, R, Trace

__all__ = ["jacfwd", "jacobian", "jacrev", "linearize"]


def differentiate_trace(operator: str, f: Function, argnums: Argnums, has_aux: bool, derive: Callable[[Trace], Any]) -> Function:
    """Return a function that traces `f` once, and returns the result of `derive` for the trace."""

    @functools.wraps(f)
    def evaluate(*args: object, **kwargs: object) -> Any:
        trace = Trace(Arguments(operator, f, args, kwargs, argnums), has_aux)
        result = derive(trace)
        warn_of_unreached_inputs(trace)
        return trace.with_aux(result)

    return evaluate


def warn_of_unreached_inputs(trace: Trace) -> None:
    """Warn if the graph does not reach an argument, and values have left the graph."""
    if trace.leaks:
        parts = [part for out in trace.leaves for part in without_tangents(base_of(out))]
        trace.warn_zero_derivative({node for part in parts for node in collect(part, stop=trace.inputs)})


@function_operator
def jacrev(f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[P, Any]:
    """Create a function that evaluates the Jacobian of `f` in reverse mode.

    Reverse mode is efficient for functions with more inputs than outputs.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array or nested arrays; with `has_aux`, a pair ``(value, aux)``.
    argnums : int, str, or sequence of them, default 0
        The arguments to differentiate with respect to; see `value_and_grad`. They may nest.
    has_aux : bool, default False
        Whether `f` returns a pair ``(value, aux)``.

    Returns
    -------
    callable
        A function of the same arguments as `f` that returns the Jacobian; with `has_aux`, ``(jacobian, aux)``. For a result of
        shape ``r`` and an argument of shape ``s``, it has shape ``r + s`` and the precision of the argument. If `argnums` is a
        sequence, it is a tuple of Jacobians. For nested results and arguments, it nests like the results, and each leaf nests
        like the arguments.

    Raises
    ------
    TypeError
        When called: if an argument has an integer dtype, the result is not floating or complex, or a function of complex
        arguments with complex results is not analytic.
    ValueError
        When called: if `argnums` is out of range.

    See Also
    --------
    autodiff.jacfwd : forward mode.
    autodiff.jacobian : selects the mode.

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
        return trace.map_leaves(lambda out: trace.apply_linear(out, [], lambda o, _: trace.linearized(o).rows()))

    return differentiate_trace("jacrev", f, argnums, has_aux, derive)


@function_operator
def jacfwd(f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[P, Any]:
    """Create a function that evaluates the Jacobian of `f` in forward mode.

    Forward mode is efficient for functions with more outputs than inputs.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array or nested arrays; with `has_aux`, a pair ``(value, aux)``.
    argnums : int, str, or sequence of them, default 0
        The arguments to differentiate with respect to; see `value_and_grad`. They may nest.
    has_aux : bool, default False
        Whether `f` returns a pair ``(value, aux)``.

    Returns
    -------
    callable
        A function of the same arguments as `f` that returns the Jacobian, nested and shaped as that of `jacrev`, in the
        precision of the result; with `has_aux`, ``(jacobian, aux)``.

    Raises
    ------
    TypeError, ValueError
        When called, as for `jacrev`.

    Notes
    -----
    Batches of tangents are passed through the graph that `f` recorded. If `f` writes in place, it is called a second time, with
    tangents.

    Examples
    --------
    >>> import numpy as np
    >>> jacfwd(lambda t: np.stack([np.cos(t), np.sin(t)]))(0.0)
    array([-0.,  1.])
    """

    def derive(trace: Trace) -> Any:
        forward = ForwardJacobian(trace)
        return trace.map_leaves(lambda out: trace.apply_linear(out, [], lambda o, _: forward.jacobian_of(o)))

    return differentiate_trace("jacfwd", f, argnums, has_aux, derive)


@function_operator
def jacobian(
    f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, *, sparse: bool = False, argnum: Argnums | None = None
) -> Callable[P, Any]:
    """Create a function that evaluates the Jacobian of `f`, in the mode that needs fewer directions.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array or nested arrays; with `has_aux`, a pair ``(value, aux)``.
    argnums : int, str, or sequence of them, default 0
        The arguments to differentiate with respect to; see `value_and_grad`. They may nest.
    has_aux : bool, default False
        Whether `f` returns a pair ``(value, aux)``.
    sparse : bool, default False
        Whether to return sparse matrices. The sparsity pattern is computed from the recorded graph; columns (or rows) without a
        common row (or column) are computed together [1]_.
    argnum : int, str, or sequence of them, optional
        The name of `argnums` in HIPS/autograd.

    Returns
    -------
    callable
        A function of the same arguments as `f` that returns the Jacobian, nested and shaped as that of `jacrev`; with
        `has_aux`, ``(jacobian, aux)``. With `sparse`, it is a ``scipy.sparse.csr_array`` of shape ``(result.size, x.size)``.

    Raises
    ------
    TypeError
        When called: as for `jacrev`; also if `sparse` is requested for complex numbers, in forward mode of another
        derivative or under `vmap`.
    ValueError
        When called: as for `jacrev`; also if `sparse` is requested for nested arguments or results.

    References
    ----------
    .. [1] A. R. Curtis, M. J. D. Powell, J. K. Reid, "On the estimation of sparse Jacobian matrices", IMA J. Appl. Math. 13
       (1974).

    Examples
    --------
    >>> import numpy as np
    >>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    >>> jacobian(np.diff, sparse=True)(np.arange(1000.0)).nnz
    1998
    """
    sparse_derivative = SparseDerivative()

    def derive(trace: Trace) -> Any:
        if sparse:
            require_sparse_support(trace)
            return trace.map_leaves(lambda out: sparse_derivative.jacobian(trace, out))
        size = sum(math.prod(x.shape) for x in trace.points)
        forward = ForwardJacobian(trace)

        def dense(o: Any, _: list[Any]) -> Any:
            is_tall = size <= math.prod(o.shape[trace.depth :])
            return forward.jacobian_of(o) if is_tall else trace.linearized(o).rows()

        return trace.map_leaves(lambda out: trace.apply_linear(out, [], dense))

    return differentiate_trace("jacobian", f, argnums, has_aux, derive)


class ForwardJacobian:
    """Jacobians of the results of a trace in forward mode, by batches of tangents.

    Tangents propagate through the recorded graph. If it contains writes, the function is called again with tangents. Inside
    other derivatives and under `vmap`, and if the second call returns a different value, batches of cotangents are used instead.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def jacobian_of(self, out: object) -> list[Any]:
        """Return the Jacobian of a result for each input."""
        linearization = self.trace.linearized(out)
        if linearization.has_writes and self._tangents_of_second_call is not None:
            position = next(k for k, leaf in enumerate(self.trace.leaves) if leaf is out)
            with linearization.recording():
                return self._columns(linearization, self._tangents_of_second_call[position])
        return linearization.columns()

    @functools.cached_property
    def _units(self) -> list[tuple[int, complex]]:
        """The positions of the inputs, each with a unit of its directions; a complex one has two."""
        return [(k, unit) for k, x in enumerate(self.trace.inputs) for unit in ((1, 1j) if x.dtype.kind == "c" else (1,))]

    @functools.cached_property
    def _tangents_of_second_call(self) -> list[Any] | None:
        """The tangents of the results for all elements of the inputs, from a second call; None if unavailable."""
        trace, arguments = self.trace, self.trace.arguments
        size = sum(trace.inputs[k].size for k, _ in self._units)
        leaves = [leaf if trace.is_recorded_outside else to_values(leaf) for leaf in arguments.leaves]
        has_tangents = any(isinstance(base_of(x), TangentNode) for x in (*leaves, *trace.leaves))
        is_checked = active_checks() is not None  # cg.debug checks one direction at a time
        if not size or has_tangents or trace.levels or trace.leaks or is_checked:
            return None
        chunks_of_leaves: list[list[Any]] = [[] for _ in trace.leaves]
        largest = max(map(trace.linearized, trace.leaves), key=lambda linearization: len(linearization.nodes))
        if largest.create_graph and records_for_replay.get():  # reverse mode masks structural zeros
            return None
        for chunk in largest.chunks(size):
            batches, argument_values, constants = self._basis(chunk), arguments.values(), arguments.constants()
            try:
                with np.errstate(divide="raise", over="raise", invalid="raise"):  # reverse mode masks structural zeros
                    pairs = run_with_tangent_batch(arguments.f, trace.function, leaves, batches, argument_values, constants)
            except (TypeError, ValueError, FloatingPointError):  # reverse mode may succeed
                return None
            for out, tangent_chunks, (value, tangents) in zip(trace.leaves, chunks_of_leaves, pairs, strict=True):
                if not np.array_equal(to_values(value), out.raw_value, equal_nan=True) or contains_nan((tangents,)):
                    return None
                tangent_chunks.append(tangents)
        if largest.create_graph:
            report_unmasked([part for chunks in chunks_of_leaves for part in chunks])
        with largest.recording():
            return [np.concatenate(chunks) if len(chunks) > 1 else chunks[0] for chunks in chunks_of_leaves]

    def _basis(self, chunk: slice) -> list[Any]:
        """Return, for each input, its part of a chunk of all unit directions."""
        batches = [np.zeros((chunk.stop - chunk.start, x.size), x.dtype) for x in self.trace.inputs]
        start = 0
        for k, unit in self._units:
            stop = start + self.trace.inputs[k].size
            rows = np.arange(max(start, chunk.start), min(stop, chunk.stop))
            batches[k][rows - chunk.start, rows - start] = unit
            start = stop
        return [batch.reshape(-1, *x.shape) for batch, x in zip(batches, self.trace.inputs, strict=True)]

    def _columns(self, linearization: Linearization, tangents: Any) -> list[Any]:
        """Return the Jacobian for each input, given the tangents in all directions."""
        blocks: list[list[Any]] = [[] for _ in self.trace.inputs]
        start = 0
        for k, _ in self._units:
            x = self.trace.inputs[k]
            columns = np.moveaxis(tangents[start : start + x.size], 0, -1)
            columns = columns if isinstance(columns, Value) else np.ascontiguousarray(columns)
            block = np.reshape(columns, tangents.shape[1:] + x.shape)
            blocks[k].append(block if isinstance(block, Value) else block[()])
            start += x.size
        pairs = zip(self.trace.inputs, blocks, strict=True)
        return [linearization.combine_columns(x, parts[0], parts[1] if len(parts) > 1 else None) for x, parts in pairs]


def require_sparse_support(trace: Trace) -> None:
    """Raise if sparse matrices are requested under vmap, or for nested arguments or results."""
    if trace.levels:
        raise TypeError(
            f"{trace.operator}: sparse=True is not supported under vmap, which would need a batch of sparse matrices. Use a "
            "dense matrix, or loop over the batch elements in Python"
        )
    if trace.leaves and (trace.arguments.is_nested or not trace.structure.is_leaf()):
        raise ValueError(
            f"{trace.operator}: sparse=True needs a single array as argument and as result, not nested ones. Join the arrays "
            "(np.concatenate), or use a dense matrix"
        )


def directions_of(trace: Trace, tree: Any) -> list[Any]:
    """Return the leaves of tangents, checked against the inputs and converted to their dtypes."""
    pairs = enumerate(zip(trace.arguments.flatten_tangents(tree), trace.points, strict=True))
    return [conform(as_direction(t, x, f"{trace.operator}: tangent {k}", "its argument"), x) for k, (t, x) in pairs]


@overload
def linearize(f: Callable[..., R], *primals: object, has_aux: Literal[False] = False) -> tuple[R, Callable[..., Any]]: ...
@overload
def linearize(f: Function, *primals: object, has_aux: bool) -> Any: ...
@short_tracebacks
def linearize(f: Function, *primals: object, has_aux: bool = False) -> Any:
    """Compute the value of a function, and its derivative at that point as a linear function of tangents.

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
    push : callable
        ``push(*tangents)`` returns the tangent of the value (the Jacobian-vector product), in its shape, dtype and nesting. It
        takes one tangent for each argument, of its shape and nesting. It does not call `f` again, unless `f` writes in place.
    aux : object
        The auxiliary data; only with `has_aux`.

    Raises
    ------
    TypeError
        If an argument has an integer dtype, or the value is not floating or complex.
    ValueError
        From `push`: if a tangent differs from its argument in shape or nesting, or their number differs.

    See Also
    --------
    autodiff.jvp : for a single tangent, without storing the graph.
    autodiff.vjp : the transposed product.

    Examples
    --------
    >>> import numpy as np
    >>> value, push = linearize(lambda x: x**2, np.array([1.0, 2.0]))
    >>> push(np.array([1.0, 10.0]))
    array([ 2., 40.])
    """
    f = require_primals("linearize", f, primals)
    trace = Trace(Arguments("linearize", f, primals, {}, range(len(primals))), has_aux)
    linearizations = {o: trace.linearized(o) for out in trace.outs() for o in without_tangents(base_of(out))}
    warn_of_unreached_inputs(trace)

    def push_one(o: object, tangents: list[Any]) -> list[Any]:
        output_linearization = linearizations.get(o) or trace.linearized(o)
        return [output_linearization.push(dict(zip(trace.inputs, tangents, strict=True)), None)]

    def push(*tangents: object) -> Any:
        directions = directions_of(trace, tangents)
        for linearization in linearizations.values():  # plain arrays may have been written into since
            require_unchanged(linearization.nodes)
        if active_levels() != trace.levels or any(each.has_writes for each in linearizations.values()):
            return jvp(trace.function, trace.arguments.leaves, directions)[1]
        output_tangents = [trace.apply_linear(out, directions, push_one)[0] for out in trace.leaves]
        # Copies, because the result may be the tangent itself.
        return unflatten(trace.structure, [t if isinstance(t, Value) else np.array(t)[()] for t in output_tangents])

    return trace.with_aux(trace.convert_results(trace.result), push)
