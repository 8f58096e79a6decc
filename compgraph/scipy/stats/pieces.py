"""Functions in pieces: each formula is evaluated where it holds, and nowhere else, so that none meets what it cannot take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...graph import stack_nested
from ...values import Value


def operand(x: Any) -> Any:
    """A node, or an array."""
    x = stack_nested(x)
    return x if isinstance(x, Value) else np.asarray(x)


def _somewhere(function: Callable[..., Any], where: Any, arrays: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """What a function gives for the elements where it holds, each at its place, and anything elsewhere."""
    values = function(*[np.broadcast_to(a, shape)[where] for a in arrays])
    if np.ndim(values) == 0:
        return values
    place = np.reshape(np.cumsum(where) - 1, shape)
    return operand(values)[np.where(where, place, 0)]


def pieces(
    conditions: Sequence[Any], functions: Sequence[Callable[..., Any]], arrays: Sequence[Any], default: Any = np.nan
) -> Any:
    """Of several functions that whose condition holds, of the last such one; `default` where none does.

    Parameters
    ----------
    conditions : sequence of array_like of bool
        Where each function holds.
    functions : sequence of callable
        Called with one-dimensional arrays of the elements where they hold.
    arrays : sequence of array_like
        Their arguments, broadcast with the conditions.
    default : array_like
        The value elsewhere.
    """
    arrays = [operand(a) for a in arrays]
    shape = np.broadcast_shapes(*map(np.shape, conditions), *map(np.shape, arrays))
    result = default
    for condition, function in zip(conditions, functions, strict=True):
        where = np.broadcast_to(operand(condition), shape)
        if np.any(where):
            result = np.where(where, _somewhere(function, where, arrays, shape), result)
    return np.broadcast_to(result, shape)


def apply_where(cond: Any, args: Any, f1: Any, f2: Any = None, /, *, fill_value: Any = None, xp: Any = None) -> Any:
    """The helper of that name in SciPy."""
    arrays = args if isinstance(args, tuple) else (args,)
    if f2 is None:
        return pieces([cond], [f1], arrays, fill_value)
    return pieces([cond, ~operand(cond)], [f1, f2], arrays)


def lazyselect(condlist: Any, choicelist: Any, arrays: Any, default: Any = 0) -> Any:
    """The helper of nearly that name in SciPy."""
    return pieces(condlist, choicelist, arrays, default)
