"""What NumPy lacks: activations, losses, and a value that no derivative passes.

Each is a `primitive`: one node of the graph, computed by plain NumPy, with its rule in `autodiff.grads`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import operations
from ..graph import Node, as_operands, record
from ..graph.context import holding
from ..graph.hollow import solidly
from ..protocols import named, primitive


def _kept(x: ArrayLike) -> np.ndarray[Any, Any]:
    """An array; a node as it is, so that the steps of a function are recorded where one asks for them."""
    return x if isinstance(x, Node) else np.asarray(x)


# ------------------------------------------------------------------------------------------ activations


@primitive
def relu(x: ArrayLike) -> Any:
    """The positive part of x, element by element.

    Parameters
    ----------
    x : array_like
        Of any shape.

    Returns
    -------
    array
        ``max(x, 0)``, of the shape and dtype of `x`. The derivative at 0 is taken to be 0.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.relu([-1.0, 2.0])
    array([0., 2.])
    """
    return np.maximum(x, 0)


@primitive
def sigmoid(x: ArrayLike) -> Any:
    """The logistic function ``1 / (1 + exp(-x))``, without overflow.

    Parameters
    ----------
    x : array_like
        Of any shape.

    Returns
    -------
    array
        Of the shape of `x`, between 0 and 1.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.sigmoid([-1000.0, 0.0, 1000.0])
    array([0. , 0.5, 1. ])
    """
    x = np.asarray(x)
    decay = np.exp(-np.abs(x))
    return (np.where(x >= 0, 1, decay) / (1 + decay))[()]


@primitive
def softplus(x: ArrayLike) -> Any:
    """A smooth relu, ``log(1 + exp(x))``, without overflow.

    Parameters
    ----------
    x : array_like
        Of any shape.

    Returns
    -------
    array
        Of the shape of `x`.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.softplus([-1000.0, 0.0, 1000.0]).round(4).tolist()
    [0.0, 0.6931, 1000.0]
    """
    return np.logaddexp(x, 0)


@primitive
def logsumexp(x: ArrayLike, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
    """The logarithm of the sum of exponentials, without overflow.

    Parameters
    ----------
    x : array_like
        Of any shape.
    axis : int, tuple of int, or None
        The axes to sum over; all by default.
    keepdims : bool
        Whether these axes stay, with length one.

    Returns
    -------
    array
        ``log(sum(exp(x)))``.

    Examples
    --------
    >>> import compgraph as cg
    >>> float(cg.logsumexp([1000.0, 1000.0]).round(4))
    1000.6931
    """
    x = np.asarray(x)
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis=axis)[()]


@primitive
def softmax(x: ArrayLike, *, axis: int | tuple[int, ...] | None = -1) -> Any:
    """Exponentials divided by their sum, without overflow.

    Parameters
    ----------
    x : array_like
        Of any shape.
    axis : int, tuple of int, or None
        The axes along which the results sum to one; the last by default.

    Returns
    -------
    array
        Of the shape of `x`.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.softmax([1000.0, 1000.0])
    array([0.5, 0.5])
    """
    x = _kept(x)
    raised = np.exp(x - x.max(axis=axis, keepdims=True))
    return raised / raised.sum(axis=axis, keepdims=True)


@primitive
def log_softmax(x: ArrayLike, *, axis: int | tuple[int, ...] | None = -1) -> Any:
    """The logarithm of `softmax`, without overflow.

    Parameters
    ----------
    x : array_like
        Of any shape.
    axis : int, tuple of int, or None
        The axes along which the exponentials sum to one; the last by default.

    Returns
    -------
    array
        Of the shape of `x`.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.log_softmax([10000.0, 0.0])
    array([     0., -10000.])
    """
    x = _kept(x)
    below = x - x.max(axis=axis, keepdims=True)
    return below - np.log(np.sum(np.exp(below), axis=axis, keepdims=True))


# --------------------------------------------------------------------------------------------- losses


@primitive
def softmax_cross_entropy(logits: ArrayLike, labels: ArrayLike) -> Any:
    """The cross-entropy of `softmax(logits)` relative to labels, averaged over the batch.

    Parameters
    ----------
    logits : array_like
        Scores, of shape ``(..., classes)``.
    labels : array_like
        Probabilities or one-hot labels of the shape of `logits`, or integer class numbers of shape ``(...)``.

    Returns
    -------
    scalar
        The mean over the batch of ``-sum(labels * log_softmax(logits))``, in nats. It is finite, and so is its
        gradient, for logits of any finite size.

    Raises
    ------
    ValueError
        If the shapes do not match, or a class number is out of range.
    TypeError
        If class numbers are not integers.

    Notes
    -----
    C. M. Bishop, *Pattern Recognition and Machine Learning*, Springer 2006, eq. (4.108).

    Examples
    --------
    >>> import compgraph as cg
    >>> round(float(cg.softmax_cross_entropy([[1e4, 0.0], [0.0, 0.0]], [0, 1])), 4)
    0.3466
    """
    logits, labels = _kept(logits), _kept(labels)
    classes = logits.shape[-1] if logits.ndim else 0
    if labels.shape == logits.shape[:-1] and logits.ndim:
        below = logits - logits.max(axis=-1, keepdims=True)
        below = below if below.ndim == 2 else below.reshape(-1, classes)
        terms = np.log(np.exp(below).sum(axis=-1)) - record(_of_class, (below, labels))
        return np.add.reduce(terms) / max(1, len(below))
    if labels.shape != logits.shape or not logits.ndim:
        raise ValueError(
            f"softmax_cross_entropy: logits of shape {logits.shape} need labels of that shape, or class numbers of "
            f"shape {logits.shape[:-1]}, not {labels.shape}"
        )
    terms = labels * log_softmax.function(logits)  # type: ignore[attr-defined]
    return -np.sum(terms) / max(1, logits.size // classes)


def _of_class(below: Any, labels: Any) -> Any:
    """From each row the element of its class."""
    classes = below.shape[-1]
    if labels.dtype.kind not in "iu":
        raise TypeError(f"softmax_cross_entropy: class numbers must be integers, not {labels.dtype}")
    if labels.size and not (labels.min() >= 0 and labels.max() < classes):
        raise ValueError(f"softmax_cross_entropy: class numbers must be from 0 to {classes - 1}")
    return below[np.arange(len(below)), labels.reshape(-1)]


operations.enter_piecewise(_of_class, "of_class")  # never differentiated: the cross-entropy has a rule of its own


@primitive
def sigmoid_cross_entropy(logits: ArrayLike, labels: ArrayLike) -> Any:
    """The cross-entropy of `sigmoid(logits)` relative to labels, averaged over all elements.

    Parameters
    ----------
    logits : array_like
        Scores, of any shape.
    labels : array_like
        Probabilities from 0 to 1, of the same shape.

    Returns
    -------
    scalar
        The mean of ``-labels * log(sigmoid(logits)) - (1 - labels) * log(1 - sigmoid(logits))``, in nats, without
        overflow.

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> import compgraph as cg
    >>> round(float(cg.sigmoid_cross_entropy([0.0, 1e4], [1.0, 1.0])), 4)
    0.3466
    """
    logits, labels = np.asarray(logits), np.asarray(labels)
    if labels.shape != logits.shape:
        raise ValueError(f"sigmoid_cross_entropy: logits have shape {logits.shape}, labels {labels.shape}")
    return np.mean(np.maximum(logits, 0) - logits * labels + np.log1p(np.exp(-np.abs(logits))))


def expand(x: Any, axis: int | tuple[int, ...] = -1, *, name: str | None = None) -> Any:
    """`x` with one more axis of length one, so that it broadcasts: a vector becomes a column.

    Parameters
    ----------
    x : array_like or Node
        Of any shape.
    axis : int or tuple of int
        Where the axis is to be in the result, as in ``np.expand_dims``; the last by default.
    name : str, optional
        A name for the node.

    Returns
    -------
    array or Node

    Raises
    ------
    numpy.exceptions.AxisError
        If the result has no such axis.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.expand([1.0, 2.0]) * [10.0, 100.0]
    array([[ 10., 100.],
           [ 20., 200.]])
    """
    return named(np.expand_dims)(x, axis, name=name)


def stop_gradient(x: Any) -> Any:
    """The value of `x` as a node that no derivative passes.

    Parameters
    ----------
    x : array_like or Node
        Of any shape.

    Returns
    -------
    array or Node
        The same value. The graph still shows where it came from, and a graph that is run again computes it again.

    Examples
    --------
    >>> import compgraph as cg
    >>> from autodiff.reverse import gradient
    >>> x = cg.variable(3.0)
    >>> gradient(x * cg.stop_gradient(x))[x]
    np.float64(3.0)
    """
    with solidly():  # it says that the numbers are meant, so they may be taken
        found = record(operations.stop_gradient, as_operands((x,)))
    held = holding.get()
    return found if held is None or isinstance(found, Node) else held(found)


operations.INLINED.update(vars(p)["function"] for p in (softmax, log_softmax, softmax_cross_entropy))
