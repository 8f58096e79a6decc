"""Undoing of broadcasting, in one place.

NumPy repeats an operand along axes it lacks, and along axes where it has length one. The adjoint of a repeated
element is the sum of the adjoints of its copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np


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
    if len(have) < len(shape) or (have != shape and not _repeats(shape, have)):
        return np.broadcast_to(adjoint, shape)
    extra = len(have) - len(shape)
    axes = tuple(range(extra)) + tuple(i for i, n in enumerate(shape, extra) if n == 1 and have[i] != 1)
    if axes:
        adjoint = np.sum(adjoint, axis=axes, keepdims=True)
    return np.reshape(adjoint, shape) if extra else adjoint


def _repeats(shape: tuple[int, ...], larger: tuple[int, ...]) -> bool:
    """Whether an operand of `shape` can have been repeated to `larger`."""
    trailing = larger[len(larger) - len(shape) :]
    return all(n in (1, m) for n, m in zip(shape, trailing, strict=True))


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
    if contribution.dtype != operand.dtype:
        if contribution.dtype.kind == "c" and operand.dtype.kind != "c":
            contribution = np.real(contribution)
        contribution = contribution.astype(operand.dtype)
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
    if keepdims is True or axis is None or x.ndim == 0:
        return reduced
    return np.expand_dims(reduced, axis)
