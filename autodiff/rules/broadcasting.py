"""Undoing of broadcasting, in one place.

NumPy repeats an operand along axes it lacks, and along axes where it has length one. The adjoint of a repeated
element is the sum of the adjoints of its copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph import ops
from compgraph.graph import stack_nested
from compgraph.values import Value, describe, require_computed, require_history


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
    """As `unbroadcast`, for a batch of adjoints, whose axis comes first.

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
    if isinstance(adjoint, Value):
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
    if type(contribution) in ops.SAME_BITS and type(contribution) is type(operand):
        return contribution
    plain = contribution.raw_value if isinstance(contribution, Value) else contribution
    if plain.shape != operand.shape:
        contribution = unbroadcast(contribution, operand.shape)
    return contribution if plain.dtype is operand.dtype else _of_dtype(contribution, operand.dtype)


def conform_batch(contributions: Any, operand: Any, count: int) -> Any:
    """As `conform`, for a batch of `count` contributions, whose axis comes first."""
    if not contributions.ndim or contributions.shape[0] != count:
        raise ValueError(f"a rule was given {count} directions together, and returned shape {contributions.shape}")
    if contributions.shape[1:] != operand.shape:
        contributions = unbroadcast_batch(contributions, operand.shape)
    return _of_dtype(contributions, operand.dtype)


def as_adjoint(value: Any, node: Any) -> Any:
    """What is given for the adjoint of a node, in the shape in which the sweep hands it to a rule.

    Parameters
    ----------
    value : array_like or Node
        A number, nested lists of numbers, an array, or a node, that broadcasts to `node`.
    node : Node
        What the adjoint belongs to.

    Returns
    -------
    array or Node
        Of the shape of `node`, and of its dtype if that is floating or complex; a scalar if that is one.

    Raises
    ------
    TypeError
        If `value` is no number, or is complex and `node` real.
    ValueError
        If `value` does not broadcast to `node`.
    """
    require_history(value)
    require_computed(value, "the adjoint")
    given = stack_nested(value)
    if not isinstance(given, Value):
        given = np.asarray(given)
    if given.dtype.kind not in "biufc":
        raise TypeError(f"the adjoint of the {describe(node)} is made of numbers, not a {type(value).__name__} of {given.dtype}")
    if given.dtype.kind == "c" and node.dtype.kind != "c":
        raise TypeError(f"the adjoint is complex, but belongs to the {describe(node)}; give its parts one by one")
    if given.shape != node.shape:
        try:
            given = np.broadcast_to(given, node.shape)
        except ValueError:
            raise ValueError(f"the adjoint has shape {given.shape}, and does not broadcast to the {describe(node)}") from None
        given = given if isinstance(given, Value) else given.copy()
    if node.dtype.kind in "fc":
        given = _of_dtype(given, node.dtype)
    return given[()] if node.is_scalar and not isinstance(given, Value) else given


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
