"""Problems whose unknowns and parameters nest, as problems of one vector and a row of arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from compgraph.values import require_unbatched

from ..arguments import as_argument, flatten, require_function, unflatten

Function = Callable[..., Any]


class Problem(NamedTuple):
    """A problem that a solver takes.

    Attributes
    ----------
    function : callable
        Of the unknown as an array, whatever else the user's function gets before its parameters, and the leaves of these.
    start : array_like or Node
        What the unknown begins with: as it was given, or a vector if it nests.
    leaves : tuple
        The arrays in the parameters.
    restored : callable
        Of a solution as an array, which may have further axes in front: the solution nested as the unknown.
    """

    function: Function
    start: Any
    leaves: tuple[Any, ...]
    restore: Function


def create_problem(name: str, f: Function, x0: Any, params: Sequence[Any], args: Any, num_between: int = 0) -> Problem:
    """Return the problem of a function of an unknown and parameters, which may all nest.

    Parameters
    ----------
    name : str
        The calling function, for messages.
    f : callable
        The user's function; its result nests as `x0`.
    x0 : tree
        The start value of the unknown.
    params : sequence of trees
        The positional parameters.
    args : object
        The parameters as SciPy takes them: a tuple of them, or a single one that is not a tuple.
    num_between : int
        The number of arguments of `f` between the unknown and the parameters.

    Raises
    ------
    TypeError
        If `f` is not a function, parameters are passed in both ways, or `x0` contains no array.
    ValueError
        When the function is called: if its result does not nest as `x0`.
    """
    require_function(name, f)
    leaves, structure = flatten(parameters(name, params, args))
    starts, unknown = flatten(x0)
    if not starts:
        raise TypeError(f"{name}: the unknown, {x0!r}, contains no array")
    if unknown.is_leaf():
        return Problem(_flatten_parameters(f, structure, num_between), x0, tuple(leaves), lambda x: x)
    arrays = [as_argument(start, f"{name}: the unknown") for start in starts]
    shapes, dtypes = [a.shape for a in arrays], [a.dtype for a in arrays]

    def unflatten_unknown(x: Any) -> Any:
        sizes = [math.prod(shape) for shape in shapes]
        ends = np.cumsum([0, *sizes])
        pieces = [np.reshape(x[..., a:b], (*x.shape[:-1], *shape)) for a, b, shape in zip(ends, ends[1:], shapes, strict=False)]
        return unflatten(unknown, [p if p.dtype == dtype else p.astype(dtype) for p, dtype in zip(pieces, dtypes, strict=True)])

    def flatten_value(value: Any) -> Any:
        parts, value_structure = flatten(value)
        if value_structure != unknown:
            raise ValueError(
                f"{name}: the function returned a value that nests as {value_structure}; the unknown nests as {unknown}"
            )
        require_unbatched(name, *parts)
        for part, shape in zip(parts, shapes, strict=True):
            if np.shape(part) != shape:
                raise ValueError(f"{name}: the function made an array of shape {np.shape(part)} for one of shape {shape}")
        return np.concatenate([np.ravel(part) for part in parts])

    flat_function = _flatten_parameters(f, structure, num_between)
    return Problem(
        lambda x, *rest: flatten_value(flat_function(unflatten_unknown(x), *rest)),
        flatten_value(unflatten(unknown, arrays)),
        tuple(leaves),
        unflatten_unknown,
    )


def parameters(name: str, params: Sequence[Any], args: Any) -> tuple[Any, ...]:
    """The parameters of a function, given by position or, as SciPy takes them, by ``args=``."""
    extra_arguments = args if isinstance(args, tuple) else (args,)
    if params and extra_arguments:
        raise TypeError(f"{name}: parameters are given by position or by args=, not by both")
    return tuple(params) or extra_arguments


def _flatten_parameters(f: Function, structure: Any, num_between: int) -> Function:
    """A function of nested parameters, as one of their leaves."""
    if all(part.is_leaf() for part in structure.children()):
        return f
    first = 1 + num_between
    return lambda *arguments: f(*arguments[:first], *unflatten(structure, arguments[first:]))
