"""Undoing of broadcasting, in one place.

NumPy repeats an operand along axes it lacks, and along axes where it has length one. The adjoint of a repeated
element is the sum of the adjoints of its copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.nodes import Node


def unbroadcast(adjoint: Any, shape: tuple[int, ...]) -> Any:
    """Sum `adjoint` over the axes along which an operand of `shape` was repeated.

    Parameters
    ----------
    adjoint : array_like or Node
        An adjoint of a broadcast shape.
    shape : tuple of int
        The shape of the operand, which broadcasts to that of `adjoint`.

    Returns
    -------
    array or Node
        Of the given shape.

    Examples
    --------
    >>> import numpy as np
    >>> unbroadcast(np.ones((4, 3)), (4, 1))
    array([[3.],
           [3.],
           [3.],
           [3.]])
    """
    have = adjoint.shape
    extra = len(have) - len(shape)
    if extra > 0 and have[extra:] == shape:
        return np.add.reduce(adjoint, axis=0 if extra == 1 else tuple(range(extra)))
    if extra < 0 or any(n not in (1, m) for n, m in zip(shape, have[extra:], strict=True)):
        return _repeated(adjoint, shape)
    if extra:
        adjoint = np.add.reduce(adjoint, axis=tuple(range(extra)))
    axes = tuple([i for i, n in enumerate(shape) if n == 1 and have[extra + i] != 1])
    return np.add.reduce(adjoint, axis=axes, keepdims=True) if axes else adjoint


def unbroadcast_batch(adjoints: Any, shape: tuple[int, ...]) -> Any:
    """As `unbroadcast`, for adjoints stacked along a first axis.

    Parameters
    ----------
    adjoints : array_like or Node
        Of a shape ``(count, *broadcast)``.
    shape : tuple of int
        The shape of the operand.

    Returns
    -------
    array or Node
        Of shape ``(count, *shape)``.
    """
    count, *have = adjoints.shape
    extra = len(have) - len(shape)
    if extra < 0:
        adjoints = np.reshape(adjoints, (count, *[1] * -extra, *have))
    summed = unbroadcast(adjoints, (count, *[1] * extra, *shape))
    return np.reshape(summed, (count, *shape)) if extra > 0 else summed


def _repeated(adjoint: Any, shape: tuple[int, ...]) -> Any:
    """An adjoint that is the same for many elements, written out for each."""
    if isinstance(adjoint, Node):
        return np.broadcast_to(adjoint, shape)
    full = np.empty(shape, adjoint.dtype)
    full[...] = adjoint
    return full


def conform(contribution: Any, operand: Any) -> Any:
    """Give a contribution the shape and dtype of the operand it belongs to.

    Parameters
    ----------
    contribution : array_like or Node
        What a formula returned.
    operand : array_like or Node
        The operand.

    Returns
    -------
    array or Node
        Broadcasting undone; of a complex contribution to a real operand, the real part.
    """
    if contribution.shape != operand.shape:
        contribution = unbroadcast(contribution, operand.shape)
    return _of_dtype(contribution, operand.dtype)


def conform_batch(contributions: Any, operand: Any, count: int) -> Any:
    """As `conform`, for contributions of `count` directions, stacked along a first axis."""
    if not contributions.ndim or contributions.shape[0] != count:
        raise ValueError(f"a rule was given {count} directions together, and returned shape {contributions.shape}")
    if contributions.shape[1:] != operand.shape:
        contributions = unbroadcast_batch(contributions, operand.shape)
    return _of_dtype(contributions, operand.dtype)


def _of_dtype(contribution: Any, dtype: Any) -> Any:
    """A contribution as an operand's dtype has it."""
    if contribution.dtype != dtype:
        if contribution.dtype.kind == "c" and dtype.kind != "c":
            contribution = np.real(contribution)
        contribution = contribution.astype(dtype)
    return contribution


def spread(reduced: Any, x: Any, axis: Any, keepdims: Any) -> Any:
    """A reduced array with its reduced axes back, of length one, so that it broadcasts against `x`.

    Parameters
    ----------
    reduced : array_like or Node
        The result of a reduction of `x`, or its adjoint.
    x : array_like or Node
        What was reduced.
    axis : None, int or tuple of int
        The axes that were reduced.
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
