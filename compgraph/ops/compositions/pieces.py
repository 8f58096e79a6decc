"""``numpy.piecewise`` and ``numpy.kaiser``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ...array_types import Array
from .tools import as_array, ensure_array, is_node, leaves


def piecewise(x: Any, condlist: ArrayLike, funclist: Any, *args: object, **kw: object) -> Any:
    """``numpy.piecewise``: each function is called on the elements where its condition holds."""
    x = ensure_array(x)
    conditions = _condition_arrays(x, condlist)
    if len(conditions) == len(funclist) - 1:
        conditions.append(~np.any(np.stack(conditions), axis=0))
    if len(conditions) != len(funclist):
        count = len(conditions)
        raise ValueError(f"with {count} condition(s), either {count} or {count + 1} functions are expected")
    result = np.where(False, x, np.zeros_like(x))  # zeros that depend on x: a node even if no condition holds
    for condition, function in zip(conditions, funclist, strict=True):
        selected = x[condition]
        if not callable(function):
            result = _assign_where(result, condition, selected.shape, function)
        elif selected.size:
            result = _assign_where(result, condition, selected.shape, function(selected, *args, **kw))
    return result


def _condition_arrays(x: Any, condlist: Any) -> list[Any]:
    """The conditions as boolean arrays; NumPy accepts a single condition in several forms."""
    if _is_scalar(condlist) or (x.ndim != 0 and (_is_scalar(condlist[0]) or not isinstance(condlist[0], (list, np.ndarray)))):
        condlist = [condlist]
    return [_as_boolean(condition) for condition in condlist]


def _is_scalar(condition: NDArray[Any] | list[Any]) -> bool:
    return bool(np.isscalar(condition) or getattr(condition, "is_scalar", False))


def _as_boolean(condition: Any) -> Any:
    condition = as_array(condition)
    return condition if condition.dtype == bool else condition.astype(bool)


def _assign_where(array: Any, condition: Array, shape: tuple[int, ...], values: Any) -> Any:
    """``array[condition] = values`` as a new array; `shape` is that of ``array[condition]``."""
    values = _cast_for_assignment(values, array.dtype)
    if values.ndim > len(shape) and values.shape[: values.ndim - len(shape)] == (1,) * (values.ndim - len(shape)):
        values = np.reshape(values, values.shape[values.ndim - len(shape) :])
    mask = np.broadcast_to(np.reshape(condition, condition.shape + (1,) * (array.ndim - condition.ndim)), array.shape)
    if not values.ndim:
        return np.where(mask, values, array)
    values = np.ravel(np.broadcast_to(values, shape))
    if not values.shape[0]:
        return array
    places = np.reshape(np.cumsum(mask) - 1, array.shape)
    return np.where(mask, values[np.maximum(places, 0)], array)


def _cast_for_assignment(values: Any, dtype: DTypeLike | None) -> Any:
    """Values converted to a dtype, as by an assignment into an array of it."""
    values = as_array(values) if any(map(is_node, leaves(values))) else values
    if is_node(values):
        return values if values.dtype == dtype else values.astype(dtype)
    converted = np.empty(np.shape(values), dtype)
    converted[...] = values
    return converted


def kaiser(M: Any, beta: Any) -> Any:  # noqa: N803
    """``numpy.kaiser``, whose `beta` may be a node.

    Parameters
    ----------
    M : int
        The number of points.
    beta : float or Node
        The shape of the window; a single number.

    Returns
    -------
    array or Node

    Examples
    --------
    >>> import compgraph as cg
    >>> beta = cg.variable(2.0, "beta")
    >>> print(cg.kaiser(3, beta).opname, cg.kaiser(3, beta).value.round(6))
    div [0.438676 1.       0.438676]
    """
    if is_node(M):
        raise TypeError("kaiser: the number of points M cannot be a node; give node.value")
    if not is_node(beta):
        return np.kaiser(M, beta)
    if beta.ndim:
        raise ValueError(f"kaiser: beta must be a single number, not an array of shape {beta.shape}")
    dtype = np.result_type(beta.dtype, np.float64)
    beta, count = beta.astype(dtype), dtype.type(M)
    if count == 1:
        return np.ones_like(np.reshape(beta, 1))
    half = (count - 1) / 2.0
    distance = (np.arange(0, count) - half) / half
    return np.i0(beta * np.sqrt(1 - distance**2.0)) / np.i0(beta)
