"""Transposition of broadcasting, and conversion of contributions to shape and dtype of their operands.

NumPy repeats an operand along missing axes and along axes of length one. The cotangent of a repeated element is the sum of the
cotangents of its copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.array_types import Array
from compgraph.graph import stack_nested
from compgraph.values import Value, describe, require_computed, require_history


def unbroadcast(cotangent: Array, shape: tuple[int, ...]) -> Any:
    """Sum `cotangent` over the axes along which an operand of `shape` was broadcast.

    Parameters
    ----------
    cotangent : array_like or Node
        A cotangent of the broadcast shape.
    shape : tuple of int
        The shape of the operand, which broadcasts to that of `cotangent`.

    Returns
    -------
    array or Node
        Has the given shape.

    Examples
    --------
    >>> import numpy as np
    >>> unbroadcast(np.ones((4, 3)), (4, 1))
    array([[3.],
           [3.],
           [3.],
           [3.]])
    """
    broadcast_shape = cotangent.shape
    num_extra = len(broadcast_shape) - len(shape)
    if num_extra > 0 and broadcast_shape[num_extra:] == shape:
        return np.add.reduce(cotangent, axis=0 if num_extra == 1 else tuple(range(num_extra)))
    if num_extra < 0 or any(n not in (1, m) for n, m in zip(shape, broadcast_shape[num_extra:], strict=True)):
        return _repeat(cotangent, shape)  # a cotangent smaller than the operand
    if num_extra:
        cotangent = np.add.reduce(cotangent, axis=tuple(range(num_extra)))
    axes = tuple([i for i, n in enumerate(shape) if n == 1 and broadcast_shape[num_extra + i] != 1])
    return np.add.reduce(cotangent, axis=axes, keepdims=True) if axes else cotangent


def unbroadcast_batch(cotangents: NDArray[Any], shape: tuple[int, ...]) -> Any:
    """Apply `unbroadcast` to a batch of cotangents along a first axis.

    Parameters
    ----------
    cotangents : array_like or Node
        Has the shape ``(count, *broadcast)``.
    shape : tuple of int
        The shape of the operand.

    Returns
    -------
    array or Node
        Has the shape ``(count, *shape)``.
    """
    count, *broadcast_shape = cotangents.shape
    num_extra = len(broadcast_shape) - len(shape)
    if num_extra < 0:
        cotangents = np.reshape(cotangents, (count, *[1] * -num_extra, *broadcast_shape))
    summed = unbroadcast(cotangents, (count, *[1] * num_extra, *shape))
    return np.reshape(summed, (count, *shape)) if num_extra > 0 else summed


def _repeat(cotangent: Array, shape: tuple[int, ...]) -> Any:
    """Repeat a cotangent that broadcasts to an operand."""
    if isinstance(cotangent, Value):
        return np.broadcast_to(cotangent, shape)
    repeated = np.empty(shape, cotangent.dtype)
    repeated[...] = cotangent
    return repeated


def conform(contribution: Any, operand: Any) -> Any:
    """Convert a contribution to the shape and dtype of its operand.

    Parameters
    ----------
    contribution : array_like or Node
        The value of a formula.
    operand : array_like or Node
        The operand.

    Returns
    -------
    array or Node
        Broadcasting is undone. A complex contribution to a real operand is replaced by its real part.
    """
    if type(contribution) in ops.FLOAT_SCALARS and type(contribution) is type(operand):
        return contribution
    value = contribution.raw_value if isinstance(contribution, Value) else contribution
    if value.shape != operand.shape:
        contribution = unbroadcast(contribution, operand.shape)
    return contribution if value.dtype is operand.dtype else _astype(contribution, operand.dtype)


def conform_batch(contributions: NDArray[Any], operand: Array, count: int) -> Any:
    """Apply `conform` to a batch of `count` contributions along a first axis."""
    if not contributions.ndim or contributions.shape[0] != count:
        raise ValueError(
            f"a rule returned shape {contributions.shape} for a batch of {count}. The first axis must be the batch axis"
        )
    if contributions.shape[1:] != operand.shape:
        contributions = unbroadcast_batch(contributions, operand.shape)
    return _astype(contributions, operand.dtype)


def as_cotangent(value: object, node: Value) -> Any:
    """Convert a value to a cotangent of a node.

    Parameters
    ----------
    value : array_like or Node
        A number, nested lists of numbers, an array, or a node, which broadcasts to `node`.
    node : Node
        The node.

    Returns
    -------
    array or Node
        Has the shape of `node`, and its dtype if that is floating or complex; a scalar if the node is one.

    Raises
    ------
    TypeError
        If `value` is not numeric, or is complex and `node` real.
    ValueError
        If `value` does not broadcast to `node`.
    """
    require_history(value)
    require_computed(value, "the cotangent")
    result = stack_nested(value)
    if not isinstance(result, Value):
        result = np.asarray(result)
    if result.dtype.kind not in "biufc":
        raise TypeError(
            f"the cotangent of the {describe(node)} must be numeric, not a {type(value).__name__} of dtype {result.dtype}"
        )
    if result.dtype.kind == "c" and node.dtype.kind != "c":
        raise TypeError(f"the cotangent of the real {describe(node)} is complex. Pass real and imaginary parts separately")
    if result.shape != node.shape:
        try:
            result = np.broadcast_to(result, node.shape)
        except ValueError:
            raise ValueError(f"the cotangent of shape {result.shape} does not broadcast to the {describe(node)}") from None
        result = result if isinstance(result, Value) else result.copy()
    if node.dtype.kind in "fc":
        result = _astype(result, node.dtype)
    return result[()] if node.is_scalar and not isinstance(result, Value) else result


def _astype(contribution: Array, dtype: np.dtype[Any]) -> Any:
    """Convert a contribution to the dtype of an operand."""
    if contribution.dtype != dtype:
        if contribution.dtype.kind == "c" and dtype.kind != "c":
            contribution = np.real(contribution)
        contribution = contribution.astype(dtype)
    return contribution


def restore_axes(reduced: Any, x: Any, axis: int | tuple[int, ...] | None, keepdims: bool) -> Any:
    """Insert the reduced axes of a reduction, with length one, so that the result broadcasts against `x`.

    Parameters
    ----------
    reduced : array_like or Node
        The result of a reduction of `x`, or its cotangent.
    x : array_like or Node
        The reduced array.
    axis : None, int or tuple of int
        The reduced axes.
    keepdims : bool
        Whether the reduction kept them.

    Returns
    -------
    array or Node
    """
    if keepdims or axis is None or x.ndim == 0:
        return reduced
    if axis == x.ndim - 1 or axis == -1:
        return reduced[..., None]
    axes = [i % x.ndim for i in (axis if isinstance(axis, tuple) else (axis,))]
    return reduced[tuple([None if i in axes else slice(None) for i in range(x.ndim)])]
