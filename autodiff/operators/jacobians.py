"""Jacobians, and products with them.

A function is called once, and a batch of directions passes the graph it recorded, all at once (see `autodiff.batching`).
Adjoints pass back through in-place writes as well. Tangents do not: a function that writes is called again, with tangents.

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

from compgraph.context import active_watcher
from compgraph.graph import to_values
from compgraph.values import Value, require_unchanged

from ..arguments import Argnums, Arguments, as_direction, function_operator, unflatten
from ..batching import active_levels, base_of
from ..forward import TangentNode, jvp, run_with_tangent_batch
from ..reverse import Linearization, collect, holds_nan, without_tangents
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
        trace.warn_zero_derivative({node for part in parts for node in collect(part, stop=trace.inputs)})


@function_operator
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


@function_operator
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
        the graph that `f` recorded; if it wrote in place, `f` is called a second time, with tangents.

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
        columns = Columns(trace)
        return trace.each(lambda out: trace.linear(out, [], lambda o, _: columns.of(o)))

    return derived("jacfwd", f, argnums, has_aux, derive)


@function_operator
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
        columns = Columns(trace)

        def dense(o: Any, _: Any) -> Any:
            is_tall = size <= math.prod(o.shape[trace.depth :])
            return columns.of(o) if is_tall else trace.linearized(o).rows()

        return trace.each(lambda out: trace.linear(out, [], dense))

    return derived("jacobian", f, argnums, has_aux, derive)


class Columns:
    """Jacobians of the results of a trace by columns: by batches of tangents.

    They pass through the recorded graph. If it has writes, the function is called again, with tangents. Batches of adjoints
    replace them within other derivatives and `vmap`, if the function contains other derivatives, or returns another value.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def of(self, out: Any) -> list[Any]:
        """The Jacobian of a result for each input."""
        linearization = self.trace.linearized(out)
        if linearization.written and self._pushed_anew is not None:
            position = next(k for k, leaf in enumerate(self.trace.leaves) if leaf is out)
            with linearization.recording():
                return self._columns(linearization, self._pushed_anew[position])
        return linearization.columns()

    @functools.cached_property
    def _units(self) -> list[tuple[int, complex]]:
        """The positions of the inputs, each with a unit of its directions; a complex one has two."""
        return [(k, unit) for k, x in enumerate(self.trace.inputs) for unit in ((1, 1j) if x.dtype.kind == "c" else (1,))]

    @functools.cached_property
    def _pushed_anew(self) -> list[Any] | None:
        """The tangents of the results in the directions of all elements of the inputs; None if they are not to be had."""
        trace, arguments = self.trace, self.trace.arguments
        size = sum(trace.inputs[k].size for k, _ in self._units)
        leaves = [leaf if trace.outer else to_values(leaf) for leaf in arguments.leaves]
        within = any(isinstance(base_of(x), TangentNode) for x in (*leaves, *trace.leaves))
        if not size or within or trace.levels or trace.escapes or active_watcher() is not None:  # debugging looks at one by one
            return None
        parts: list[list[Any]] = [[] for _ in trace.leaves]
        largest = max(map(trace.linearized, trace.leaves), key=lambda one: len(one.nodes))
        for chunk in largest.chunks(size):
            batches, given, kept = self._basis(chunk), arguments.values(), arguments.constants()
            try:
                with np.errstate(divide="raise", over="raise", invalid="raise"):  # a sweep finds structural zeros
                    pairs = run_with_tangent_batch(arguments.f, trace.function, leaves, batches, given, kept)
            except (TypeError, ValueError, FloatingPointError):  # adjoints pass where tangents do not
                return None
            for out, found, (value, tangents) in zip(trace.leaves, parts, pairs, strict=True):
                if not np.array_equal(to_values(value), out.raw_value, equal_nan=True) or holds_nan((tangents,)):
                    return None
                found.append(tangents)
        with largest.recording():
            return [np.concatenate(found) if len(found) > 1 else found[0] for found in parts]

    def _basis(self, chunk: slice) -> list[Any]:
        """For each input, its part of some of all directions."""
        found = [np.zeros((chunk.stop - chunk.start, x.size), x.dtype) for x in self.trace.inputs]
        start = 0
        for k, unit in self._units:
            stop = start + self.trace.inputs[k].size
            rows = np.arange(max(start, chunk.start), min(stop, chunk.stop))
            found[k][rows - chunk.start, rows - start] = unit
            start = stop
        return [batch.reshape(-1, *x.shape) for batch, x in zip(found, self.trace.inputs, strict=True)]

    def _columns(self, linearization: Linearization, tangents: Any) -> list[Any]:
        """The Jacobian for each input, from the tangents in all directions."""
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
        return [linearization.along(x, parts[0], parts[1] if len(parts) > 1 else None) for x, parts in pairs]


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
    pairs = enumerate(zip(trace.arguments.flatten_tangents(tree), trace.points, strict=True))
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
        if active_levels() != trace.levels or any(linearization.written for linearization in linearizations.values()):
            return jvp(trace.function, trace.arguments.leaves, directions)[1]
        pushed = [trace.linear(out, directions, push_one)[0] for out in trace.leaves]
        # copied, since what was pushed may be the tangent that was given
        return unflatten(trace.structure, [p if isinstance(p, Value) else np.array(p)[()] for p in pushed])

    return trace.answer(trace.values(trace.result), push)
