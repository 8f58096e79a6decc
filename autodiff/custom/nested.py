"""Flattening of nested unknowns and parameters, for solvers that take a vector and a sequence of arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compgraph.values import require_unbatched

from ..arguments import as_argument, flatten, require_function, unflatten

Function = Callable[..., Any]


class Problem(NamedTuple):
    """A flattened problem.

    Attributes
    ----------
    function : callable
        A function of the unknown as one array, the arguments between unknown and parameters, and the leaves of the parameters.
    start : array_like or Node
        The start value: unchanged for a single array, otherwise a vector.
    leaves : tuple
        The leaves of the parameters.
    restore : callable
        Converts a solution as one array, which may have leading axes, to the structure of the unknown.
    """

    function: Function
    start: Any
    leaves: tuple[Any, ...]
    restore: Function


def create_problem(
    name: str, f: Function, x0: object, params: Sequence[Any], args: tuple[Any, ...], num_between: int = 0
) -> Problem:
    """Flatten the problem of a function of an unknown and parameters.

    Parameters
    ----------
    name : str
        The calling function, for messages.
    f : callable
        The user's function; its result has the structure of `x0`.
    x0 : tree
        The start value of the unknown.
    params : sequence of trees
        The positional parameters.
    args : object
        The parameters as in SciPy: a tuple, or a single parameter.
    num_between : int
        The number of arguments of `f` between the unknown and the parameters.

    Raises
    ------
    TypeError
        If `f` is not a function, both `params` and `args` are passed, or `x0` contains no array.
    ValueError
        When the function is called: if its result and `x0` have different structures.
    """
    f = require_function(name, f)
    leaves, structure = flatten(parameters(name, params, args))
    starts, unknown = flatten(x0)
    if not starts:
        raise TypeError(f"{name}: the unknown, {x0!r}, contains no array")
    if unknown.is_leaf():
        return Problem(_flatten_parameters(f, structure, num_between), x0, tuple(leaves), lambda x: x)
    arrays = [as_argument(start, f"{name}: the unknown") for start in starts]
    shapes, dtypes = [a.shape for a in arrays], [a.dtype for a in arrays]

    def unflatten_unknown(x: NDArray[Any]) -> Any:
        sizes = [math.prod(shape) for shape in shapes]
        ends = np.cumsum([0, *sizes])
        parts = [np.reshape(x[..., a:b], (*x.shape[:-1], *shape)) for a, b, shape in zip(ends, ends[1:], shapes, strict=False)]
        return unflatten(unknown, [p if p.dtype == dtype else p.astype(dtype) for p, dtype in zip(parts, dtypes, strict=True)])

    def flatten_value(value: Sequence[Any] | dict[str, Any]) -> Any:
        parts, value_structure = flatten(value)
        if value_structure != unknown:
            raise ValueError(
                f"{name}: the function returned a value of structure {value_structure}. The unknown has structure {unknown}"
            )
        require_unbatched(name, *parts)
        for part, shape in zip(parts, shapes, strict=True):
            if np.shape(part) != shape:
                raise ValueError(f"{name}: the function returned shape {np.shape(part)} for an unknown of shape {shape}")
        return np.concatenate([np.ravel(part) for part in parts])

    flat_function = _flatten_parameters(f, structure, num_between)
    return Problem(
        lambda x, *rest: flatten_value(flat_function(unflatten_unknown(x), *rest)),
        flatten_value(unflatten(unknown, arrays)),
        tuple(leaves),
        unflatten_unknown,
    )


def parameters(name: str, params: Sequence[Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the parameters, passed by position or by ``args=``."""
    extra_arguments = args if isinstance(args, tuple) else (args,)
    if params and extra_arguments:
        raise TypeError(f"{name}: parameters were passed by position and by args=. Use one of them")
    return tuple(params) or extra_arguments


def _flatten_parameters(f: Function, structure: Any, num_between: int) -> Function:
    """Convert a function of nested parameters to one of their leaves."""
    if all(part.is_leaf() for part in structure.children()):
        return f
    first = 1 + num_between
    return lambda *arguments: f(*arguments[:first], *unflatten(structure, arguments[first:]))
